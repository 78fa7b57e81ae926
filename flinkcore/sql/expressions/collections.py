"""Arrays, maps and rows: their constructors, elements and fields."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.conditions import converted
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, require_times_of_day
from flinkcore.sql.formats.java_regex import java_pattern, java_split
from flinkcore.sql.plan.rex import FIELD, Literal, RexCall
from flinkcore.sql.types.logical_types import LogicalType, Root


def _rows_of(rows: Evaluation, call: RexCall, kinds: list[LogicalType]) -> list[tuple[Any, ...]]:
    arrays = [
        converted(rows(operand), operand.type, kind)
        for operand, kind in zip(call.operands, kinds, strict=True)
    ]
    for array, kind in zip(arrays, kinds, strict=True):
        require_times_of_day(array, kind)
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
    for row, each in enumerate(values):
        if any(key is None for key in each[::2]):
            rows.fail(row, "a map has a key that is null, which maps of Arrow cannot hold")
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


@function(FIELD, state="pyarrow")
def field(rows: Evaluation, call: RexCall) -> pa.Array:
    of_row, name = call.operands
    assert isinstance(name, Literal)
    number = [each for each, _ in of_row.type.children].index(name.value)
    return pc.struct_field(rows(of_row), [number])


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


@function("STR_TO_MAP")
def str_to_map(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(text: str, pairs: str = ",", pair: str = "=") -> list[tuple[str, str | None]]:
        of_pairs, of_pair = _separator(pairs), _separator(pair)
        found: dict[str, str | None] = {}
        for part in java_split(text, of_pairs) if text else ():
            match = next((each for each in of_pair.finditer(part) if each.end()), None)
            if match is None:
                found[part] = None
            else:
                found[part[: match.start()]] = part[match.end() :]
        return list(found.items())

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


def _separator(pattern: str) -> re.Pattern[str]:
    try:
        compiled = java_pattern(pattern)
    except UnsupportedOperationError as error:
        raise ValueError(f"the separator {error} has another meaning in Java than here") from None
    if compiled is None:
        raise ValueError(f"{pattern!r} is not a regular expression")
    return compiled
