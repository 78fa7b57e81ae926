"""Types of a Flink job's keys and states: declared with PyFlink's `Types`, or with those that only Java has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from flinkcore.checkpoint.value_shape import Shape, shape_text
from flinkcore.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.avro import GENERIC_RECORD, AvroSerializer
from flinkcore.savepoints.serializers.composite import (
    ArraySerializer,
    EnumSerializer,
    ListSerializer,
    MapSerializer,
    RowSerializer,
    SetSerializer,
    StreamRecordSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import SimpleSerializer, StateSerializer

JavaType: TypeAlias = TypeInformation | StateSerializer
"""A type of the Flink job: one of `Types`, or one of this module."""

LOCAL_DATE: Final[StateSerializer] = times.LOCAL_DATE
LOCAL_TIME: Final[StateSerializer] = times.LOCAL_TIME
LOCAL_DATE_TIME: Final[StateSerializer] = times.LOCAL_DATE_TIME

_BASIC: Final[dict[BasicType, SimpleSerializer]] = {
    BasicType.STRING: basic.STRING,
    BasicType.BYTE: basic.BYTE,
    BasicType.BOOLEAN: basic.BOOLEAN,
    BasicType.SHORT: basic.SHORT,
    BasicType.INT: basic.INT,
    BasicType.LONG: basic.LONG,
    BasicType.FLOAT: basic.FLOAT,
    BasicType.DOUBLE: basic.DOUBLE,
    BasicType.CHAR: basic.CHAR,
    BasicType.BIG_INT: basic.BIG_INTEGER,
    BasicType.BIG_DEC: basic.BIG_DECIMAL,
    BasicType.INSTANT: times.INSTANT,
}
_OF_SHAPES: Final[dict[str, StateSerializer]] = {
    "bool": basic.BOOLEAN,
    "int": basic.LONG,
    "bigint": basic.BIG_INTEGER,
    "float": basic.DOUBLE,
    "str": basic.STRING,
    "bytes": basic.BYTES,
    "decimal": basic.BIG_DECIMAL,
    "date": times.LOCAL_DATE,
    "time": times.LOCAL_TIME,
    "datetime": times.LOCAL_DATE_TIME,
    "datetime_zone": times.INSTANT,
    "time_window": times.TIME_WINDOW,
    "global_window": times.GLOBAL_WINDOW,
    "none": times.VOID_NAMESPACE,
}


def pojo(
    class_name: str,
    fields: Mapping[str, JavaType],
    hash_fields: Sequence[str] | None = None,
    *,
    hash_start: int = 1,
) -> StateSerializer:
    """Return the type of the objects of a Java class that Flink takes for a POJO.

    Parameters
    ----------
    class_name : str
        As ``Class.getName`` returns it, such as ``com.acme.Orders$Order``.
    fields : mapping of str to type
        All fields of the class.
    hash_fields : sequence of str, optional
        For keys: the fields that ``hashCode`` combines, in its order, each time 31 times the result so far plus the
        hash code of the field. Flink's key groups depend on it: keys of a class with another ``hashCode`` cannot be
        written.
    hash_start : int
        Result before the first field: 1 as ``Objects.hash`` has it, 0 in records and most generated code.

    Raises
    ------
    ConfigurationError
        If a field of the hash code does not exist.
    """
    missing = [name for name in hash_fields or () if name not in fields]
    if missing:
        raise ConfigurationError(f"{class_name} has no field {missing[0]!r}; it has {list(fields)}")
    ordered = tuple((name, serializer_of(fields[name])) for name in sorted(fields))
    return PojoSerializer(
        class_name,
        ordered,
        declared_by=(class_name,) * len(ordered),
        hash_fields=None if hash_fields is None else tuple(hash_fields),
        hash_start=hash_start,
    )


def avro(schema: str | Mapping[str, Any], class_name: str = GENERIC_RECORD) -> StateSerializer:
    """Return the type of records of Avro, which a job has with ``AvroTypeInfo`` or ``GenericRecordAvroTypeInfo``.

    Needs the library `fastavro` (``flinkcore[avro]``).

    Parameters
    ----------
    schema : str or dict
        Schema of the job, as JSON or as it was read from JSON.
    class_name : str
        The class that was generated of the schema, as ``Class.getName`` returns it; generic records by default.

    Raises
    ------
    ConfigurationError
        If it is not a schema, or Arrow has no type for its values, such as those of a type that has itself within it.
    """
    try:
        text = json.dumps(json.loads(schema) if isinstance(schema, str) else schema, separators=(",", ":"))
    except (TypeError, ValueError) as failure:
        raise ConfigurationError(f"{schema!r:.200} is not a schema of Avro as JSON: {failure}") from None
    made = AvroSerializer(class_name, text)
    if made.unknown is not None:
        raise ConfigurationError(f"{made.unknown} cannot be written")
    return made


def enum(class_name: str, constants: Sequence[str]) -> StateSerializer:
    """Return the type of the constants of a Java enum, in the order of its declaration."""
    return EnumSerializer(class_name, tuple(constants))


def set_of(element: JavaType) -> StateSerializer:
    """Return the type of Java's sets."""
    return SetSerializer((serializer_of(element),))


