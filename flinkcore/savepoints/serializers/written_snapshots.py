"""Snapshots of serializers, written as Flink reads them from the header of a state file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.avro import AVRO_CLASS, AvroSerializer
from flinkcore.savepoints.serializers.composite import CompositeSerializer, EnumSerializer
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.row_data import RowDataSerializer
from flinkcore.savepoints.serializers.serializer import (
    NothingSerializer,
    OpaqueSerializer,
    SimpleSerializer,
    StateSerializer,
)
from flinkcore.savepoints.serializers.snapshots import (
    COMPOSITE,
    ENUM_CLASS,
    NESTED,
    OPTIONAL_MAP,
    POJO_CLASS,
    PROXY_VERSION,
    StateDescription,
)
from flinkcore.savepoints.serializers.sql import SingleSerializer

_CURRENT: Final = 3
_POJO: Final = 2
_AVRO, _AVRO_OF_LONG_SCHEMAS = 2, 3
_NESTED_VERSION: Final = 1


def write_serializer(writer: ByteWriter, serializer: StateSerializer) -> None:
    """Append the snapshot of a serializer, with its class and version.

    Raises
    ------
    UnsupportedSavepointError
        If such a serializer cannot be written.

    Notes
    -----
    Flink's ``TypeSerializerSnapshot.writeVersionedSnapshot``.
    """
    if isinstance(serializer, SimpleSerializer | NothingSerializer) and serializer.snapshot_class:
        writer.utf(serializer.snapshot_class).integer(_CURRENT)
    elif isinstance(serializer, OpaqueSerializer) and serializer.snapshot:
        writer.add(serializer.snapshot)
    elif isinstance(serializer, EnumSerializer):
        writer.utf(ENUM_CLASS).integer(_CURRENT).utf(serializer.class_name)
        writer.integer(len(serializer.constants))
        for constant in serializer.constants:
            writer.utf(constant)
    elif isinstance(serializer, RowDataSerializer | SingleSerializer):
        serializer.write_snapshot(writer)
    elif isinstance(serializer, PojoSerializer):
        _write_pojo(writer, serializer)
    elif isinstance(serializer, AvroSerializer):
        _write_avro(writer, serializer)
    elif isinstance(serializer, CompositeSerializer):
        writer.utf(serializer.snapshot_class).integer(_CURRENT)
        if serializer.outer_version is not None:
            writer.integer(COMPOSITE).integer(serializer.outer_version)
        serializer.write_outer(writer)
        writer.integer(NESTED).integer(_NESTED_VERSION).integer(len(serializer.nested))
        for each in serializer.nested:
            write_serializer(writer, each)
    else:
        raise UnsupportedSavepointError(f"values of the type {serializer.name} cannot be written yet")


def _write_pojo(writer: ByteWriter, pojo: PojoSerializer) -> None:
    writer.utf(POJO_CLASS).integer(_POJO).utf(pojo.class_name)
    fields = (
        (name, ByteWriter().utf(declaring).utf(name).data(), each)
        for declaring, (name, each) in zip(pojo.declared_by, pojo.fields, strict=True)
    )
    _write_optional_map(writer, list(fields))
    for classes in (pojo.registered, pojo.subclasses):
        _write_optional_map(writer, [(name, ByteWriter().utf(name).data(), each) for name, each in classes])


def _write_avro(writer: ByteWriter, avro: AvroSerializer) -> None:
    """Append the snapshot in a version that all releases of Flink read, unless the schema is too long for it."""
    writer.utf(AVRO_CLASS)
    try:
        content = ByteWriter().utf(avro.class_name).utf(avro.schema)
    except ValueError:
        content = ByteWriter().string(avro.class_name).string(avro.schema)
        writer.integer(_AVRO_OF_LONG_SCHEMAS).add(content.data())
    else:
        writer.integer(_AVRO).add(content.data())


def _write_optional_map(
    writer: ByteWriter, entries: Iterable[tuple[str, bytes, StateSerializer | None]]
) -> None:
    every = list(entries)
    writer.integer(OPTIONAL_MAP, 8).integer(len(every))
    for name, key, serializer in every:
        writer.utf(name).flag(True).integer(len(key)).add(key).flag(serializer is not None)
        if serializer is not None:
            nested = ByteWriter()
            write_serializer(nested, serializer)
            writer.integer(nested.size).add(nested.data())


def write_proxied(writer: ByteWriter, serializer: StateSerializer) -> None:
    """Append a serializer as headers have it: with the version of the proxy that writes it."""
    writer.integer(PROXY_VERSION)
    write_serializer(writer, serializer)


def write_state_description(writer: ByteWriter, state: StateDescription) -> None:
    """Append the description of one state.

    Notes
    -----
    Flink's ``StateMetaInfoSnapshotReadersWriters``.
    """
    writer.utf(state.name).integer(state.kind).integer(len(state.options))
    for name, option in state.options.items():
        writer.utf(name).utf(option)
    writer.integer(len(state.serializers))
    for name, serializer in state.serializers.items():
        writer.utf(name)
        write_proxied(writer, serializer)
