"""Values of a checkpoint's columns in the Arrow types of Java's serializers."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore.checkpoint.value_decoding import decode
from flinkcore.checkpoint.value_shape import Shape, shape_text
from flinkcore.errors import DataError
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.avro import AvroSerializer
from flinkcore.savepoints.serializers.composite import (
    ArraySerializer,
    ListSerializer,
    MapSerializer,
    RowSerializer,
    SetSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import NothingSerializer, StateSerializer

_ROW_KIND: Final = "+I"


def java_values(array: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array:
    """Return the values of a checkpoint's column as a column that a serializer writes.

    Parameters
    ----------
    array : pyarrow.Array
        Column of a checkpoint.
    shape : Shape
        Its values, as the checkpoint describes them.
    serializer : StateSerializer

    Raises
    ------
    DataError
        If the values are not of the serializer's type.
    """
    target = arrow_type(serializer)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        found = _columns(array, shape, serializer)
        if found is not None:
            return found.cast(target)
        values = [_java_value(value, serializer) for value in decode(array, shape)]
        return pa.array(values, target)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
        raise DataError(
            f"{shape_text(shape)} cannot be written as {serializer.name}: {failure}. Declare the type of the state"
        ) from None


@cache
def arrow_type(serializer: StateSerializer) -> pa.DataType:
    """Return the Arrow type of a serializer's values."""
    return pa.array(serializer.column(False).array()).type


def _columns(array: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array | None:
    """Return values by whole columns, or None if that is not possible."""
    kind, *parts = [shape] if isinstance(shape, str) else shape
    if kind == "optional":
        return _columns(array, parts[0], serializer)
    if isinstance(serializer, NothingSerializer):
        return pa.nulls(len(array))
    if kind in _CASTS and serializer in _CASTS[kind]:
        return array
    if kind == "time_window" and serializer == times.TIME_WINDOW:
        return pa.StructArray.from_arrays([array.field(0), array.field(1)], ["start_ms", "end_ms"])
    if array.null_count:
        return None
    if kind in ("tuple", "row") and isinstance(serializer, TupleSerializer | RowSerializer):
        shapes = parts if kind == "tuple" else parts[1:]
        if len(shapes) != len(serializer.nested):
            raise ValueError(f"there are {len(shapes)} fields instead of {len(serializer.nested)}")
        columns = [_columns(array.field(i), each, serializer.nested[i]) for i, each in enumerate(shapes)]
        if any(column is None for column in columns):
            return None
        names = [f"f{i}" for i in range(len(columns))]
        if isinstance(serializer, RowSerializer) and serializer.has_kind:
            columns.append(pa.repeat(pa.scalar(_ROW_KIND), len(array)))
            names.append("row_kind")
        return pa.StructArray.from_arrays(columns, names)
    if kind in ("list", "tuples") and type(serializer) is ListSerializer:
        elements = _columns(array.values, parts[0], serializer.nested[0])
        if elements is None:
            return None
        return pa.LargeListArray.from_arrays(array.offsets, elements)
    return None


_CASTS: Final[dict[str, frozenset[StateSerializer]]] = {
    "int": frozenset({basic.LONG, basic.INT, basic.SHORT, basic.BYTE, basic.DOUBLE, basic.FLOAT}),
    "float": frozenset({basic.DOUBLE, basic.FLOAT}),
    "bool": frozenset({basic.BOOLEAN}),
    "str": frozenset({basic.STRING, basic.CHAR}),
    "bytes": frozenset({basic.BYTES}),
    "decimal": frozenset({basic.BIG_DECIMAL}),
    "date": frozenset({times.LOCAL_DATE}),
    "time": frozenset({times.LOCAL_TIME}),
    "datetime": frozenset({times.LOCAL_DATE_TIME, times.INSTANT, times.SQL_TIMESTAMP}),
}


def _java_value(value: Any, serializer: StateSerializer) -> Any:
    """Return a Python value in the form in which Arrow takes it for the serializer's type."""
    if value is None:
        return None
    make = _MAKERS.get(type(serializer))
    if make is not None:
        return make(value, serializer)
    if serializer in (basic.BIG_INTEGER, basic.BIG_DECIMAL):
        if not isinstance(value, int | Decimal | float):
            raise TypeError(f"{value!r} is not a number")
        return str(value)
    if serializer == times.TIME_WINDOW:
        return {"start_ms": value.start, "end_ms": value.end}
    if isinstance(value, datetime.datetime):
        _refuse_losses(value, arrow_type(serializer))
        if value.tzinfo is not None and serializer != times.LOCAL_DATE_TIME:
            return value.astimezone(datetime.timezone.utc)
    if isinstance(serializer, NothingSerializer):
        return None
    return value


def _fields(value: Any, n_fields: int) -> list[Any]:
    fields = list(value) if isinstance(value, tuple | list | Row) else [value]
    if len(fields) != n_fields or not isinstance(value, tuple | list | Row):
        raise TypeError(f"{value!r} does not have {n_fields} fields")
    return fields


def _tuple(value: Any, serializer: Any) -> dict[str, Any]:
    fields = _fields(value, len(serializer.nested))
    return {
        f"f{i}": _java_value(field, part)
        for i, (field, part) in enumerate(zip(fields, serializer.nested, strict=True))
    }


def _row(value: Any, serializer: Any) -> dict[str, Any]:
    kind = value.get_row_kind() if isinstance(value, Row) else None
    return {**_tuple(value, serializer), "row_kind": _ROW_KIND if kind is None else str(kind)}


def _list(value: Any, serializer: Any) -> list[Any]:
    return [_java_value(each, serializer.nested[0]) for each in value]


def _map(value: Any, serializer: Any) -> list[tuple[Any, Any]]:
    key, of_values = serializer.nested
    return [(_java_value(k, key), _java_value(v, of_values)) for k, v in value.items()]


def _pojo(value: Any, serializer: Any) -> dict[str, Any]:
    names = [name for name, _ in serializer.fields]
    if isinstance(value, Row):
        value = value.as_dict()
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} has no names for the fields {names} of {serializer.class_name}")
    _refuse_others(value, names)
    return {name: _java_value(value.get(name), part) for name, part in serializer.fields}


