"""Descriptions, comments, messages and pages avoid phrases that readers stumble over; old ones become fewer.

``prose_allowance.json`` has the number of matches that each folder still has of each pattern. To lower it to what is
found, run this file: ``python tests/unit/test_prose.py``. It never raises a number.
"""

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
ALLOWANCE = Path(__file__).with_name("prose_allowance.json")
PLACES = r"(watermarks?|clocks?|load balancer|links?|end of event time)"


class Pattern(NamedTuple):
    """A phrase to avoid: where it is looked for, and the remedy."""

    kinds: str
    text: str
    remedy: str


PATTERNS = {
    "of": Pattern(
        "docstring comment",
        r"(?m)^\s*(Of|Those of|That of) (?!course)",
        "write a noun phrase that stands alone",
    ),
    "what": Pattern(
        "docstring comment heading",
        r"(?m)\A\s*(Whether|When|Where|Which|Why)\b(?![^.]*\?)(?! to\b)|^\s*(What|How|Who)\b(?![^.]*\?)(?! to\b)",
        "begin with a verb or a noun; questions end with a question mark",
    ),
    "gives": Pattern("docstring", r"\A\s*Gives?\b", "write Return, Yield or Emit"),
    "told": Pattern(
        "docstring comment message heading page",
        r"(?<!\.)\b([Tt]old|[Tt]ells?)\b(?!( [\w.`-]+){0,4} apart\b)",
        "write report, describe, warn or raise",
    ),
    "is no": Pattern(
        "docstring comment message page",
        r"(?<![Tt]here )\b(is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b|other\b)"
        r"|\b[Tt]here (is|are|was|were) none\b",
        "write is not a",
    ),
    "of a number": Pattern(
        "docstring comment page", r"\bof (a|its|the|their) number\b(?! of\b)", "name the parameter"
    ),
    "none": Pattern("docstring comment", r"(?<!-> )\bNone: ", "write or None if"),
    "also": Pattern(
        "docstring comment message page", r", also (where|if|of|when)\b", "write a sentence of its own"
    ),
    "behind": Pattern(
        "docstring comment message heading page",
        rf"(?<!far )(?<!ms )(?<!lag )(?<!trails )(?<!trail )(?<!falls )(?<!fall )(?<!fell )(?<!lags )"
        r"(?<!leaves )(?<!left )"
        rf"\b[Bb]ehind\b(?!(, \w+)* : )(?! (the|its|a|an|each|every|their|this)( \w+)? {PLACES}\b)(?! {PLACES}\b)",
        "write after; only places, watermarks and clocks have something behind them",
    ),
    "amid": Pattern(
        "docstring comment message heading page",
        r"\b([Aa]mid|[Aa]new|at hand|lets? go|goes on|on its way|on their way)\b",
        "write during, again, current, release, continues",
    ),
}


class Text(NamedTuple):
    """A piece of prose: its kind, file and line."""

    kind: str
    path: Path
    line: int
    text: str


