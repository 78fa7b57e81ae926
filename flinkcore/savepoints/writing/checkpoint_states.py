"""Keyed states and timers of a checkpoint as a Flink job has them: names, serializers and rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.checkpoint.checkpoint import Checkpoint
from flinkcore.checkpoint.checkpoint_manifest import OperatorPart
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.table_file import TableFile, read_table
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_shape import Shape, has_serialized
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints.flink_operators import FlinkOperator
from flinkcore.savepoints.java_types import serializer_of_shape
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.composite import (
    BufferEntrySerializer,
    ListSerializer,
    StreamRecordSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.java_hashes import key_groups as java_key_groups
from flinkcore.savepoints.writing.java_values import arrow_type, java_values
from flinkcore.savepoints.writing.state_files import KeyedStateContent

MERGING_WINDOW_SET: Final = "merging-window-set"
TIMERS: Final = "_timer_state/"
OWN_STATE: Final = "flinkcore."
"""Names of operator states that flinkcore's engine of single elements has for itself begin so."""
_BUFFERS: Final = ("LEFT_BUFFER", "RIGHT_BUFFER")


@dataclass(frozen=True)
class CheckpointOperator:
    """An operator of a checkpoint, with the declaration of the operator that continues with its state.

    Attributes
    ----------
    checkpoint : Checkpoint
    uid : str
        Uid of flinkcore's operator.
    target : FlinkOperator
    max_parallelism : int
        Number of key groups of the Flink job.
    """

    checkpoint: Checkpoint
    uid: str
    target: FlinkOperator
    max_parallelism: int

    @property
    def parts(self) -> list[OperatorPart]:
        """Parts that the subtasks have written."""
        return self.checkpoint.manifest.parts_by_operator()[self.uid]

    def tables(self, kind: TableKind, name: str = "") -> Iterator[tuple[OperatorPart, TableFile]]:
        """Yield the tables of a kind, and of a name if it is given."""
        for part in self.parts:
            for table in part.tables_of(kind):
                if not name or table.name == name:
                    yield part, table

    def has(self, *kinds: TableKind) -> bool:
        """Return whether there are rows of some kinds that a Flink job has, too."""
        return any(has_state(table, kinds) for part in self.parts for table in part.tables)

    def read(self, table: TableFile) -> CheckpointTable:
        """Return the content of a table."""
        return read_table(self.checkpoint.storage, table)

    def key(self) -> tuple[StateSerializer, bool]:
        """Return the serializer of the keys, and whether its key groups are those of the checkpoint.

        Raises
        ------
        ConfigurationError
            If there are several types that Java may have for the keys.
        """
        shapes = [
            table.shapes["key"]
            for kind in (TableKind.KEYED_STATE, TableKind.TIMERS)
            for _, table in self.tables(kind)
            if table.n_rows
        ]
        of_columns = _types_of_key_columns(self.checkpoint.manifest.job, self.uid)
        serializer = self.target.key_serializer
        if serializer is None and len(of_columns) == 1:
            serializer = _OF_COLUMNS.get(of_columns[0])
        if serializer is None:
            if not shapes:
                raise ConfigurationError(
                    f"operator {self.uid!r} has no keyed state or timer from which the type of its keys follows. "
                    f"Declare it: FlinkOperator({self.target.uid!r}, key=...)"
                )
            serializer = inferred(shapes, f"the key of operator {self.uid!r}")
        if of_columns:
            same = len(of_columns) == 1 and _OF_COLUMNS.get(of_columns[0]) == serializer
        else:
            same = all(shape == _SAME_GROUPS.get(serializer) for shape in shapes)
        return serializer, same and self.max_parallelism == self.checkpoint.max_parallelism

    def parts_of(self, key_groups: range, same_groups: bool) -> set[int]:
        """Return the subtasks that may have keys of some key groups of the Flink job."""
        return {
            part.subtask
            for part in self.parts
            if part.key_group_range is not None
            and (
                not same_groups
                or (part.key_group_range[0] < key_groups.stop and part.key_group_range[1] >= key_groups.start)
            )
        }


def has_state(table: TableFile, kinds: Collection[TableKind]) -> bool:
    """Return whether a table has rows of some kinds; states of flinkcore's own, such as clocks, do not count."""
    return table.kind in kinds and table.n_rows > 0 and not table.name.startswith(OWN_STATE)


