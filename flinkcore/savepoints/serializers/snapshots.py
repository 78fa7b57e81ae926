"""Snapshots of serializers, as Flink writes them into the header of a state file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.serializers.avro import AVRO_CLASS, AVRO_CLASS_OF_1_6, read_avro
from flinkcore.savepoints.serializers.basic import BASIC_SERIALIZERS
from flinkcore.savepoints.serializers.composite import (
    COMPOSITE_SERIALIZERS,
    ArraySerializer,
    EnumSerializer,
    ExternalSerializer,
    NullableSerializer,
    RowSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.java_objects import JavaObjectReader
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import NothingSerializer, OpaqueSerializer, StateSerializer
from flinkcore.savepoints.serializers.sorted_maps import SortedMapSerializer
from flinkcore.savepoints.serializers.sql import (
    SQL_TEXT,
    read_array_data,
    read_map_data,
    read_row_data,
    single_serializer,
)
from flinkcore.savepoints.serializers.times import TIME_SERIALIZERS

COMPOSITE, NESTED, OPTIONAL_MAP = 911108, 1333245, 0x4F2C69A3D70
PROXY_VERSION: Final = 2
_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
_SQL: Final = "org.apache.flink.table.runtime.typeutils."
ENUM_CLASS: Final = f"{_BASE}EnumSerializer$EnumSerializerSnapshot"
POJO_CLASS: Final = f"{_RUNTIME}PojoSerializerSnapshot"
_MOST_NESTED: Final = 64
"""Levels of serializers in serializers; a forged snapshot could have as many as Python has frames."""

TUPLE_0: Final = NothingSerializer("Tuple0", 1, f"{_RUNTIME}Tuple0SerializerSnapshot", 42)

_Value = TypeVar("_Value")


def read_serializer(reader: ByteReader, depth: int = 0) -> StateSerializer:
    """Read the snapshot of a serializer, with its class and version.

    Parameters
    ----------
    reader : ByteReader
    depth : int
        Number of serializers that it lies in.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If the class is not known: a snapshot does not say how long it is, so nothing after it can be read.

    Notes
    -----
    Flink's ``TypeSerializerSnapshot.writeVersionedSnapshot``.
    """
    if depth > _MOST_NESTED:
        reader.fail(f"serializers are nested more than {_MOST_NESTED} levels deep")
    begin = reader.offset
    name, version = reader.utf(), reader.integer(4)
    simple = BASIC_SERIALIZERS.get(name) or TIME_SERIALIZERS.get(name)
    if simple is not None:
        if version == 2:  # until Flink 1.8 they had the name of the serializer
            reader.utf()
        return simple
    if name in COMPOSITE_SERIALIZERS:
        return _read_composite(reader, name, depth)
    read = _OTHERS.get(name)
    if read is None:
        raise UnsupportedSavepointError(
            f"{reader.file}, byte {begin:,}: the serializer snapshot {name} (version {version}) is not known",
            file=reader.file,
            offset=begin,
        )
    found = read(reader, version, depth)
    if isinstance(found, OpaqueSerializer):
        return replace(found, snapshot=reader.data[begin - reader.base : reader.at])
    return found


def _read_composite(reader: ByteReader, name: str, depth: int) -> StateSerializer:
    kind = COMPOSITE_SERIALIZERS[name]
    _expect(reader, COMPOSITE, "a composite snapshot")
    version = reader.integer(4)
    settings: tuple[int | str | bytes, ...] = ()
    if kind is TupleSerializer:
        reader.utf()
    elif kind is ArraySerializer:
        settings = (reader.utf(),)
    elif kind is RowSerializer:
        # Version 2 did not have row kinds, 3 and 4 say whether the mask has them.
        settings = (reader.flag() if version >= 3 else False,)
        if version not in (2, 3, 4):
            reader.fail(f"a snapshot of rows has version {version}")
    elif kind is NullableSerializer:
        padding = reader.integer(4)
        settings = (padding,)
        if not 0 <= padding <= 1 << 16:
            reader.fail(f"nulls are padded with {padding:,} bytes")
    elif kind is ExternalSerializer:
        begin = reader.at
        JavaObjectReader(reader).read()
        reader.flag()  # whether values are given as objects of the planner
        settings = (bytes(reader.data[begin : reader.at]),)
    nested = _read_nested(reader, depth)
    if kind.n_nested is not None and len(nested) != kind.n_nested:
        reader.fail(f"{name} has {len(nested)} nested snapshots instead of {kind.n_nested}")
    if kind is TupleSerializer and not nested:
        return TUPLE_0
    made: Callable[..., StateSerializer] = kind
    return made(nested, *settings)


def _read_nested(reader: ByteReader, depth: int) -> tuple[StateSerializer, ...]:
    _expect(reader, NESTED, "nested snapshots")
    reader.integer(4)
    return tuple(read_serializer(reader, depth + 1) for _ in range(reader.count(6)))


def _expect(reader: ByteReader, magic: int, what: str) -> None:
    if reader.integer(4) != magic:
        reader.at -= 4
        reader.fail(f"{what} should begin here")


def _read_enum(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return EnumSerializer(reader.utf(), tuple(reader.utf() for _ in range(reader.count(2))))


def _read_pojo(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    name = reader.utf()

    def nested(inner: ByteReader) -> StateSerializer:
        return read_serializer(inner, depth + 1)

    declared_by: list[str] = []
    fields = _read_optional_map(reader, nested, declared_by)
    registered, subclasses = _read_optional_map(reader, nested), _read_optional_map(reader, nested)
    known = tuple((field, serializer) for field, serializer in fields if serializer is not None)
    if len(known) < len(fields):
        missing = next(field for field, serializer in fields if serializer is None)
        reader.fail(f"the field {missing} of {name} has no serializer")
    if len(declared_by) < len(fields):
        reader.fail(f"a field of {name} has no class that declares it")
    return PojoSerializer(name, known, registered, subclasses, tuple(declared_by))


def _read_optional_map(
    reader: ByteReader,
    read_value: Callable[[ByteReader], _Value],
    keys: list[str] | None = None,
) -> tuple[tuple[str, _Value | None], ...]:
    """Read names with their values, which are absent if Java did not find a class; texts of keys go to a list.

    Notes
    -----
    Flink's ``LinkedOptionalMapSerializer``.
    """
    if reader.integer(8) != OPTIONAL_MAP:
        reader.at -= 8
        reader.fail("a map of names should begin here")
    found: list[tuple[str, _Value | None]] = []
    for _ in range(reader.count(4)):
        name, value = reader.utf(), None
        if reader.flag():
            key = reader.nested(reader.count())
            if keys is not None:
                keys.append(key.utf())
        if reader.flag():
            value = read_value(reader.nested(reader.count()))
        found.append((name, value))
    return tuple(found)


def _read_kryo(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    name = reader.utf()
    for _ in range(3):  # registered classes, and default serializers as objects and as classes
        _read_optional_map(reader, lambda inner: None)
    return OpaqueSerializer(f"Kryo<{name}>")


def _read_generic(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return OpaqueSerializer(f"Value<{reader.utf()}>")


def _read_tuple0(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return TUPLE_0


def _read_java(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return OpaqueSerializer("Java serialization")


def _read_ttl_aware(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    reader.flag()
    return read_serializer(reader, depth + 1)


def _read_row_data(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return read_row_data(reader, lambda: _read_nested(reader, depth))


def _read_sorted_map(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    begin = reader.at
    JavaObjectReader(reader).read()
    comparator = bytes(reader.data[begin : reader.at])
    nested = _read_nested(reader, depth)
    if len(nested) != SortedMapSerializer.n_nested:
        reader.fail(
            f"a sorted map has {len(nested)} nested snapshots instead of {SortedMapSerializer.n_nested}"
        )
    return SortedMapSerializer(nested, comparator)


def _read_decimal_data(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return _single(reader, reader.integer(4), reader.integer(4))


def _read_timestamp_data(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    return _single(reader, reader.integer(4))


def _single(reader: ByteReader, *numbers: int) -> StateSerializer:
    try:
        return single_serializer(*numbers)
    except ValueError as failure:
        reader.fail(str(failure))


_OTHERS: Final[dict[str, Callable[[ByteReader, int, int], StateSerializer]]] = {
    ENUM_CLASS: _read_enum,
    POJO_CLASS: _read_pojo,
    AVRO_CLASS: read_avro,
    AVRO_CLASS_OF_1_6: read_avro,
    f"{_RUNTIME}Tuple0SerializerSnapshot": _read_tuple0,
    f"{_RUNTIME}kryo.KryoSerializerSnapshot": _read_kryo,
    f"{_RUNTIME}CopyableValueSerializer$CopyableValueSerializerSnapshot": _read_generic,
    f"{_RUNTIME}ValueSerializer$ValueSerializerSnapshot": _read_generic,
    "org.apache.flink.runtime.state.JavaSerializer$JavaSerializerSnapshot": _read_java,
    f"{_SQL}RowDataSerializer$RowDataSerializerSnapshot": _read_row_data,
    f"{_SQL}ArrayDataSerializer$ArrayDataSerializerSnapshot": lambda reader, version, depth: read_array_data(
        reader
    ),
    f"{_SQL}MapDataSerializer$MapDataSerializerSnapshot": lambda reader, version, depth: read_map_data(
        reader
    ),
    f"{_SQL}DecimalDataSerializer$DecimalSerializerSnapshot": _read_decimal_data,
    f"{_SQL}TimestampDataSerializer$TimestampDataSerializerSnapshot": _read_timestamp_data,
    SortedMapSerializer.snapshot_class: _read_sorted_map,
    f"{_SQL}StringDataSerializer$StringDataSerializerSnapshot": lambda reader, version, depth: SQL_TEXT,
    "org.apache.flink.runtime.state.ttl.TtlAwareSerializerSnapshot": _read_ttl_aware,
}


@dataclass(frozen=True)
class StateDescription:
    """A state as the header of a file describes it.

    Attributes
    ----------
    name : str
    kind : int
        0 for keyed state, 1 for operator state, 2 for broadcast state, 3 for timers.
    options : dict of str to str
    serializers : dict of str to StateSerializer
        By ``KEY_SERIALIZER``, ``VALUE_SERIALIZER`` and ``NAMESPACE_SERIALIZER``.
    """

    name: str
    kind: int
    options: dict[str, str]
    serializers: dict[str, StateSerializer]


KEYED, OPERATOR, BROADCAST, TIMERS = range(4)


def read_written_serializer(reader: ByteReader) -> StateSerializer:
    """Read a serializer as headers have it: with the version of the proxy that wrote it."""
    version = reader.integer(4)
    if version != PROXY_VERSION:
        reader.at -= 4
        reader.fail(f"a serializer is written in version {version} instead of {PROXY_VERSION}")
    return read_serializer(reader)


def read_state_description(reader: ByteReader) -> StateDescription:
    """Read the description of one state.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If a serializer is not known.

    Notes
    -----
    Flink's ``StateMetaInfoSnapshotReadersWriters``.
    """
    name, kind = reader.utf(), reader.integer(4)
    if not KEYED <= kind <= TIMERS:
        reader.at -= 4
        reader.fail(f"state {name!r} is of the unknown kind {kind}")
    options = {reader.utf(): reader.utf() for _ in range(reader.count(4))}
    try:
        serializers = {reader.utf(): read_written_serializer(reader) for _ in range(reader.count(10))}
    except UnsupportedSavepointError as failure:
        raise UnsupportedSavepointError(
            f"state {name!r} and those after it cannot be read: {failure}",
            file=failure.file,
            offset=failure.offset,
        ) from None
    return StateDescription(name, kind, options, serializers)
