"""Arrays, maps and rows: their constructors, elements and fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flinkcore.sql.expressions.conditions import converted
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, text_of
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import LogicalType, Root


def _rows_of(rows: Evaluation, call: RexCall, kinds: list[LogicalType]) -> list[tuple[Any, ...]]:
    arrays = [
        converted(rows(operand), operand.type, kind)
        for operand, kind in zip(call.operands, kinds, strict=True)
    ]
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


@function("ARRAY")
def array(rows: Evaluation, call: RexCall) -> pa.Array:
    element = call.type.children[0][1]
    values = _rows_of(rows, call, [element] * len(call.operands))
    return pa.array([list(each) for each in values], call.type.arrow)


@function("MAP")
def map_(rows: Evaluation, call: RexCall) -> pa.Array:
    kinds = [kind for _, kind in call.type.children] * (len(call.operands) // 2)
    values = _rows_of(rows, call, kinds)
    return pa.array(
        [list(dict(zip(each[::2], each[1::2], strict=True)).items()) for each in values], call.type.arrow
    )


@function("ROW", state="pyarrow")
def row(rows: Evaluation, call: RexCall) -> pa.Array:
    kinds = [kind for _, kind in call.type.children]
    arrays = [
        converted(rows(operand), operand.type, kind)
        for operand, kind in zip(call.operands, kinds, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(call.type.arrow))


@function("ITEM")
def item(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(values: Any, key: Any) -> Any:
        if call.operands[0].type.root is Root.MAP:
            return dict(values).get(key)
        return values[key - 1] if 1 <= key <= len(values) else None

    return by_row(rows, call, of_row, *map(rows, call.operands))


@function("CARDINALITY")
def cardinality(rows: Evaluation, call: RexCall) -> pa.Array:
    return by_row(rows, call, len, rows(call.operands[0]))


@function("SPLIT")
def split(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(text: str, separator: str) -> list[str]:
        if not text:
            return []
        return text.split(separator) if separator else list(text)

    return by_row(rows, call, of_row, *map(rows, call.operands))


def _separators(call: RexCall) -> str | None:
    given = [text_of(operand) for operand in call.operands[1:]]
    if all(each is not None and len(each) == 1 and each not in "|.$^*+?()[{\\" for each in given):
        return None
    return "STR_TO_MAP takes separators of one character, which regular expressions do not use"


@function("STR_TO_MAP", check=_separators)
def str_to_map(rows: Evaluation, call: RexCall) -> pa.Array:
    separators = [text_of(operand) or "" for operand in call.operands[1:]]
    pairs, pair = [*separators, *(",", "=")[len(separators) :]]

    def of_row(text: str) -> list[tuple[str, str | None]]:
        found: dict[str, str | None] = {}
        for part in text.split(pairs):
            key, has, value = part.partition(pair)
            found[key] = value if has else None
        return list(found.items())

    return by_row(rows, call, of_row, rows(call.operands[0]))