_SAME_GROUPS: Final[dict[StateSerializer, Shape]] = {
    basic.STRING: "str",
    basic.LONG: "int",
    basic.DOUBLE: "float",
    basic.BOOLEAN: "bool",
}
"""Keys of single elements that flinkcore and Java hash alike, so that key groups do not change."""

_OF_COLUMNS: Final[dict[str, StateSerializer]] = {
    "string": basic.STRING,
    "large_string": basic.STRING,
    "int64": basic.LONG,
    "int32": basic.INT,
    "int16": basic.SHORT,
    "int8": basic.BYTE,
    "double": basic.DOUBLE,
    "float": basic.FLOAT,
    "bool": basic.BOOLEAN,
}
"""Serializers of keys by the type of their column, with the hash codes by which flinkcore has divided the column."""


def _types_of_key_columns(job: Mapping[str, Any], uid: str) -> list[str]:
    """Return the types of an operator's key columns, as the description of its job has them.

    Returns
    -------
    list of str
        One type, several texts if they are not known to be one, and none if the job has single elements.
    """
    texts = [
        text
        for name in ("keys", "keys of stream 1", "keys of stream 2")
        if (text := job.get(f"{uid}: {name}", job.get(name))) is not None
    ]
    types = list(dict.fromkeys(text.rpartition(": ")[2] for text in texts))
    return ["", ""] if any(", " in text for text in texts) else types


def keyed_contents(operator: CheckpointOperator) -> list[KeyedStateContent]:
    """Return the keyed states and timers of an operator of functions.

    Raises
    ------
    ConfigurationError
        If the type of a state is not known, or was written by a serializer of Python.
    """
    key, same_groups = operator.key()
    states = [
        _state_content(operator, name, key, same_groups)
        for name in dict.fromkeys(table.name for _, table in operator.tables(TableKind.KEYED_STATE))
        if any(table.n_rows for _, table in operator.tables(TableKind.KEYED_STATE, name))
    ]
    timers = [
        content
        for name in dict.fromkeys(table.name for _, table in operator.tables(TableKind.TIMERS))
        for content in _timer_contents(operator, name, key, same_groups)
    ]
    return [*states, *timers]


def inferred(shapes: list[Shape], what: str) -> StateSerializer:
    """Return the serializer of values of several tables.

    Raises
    ------
    ConfigurationError
        If the values are of several types, or of one that Java does not have.
    """
    found = {serializer_of_shape(shape, what): None for shape in shapes}
    if len(found) != 1:
        names = " and ".join(each.name for each in found)
        raise ConfigurationError(f"{what} has values of several types: {names}. Declare its type")
    return next(iter(found))


def _state_content(
    operator: CheckpointOperator, name: str, key: StateSerializer, same_groups: bool
) -> KeyedStateContent:
    tables = [table for _, table in operator.tables(TableKind.KEYED_STATE, name) if table.n_rows]
    what = f"state {name!r} of operator {operator.uid!r}"
    if any(has_serialized(table.shapes["value"]) for table in tables):
        raise ConfigurationError(
            f"{what} has values that a serializer of Python has written, which no Java job can read"
        )
    types = _types(operator, name, key, tables, what)

    def batches(key_groups: range) -> Iterator[pa.RecordBatch]:
        subtasks = operator.parts_of(key_groups, same_groups)
        for part, table in operator.tables(TableKind.KEYED_STATE, name):
            if part.subtask in subtasks and table.n_rows:
                yield _StateRows(operator, operator.read(table), types, name).batch(key_groups)

    return KeyedStateContent(operator.target.names.get(name, name), types, batches)


