"""Functions of arrays and maps. Elements are compared as ``=`` compares them, but null equals null."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

import pyarrow as pa

from flinkcore.sql.expressions.conditions import converted
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, require_times_of_day
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import FLOATS, NESTED, LogicalType, Root


def _key(value: Any) -> Any:
    """Return a key that stands for a value in sets."""
    if isinstance(value, list):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(each)) for name, each in value.items())
    return value


def _firsts(values: Iterable[Any]) -> list[Any]:
    """Return values without those that came before, in their order."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(_key(value), value)
    return list(found.values())


def _as(rows: Evaluation, call: RexCall, at: int, wanted: LogicalType) -> list[Any]:
    """Return the values of an operand as those of a type."""
    operand = call.operands[at]
    array = rows(operand)
    if operand.type.root is Root.ARRAY or operand.type.root is Root.MAP:
        found: list[Any] = array.cast(wanted.arrow).to_pylist()
        return found
    if operand.type.root is Root.NULL:
        return [None] * len(array)
    require_times_of_day(array, operand.type)
    return list(converted(array, operand.type, wanted).to_pylist())


# ---- arrays and an element, which may be null


def _with_element(name: str, of_row: Callable[[list[Any], Any], Any]) -> None:
    def evaluate(rows: Evaluation, call: RexCall) -> pa.Array:
        arrays = rows(call.operands[0]).to_pylist()
        elements = _as(rows, call, 1, call.operands[0].type.children[0][1])
        pairs = zip(arrays, elements, strict=True)
        found = [None if array is None else of_row(array, element) for array, element in pairs]
        return pa.array(found, call.type.arrow)

    function(name)(evaluate)


def _position(array: list[Any], element: Any) -> int | None:
    if element is None:
        return None
    return next((number for number, each in enumerate(array, 1) if each == element), 0)


_with_element("ARRAY_CONTAINS", lambda array, element: any(each == element for each in array))
_with_element("ARRAY_APPEND", lambda array, element: [*array, element])
_with_element("ARRAY_PREPEND", lambda array, element: [element, *array])
_with_element("ARRAY_REMOVE", lambda array, element: [each for each in array if each != element])
_with_element("ARRAY_POSITION", _position)


# ---- sets of arrays


def _of_arrays(name: str, of_row: Callable[..., list[Any]]) -> None:
    def evaluate(rows: Evaluation, call: RexCall) -> pa.Array:
        columns = [_as(rows, call, at, call.type) for at in range(len(call.operands))]
        found = [
            None if any(array is None for array in arrays) else of_row(*arrays)
            for arrays in zip(*columns, strict=True)
        ]
        return pa.array(found, call.type.arrow)

    function(name)(evaluate)


def _except(array: list[Any], others: list[Any]) -> list[Any]:
    left_out = set(map(_key, others))
    return [each for each in _firsts(array) if _key(each) not in left_out]


def _intersect(array: list[Any], others: list[Any]) -> list[Any]:
    kept = set(map(_key, others))
    return [each for each in _firsts(array) if _key(each) in kept]


_of_arrays("ARRAY_CONCAT", lambda *arrays: [each for array in arrays for each in array])
_of_arrays("ARRAY_UNION", lambda array, others: _firsts([*array, *others]))
_of_arrays("ARRAY_EXCEPT", _except)
_of_arrays("ARRAY_INTERSECT", _intersect)
_of_arrays("ARRAY_DISTINCT", _firsts)
_of_arrays("ARRAY_REVERSE", lambda array: array[::-1])


# ---- order


def _ordered(call: RexCall) -> str | None:
    element = call.operands[0].type.children[0][1]
    return (
        f"{call.name} of elements of the type {element} is not supported" if element.root in NESTED else None
    )


