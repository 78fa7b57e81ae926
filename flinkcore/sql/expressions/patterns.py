"""LIKE, SIMILAR TO and regular expressions of Java, as far as Python's mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, integer_of, text_of
from flinkcore.sql.plan.rex import RexCall

_LINE: Final = "\n\r\u0085\u2028\u2029"
_OF_ONE_CHARACTER: Final = frozenset("dDwWsSbBtnrf\\.[]{}()*+?^$|/-&~#'\"<>=!%@,:; ")


@lru_cache(maxsize=512)
def java_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return a regular expression of Java's as one of Python's, or None if Java refuses it.

    Raises
    ------
    UnsupportedOperationError
        If it has what the two read in different ways.
    """
    translated: list[str] = []
    in_class, at = False, 0
    while at < len(pattern):
        mark = pattern[at]
        rest = pattern[at:]
        if mark == "\\":
            if len(rest) > 1 and rest[1] not in _OF_ONE_CHARACTER and not rest[1].isdigit():
                raise UnsupportedOperationError(f"{rest[:2]} in {pattern!r}")
            translated.append(rest[:2])
            at += 2
            continue
        if in_class:
            if mark == "[" or rest.startswith("&&"):
                raise UnsupportedOperationError(f"a class within a class in {pattern!r}")
            in_class = mark != "]"
        elif mark == "[":
            in_class = True
            if rest[1:2] == "]" or rest[1:3] == "^]":
                raise UnsupportedOperationError(f"a class that begins with ] in {pattern!r}")
        elif rest.startswith("(?") and rest[2:3] not in (":", "=", "!"):
            raise UnsupportedOperationError(f"{rest[:3]} in {pattern!r}")
        elif re.match(r"(?:[*+?]|\{\d+(?:,\d*)?\})\+", rest):
            raise UnsupportedOperationError(f"a possessive quantifier in {pattern!r}")
        elif mark == ".":
            mark = f"[^{_LINE}]"
        elif mark == "$":
            mark = f"(?=(?:\r\n|[{_LINE}])?\\Z)"
        translated.append(mark)
        at += 1
    try:
        return re.compile("".join(translated), re.ASCII)
    except re.error:
        return None


def _translatable(call: RexCall, at: int = 1) -> str | None:
    pattern = text_of(call.operands[at])
    if pattern is None:
        return f"{call.name} takes a constant pattern"
    try:
        java_pattern(pattern)
    except UnsupportedOperationError as error:
        return f"{call.name}: {error} has another meaning in Java than here"
    return None


@lru_cache(maxsize=512)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """Return the regular expression of a LIKE pattern.

    Raises
    ------
    ValueError
        If the escape character stands before anything but a wildcard or itself.
    """
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        if mark == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("_", "%", escape):
                raise ValueError(f"Invalid escape sequence '{pattern}', {at - 1}")
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(mark) or re.escape(mark))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


def _like_pattern(call: RexCall) -> str | None:
    pattern = text_of(call.operands[1])
    escape = text_of(call.operands[2]) if len(call.operands) == 3 else None
    if pattern is None or (len(call.operands) == 3 and escape is None):
        return "LIKE takes a constant pattern"
    try:
        like_pattern(pattern, escape)
    except ValueError as error:
        return f"LIKE: {error}"
    return None


@function("LIKE", state="pyarrow", check=_like_pattern)
def like(rows: Evaluation, call: RexCall) -> pa.Array:
    texts = rows(call.operands[0])
    pattern = text_of(call.operands[1]) or ""
    if len(call.operands) == 2 and "\\" not in pattern:
        return pc.match_like(texts, pattern)
    escape = text_of(call.operands[2]) if len(call.operands) == 3 else None
    compiled = like_pattern(pattern, escape)
    return by_row(rows, call, lambda text: compiled.fullmatch(text) is not None, texts)


_SIMILAR_PLAIN: Final = re.compile(r"[\w \-\[\]+*?()|,.:;@#/^%]*")


def similar_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return the regular expression of a SIMILAR TO pattern without escapes and named classes, or None."""
    if not _SIMILAR_PLAIN.fullmatch(pattern) or "[:" in pattern or "[" in re.sub(r"\[[^\]]*\]", "", pattern):
        return None
    parts, in_class = [], False
    for mark in pattern:
        if in_class or mark in "[]()|+*?":
            in_class = mark != "]" if in_class else mark == "["
            parts.append(mark)
        else:
            parts.append({"%": ".*", "_": "."}.get(mark) or re.escape(mark))
    try:
        return re.compile("".join(parts), re.DOTALL | re.ASCII)
    except re.error:
        return None


def _similar(call: RexCall) -> str | None:
    pattern = text_of(call.operands[1])
    if len(call.operands) == 2 and pattern is not None and similar_pattern(pattern) is not None:
        return None
    return f"SIMILAR TO {pattern!r} is not supported: take LIKE or REGEXP"


@function("SIMILAR TO", check=_similar)
def similar(rows: Evaluation, call: RexCall) -> pa.Array:
    compiled = similar_pattern(text_of(call.operands[1]) or "")
    assert compiled is not None
    return by_row(rows, call, lambda text: compiled.fullmatch(text) is not None, rows(call.operands[0]))


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


@function("REGEXP", "RLIKE", check=_translatable)
def regexp(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = text_of(call.operands[1]) or ""
    if pattern and _SAME_IN_RE2.fullmatch(pattern) and java_pattern(pattern) is not None:
        return pc.match_substring_regex(rows(call.operands[0]), pattern)
    compiled = java_pattern(pattern) if pattern else None
    return by_row(
        rows,
        call,
        lambda text: compiled is not None and compiled.search(text) is not None,
        rows(call.operands[0]),
    )


@function("REGEXP_EXTRACT", check=_translatable)
def regexp_extract(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = text_of(call.operands[1]) or ""
    compiled = java_pattern(pattern)
    group = 0 if len(call.operands) == 2 else integer_of(call.operands[2])
    of_arrow = None if compiled is None else _group_of_re2(pattern, group or 0)
    if of_arrow is not None:
        return pc.struct_field(pc.extract_regex(rows(call.operands[0]), of_arrow), "found")

    def of_row(text: str) -> str | None:
        match = None if compiled is None else compiled.search(text)
        if match is None or compiled is None or group is None or not 0 <= group <= compiled.groups:
            return None
        found: str | None = match[group]
        return found

    return by_row(rows, call, of_row, rows(call.operands[0]))


def _replacement(text: str) -> Callable[[re.Match[str]], str]:
    """Return the replacement of Java's ``Matcher.replaceAll``: $1 is a group, and a backslash quotes."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$" and text[at + 1 : at + 2].isdigit():
            parts.append(int(text[at + 1]))
            at += 2
        else:
            parts.append(text[at])
            at += 1
    return lambda match: "".join(part if isinstance(part, str) else match[part] or "" for part in parts)


def _replaceable(call: RexCall) -> str | None:
    if text_of(call.operands[2]) is None:
        return "REGEXP_REPLACE takes a constant replacement"
    return _translatable(call)


@function("REGEXP_REPLACE", check=_replaceable)
def regexp_replace(rows: Evaluation, call: RexCall) -> pa.Array:
    compiled = java_pattern(text_of(call.operands[1]) or "")
    replacement = _replacement(text_of(call.operands[2]) or "")

    def of_row(text: str) -> Any:
        return None if compiled is None else compiled.sub(replacement, text)

    return by_row(rows, call, of_row, rows(call.operands[0]))
