"""The values of Arrow columns as plain Python objects, whichever other packages are installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.values.row import Row, rows_of_columns
from flinkcore.errors import DataError

_MICROSECONDS_OF_DAY = 86_400_000_000
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def column_values(column: pa.Array, name: str) -> list[Any]:
    """Return the values of a column as plain Python objects.

    Times are of the module datetime, also for columns in nanoseconds: pyarrow returns those of pandas if it is
    installed.

    Parameters
    ----------
    column : pyarrow.Array
        Column of any type but extension types. A struct is a dict, a map a list of pairs.
    name : str
        For messages.

    Raises
    ------
    DataError
        If Python cannot represent a value: a date beyond the year 9999, or a time with digits below microseconds. Names
        the column and the value.
    """
    return _Conversion(name).values(column)


def key_values(column: pa.Array, name: str) -> list[Any]:
    """Return the values of a key column as plain Python objects that are hashable.

    They are those of `column_values`, with these differences: a struct is a Row; a timestamp with a time zone is in
    UTC, since in another zone two moments of the hour that is repeated in autumn are equal in Python; all NaNs have the
    same bits.
    """
    return _Conversion(name, rows=True).values(column)


def exact_values(column: pa.Array, name: str, as_keys: bool = False) -> list[Any]:
    """Return the values of a column as of `column_values`, or `key_values`, or numbers in place of times.

    The times of a column, or of a column within it, are numbers of its unit if Python cannot hold one of them.
    """
    return _Conversion(name, rows=as_keys, exact=True).values(column)


def numbered_key_values(column: pa.Array, name: str) -> list[Any]:
    """Return the values of a key column as of `key_values`, but with numbers in place of all times.

    Other than with `exact_values`, what becomes of a value does not depend on the others.
    """
    return _Conversion(name, rows=True, exact=True, numbers=True).values(column)


def same_values(first: Any, second: Any) -> bool:
    """Return whether a value of a checkpoint and one of `exact_values`, or of a numpy array, are the same.

    NaN is the same as NaN, a list as a tuple, a Row as a dict with its values, and a number as any time: which one it
    stands for depends on the unit.
    """
    if first == second:
        return True
    if isinstance(first, datetime) and isinstance(second, datetime) and first.tzinfo and second.tzinfo:
        # In Python, a moment of the hour that is repeated in autumn equals none in another zone.
        return first.astimezone(timezone.utc) == second.astimezone(timezone.utc)
    if isinstance(first, Row) and isinstance(second, dict):
        names = first._fields or tuple(second)
        return same_values(dict(zip(names, first, strict=False)), second) and len(first) == len(second)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            same_values(value, second[name]) for name, value in first.items()
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same_values, first, second))
    if isinstance(first, int):
        return isinstance(second, _TIMES)
    if isinstance(second, int):
        return isinstance(first, _TIMES)
    return bool(first != first and second != second)


_TIMES = (date, time, timedelta)


class _Conversion:
    def __init__(self, name: str, rows: bool = False, exact: bool = False, numbers: bool = False) -> None:
        self._name = name
        self._type: pa.DataType | None = None
        self._rows = rows  # as keys have them
        self._exact = exact
        self._numbers = numbers

    def values(self, column: pa.Array) -> list[Any]:
        if self._type is None:
            encoded = pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)
            self._type = column.type.value_type if encoded else column.type
        is_time = pa.types.is_temporal(column.type) and column.type.bit_width <= 64
        if self._numbers and is_time:
            return self._numbers_of(column)
        try:
            return self._values(column)
        except DataError:
            if self._exact and is_time:
                return self._numbers_of(column)
            raise

    def _numbers_of(self, column: pa.Array) -> list[Any]:
        numbers: list[Any] = column.view(
            pa.int64() if column.type.bit_width == 64 else pa.int32()
        ).to_pylist()
        return numbers

    def _values(self, column: pa.Array) -> list[Any]:
        arrow_type = column.type
        if not any_type(arrow_type, self._is_changed):
            return self._to_pylist(column)
        for is_type, convert in _CONVERSIONS:
            if is_type(arrow_type):
                return convert(self, column)
        return self._to_pylist(column)

    def _is_changed(self, arrow_type: pa.DataType) -> bool:
        types = pa.types
        if types.is_timestamp(arrow_type) or types.is_duration(arrow_type) or types.is_time(arrow_type):
            return True
        if self._exact and types.is_temporal(arrow_type):
            return True
        if not self._rows:
            return False
        return bool(types.is_struct(arrow_type) or types.is_floating(arrow_type))

    def _to_pylist(self, column: pa.Array) -> list[Any]:
        try:
            values: list[Any] = column.to_pylist()
        except (OverflowError, ValueError) as failure:
            if any_type(column.type, _has_equal_names):
                raise DataError(
                    f"the column {self._name!r} ({column.type}) has structs with two fields of one name, and a dict, "
                    "which stands for a struct in Python, has one. Rename them in the log, leave the column out by "
                    "select(...), or take fields by their numbers, such as "
                    f"with_columns({self._name}=pyarrow.compute.struct_field(pyarrow.compute.field({self._name!r}), "
                    "[0])); operators over columns take it as it is",
                    column=self._name,
                ) from failure
            for row in range(len(column)):
                try:
                    column[row].as_py()
                except (OverflowError, ValueError):
                    raise self._without_value(column, row, failure) from failure
            raise DataError(
                f"the column {self._name!r} ({column.type}): {failure}", column=self._name
            ) from failure
        return values

    def _without_value(self, column: pa.Array, row: int, why: object) -> DataError:
        number = getattr(column[row], "value", None)  # Arrow shows times as text only if Python can hold them
        is_within = column.type != self._type
        within = f" within it {column.type}" if is_within else ""
        or_else = (
            "or take the parts of it that are needed"
            if is_within
            else "or cast it to int64 or to a coarser unit, such as "
            f"with_columns({self._name}=pyarrow.compute.field({self._name!r}).cast('int64'))"
        )
        return DataError(
            f"the column {self._name!r} ({self._type}) holds{within} {'a value' if number is None else number} that no "
            f"value in Python stands for ({why}). Filter such rows out, leave the column out by select(...), {or_else}"
            "; operators over columns take it as it is",
            column=self._name,
        )

    def _microseconds(self, column: pa.Array, wanted: pa.DataType) -> pa.Array:
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid as failure:
            for row in range(len(column)):
                try:
                    column.slice(row, 1).cast(wanted)
                except pa.ArrowInvalid:
                    why = (
                        "it has digits below microseconds" if column.type.unit == "ns" else "it is too large"
                    )
                    raise self._without_value(column, row, why) from failure
            raise

    def _objects(self, column: pa.Array, wanted: pa.DataType, why: str) -> list[Any]:
        # By way of numpy, several times as fast as to_pylist; where Python has no object there is an int.
        values: list[Any] = self._microseconds(column, wanted).to_numpy(zero_copy_only=False).tolist()
        if int in set(map(type, values)):
            row = next(row for row, value in enumerate(values) if type(value) is int)
            raise self._without_value(column, row, why)
        if values.count(None) > column.null_count:  # the least number is NumPy's null
            row = next(row for row, value in enumerate(values) if value is None and column[row].is_valid)
            raise self._without_value(column, row, "it is too large")
        return values

    def timestamps(self, column: pa.Array) -> list[Any]:
        zone = column.type.tz
        # In UTC it is the same numbers.
        in_utc = pa.timestamp("us", None if zone is None else "UTC")
        values = self._objects(column, in_utc, "a datetime is of the years 1 to 9999")
        if zone is None:
            return values
        values = [None if value is None else value.replace(tzinfo=timezone.utc) for value in values]
        if self._rows or zone == "UTC":
            return values
        info = self._zone(zone)
        try:
            return [None if value is None else value.astimezone(info) for value in values]
        except OverflowError as failure:
            for row, value in enumerate(values):
                try:
                    value is None or value.astimezone(info)
                except OverflowError:
                    raise self._without_value(column, row, failure) from failure
            raise

    def _zone(self, name: str) -> tzinfo:
        offset = _OFFSET.fullmatch(name)
        if offset is not None:
            sign, hours, minutes = offset.groups()
            away = timedelta(hours=int(hours), minutes=int(minutes))
            return timezone(-away if sign == "-" else away)
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError) as failure:
            raise DataError(
                f"the column {self._name!r} is in the time zone {name!r}, which is not known here: install the package "
                f"tzdata, or cast it to UTC ({failure})",
                column=self._name,
            ) from failure

    def durations(self, column: pa.Array) -> list[Any]:
        return self._objects(column, pa.duration("us"), "a timedelta is of at most 999,999,999 days")

    def times(self, column: pa.Array) -> list[Any]:
        microseconds = self._microseconds(column, pa.time64("us"))
        numbers = microseconds.view(pa.int64())
        outside = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, _MICROSECONDS_OF_DAY))
        row = pc.index(outside, True).as_py()
        if row >= 0:
            raise self._without_value(column, row, "a time is of one day")
        return self._to_pylist(microseconds)

    def floats(self, column: pa.Array) -> list[Any]:
        is_nan = pc.is_nan(column)
        if pc.any(is_nan).as_py():
            column = pc.if_else(is_nan, pa.scalar(float("nan"), column.type), column)
        return self._to_pylist(column)

    def structs(self, column: pa.Array) -> list[Any]:
        names = [field.name for field in column.type]
        if not self._rows and len(set(names)) < len(names):
            return self._to_pylist(column)  # which says that a dict has no two equal names
        columns = [self.values(child) for child in column.flatten()]
        if self._rows:
            found: list[Any] = list(rows_of_columns(names, columns)) if columns else [Row()] * len(column)
        else:
            found = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return _with_nulls(found, column)

    def lists(self, column: pa.Array) -> list[Any]:
        elements = iter(self.values(column.flatten()))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else list(islice(elements, length)) for length in lengths]

    def maps(self, column: pa.Array) -> list[Any]:
        entries = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        lists = column.cast(pa.list_(entries))
        keys, items = (iter(self.values(child)) for child in lists.flatten().flatten())
        pairs = zip(keys, items, strict=True)
        lengths = pc.list_value_length(lists).to_pylist()
        return [None if length is None else list(islice(pairs, length)) for length in lengths]

    def dictionaries(self, column: pa.Array) -> list[Any]:
        return self.values(column.dictionary_decode())

    def encoded_runs(self, column: pa.Array) -> list[Any]:
        return self.values(pc.run_end_decode(column))


def _has_equal_names(arrow_type: pa.DataType) -> bool:
    names = [field.name for field in arrow_type] if pa.types.is_struct(arrow_type) else []
    return len(set(names)) < len(names)


def is_list(arrow_type: pa.DataType) -> bool:
    return any(is_kind(arrow_type) for is_kind in _LISTS)


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


_CONVERSIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[_Conversion, pa.Array], list[Any]]]] = [
    (pa.types.is_timestamp, _Conversion.timestamps),
    (pa.types.is_duration, _Conversion.durations),
    (pa.types.is_time, _Conversion.times),
    (pa.types.is_floating, _Conversion.floats),
    (pa.types.is_struct, _Conversion.structs),
    (pa.types.is_map, _Conversion.maps),
    (is_list, _Conversion.lists),
    (pa.types.is_dictionary, _Conversion.dictionaries),
    (pa.types.is_run_end_encoded, _Conversion.encoded_runs),
]


MOST_DEPTH = 64
"""Levels of values within values that kernels take, as Arrow's own import from C does."""


def depth_of(arrow_type: pa.DataType) -> int:
    """Return how many levels of values within values a type has; a number has none."""
    depth, level = -1, [arrow_type]
    while level:
        depth += 1
        level = [each.field(at).type for each in level for at in range(each.num_fields)]
    return depth


def any_type(arrow_type: pa.DataType, is_wanted: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a type, or one inside of it, is wanted."""
    if is_wanted(arrow_type):
        return True
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return any_type(arrow_type.value_type, is_wanted)
    return any(any_type(arrow_type.field(i).type, is_wanted) for i in range(arrow_type.num_fields))


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    if column.null_count:
        valid = column.is_valid().to_pylist()
        return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]
    return values
