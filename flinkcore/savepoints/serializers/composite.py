"""Serializers that consist of others: lists, maps, tuples, rows, enums, and what Flink wraps around values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from flinkcore._native.state_columns import (
    BooleanColumn,
    BytesColumn,
    ChoiceColumn,
    EitherColumn,
    FixedColumn,
    ListColumn,
    MapColumn,
    NullableColumn,
    RecordColumn,
    RowColumn,
    StateColumn,
    StructColumn,
)
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.serializer import StateSerializer

_NO_FLAG, _NULL_FLAG, _THERE_FLAG = range(3)
_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_STREAM_ELEMENT: Final = "org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer"
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
ROW_KINDS: Final = [b"+I", b"-U", b"+U", b"-D"]


@dataclass(frozen=True)
class CompositeSerializer(StateSerializer):
    """A serializer that consists of others.

    Parameters
    ----------
    nested : tuple of StateSerializer
    """

    nested: tuple[StateSerializer, ...]
    java_name: ClassVar[str]
    snapshot_class: ClassVar[str]
    outer_version: ClassVar[int | None] = 1
    n_nested: ClassVar[int | None] = 1

    def write_outer(self, writer: ByteWriter) -> None:
        """Append what its snapshot says beside those of its parts."""

    @property
    def name(self) -> str:
        return f"{self.java_name}<{', '.join(each.name for each in self.nested)}>"

    @property
    def parts(self) -> tuple[StateSerializer, ...]:
        return self.nested

    def merged(self, other: StateSerializer) -> StateSerializer:
        if type(other) is not type(self) or len(other.parts) != len(self.nested):
            return super().merged(other)
        nested = (mine.merged(theirs) for mine, theirs in zip(self.nested, other.parts, strict=True))
        return replace(self, nested=tuple(nested))

    def columns(self, exact: bool) -> list[StateColumn]:
        """Return a column for each part."""
        return [each.column(exact) for each in self.nested]


@dataclass(frozen=True)
class ListSerializer(CompositeSerializer):
    """Lists, whose elements are not null."""

    snapshot_class = f"{_BASE}ListSerializerSnapshot"
    java_name = "List"
    flags: ClassVar[int] = _NO_FLAG

    def column(self, exact: bool) -> StateColumn:
        return ListColumn(self.nested[0].column(exact), self.flags)


@dataclass(frozen=True)
class ArrayListSerializer(ListSerializer):
    """Lists of another serializer of Flink, which are written alike."""

    snapshot_class = "org.apache.flink.runtime.state.ArrayListSerializerSnapshot"


@dataclass(frozen=True)
class SetSerializer(ListSerializer):
    """Sets, each of whose elements has a byte that is 1 for null."""

    snapshot_class = f"{_BASE}SetSerializerSnapshot"
    java_name = "Set"
    flags = _NULL_FLAG


@dataclass(frozen=True)
class ArraySerializer(ListSerializer):
    """Arrays of objects, each of which has a byte that is 0 for null.

    Parameters
    ----------
    component_class : str
        Class of the objects.
    """

    component_class: str = ""
    flags = _THERE_FLAG
    snapshot_class = f"{_BASE}GenericArraySerializerSnapshot"

    @property
    def name(self) -> str:
        return f"{self.nested[0].name}[]"

    def write_outer(self, writer: ByteWriter) -> None:
        writer.utf(self.component_class)


@dataclass(frozen=True)
class MapSerializer(CompositeSerializer):
    """Maps, whose values may be null."""

    snapshot_class = f"{_BASE}MapSerializerSnapshot"
    java_name = "Map"
    n_nested = 2

    def column(self, exact: bool) -> StateColumn:
        key, value = self.columns(exact)
        return MapColumn(key, value, exact)


@dataclass(frozen=True)
class TupleSerializer(CompositeSerializer):
    """Tuples: the fields one after the other, none of them null."""

    snapshot_class = f"{_RUNTIME}TupleSerializerSnapshot"
    outer_version = 2
    java_name = "Tuple"
    n_nested = None

    @property
    def name(self) -> str:
        return f"Tuple{len(self.nested)}<{', '.join(each.name for each in self.nested)}>"

    @property
    def length(self) -> int | None:
        lengths = [each.length for each in self.nested]
        return None if None in lengths else sum(length or 0 for length in lengths)

    def write_outer(self, writer: ByteWriter) -> None:
        writer.utf(f"org.apache.flink.api.java.tuple.Tuple{len(self.nested)}")

    def column(self, exact: bool) -> StateColumn:
        return StructColumn([f"f{i}" for i in range(len(self.nested))], self.columns(exact))


@dataclass(frozen=True)
class RowSerializer(CompositeSerializer):
    """Rows: a mask of nulls, and the fields that are not null.

    Parameters
    ----------
    has_kind : bool
        Whether the mask begins with the row kind.
    """

    has_kind: bool = True
    java_name = "Row"
    snapshot_class = f"{_RUNTIME}RowSerializer$RowSerializerSnapshot"
    outer_version = 4
    n_nested = None

    def write_outer(self, writer: ByteWriter) -> None:
        writer.flag(self.has_kind)

    def column(self, exact: bool) -> StateColumn:
        names, columns = [f"f{i}" for i in range(len(self.nested))], self.columns(exact)
        if self.has_kind:
            names, columns = [*names, "row_kind"], [*columns, ChoiceColumn(ROW_KINDS)]
        return RowColumn(names, columns, self.has_kind)


@dataclass(frozen=True)
class EnumSerializer(StateSerializer):
    """Constants of an enum, as their numbers in the snapshot.

    Parameters
    ----------
    class_name : str
    constants : tuple of str
    """

    class_name: str
    constants: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"enum {self.class_name}"

    @property
    def length(self) -> int | None:
        return 4

    def column(self, exact: bool) -> StateColumn:
        return ChoiceColumn([constant.encode() for constant in self.constants])


@dataclass(frozen=True)
class EitherSerializer(CompositeSerializer):
    """Flink's Either: a struct of `left` and `right`, one of which is null."""

    snapshot_class = f"{_RUNTIME}JavaEitherSerializerSnapshot"
    java_name = "Either"
    n_nested = 2

    def column(self, exact: bool) -> StateColumn:
        return EitherColumn(["left", "right"], self.columns(exact), 0)


