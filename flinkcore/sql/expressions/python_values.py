"""Values of SQL as functions of users take and return them: rows are `Row`, maps and multisets dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore.sql.expressions.evaluation import require_times_of_day
from flinkcore.sql.types.logical_types import LogicalType, Root

Convert = Callable[[Any], Any]


def python_values(array: pa.Array, kind: LogicalType) -> list[Any]:
    """Return the values of a column as functions take them."""
    require_times_of_day(array, kind)
    values: list[Any] = array.to_pylist()
    convert = _taken(kind)
    return values if convert is None else list(map(convert, values))


def arrow_values(values: Sequence[Any], kind: LogicalType) -> Sequence[Any]:
    """Return values that functions have returned as Arrow takes them."""
    convert = _given(kind)
    return values if convert is None else list(map(convert, values))


def _taken(kind: LogicalType) -> Convert | None:
    """Return what makes values for functions of those of Arrow, or None if these are the same."""
    parts = [_taken(child) for _, child in kind.children]
    if kind.root is Root.ROW:
        return _nullable(
            lambda row: Row(
                **{
                    name: value if part is None else part(value)
                    for (name, value), part in zip(row.items(), parts, strict=True)
                }
            )
        )
    if kind.root in (Root.MAP, Root.MULTISET):
        of_key, of_value = _or_same(parts[0]), _or_same(parts[1] if len(parts) > 1 else None)
        return _nullable(lambda entries: {of_key(key): of_value(value) for key, value in entries})
    if kind.root is Root.ARRAY and parts[0] is not None:
        of_element = parts[0]
        return _nullable(lambda elements: list(map(of_element, elements)))
    return None


def _given(kind: LogicalType) -> Convert | None:
    parts = [_given(child) for _, child in kind.children]
    if kind.root is Root.ROW:
        names = [name for name, _ in kind.children]
        of_fields = list(map(_or_same, parts))

        def row_of(row: Any) -> dict[str, Any]:
            values = [row[name] for name in names] if isinstance(row, dict) else list(row)
            if len(values) != len(names):
                raise ValueError(f"a row of {len(values)} values, and the type has {len(names)}")
            return {name: part(value) for name, part, value in zip(names, of_fields, values, strict=True)}

        return _nullable(row_of)
    if kind.root in (Root.MAP, Root.MULTISET):
        of_key, of_value = _or_same(parts[0]), _or_same(parts[1] if len(parts) > 1 else None)
        return _nullable(lambda found: [(of_key(key), of_value(value)) for key, value in dict(found).items()])
    if kind.root is Root.ARRAY:
        of_element = _or_same(parts[0])
        return _nullable(lambda elements: list(map(of_element, elements)))
    return None


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _or_same(convert: Convert | None) -> Convert:
    return convert or (lambda value: value)