def _avro(value: Any, serializer: Any) -> Any:
    convert = serializer.to_arrow
    plain = _without_rows(value)
    found = plain if convert is None else convert(plain)
    _refuse_losses(found, arrow_type(serializer))
    return found


def _refuse_losses(value: Any, target: pa.DataType) -> None:
    """Refuse fields that a type does not have, and parts of a time below its unit: Arrow leaves both out."""
    kinds = pa.types
    if isinstance(value, dict) and kinds.is_struct(target):
        _refuse_others(value, [field.name for field in target])
        for name, field in value.items():
            _refuse_losses(field, target.field(name).type)
    elif isinstance(value, list) and kinds.is_map(target):
        for _, each in value:
            _refuse_losses(each, target.item_type)
    elif isinstance(value, list) and (kinds.is_list(target) or kinds.is_large_list(target)):
        for each in value:
            _refuse_losses(each, target.value_type)
    elif isinstance(value, datetime.datetime) and kinds.is_date(target):
        raise ValueError(f"{value.isoformat()} has a time of day, and its type none")
    elif getattr(target, "unit", None) == "ms" and getattr(value, "microsecond", 0) % 1000:
        raise ValueError(f"{value.isoformat()} has microseconds, and its type milliseconds")


def _refuse_others(value: dict[str, Any], names: list[str]) -> None:
    others = [name for name in value if name not in names]
    if others:
        raise ValueError(f"it has no field {others[0]!r}; its fields are {names}")


def _without_rows(value: Any) -> Any:
    """Return a value with dictionaries in place of rows."""
    if isinstance(value, Row):
        return {name: _without_rows(field) for name, field in value.as_dict().items()}
    if isinstance(value, dict):
        return {key: _without_rows(each) for key, each in value.items()}
    return [_without_rows(each) for each in value] if isinstance(value, list) else value


_MAKERS: Final[dict[type[StateSerializer], Callable[[Any, Any], Any]]] = {
    TupleSerializer: _tuple,
    RowSerializer: _row,
    ListSerializer: _list,
    SetSerializer: _list,
    ArraySerializer: _list,
    MapSerializer: _map,
    PojoSerializer: _pojo,
    AvroSerializer: _avro,
}