def _types(
    operator: CheckpointOperator, name: str, key: StateSerializer, tables: list[TableFile], what: str
) -> KeyedTypes:
    """Return the types of a state in the Flink job: those that are declared, or else follow from the values."""
    shapes = [table.shapes["value"] for table in tables]
    attributes = tables[0].attributes
    kind, has_ttl = str(attributes["type"]).upper(), attributes["ttl_time"] is not None
    map_key, value = operator.target.types_of(name)
    if name == MERGING_WINDOW_SET:
        windows = TupleSerializer((times.TIME_WINDOW, times.TIME_WINDOW))
        return KeyedTypes("LIST", key, times.VOID_NAMESPACE, None, windows, False)
    namespace = _namespace(tables, what)
    if name in _BUFFERS and kind == "MAP":
        element = value or inferred([shape[2][1] for shape in shapes], what)
        entries = ListSerializer((BufferEntrySerializer((element,)),))
        return KeyedTypes("MAP", key, namespace, basic.LONG, entries, False)
    if kind == "MAP" and map_key is None:
        map_key = inferred([shape[1] for shape in shapes], f"the keys of {what}")
    if value is None:
        of_values = shapes if kind not in ("LIST", "MAP") else [shape[-1] for shape in shapes]
        value = inferred([_without_ttl(each) for each in of_values] if has_ttl else of_values, what)
    return KeyedTypes(kind, key, namespace, map_key if kind == "MAP" else None, value, has_ttl)


def _namespace(tables: list[TableFile], what: str) -> StateSerializer:
    return inferred([table.shapes["namespace"] for table in tables], f"the namespace of {what}")


def _without_ttl(shape: Shape) -> Shape:
    """Return the shape of a value that is in a pair with the time of its last access."""
    if not isinstance(shape, str) and shape[0] == "optional":
        return ["optional", _without_ttl(shape[1])]
    return shape[1]


