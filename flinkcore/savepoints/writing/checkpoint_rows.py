"""Rows of keyed states and timers of a checkpoint, as a Flink job has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.value_shape import Shape
from flinkcore.errors import DataError
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import times
from flinkcore.savepoints.serializers.composite import StreamRecordSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.java_hashes import key_groups as java_key_groups
from flinkcore.savepoints.writing.java_values import arrow_type, java_values

MERGING_WINDOW_SET: Final = "merging-window-set"
BUFFERS: Final = ("LEFT_BUFFER", "RIGHT_BUFFER")

Convert: TypeAlias = Callable[[pa.Array, Shape, StateSerializer], pa.Array]
"""From a column of a checkpoint, with its shape, to the column that a serializer writes."""


class Conversions(NamedTuple):
    """Conversions of a checkpoint's columns."""

    key: Convert = java_values
    namespace: Convert = java_values
    map_key: Convert = java_values
    value: Convert = java_values


@dataclass(frozen=True)
class StateRows:
    """Rows of a state's table.

    Attributes
    ----------
    table : CheckpointTable
    types : KeyedTypes
        Types of the state in the Flink job.
    name : str
        Name of the state.
    uid : str
        Uid of flinkcore's operator.
    max_parallelism : int
        Number of key groups of the Flink job.
    conversions : Conversions
    """

    table: CheckpointTable
    types: KeyedTypes
    name: str
    uid: str
    max_parallelism: int
    conversions: Conversions

    def batch(self, key_groups: range) -> pa.RecordBatch:
        """Return the rows of some key groups of the Flink job.

        Raises
        ------
        DataError
            If a key or a value is not of the type in the Flink job; names the state.
        """
        try:
            return self._batch(key_groups)
        except DataError as failure:
            raise DataError(f"state {self.name!r} of operator {self.uid!r}: {failure}") from None

    def _batch(self, key_groups: range) -> pa.RecordBatch:
        table, types, convert = self.table, self.types, self.conversions
        batch, shapes = table.batch, table.shapes
        key = convert.key(batch.column("key"), shapes["key"], types.key)
        groups = java_key_groups(key, types.key, self.max_parallelism)
        wanted = np.flatnonzero((groups >= key_groups.start) & (groups < key_groups.stop))
        columns: dict[str, pa.Array] = {"key_group": pa.array(groups), "key": key}
        if arrow_type(types.namespace) != pa.null():
            columns["namespace"] = convert.namespace(
                batch.column("namespace"), shapes["namespace"], types.namespace
            )
        value, shape = batch.column("value"), shapes["value"]
        if len(wanted) < len(groups):
            rows = pa.array(wanted)
            columns = {name: column.take(rows) for name, column in columns.items()}
            value = value.take(rows)
        return self._with_values(columns, value, shape)

    def _with_values(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        if self.name == MERGING_WINDOW_SET and types.kind == "LIST":
            return _merging_windows(columns, value)
        if types.kind == "MAP":
            return self._map_entries(columns, value, shape)
        if types.kind == "LIST":
            if self.table.attributes["type"] != "list":  # PyFlink's process mode has lists for values
                value, shape = _lists_of_one(value), ["list", shape]
            return self._lists(columns, value, shape)
        assert types.value is not None
        if types.has_ttl:
            columns["last_access_ms"] = value.field(1)
            value, shape = value.field(0), shape[1]
        return _batch({**columns, "value": self.conversions.value(value, shape, types.value)})

    def _map_entries(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        assert types.map_key is not None
        assert types.value is not None
        if shape[0] != "dict":
            raise DataError("a map state has values that are not maps")
        parents = pc.list_parent_indices(value)
        entries = value.flatten()
        columns = {name: column.take(parents) for name, column in columns.items()}
        columns["map_key"] = self.conversions.map_key(entries.field(0), shape[1], types.map_key)
        of_values, values_shape = entries.field(1), shape[2]
        if self.name in BUFFERS:
            columns["value"] = _buffer(of_values, values_shape, types.value)
            return _batch(columns)
        if types.has_ttl:
            there = of_values.is_valid()
            columns["last_access_ms"] = pc.if_else(there, of_values.field(1), pa.scalar(None, pa.int64()))
            values_shape = without_ttl(values_shape)
            of_values = pc.if_else(there, of_values.field(0), pa.scalar(None, of_values.field(0).type))
        columns["value"] = self.conversions.value(of_values, values_shape, types.value)
        return _batch(columns)

    def _lists(self, columns: dict[str, pa.Array], value: pa.Array, shape: Shape) -> pa.RecordBatch:
        types = self.types
        assert types.value is not None
        offsets = _offsets(value)
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
            converted = self.conversions.value(elements, of_elements, types.value)
        columns["value"] = pa.LargeListArray.from_arrays(offsets, converted)
        return _batch(columns)


def without_ttl(shape: Shape) -> Shape:
    """Return the shape of a value that is in a pair with the time of its last access."""
    if not isinstance(shape, str) and shape[0] == "optional":
        return ["optional", without_ttl(shape[1])]
    return shape[1]


def _batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _offsets(lists: pa.Array) -> pa.Array:
    """Return the offsets of lists in their flattened values."""
    return pc.subtract(lists.offsets, lists.offsets[0]) if len(lists) else lists.offsets


def _lists_of_one(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(range(len(values) + 1), pa.int64()), values)


def _merging_windows(columns: dict[str, pa.Array], value: pa.Array) -> pa.RecordBatch:
    """Return the windows in flight, each with the one that has its state, in a list for each key."""
    offsets = _offsets(value)
    entries = value.flatten()
    windows = [java_values(entries.field(number), "time_window", times.TIME_WINDOW) for number in (0, 1)]
    pairs = pa.StructArray.from_arrays(windows, ["f0", "f1"])
    columns["value"] = pa.LargeListArray.from_arrays(offsets, pairs)
    return _batch(columns)


def _buffer(lists: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array:
    """Return the elements that an interval join has buffered, none of which is marked as joined, as in Flink."""
    ((element,),) = (each.parts for each in serializer.parts)
    values = java_values(lists.flatten(), shape[1], element)
    offsets = _offsets(lists)
    joined = pa.repeat(pa.scalar(False), len(values))
    entries = pa.StructArray.from_arrays([joined, values], ["joined", "value"])
    return pa.LargeListArray.from_arrays(offsets, entries)


def timer_rows(
    table: CheckpointTable,
    types: KeyedTypes,
    is_event_time: bool,
    key_groups: range,
    max_parallelism: int,
    conversions: Conversions,
) -> pa.RecordBatch:
    """Return the timers of some key groups of the Flink job, of event time or of processing time."""
    batch, shapes = table.batch, table.shapes
    keys, indexes = _indexed(batch.column("key"))
    key = conversions.key(keys, shapes["key"], types.key)
    groups = java_key_groups(key, types.key, max_parallelism)[indexes]
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
        columns["namespace"] = conversions.namespace(namespaces, shapes["namespace"], types.namespace).take(
            pa.array(of_rows).take(rows)
        )
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _indexed(column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return distinct values of a column, and by row the index of its value."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary, column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return column, np.arange(len(column), dtype=np.int64)