@dataclass(frozen=True)
class UnionSerializer(CompositeSerializer):
    """Elements of joins and co-groups over windows: a struct of `one` and `two`, one of which is null."""

    snapshot_class = "org.apache.flink.streaming.api.datastream.CoGroupedStreams$UnionSerializerSnapshot"
    java_name = "TaggedUnion"
    n_nested = 2

    def column(self, exact: bool) -> StateColumn:
        return EitherColumn(["one", "two"], self.columns(exact), 2)


@dataclass(frozen=True)
class NullableSerializer(CompositeSerializer):
    """Values that may be null.

    Parameters
    ----------
    padding : int
        Bytes of a null beside its flag.
    """

    padding: int = 0
    java_name = "Nullable"
    snapshot_class = f"{_RUNTIME}NullableSerializer$NullableSerializerSnapshot"

    def write_outer(self, writer: ByteWriter) -> None:
        writer.integer(self.padding)

    @property
    def length(self) -> int | None:
        inner = self.nested[0].length
        return inner + 1 if self.padding and inner is not None else None

    def column(self, exact: bool) -> StateColumn:
        return NullableColumn(self.nested[0].column(exact), self.padding)


@dataclass(frozen=True)
class TtlSerializer(CompositeSerializer):
    """Values with the time of their last access."""

    snapshot_class = "org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot"
    outer_version = 2
    java_name = "TTL"
    n_nested = 2

    @property
    def name(self) -> str:
        return f"TTL<{self.nested[1].name}>"

    def column(self, exact: bool) -> StateColumn:
        return StructColumn(["last_access_ms", "value"], self.columns(exact))


