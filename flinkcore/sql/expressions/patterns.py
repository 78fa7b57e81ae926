"""LIKE and SIMILAR TO."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, text_of
from flinkcore.sql.plan.rex import RexCall


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
    if len(call.operands) == 3 and escape is None:
        return "LIKE takes a constant escape character"
    try:
        like_pattern(pattern or "", escape)
    except ValueError as error:
        return f"LIKE: {error}"
    return None


@function("LIKE", state="pyarrow", check=_like_pattern)
def like(rows: Evaluation, call: RexCall) -> pa.Array:
    texts = rows(call.operands[0])
    pattern = text_of(call.operands[1])
    if len(call.operands) == 2 and pattern is not None and "\\" not in pattern:
        return pc.match_like(texts, pattern)
    escape = text_of(call.operands[2]) if len(call.operands) == 3 else None

    def of_row(text: str, pattern: str) -> bool:
        return like_pattern(pattern, escape).fullmatch(text) is not None

    return by_row(rows, call, of_row, texts, rows(call.operands[1]), fails=True)


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