def texts_of_python(path: Path) -> Iterator[Text]:
    """Yield docstrings, comments, and the messages of errors and warnings of a file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=body)
                | ast.ClassDef(body=body)
                | ast.FunctionDef(body=body)
                | ast.AsyncFunctionDef(body=body)
            ):
                for before, statement in pairwise([None, *body]):
                    match statement:
                        case ast.Expr(value=ast.Constant(value=str(text))):
                            if before is None or isinstance(before, ast.Assign | ast.AnnAssign):
                                yield Text("docstring", path, statement.lineno, text)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name == "warn" or name.endswith(("Error", "Warning")):
                    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                        for text in _strings(argument):
                            yield Text("message", path, argument.lineno, text)
    yield from _comments(path, source)


def _strings(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values)
        case ast.BinOp(left=left, right=right):
            yield from _strings(left)
            yield from _strings(right)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _strings(body)
            yield from _strings(orelse)


def _comments(path: Path, source: str) -> Iterator[Text]:
    """Yield comments; lines of comments that follow each other are one."""
    begin, last, lines = 0, -1, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and lines:
            yield Text("comment", path, begin, " ".join(lines))
            lines = []
        begin = begin if lines else token.start[0]
        lines.append(token.string.lstrip("# "))
        last = token.start[0]
    if lines:
        yield Text("comment", path, begin, " ".join(lines))


def texts_of_page(path: Path) -> Iterator[Text]:
    """Yield the headings of a page of Markdown, and its other lines outside of code."""
    in_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        in_code ^= line.startswith(("```", "<!-- setup", "-->"))
        if not in_code and not line.startswith("```"):
            yield Text("heading" if re.match(r"#+ ", line) else "page", path, number, line.lstrip("# "))


def texts() -> Iterator[tuple[str, Text]]:
    """Yield the prose of the package, the benchmarks and the documents, each with its folder."""
    for top in ("flinkcore", "benchmarks"):
        for path in sorted((ROOT / top).rglob("*.py")):
            inner = path.relative_to(ROOT).parts
            folder = "/".join(inner[:2]) if top == "flinkcore" and len(inner) > 2 else top
            for text in texts_of_python(path):
                yield folder, text
    for folder in (".", "docs", "flinkcore/*", "flinkcore/*/*", "benchmarks"):
        for path in sorted(ROOT.glob(f"{folder}/*.md")):
            for text in texts_of_page(path):
                yield "docs", text


@cache
def found() -> dict[tuple[str, str], list[str]]:
    """Return where each pattern matches, by pattern and folder."""
    places: dict[tuple[str, str], list[str]] = {}
    for folder, text in texts():
        for name, pattern in PATTERNS.items():
            if text.kind in pattern.kinds.split():
                for match in re.finditer(pattern.text, text.text):
                    line = text.line + text.text[: match.end()].count("\n")
                    begin = match.start() + len(match[0]) - len(match[0].lstrip())
                    excerpt = " ".join(text.text[max(0, begin - 20) : match.end() + 40].split())
                    places.setdefault((name, folder), []).append(
                        f"{text.path.relative_to(ROOT)}:{line}: {text.kind}: ...{excerpt}..."
                    )
    return places


def allowance() -> dict[str, dict[str, int]]:
    """Return the matches that are left, by pattern and folder."""
    return json.loads(ALLOWANCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PATTERNS)
def test_a_phrase_to_avoid_becomes_rarer(name: str) -> None:
    allowed = allowance()[name]
    counts = {folder: len(places) for (of, folder), places in found().items() if of == name}
    for folder in sorted({*allowed, *counts}):
        count, most = counts.get(folder, 0), allowed.get(folder, 0)
        places = "\n".join(found().get((name, folder), []))
        assert count <= most, (
            f"{folder} has {count} of {name!r}, at most {most}: {PATTERNS[name].remedy}\n{places}"
        )
        assert count == most, (
            f"{folder} has fewer of {name!r}: lower its allowance to {count} (run {__file__})"
        )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("of", "Of its functions."),
        ("what", "What an operator has passed on last."),
        ("what", "Return the rows.\n\n    rows : list\n        What comes up to a place."),
        ("gives", "Gives each element."),
        ("told", "The key is told to the operator."),
        ("is no", "a name is no path"),
        ("is no", "Return the rows; there are none."),
        ("of a number", "Return the log of a number."),
        ("none", "The bound; None: no bound."),
        ("also", "Raise an error, also where it is late."),
        ("behind", "Return the operators behind the first one."),
        ("amid", "Stop amid the rows."),
    ],
)
def test_a_pattern_matches_the_phrase(name: str, text: str) -> None:
    assert re.search(PATTERNS[name].text, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("what", "What does a replay cost?"),
        ("what", "How to change a job"),
        ("what", "Return what the function has returned."),
        ("is no", "is no longer late"),
        ("is no", "there is no watermark"),
        ("of a number", "of the number of rows"),
        ("none", "def call() -> None: ..."),
        ("behind", "Elements behind the watermark."),
        ("behind", "events behind the current watermark"),
        ("behind", "how far behind it lies"),
    ],
)
def test_a_pattern_does_not_match_other_uses(name: str, text: str) -> None:
    assert not re.search(PATTERNS[name].text, text)


def _lower() -> None:
    """Lower the allowance to what is found."""
    counts = Counter({key: len(places) for key, places in found().items()})
    before = allowance() if ALLOWANCE.exists() else None
    lowered = {
        name: {
            folder: min(count, before[name].get(folder, 0)) if before else count
            for (of, folder), count in sorted(counts.items())
            if of == name and (before is None or folder in before[name])
        }
        for name in PATTERNS
    }
    ALLOWANCE.write_text(json.dumps(lowered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _lower()
