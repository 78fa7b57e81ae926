"""Columns of Python values, which hold them exactly: Arrow cuts off fractions, and digits below a unit of time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, time, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.common.column_values import any_type, is_list
from flinkcore.common.row import Row

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def exact_column(values: Iterable[Any], arrow_type: pa.DataType) -> pa.Array:
    """Return values as a column of a type.

    Parameters
    ----------
    values : iterable
        A struct may be a Row; without names, its values are in the order of the struct's fields.
    arrow_type : pyarrow.DataType
        Floats are rounded to the precision of one of floats.

    Raises
    ------
    pyarrow.ArrowException, TypeError, ValueError, OverflowError
        If a value is of another type, or the column cannot hold it exactly: 1.5 for an integer, a time with
        microseconds for one in milliseconds.
    """
    values = list(values)
    if any_type(arrow_type, pa.types.is_struct):
        values = [_with_dicts(value, arrow_type) for value in values]
    if any_type(arrow_type, _is_cutting):
        for part, found in _parts(values, arrow_type):
            _refuse_cuts(found, part)
    return pa.array(values, arrow_type)


def exact_cast(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return a column as one of another type.

    Raises
    ------
    pyarrow.ArrowException
        If that is none of its values, or cannot hold one exactly; floats are rounded as by `exact_column`.
    """
    made = column.cast(arrow_type)
    # These casts, Arrow takes for safe: they cut off the time of a day, or the day of a time, and round.
    if _is_rounding(arrow_type) and _is_number_or_time(column.type):
        back = made.cast(column.type)
        if not back.equals(column):
            lost = next(row for row in range(len(column)) if column[row] != back[row])
            raise pa.ArrowInvalid(f"{column[lost].as_py()!r} would become {made[lost].as_py()!r}")
    return made


def _is_cutting(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_temporal(arrow_type))


def _is_rounding(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_date(arrow_type)
        or types.is_time(arrow_type)
        or types.is_decimal(arrow_type)
        or types.is_boolean(arrow_type)
    )


def _is_number_or_time(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_temporal(arrow_type)
    )


def _parts(values: Collection[Any], arrow_type: pa.DataType) -> Iterator[tuple[pa.DataType, Collection[Any]]]:
    """What is in place of numbers and times, also where values are of another type than that of the column."""
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


def _loses(kind: type, arrow_type: pa.DataType) -> Callable[[Iterable[Any]], bool] | None:
    """What tells whether one of many values of a type of Python would be cut; None where none is."""
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
    if unit in _MICROSECONDS:
        return partial(_lose_digits, digits=f"micro{suffix}", step=_MICROSECONDS[unit])
    has_more = unit != "ns" and hasattr(kind, f"nano{suffix}")  # as those of pandas
    return partial(_lose_digits, digits=f"nano{suffix}", step=1_000) if has_more else None


def _lose_fractions(values: Iterable[Any]) -> bool:
    return not all(map(_is_whole, values))


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _lose_times(values: Iterable[datetime]) -> bool:
    return any(value.time() != time() for value in values)


def _lose_digits(values: Iterable[Any], digits: str, step: int) -> bool:
    return any(below % step > 0 for below in set(map(attrgetter(digits), values)))


def _with_dicts(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value with dicts instead of Rows wherever its type has structs."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(arrow_type):
        if isinstance(value, Row):
            value = dict(zip(value._fields or [field.name for field in arrow_type], value, strict=True))
        if not isinstance(value, dict):
            return value
        fields = {field.name: field.type for field in arrow_type}
        return {
            name: _with_dicts(item, fields[name]) if name in fields else item for name, item in value.items()
        }
    if types.is_map(arrow_type):
        pairs = value.items() if isinstance(value, dict) else value
        return [
            (_with_dicts(key, arrow_type.key_type), _with_dicts(item, arrow_type.item_type))
            for key, item in pairs
        ]
    if is_list(arrow_type):
        return [_with_dicts(item, arrow_type.value_type) for item in value]
    return value