@dataclass(frozen=True)
class _StateRows:
    """Rows of a state's table."""

    operator: CheckpointOperator
    table: CheckpointTable
    types: KeyedTypes
    name: str

    def batch(self, key_groups: range) -> pa.RecordBatch:
        """Return the rows of some key groups of the Flink job."""
        table, types = self.table, self.types
        batch, shapes = table.batch, table.shapes
        key = java_values(batch.column("key"), shapes["key"], types.key)
        groups = java_key_groups(key, types.key, self.operator.max_parallelism)
        wanted = np.flatnonzero((groups >= key_groups.start) & (groups < key_groups.stop))
        columns: dict[str, pa.Array] = {"key_group": pa.array(groups), "key": key}
        if arrow_type(types.namespace) != pa.null():
            columns["namespace"] = java_values(
                batch.column("namespace"), shapes["namespace"], types.namespace
            )
        value, shape = batch.column("value"), shapes["value"]
        if len(wanted) < len(groups):
            rows = pa.array(wanted)
            columns = {name: column.take(rows) for name, column in columns.items()}
            value = value.take(rows)
        try:
            return self._with_values(columns, value, shape)
        except DataError as failure:
            raise DataError(f"state {self.name!r} of operator {self.operator.uid!r}: {failure}") from None

    def _with_values(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        if self.name == MERGING_WINDOW_SET:
            return _merging_windows(columns, value)
        if types.kind == "MAP":
            return self._map_entries(columns, value, shape)
        if types.kind == "LIST":
            return self._lists(columns, value, shape)
        assert types.value is not None
        if types.has_ttl:
            columns["last_access_ms"] = value.field(1)
            value, shape = value.field(0), shape[1]
        return _batch({**columns, "value": java_values(value, shape, types.value)})

    def _map_entries(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        assert types.map_key is not None
        assert types.value is not None
        if shape[0] != "dict":
            raise DataError("a map state has values that are not maps")
        parents = pc.list_parent_indices(value)
        entries = value.flatten()
        columns = {name: column.take(parents) for name, column in columns.items()}
        columns["map_key"] = java_values(entries.field(0), shape[1], types.map_key)
        of_values, values_shape = entries.field(1), shape[2]
        if self.name in _BUFFERS:
            columns["value"] = _buffer(of_values, values_shape, types.value)
            return _batch(columns)
        if types.has_ttl:
            there = of_values.is_valid()
            columns["last_access_ms"] = pc.if_else(there, of_values.field(1), pa.scalar(None, pa.int64()))
            values_shape = _without_ttl(values_shape)
            of_values = pc.if_else(there, of_values.field(0), pa.scalar(None, of_values.field(0).type))
        columns["value"] = java_values(of_values, values_shape, types.value)
        return _batch(columns)

    def _lists(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        assert types.value is not None
        offsets = pc.subtract(value.offsets, value.offsets[0]) if len(value) else value.offsets
        elements, of_elements = value.flatten(), shape[1]
        if types.has_ttl:
            times_of_access = elements.field(1)
            columns["last_access_ms"] = pa.LargeListArray.from_arrays(offsets, times_of_access)
            elements, of_elements = elements.field(0), of_elements[1]
        if isinstance(types.value, StreamRecordSerializer):
            record = java_values(elements.field(0), of_elements[1], types.value.nested[0])
            converted: pa.Array = pa.StructArray.from_arrays(
                [elements.field(1).cast(pa.int64()), record], ["timestamp_ms", "value"]
            )
        else:
            converted = java_values(elements, of_elements, types.value)
        columns["value"] = pa.LargeListArray.from_arrays(offsets, converted)
        return _batch(columns)


def _batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _merging_windows(columns: dict[str, pa.Array], value: pa.Array) -> pa.RecordBatch:
    """Return the windows in flight, each with the one that has its state, in a list for each key."""
    offsets = pc.subtract(value.offsets, value.offsets[0]) if len(value) else value.offsets
    entries = value.flatten()
    windows = [java_values(entries.field(number), "time_window", times.TIME_WINDOW) for number in (0, 1)]
    pairs = pa.StructArray.from_arrays(windows, ["f0", "f1"])
    columns["value"] = pa.LargeListArray.from_arrays(offsets, pairs)
    return _batch(columns)


def _buffer(lists: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array:
    """Return the elements that an interval join has buffered, none of which is marked as joined, as in Flink."""
    ((element,),) = (each.parts for each in serializer.parts)
    values = java_values(lists.flatten(), shape[1], element)
    offsets = pc.subtract(lists.offsets, lists.offsets[0]) if len(lists) else lists.offsets
    joined = pa.repeat(pa.scalar(False), len(values))
    entries = pa.StructArray.from_arrays([joined, values], ["joined", "value"])
    return pa.LargeListArray.from_arrays(offsets, entries)


def _timer_contents(
    operator: CheckpointOperator, name: str, key: StateSerializer, same_groups: bool
) -> Iterator[KeyedStateContent]:
    tables = [table for _, table in operator.tables(TableKind.TIMERS, name) if table.n_rows]
    if not tables:
        return
    what = f"timers {name!r} of operator {operator.uid!r}"
    namespace = _namespace(tables, what)
    types = KeyedTypes("TIMERS", key, namespace, None, None, False)
    for is_event_time, domain in ((True, "event"), (False, "processing")):

        def batches(key_groups: range, is_event_time: bool = is_event_time) -> Iterator[pa.RecordBatch]:
            subtasks = operator.parts_of(key_groups, same_groups)
            for part, table in operator.tables(TableKind.TIMERS, name):
                count = table.attributes["event_time" if is_event_time else "processing_time"]["count"]
                if part.subtask in subtasks and count:
                    yield _timers(operator, operator.read(table), types, is_event_time, key_groups)

        yield KeyedStateContent(f"{TIMERS}{domain}_{operator.target.names.get(name, name)}", types, batches)


def _timers(
    operator: CheckpointOperator,
    table: CheckpointTable,
    types: KeyedTypes,
    is_event_time: bool,
    key_groups: range,
) -> pa.RecordBatch:
    batch, shapes = table.batch, table.shapes
    keys, indexes = _indexed(batch.column("key"))
    key = java_values(keys, shapes["key"], types.key)
    groups = java_key_groups(key, types.key, operator.max_parallelism)[indexes]
    wanted = batch.column("is_event_time").to_numpy(zero_copy_only=False) == is_event_time
    wanted &= (groups >= key_groups.start) & (groups < key_groups.stop)
    rows = pa.array(np.flatnonzero(wanted))
    columns: dict[str, pa.Array] = {
        "key_group": pa.array(groups).take(rows),
        "key": key.take(pa.array(indexes).take(rows)),
        "timestamp_ms": batch.column("timestamp_ms").take(rows),
    }
    if arrow_type(types.namespace) != pa.null():
        namespaces, of_rows = _indexed(batch.column("namespace"))
        columns["namespace"] = java_values(namespaces, shapes["namespace"], types.namespace).take(
            pa.array(of_rows).take(rows)
        )
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _indexed(column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return distinct values of a column, and by row the index of its value."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary, column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return column, np.arange(len(column), dtype=np.int64)