@dataclass(frozen=True)
class AsyncTtlSerializer(TtlSerializer):
    """Values with the time of their last access, of states that are accessed asynchronously."""

    snapshot_class = "org.apache.flink.runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot"


@dataclass(frozen=True)
class StreamRecordSerializer(CompositeSerializer):
    """Stream records with their timestamp, in windows with an evictor."""

    snapshot_class = f"{_STREAM_ELEMENT}$StreamElementSerializerSnapshot"
    outer_version = 2
    java_name = "StreamRecord"

    def column(self, exact: bool) -> StateColumn:
        return RecordColumn(["timestamp_ms", "value"], [FixedColumn("l", 8), self.nested[0].column(exact)])


@dataclass(frozen=True)
class BufferEntrySerializer(CompositeSerializer):
    """Records that an interval join has buffered."""

    snapshot_class = (
        "org.apache.flink.streaming.api.operators.co.IntervalJoinOperator$BufferEntrySerializerSnapshot"
    )
    outer_version = 2
    java_name = "BufferEntry"

    def column(self, exact: bool) -> StateColumn:
        return StructColumn(["joined", "value"], [BooleanColumn(), self.nested[0].column(exact)])


@dataclass(frozen=True)
class RawValueSerializer(CompositeSerializer):
    """Values of SQL's type RAW: their size, then bytes that another serializer wrote."""

    java_name = "RAW"
    snapshot_class = (
        "org.apache.flink.table.runtime.typeutils.RawValueDataSerializer$RawValueDataSerializerSnapshot"
    )

    @property
    def parts(self) -> tuple[StateSerializer, ...]:
        return ()  # they stay bytes, which can be read whatever that serializer is

    def merged(self, other: StateSerializer) -> StateSerializer:
        return self if isinstance(other, RawValueSerializer) else super().merged(other)

    def column(self, exact: bool) -> StateColumn:
        return BytesColumn()


@dataclass(frozen=True)
class ExternalSerializer(CompositeSerializer):
    """Values of a data type of SQL's planner, written as another serializer writes them.

    Parameters
    ----------
    data_type : bytes
        The type as Java serialized it, and whether values are given in the planner's own form.
    """

    data_type: bytes = b""
    java_name = "External"
    snapshot_class = "org.apache.flink.table.runtime.typeutils.ExternalSerializer$ExternalSerializerSnapshot"

    @property
    def length(self) -> int | None:
        return self.nested[0].length

    def write_outer(self, writer: ByteWriter) -> None:
        writer.add(self.data_type)

    def column(self, exact: bool) -> StateColumn:
        return self.nested[0].column(exact)


@dataclass(frozen=True)
class TimerSerializer(CompositeSerializer):
    """Timers: key and namespace; the time comes first."""

    snapshot_class = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
    outer_version = 2
    java_name = "Timer"
    n_nested = 2

    def column(self, exact: bool) -> StateColumn:
        key, namespace = self.columns(exact)
        return StructColumn(["timestamp", "key", "namespace"], [FixedColumn("l", 8), key, namespace])


COMPOSITE_SERIALIZERS: Final[dict[str, type[CompositeSerializer]]] = {
    each.snapshot_class: each
    for each in (
        *(
            ListSerializer,
            ArrayListSerializer,
            SetSerializer,
            MapSerializer,
            ArraySerializer,
            TupleSerializer,
        ),
        *(RowSerializer, EitherSerializer, NullableSerializer, UnionSerializer, TtlSerializer),
        *(AsyncTtlSerializer, StreamRecordSerializer, BufferEntrySerializer, TimerSerializer),
        *(RawValueSerializer, ExternalSerializer),
    )
}
"""Serializers by the class of their snapshots, which are composite ones."""
