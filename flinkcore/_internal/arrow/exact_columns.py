"""Columns of Python values, which hold them exactly: Arrow cuts off fractions, and digits below a unit of time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, time, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_values import any_type, is_list
from flinkcore._internal.values.row import Row

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def exact_column(values: Iterable[Any], arrow_type: pa.DataType) -> pa.Array:
    """Return values as a column of a type.

    Parameters
    ----------
    values : iterable
        A struct may be a Row or a tuple; without names, its values are in the order of the struct's fields.
    arrow_type : pyarrow.DataType
        Floats are rounded to the precision of one of floats.

    Raises
    ------
    pyarrow.ArrowException, TypeError, ValueError, OverflowError
        If a value is of another type, or the column cannot hold it exactly: 1.5 for an integer, a time with
        microseconds for one in milliseconds.
    """
    values = list(values)
    if any_type(arrow_type, pa.types.is_struct) or any_type(arrow_type, _is_list_of_times):
        values = [_as_taken(value, arrow_type) for value in values]
    if any_type(arrow_type, _is_cutting):
        for part, found in _parts(values, arrow_type):
            _refuse_cuts(found, part)
    return pa.array(values, arrow_type)


def exact_cast(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return a column as one of another type.

    Raises
    ------
    pyarrow.ArrowException
        If that is none of its values, or cannot hold one exactly; floats are rounded, also for decimals.
    """
    types = pa.types
    if types.is_timestamp(column.type) and types.is_time(arrow_type):
        raise pa.ArrowInvalid("a time of day loses the day of a timestamp")
    made = column.cast(arrow_type)
    # These casts, Arrow takes for safe.
    if types.is_timestamp(column.type) and types.is_date(arrow_type):
        local = column if column.type.tz is None else pc.local_timestamp(column)
        _refuse_lost(local, made.cast(local.type), made)
    elif types.is_boolean(arrow_type) and (types.is_integer(column.type) or types.is_floating(column.type)):
        _refuse_lost(column, made.cast(column.type), made)
    return made


def _refuse_lost(column: pa.Array, back: pa.Array, made: pa.Array) -> None:
    if not back.equals(column):
        lost = next(row for row in range(len(column)) if column[row] != back[row])
        raise pa.ArrowInvalid(f"{column[lost].as_py()!r} would become {made[lost].as_py()!r}")


def _is_cutting(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_temporal(arrow_type))


def _is_list_of_times(arrow_type: pa.DataType) -> bool:
    return is_list(arrow_type) and pa.types.is_temporal(arrow_type.value_type)


def _parts(values: Collection[Any], arrow_type: pa.DataType) -> Iterator[tuple[pa.DataType, Collection[Any]]]:
    """Yield the values at the places of numbers and times, even if they are of another type than the column's."""
    types = pa.types
    if _is_cutting(arrow_type):
        yield arrow_type, values
    elif types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        yield from _parts(values, arrow_type.value_type)
    elif types.is_map(arrow_type):
        values = [each.items() if isinstance(each, dict) else each for each in values]
        pairs = [item for item in _items(values) if isinstance(item, list | tuple) and len(item) == 2]
        yield from _parts([key for key, _ in pairs], arrow_type.key_type)
        yield from _parts([item for _, item in pairs], arrow_type.item_type)
    elif is_list(arrow_type):
        yield from _parts(_items(values), arrow_type.value_type)
    elif types.is_struct(arrow_type):
        for field in arrow_type:
            inner = [each[field.name] for each in values if isinstance(each, dict) and field.name in each]
            yield from _parts(inner, field.type)


def _items(values: Collection[Any]) -> list[Any]:
    if not all(hasattr(kind, "__iter__") for kind in set(map(type, values)) - {type(None)}):
        values = [each for each in values if hasattr(each, "__iter__")]
    return [item for each in values if each is not None for item in each]


def _refuse_cuts(values: Collection[Any], arrow_type: pa.DataType) -> None:
    # No loop in Python where all values are of types that lose nothing.
    for kind in set(map(type, values)) - {int, type(None)}:
        loses = _loses(kind, arrow_type)
        if loses is None:
            continue
        found = [value for value in values if type(value) is kind]
        if loses(found):
            lost = next(value for value in found if loses([value]))
            raise ValueError(f"it cannot hold {lost!r} exactly")


def _loses(kind: type, arrow_type: pa.DataType) -> Callable[[Collection[Any]], bool] | None:
    """Return a check whether one of many values of a Python type would be cut, or None if none can be."""
    types = pa.types
    if hasattr(kind, "__int__"):
        # Numbers and times of NumPy, and what is Arrow's, Arrow itself checks.
        is_checked = issubclass(kind, int | np.integer | np.datetime64 | pa.Scalar)
        return None if is_checked else _lose_fractions
    if types.is_date(arrow_type):
        return _lose_times if issubclass(kind, datetime) else None
    if not issubclass(kind, datetime | time | timedelta):
        return None
    unit = getattr(arrow_type, "unit", "ns")
    suffix = "seconds" if issubclass(kind, timedelta) else "second"
    steps = {f"micro{suffix}": _MICROSECONDS[unit]} if unit in _MICROSECONDS else {}
    if unit != "ns" and hasattr(kind, f"nano{suffix}"):  # as those of pandas
        steps[f"nano{suffix}"] = 1_000
    return partial(_lose_digits, steps=steps) if steps else None


def _lose_fractions(values: Iterable[Any]) -> bool:
    return not all(map(_is_whole, values))


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _lose_times(values: Iterable[datetime]) -> bool:
    return any(value.time() != time() or getattr(value, "nanosecond", 0) for value in values)


def _lose_digits(values: Collection[Any], steps: Mapping[str, int]) -> bool:
    return any(
        below % step > 0 for digits, step in steps.items() for below in set(map(attrgetter(digits), values))
    )


def _as_taken(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value with dicts in place of Rows, tuples and pairs, and Arrow's times in place of arrays of NumPy's.

    Arrow does not take Rows, and takes such times for those of the unit of the column.
    """
    types = pa.types
    if value is None:
        return None
    if types.is_struct(arrow_type):
        value = _as_dict(value, arrow_type)
        if not isinstance(value, dict):
            return value
        fields = {field.name: field.type for field in arrow_type}
        return {
            name: _as_taken(item, fields[name]) if name in fields else item for name, item in value.items()
        }
    if types.is_map(arrow_type):
        pairs = value.items() if isinstance(value, dict) else value
        return [
            (_as_taken(key, arrow_type.key_type), _as_taken(item, arrow_type.item_type))
            for key, item in pairs
        ]
    if is_list(arrow_type) and hasattr(value, "__iter__"):
        if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
            value = pa.array(value).cast(arrow_type.value_type)
        return [_as_taken(item, arrow_type.value_type) for item in value]
    return value


def _as_dict(value: Any, arrow_type: pa.DataType) -> Any:
    names = [field.name for field in arrow_type]
    if isinstance(value, Row):
        return dict(zip(value._fields or names, value, strict=True))
    if len(set(names)) < len(names):
        return value
    if isinstance(value, tuple) and len(value) == len(names):
        return dict(zip(names, value, strict=True))
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return dict(value)
    return value