@function("ARRAY_MAX", "ARRAY_MIN", check=_ordered)
def array_extreme(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(array: list[Any]) -> Any:
        found: list[Any] = []
        for each in array:
            if each is not None and (
                not found or (each > found[0] if call.name == "ARRAY_MAX" else each < found[0])
            ):
                found = [each]
        return found[0] if found else None

    return by_row(rows, call, of_row, rows(call.operands[0]))


def _rising(one: float, other: float) -> int:
    return 1 if one > other else -1


def _falling(one: float, other: float) -> int:
    return 1 if one < other else -1


@function("ARRAY_SORT", check=_ordered)
def array_sort(rows: Evaluation, call: RexCall) -> pa.Array:
    of_floats = call.type.children[0][1].root in FLOATS

    def of_row(array: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
        nulls_first = ascending if nulls_first is None else nulls_first
        values = [each for each in array if each is not None]
        nulls: list[Any] = [None] * (len(array) - len(values))
        if of_floats:  # Flink's comparison has no 0, so that -0.0 and 0.0 change places
            values.sort(key=cmp_to_key(_rising if ascending else _falling))
        else:
            values.sort(reverse=not ascending)
        return nulls + values if nulls_first else values + nulls

    return by_row(rows, call, of_row, *map(rows, call.operands))


@function("ARRAY_SLICE")
def array_slice(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(array: list[Any], start: int, end: int | None = None) -> list[Any]:
        size = len(array)
        end = size if end is None else end
        start += size + 1 if start < 0 else 0
        end += size + 1 if end < 0 else 0
        start = max(1, start)
        end = 1 if end == 0 and call.operands[-1] is not call.operands[1] else min(end, size)
        return array[start - 1 : end] if end >= start else []

    return by_row(rows, call, of_row, *map(rows, call.operands))


# ---- others


@function("ARRAY_JOIN")
def array_join(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(array: list[Any], separator: str, null_as: str | None = None) -> str:
        texts = [null_as if each is None else each for each in array]
        return separator.join(text for text in texts if text is not None)

    return by_row(rows, call, of_row, *map(rows, call.operands))


@function("ELEMENT")
def element(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(array: list[Any]) -> Any:
        if len(array) > 1:
            raise ValueError("Array has more than one element.")
        return array[0] if array else None

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=True)


@function("MAP_KEYS")
def map_keys(rows: Evaluation, call: RexCall) -> pa.Array:
    return by_row(rows, call, lambda entries: [key for key, _ in entries], rows(call.operands[0]))


@function("MAP_VALUES")
def map_values(rows: Evaluation, call: RexCall) -> pa.Array:
    return by_row(rows, call, lambda entries: [value for _, value in entries], rows(call.operands[0]))


@function("MAP_ENTRIES")
def map_entries(rows: Evaluation, call: RexCall) -> pa.Array:
    key, value = (name for name, _ in call.type.children[0][1].children)
    return by_row(
        rows,
        call,
        lambda entries: [{key: each, value: of_key} for each, of_key in entries],
        rows(call.operands[0]),
    )


@function("MAP_FROM_ARRAYS")
def map_from_arrays(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(keys: list[Any], values: list[Any]) -> list[tuple[Any, Any]]:
        if len(keys) != len(values):
            raise ValueError(f"MAP_FROM_ARRAYS has {len(keys)} keys and {len(values)} values")
        if any(key is None for key in keys):
            raise ValueError("MAP_FROM_ARRAYS has a key that is null, which maps of Arrow cannot hold")
        return list(zip(keys, values, strict=True))

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


@function("MAP_UNION")
def map_union(rows: Evaluation, call: RexCall) -> pa.Array:
    columns = [_as(rows, call, at, call.type) for at in range(len(call.operands))]
    found: list[Any] = []
    for maps in zip(*columns, strict=True):
        if any(each is None for each in maps):
            found.append(None)
        else:
            merged: dict[Any, Any] = {}
            for each in maps:
                merged.update(each)
            found.append(list(merged.items()))
    return pa.array(found, call.type.arrow)
