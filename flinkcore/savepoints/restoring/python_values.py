"""Values of a savepoint as Python objects, such as functions get them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import dictionary_key
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.window import GlobalWindow, TimeWindow
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints.java_types import JavaType
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.avro import AvroSerializer
from flinkcore.savepoints.serializers.composite import (
    ArrayListSerializer,
    ArraySerializer,
    EnumSerializer,
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    SetSerializer,
    StreamRecordSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import NothingSerializer, SimpleSerializer, StateSerializer

_ROW_KINDS: Final = dict(zip(("+I", "-U", "+U", "-D"), RowKind, strict=True))
_MICROSECONDS: Final = frozenset(
    {times.LOCAL_TIME, times.LOCAL_DATE_TIME, times.INSTANT, times.SQL_TIMESTAMP}
)
_LISTS: Final = (ListSerializer, ArrayListSerializer, SetSerializer, ArraySerializer)

Names = Sequence[str] | None
"""Names for the fields of a row or tuple, or None if tuples stay tuples, and rows have no names."""


def names_of(declared: JavaType | None) -> Names:
    """Return the names that a declared type has for the fields of rows, or None."""
    return declared.get_field_names() if isinstance(declared, RowTypeInfo) else None


def obstacle(serializer: StateSerializer) -> str | None:
    """Return why Python has no objects for the values of a serializer, or None if it has.

    Objects of a subclass of a POJO have other fields, and what only Java knows stays bytes.
    """
    for each in serializer.walk():
        if isinstance(each, PojoSerializer) and (each.subclasses or each.registered):
            return f"objects of subclasses of {each.class_name}"
        if not isinstance(
            each,
            SimpleSerializer
            | NothingSerializer
            | TupleSerializer
            | RowSerializer
            | MapSerializer
            | EnumSerializer
            | NullableSerializer
            | StreamRecordSerializer
            | PojoSerializer
            | AvroSerializer
            | ListSerializer,
        ):
            return each.name
        if isinstance(each, AvroSerializer):
            try:
                _ = each.from_arrow
            except ConfigurationError as failure:
                return f"{each.name} ({failure})"
    return None


def python_values(array: pa.Array, serializer: StateSerializer, names: Names = None) -> list[Any]:
    """Return the values of a column as Python objects.

    Numbers, texts, bytes, booleans, dates and times are Python's own, and so are lists, tuples and maps. Rows and
    objects are `Row`; the fields of an object have the names of its class. Sets and arrays are lists, constants of
    enums texts.

    Parameters
    ----------
    array : pyarrow.Array
        In the type in which the serializer's values are read.
    serializer : StateSerializer
        One without an `obstacle`.
    names : sequence of str or None
        Makes rows with these names of rows and tuples; fields of an object are looked for by these names.

    Raises
    ------
    DataError
        If Python has no such value, such as a time with nanoseconds.
    """
    try:
        return _values(array, serializer, names)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError) as failure:
        raise DataError(f"Python has no object for a value of {serializer.name}: {failure}") from None


def _values(array: pa.Array, serializer: StateSerializer, names: Names) -> list[Any]:
    if serializer == times.GLOBAL_WINDOW:
        return [GlobalWindow()] * len(array)
    if isinstance(serializer, NothingSerializer):
        return [None] * len(array)
    if isinstance(serializer, NullableSerializer):
        return _values(array, serializer.nested[0], names)
    if isinstance(serializer, SimpleSerializer | EnumSerializer):
        return _simple(array, serializer)
    if isinstance(serializer, AvroSerializer):
        return _avro(array, serializer, names)
    if isinstance(serializer, _LISTS):
        return _lists(array, serializer.nested[0])
    if isinstance(serializer, MapSerializer):
        keys, values = (
            _values(part, of, None) for part, of in zip(_entries(array), serializer.nested, strict=True)
        )
        pairs = list(zip(map(dictionary_key, keys), values, strict=True))
        return _parts_of(array, pairs, dict)
    if isinstance(serializer, StreamRecordSerializer):
        timestamps = array.field(0).to_pylist()
        return list(zip(_values(array.field(1), serializer.nested[0], names), timestamps, strict=True))
    return _fields(array, serializer, names)


def _simple(array: pa.Array, serializer: StateSerializer) -> list[Any]:
    if serializer in _MICROSECONDS:
        unit = pa.time64("us") if pa.types.is_time(array.type) else pa.timestamp("us", array.type.tz)
        array = array.cast(unit)
    found: list[Any] = array.to_pylist()
    make = _MAKERS.get(serializer.name) if isinstance(serializer, SimpleSerializer) else None
    return found if make is None else [None if value is None else make(value) for value in found]


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    basic.BIG_INTEGER.name: int,
    basic.BIG_DECIMAL.name: Decimal,
    times.TIME_WINDOW.name: lambda value: TimeWindow(value["start_ms"], value["end_ms"]),
    # Types.SQL_DATE() and the like: without a zone, as they are written.
    times.SQL_DATE.name: lambda value: value.date(),
    times.SQL_TIME.name: lambda value: value.time(),
    times.SQL_TIMESTAMP.name: lambda value: value.replace(tzinfo=None),
}


def _lists(array: pa.Array, element: StateSerializer) -> list[Any]:
    return _parts_of(array, _values(array.flatten(), element, None), list)


def _parts_of(array: pa.Array, elements: list[Any], make: Callable[[list[Any]], Any]) -> list[Any]:
    """Return the elements of each list of a column."""
    offsets = array.offsets.to_pylist()
    first = offsets[0] if offsets else 0
    there = array.is_valid().to_pylist()
    return [
        make(elements[begin - first : end - first]) if is_there else None
        for begin, end, is_there in zip(offsets, offsets[1:], there, strict=False)
    ]


def _avro(array: pa.Array, serializer: AvroSerializer, names: Names) -> list[Any]:
    """Return the values of Avro; records are rows, those within others dictionaries."""
    convert = serializer.from_arrow
    found = [value if value is None or convert is None else convert(value) for value in array.to_pylist()]
    if not serializer.is_record:
        return found
    fields = [array.type.field(number).name for number in range(array.type.num_fields)]
    chosen = fields if names is None else list(names)
    make = Row(*chosen)
    return [None if value is None else make(*(value[name] for name in chosen)) for value in found]


def _entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of a column of maps."""
    offsets = array.offsets
    begin, end = (offsets[0].as_py(), offsets[-1].as_py()) if len(array) else (0, 0)
    return array.keys.slice(begin, end - begin), array.items.slice(begin, end - begin)


def _fields(array: pa.Array, serializer: StateSerializer, names: Names) -> list[Any]:
    """Return the values of tuples, rows and objects."""
    parts = serializer.parts
    columns = [_values(array.field(number), part, None) for number, part in enumerate(parts)]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
    there = array.is_valid().to_pylist()
    found: list[Any]
    if isinstance(serializer, PojoSerializer):
        fields = [name for name, _ in serializer.fields]
        chosen = fields if names is None else list(names)
        places, make = [fields.index(name) for name in chosen], Row(*chosen)
        found = [make(*(row[place] for place in places)) for row in rows]
    elif isinstance(serializer, RowSerializer):
        found = [(Row if names is None else Row(*names))(*row) for row in rows]
        if serializer.has_kind:
            for row, kind in zip(found, array.field(len(parts)).to_pylist(), strict=True):
                if kind not in (None, "+I"):
                    row.set_row_kind(_ROW_KINDS[kind])
    else:
        found = list(rows) if names is None else [Row(*names)(*row) for row in rows]
    return [value if is_there else None for value, is_there in zip(found, there, strict=True)]
