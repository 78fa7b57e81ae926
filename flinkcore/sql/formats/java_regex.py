"""Regular expressions of ``java.util.regex`` as those of Python, as far as the two mean the same."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Final

from flinkcore.errors import UnsupportedOperationError

_LINE: Final = "\n\r\u0085\u2028\u2029"
_OF_ONE_CHARACTER: Final = frozenset("dDwWsSbBtnrfaA\\.[]{}()*+?^$|/-&~#'\"<>=!%@,:;_ ")
_ESCAPES: Final = {
    "z": "\\Z",
    "e": "\\x1b",
    "Z": f"(?=(?:\r\n|[{_LINE}])?\\Z)",
    "h": "[ \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000]",
}
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "0-9A-Za-z",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9A-Fa-f",
    "Space": " \\t\\n\\x0b\\f\\r",
}
_CATEGORIES: Final = frozenset(("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "Nd", "P", "S", "Z", "Zs"))


@lru_cache(maxsize=32)
def _category(name: str) -> str:
    """Return the characters of a category of Unicode as ranges within a class."""
    ranges: list[str] = []
    first = None
    for code in range(sys.maxunicode + 2):
        belongs = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if belongs and first is None:
            first = code
        elif not belongs and first is not None:
            ranges.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(ranges)


def _property(rest: str, pattern: str, in_class: bool) -> tuple[str, int]:
    """Return a class for ``\\p{...}`` or ``\\P{...}``, and how many characters of the pattern it takes."""
    match = re.match(r"\\([pP])(?:\{(?:Is)?(\w+)\}|(\w))", rest)
    name = "" if match is None else match[2] or match[3]
    if match is None or (name not in _POSIX and name not in _CATEGORIES):
        raise UnsupportedOperationError(f"{rest[:6]} in {pattern!r}")
    inside = _POSIX.get(name) or _category(name)
    if match[1] == "P":
        if in_class:
            raise UnsupportedOperationError(f"{match[0]} within a class in {pattern!r}")
        return f"[^{inside}]", match.end()
    return (inside if in_class else f"[{inside}]"), match.end()


@lru_cache(maxsize=512)
def java_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return a regular expression of Java's as one of Python's, or None if Java refuses it.

    Raises
    ------
    UnsupportedOperationError
        If the two read a part of it in different ways.
    """
    translated: list[str] = []
    in_class, at, dot, flags = False, 0, f"[^{_LINE}]", re.ASCII
    start = re.match(r"\(\?([a-zA-Z]+)\)", pattern)
    if start is not None and set(start[1]) <= set("is"):
        at = start.end()
        flags |= re.IGNORECASE if "i" in start[1] else re.ASCII
        dot = r"[\s\S]" if "s" in start[1] else dot
    while at < len(pattern):
        mark = pattern[at]
        rest = pattern[at:]
        taken = 1
        if mark == "\\":
            mark, taken = _escape(rest, pattern, in_class)
        elif in_class:
            if mark == "[" or rest.startswith("&&"):
                raise UnsupportedOperationError(f"a class within a class in {pattern!r}")
            in_class = mark != "]"
        elif mark == "[":
            in_class = True
            if rest[1:2] == "]" or rest[1:3] == "^]":
                raise UnsupportedOperationError(f"a class that begins with ] in {pattern!r}")
        elif rest.startswith("(?"):
            mark, taken = _group(rest, pattern)
        elif re.match(r"(?:[*+?]|\{\d+(?:,\d*)?\})\+", rest) and sys.version_info < (3, 11):
            raise UnsupportedOperationError(f"a possessive quantifier in {pattern!r}")
        elif mark == ".":
            mark = dot
        elif mark == "$":
            mark = f"(?=(?:\r\n|[{_LINE}])?\\Z)"
        translated.append(mark)
        at += taken
    try:
        return re.compile("".join(translated), flags)
    except re.error as error:
        if "look-behind" in str(error):
            raise UnsupportedOperationError(f"a lookbehind of several lengths in {pattern!r}") from None
        return None


def _escape(rest: str, pattern: str, in_class: bool) -> tuple[str, int]:
    letter = rest[1:2]
    if letter in ("p", "P"):
        return _property(rest, pattern, in_class)
    if letter == "Q":
        end = rest.find("\\E", 2)
        quoted = rest[2:] if end < 0 else rest[2:end]
        return re.escape(quoted), len(rest) if end < 0 else end + 2
    named = re.match(r"\\k<(\w+)>", rest)
    if named is not None:
        return f"(?P={named[1]})", named.end()
    code = re.match(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})", rest)
    if code is not None:
        return code[0], code.end()
    if letter in _ESCAPES and not in_class:
        return _ESCAPES[letter], 2
    if letter and letter not in _OF_ONE_CHARACTER and not letter.isdigit():
        raise UnsupportedOperationError(f"{rest[:2]} in {pattern!r}")
    if letter == "0":
        raise UnsupportedOperationError(f"an octal number in {pattern!r}")
    return rest[:2], 2


def _group(rest: str, pattern: str) -> tuple[str, int]:
    match = re.match(r"\(\?(?::|=|!|<=|<!|i:)", rest)
    if match is not None:
        return match[0], match.end()
    named = re.match(r"\(\?<([A-Za-z][0-9A-Za-z]*)>", rest)
    if named is not None:
        return f"(?P<{named[1]}>", named.end()
    if rest.startswith("(?>") and sys.version_info >= (3, 11):
        return "(?>", 3
    raise UnsupportedOperationError(f"{rest[:3]} in {pattern!r}")


def java_split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Return Java's ``String.split``, without empty texts at the end."""
    parts: list[str] = []
    at = 0
    for match in separator.finditer(text):
        if match.end() == 0:
            continue
        parts.append(text[at : match.start()])
        at = match.end()
    parts.append(text[at:])
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts != [""] or not text else []