def records_of(element: JavaType) -> StateSerializer:
    """Return the type of ``window-contents`` of windows with an evictor: elements with their timestamps."""
    return StreamRecordSerializer((serializer_of(element),))


def serializer_of(declared: JavaType) -> StateSerializer:
    """Return the serializer of a declared type, as the Java job has it.

    Raises
    ------
    ConfigurationError
        If flinkcore does not know which serializer a Java job has for the type.
    """
    if isinstance(declared, StateSerializer):
        return declared
    if not isinstance(declared, TypeInformation):
        raise ArgumentTypeError(
            f"a type of a Flink job is one such as Types.LONG() or savepoints.pojo(...), not {declared!r}"
        )
    if isinstance(declared, BasicTypeInfo):
        return _BASIC[declared.basic_type]
    make = _DECLARED.get(type(declared))
    if make is None:
        raise ConfigurationError(
            f"a Java job has no serializer for {declared!r} that flinkcore can write. Declare the type of its state"
        )
    return make(declared)


def _tuple(declared: Any) -> StateSerializer:
    return TupleSerializer(tuple(map(serializer_of, declared.get_field_types())))


def _row(declared: Any) -> StateSerializer:
    return RowSerializer(tuple(map(serializer_of, declared.get_field_types())))


def _list(declared: Any) -> StateSerializer:
    return ListSerializer((serializer_of(declared.elem_type),))


def _map(declared: Any) -> StateSerializer:
    return MapSerializer((serializer_of(declared.key_type_info), serializer_of(declared.value_type_info)))


def _primitive_array(declared: Any) -> StateSerializer:
    element = serializer_of(declared.elem_type)
    if not isinstance(element, SimpleSerializer) or element not in basic.PRIMITIVE_ARRAYS:
        raise ConfigurationError(f"Java has no array of {element.name} as a primitive type")
    return basic.PRIMITIVE_ARRAYS[element]


def _basic_array(declared: Any) -> StateSerializer:
    element = serializer_of(declared.elem_type)
    return (
        basic.STRINGS if element == basic.STRING else ArraySerializer((element,), f"java.lang.{element.name}")
    )


_DECLARED: Final[dict[type[TypeInformation], Callable[[Any], StateSerializer]]] = {
    DateTypeInfo: lambda declared: times.SQL_DATE,
    TimeTypeInfo: lambda declared: times.SQL_TIME,
    TimestampTypeInfo: lambda declared: times.SQL_TIMESTAMP,
    TupleTypeInfo: _tuple,
    RowTypeInfo: _row,
    ListTypeInfo: _list,
    MapTypeInfo: _map,
    PrimitiveArrayTypeInfo: _primitive_array,
    BasicArrayTypeInfo: _basic_array,
}


def serializer_of_shape(shape: Shape, what: str) -> StateSerializer:
    """Return the serializer that a Java job most likely has for values of a checkpoint.

    Integers are Long, tuples TupleN, rows Row, datetimes without a zone LocalDateTime, and with one Instant.

    Parameters
    ----------
    shape : Shape
        The values, as the checkpoint describes them.
    what : str
        Names the values in messages.

    Raises
    ------
    ConfigurationError
        If there is no such type.
    """
    kind, *parts = [shape] if isinstance(shape, str) else shape
    if kind in _OF_SHAPES:
        return _OF_SHAPES[kind]
    if kind == "optional":
        return serializer_of_shape(parts[0], what)
    if kind == "row":
        return RowSerializer(tuple(serializer_of_shape(part, what) for part in parts[1:]))
    if kind == "tuple" and len(parts) <= 25:
        return TupleSerializer(tuple(serializer_of_shape(part, what) for part in parts))
    if kind in ("list", "tuples"):
        return ListSerializer((serializer_of_shape(parts[0], what),))
    if kind == "dict":
        key, value = (serializer_of_shape(part, what) for part in parts)
        return MapSerializer((key, value))
    raise ConfigurationError(
        f"{what} holds {shape_text(shape)}, for which Java has several types or none. Declare its type"
    )
