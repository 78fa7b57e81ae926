"""Regular expressions of Java: by Arrow where its own mean the same, otherwise by Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.arrow import ColumnArray
from flinkcore._native.text_parts import text_after
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, integer_of, text_of
from flinkcore.sql.formats.java_regex import java_pattern
from flinkcore.sql.plan.rex import RexCall


def _translatable(call: RexCall) -> str | None:
    pattern = text_of(call.operands[1])
    if pattern is not None:
        try:
            java_pattern(pattern)
        except UnsupportedOperationError as error:
            return f"{call.name}: {error} has another meaning in Java than here"
    return None


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of a row, or None if Java refuses it; ValueError if it has another meaning here."""
    try:
        return java_pattern(pattern)
    except UnsupportedOperationError as error:
        raise ValueError(f"{error} has another meaning in Java than here") from None


_SAME_IN_RE2: Final = re.compile(
    r"(?:[\w =&/:,;@#%<>\"'~`!_-]|\(\?:|[()|*+?^]|\[\^?[\w =&/:,;@#%.-]+\]"
    r"|\\[dwD./?+*()\[\]|^$\\-])*",
    re.ASCII,
)
"""Patterns that mean the same to Arrow's regular expressions: without the end of the text, dots and blanks."""


def _group_of_re2(pattern: str, group: int) -> str | None:
    """Return a pattern for Arrow whose only group is one of a pattern of Java's; None if Arrow may find another one.

    The group is not within another one, and not left out by an alternative or a quantifier: Arrow takes a group that
    matches nothing for an empty text.
    """
    if not _SAME_IN_RE2.fullmatch(pattern) or group < 1:
        return None
    parts: list[str] = []
    number, depth, at, closes = 0, 0, 0, -1
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
            continue
        if mark == "[":
            end = pattern.index("]", at + 2)
            parts.append(pattern[at : end + 1])
            at = end + 1
            continue
        if mark == "(":
            is_group = pattern[at + 1 : at + 2] != "?"
            number += is_group
            if is_group and number == group:
                if depth:
                    return None
                parts.append("(?P<found>")
                closes = depth
            else:
                parts.append("(?:" if is_group else "(")
            depth += 1
        elif mark == ")":
            depth -= 1
            parts.append(mark)
            if depth == closes:
                closes = -1
                if pattern[at + 1 : at + 2] in tuple("?*+{"):
                    return None
        elif mark == "|" and depth == 0:
            return None
        else:
            parts.append(mark)
        at += 1
    return "".join(parts) if number >= group and depth == 0 else None


_PLAIN: Final = r"(?:[\w =&/:,;@#%<>\"'~`!-]|\\[./?+*()\[\]|^$\\-])"

_AFTER_A_MARK: Final = re.compile(
    rf"(?:\(\?:((?:{_PLAIN}|\^)(?:\|(?:{_PLAIN}|\^))*)\))?({_PLAIN}+)"
    r"\(\?P<found>(\[\^?[^]\\]+\]|\\[dwD])([*+])\)",
    re.ASCII,
)
"""Patterns for Arrow such as ``(?:&|^)key=(?P<found>[^&]*)``: perhaps one character, a text, and some of a class."""


_START: Final = re.compile(r"(?<!\\)\^")


@lru_cache(maxsize=512)
def _after_a_mark(pattern: str) -> tuple[bytes, bool, bytes, bytes, bool] | None:
    """Return the arguments of `text_after` that a pattern for Arrow is, or None if it is of another kind."""
    match = _AFTER_A_MARK.fullmatch(pattern)
    if match is None:
        return None
    before, mark, members, quantifier = match.groups()
    found = []
    for one in (before or r"[\s\S]", members):
        of_bytes = re.compile(_START.sub("(?!)", one) if one is before else one, re.ASCII)
        flags = [of_bytes.fullmatch(chr(code)) is not None for code in range(128)]
        found.append(bytes(flags) + bytes([of_bytes.fullmatch("ä") is not None]) * 128)
    is_first = before is None or _START.search(before) is not None
    return found[0], is_first, re.sub(r"\\(.)", r"\1", mark).encode(), found[1], quantifier == "+"


@function("REGEXP", "RLIKE", check=_translatable)
def regexp(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = text_of(call.operands[1])
    if pattern and _SAME_IN_RE2.fullmatch(pattern) and java_pattern(pattern) is not None:
        return pc.match_substring_regex(rows(call.operands[0]), pattern)

    def of_row(text: str, pattern: str) -> bool:
        compiled = _compiled(pattern) if pattern else None
        return compiled is not None and compiled.search(text) is not None

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


@function("REGEXP_EXTRACT", check=_translatable)
def regexp_extract(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = text_of(call.operands[1])
    group = 0 if len(call.operands) == 2 else integer_of(call.operands[2])
    if pattern is not None and java_pattern(pattern) is not None:
        of_arrow = _group_of_re2(pattern, group or 0)
        after = None if of_arrow is None else _after_a_mark(of_arrow)
        if after is not None:
            return pa.array(text_after(ColumnArray(rows(call.operands[0])), *after))
        if of_arrow is not None:
            return pc.struct_field(pc.extract_regex(rows(call.operands[0]), of_arrow), "found")

    def of_row(text: str, pattern: str, group: int = 0) -> str | None:
        compiled = _compiled(pattern)
        match = None if compiled is None else compiled.search(text)
        if match is None or compiled is None or not 0 <= group <= compiled.groups:
            return None
        found: str | None = match[group]
        return found

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


@function("REGEXP_REPLACE", check=_translatable)
def regexp_replace(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(text: str, pattern: str, replacement: str) -> str | None:
        compiled = _compiled(pattern)
        return None if compiled is None else compiled.sub(lambda match: replacement, text)

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


def _matching(name: str, of_pattern: Callable[..., Any]) -> None:
    """Enter a function of a text, a compiled pattern, and perhaps more; it is null if Java refuses the pattern."""

    def of_row(text: str, pattern: str, *others: Any) -> Any:
        compiled = _compiled(pattern)
        return None if compiled is None else of_pattern(text, compiled, *others)

    def evaluate(rows: Evaluation, call: RexCall) -> pa.Array:
        return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)

    function(name, check=_translatable)(evaluate)


def _all(text: str, pattern: re.Pattern[str], group: int = 1) -> list[str | None] | None:
    if not 0 <= group <= pattern.groups:
        return None
    return [match[group] for match in pattern.finditer(text)]


def _first(text: str, pattern: re.Pattern[str]) -> str | None:
    match = pattern.search(text)
    return None if match is None else match[0]


def _place(text: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(text)
    return 0 if match is None else len(text[: match.start()].encode("utf-16-le")) // 2 + 1


_matching("REGEXP_COUNT", lambda text, pattern: sum(1 for _ in pattern.finditer(text)))
_matching("REGEXP_EXTRACT_ALL", _all)
_matching("REGEXP_INSTR", _place)
_matching("REGEXP_SUBSTR", _first)
