"""The aggregates of a function over batches: native accumulators by dense key id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.batch_functions.column_states import ArrowListState
from flinkcore.columnar.relational.frame_aggregates import FrameAggregates, KeyIds
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.state import ColumnAggregateState, StateDescriptor

_KEY: Final = "key"


class NativeAggregateState(ColumnAggregateState):
    """Aggregates over the frame of all rows of each key; in a checkpoint they are lists of the frames' rows.

    Parameters
    ----------
    name : str
    schema : pyarrow.Schema
        Columns of the elements.
    aggregates : mapping of str to Aggregate
    """

    kind = StateDescriptor.Type.LIST
    """Kind of its snapshots."""

    def __init__(self, name: str, schema: pa.Schema, aggregates: Mapping[str, Aggregate]) -> None:
        self._name = name
        self._names = list(aggregates)
        self._frames = FrameAggregates(schema, [aggregate.spec for aggregate in aggregates.values()])
        self._n_keys = 0

    @property
    def name(self) -> str:
        return self._name

    def add(self, key_ids: Any, rows: pa.RecordBatch) -> None:
        self._frames.process(rows, _ids(key_ids), emits=False)

    def running(self, key_ids: Any, rows: pa.RecordBatch) -> pa.RecordBatch:
        self._frames.process(rows, _ids(key_ids))
        return self._taken()

    def get(self, key_ids: Any) -> pa.RecordBatch:
        self._frames.emit(_ids(key_ids))
        return self._taken()

    def _taken(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._frames.take(), self._names)

    def clear(self, key_ids: Any) -> None:
        self._frames.clear(_ids(key_ids))

    def grow(self, n_keys: int) -> None:
        """Know the key ids below `n_keys`."""
        self._n_keys = max(self._n_keys, n_keys)

    def memory_bytes(self) -> int:
        """Return about how many bytes the aggregates take."""
        return self._frames.memory_bytes()

    def as_lists(self) -> ArrowListState:
        """Return what the accumulators of each key hold as a list of rows."""
        held = self._frames.snapshot()
        columns = {name: pa.array(column) for name, column in held.items() if name != _KEY}
        rows = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        lists = ArrowListState(self._name, rows.schema)
        lists.grow(self._n_keys)
        lists.add(held[_KEY], rows)
        return lists

    def kept(self) -> tuple[Int64s, list[Any]]:
        """Return the keys that have rows, ascending, and for each a list of what its accumulators hold."""
        return self.as_lists().kept()

    def restore(self, key_ids: Int64s, values: Sequence[Any]) -> None:
        """Take the lists of keys as of `kept`; a SchemaError if they are those of other aggregates."""
        lists = self.as_lists()
        lists.restore(key_ids, values)
        rows, places = lists.get(key_ids)
        self.restore_rows(key_ids[places], rows)

    def restore_rows(self, key_ids: Int64s, rows: pa.RecordBatch) -> None:
        """Take rows of the lists of keys."""
        self._frames.restore(key_ids, rows)


def _ids(key_ids: Any) -> KeyIds:
    return np.ascontiguousarray(key_ids, np.uint32)
