"""Rows of two connected streams as rows of one: the columns of both side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.time_plane.total_order import Events, RowsT


@dataclass(frozen=True)
class ConnectedInputs:
    """The columns of two streams, and which rows are of which.

    Rows of both go through the same blocks and merges: one of the first stream has null in the columns of the second.

    Parameters
    ----------
    first, second : pyarrow.Schema
    second_from : int
        Splits of the logs of the second stream have this number or a higher one.
    """

    first: pa.Schema
    second: pa.Schema
    second_from: int = 0

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of both; names begin with the number of the stream, so that they differ."""
        return pa.schema(
            [
                pa.field(f"{number}.{field.name}", field.type)
                for number, schema in enumerate((self.first, self.second))
                for field in schema
            ]
        )

    def widened(self, number: int, events: RowsT) -> RowsT:
        """Events of one of the streams, 0 or 1, with nulls in the columns of the other."""
        rows = events.n_events
        own = list(events.batch.columns)
        columns = [*_nulls(self.first, rows), *own] if number else [*own, *_nulls(self.second, rows)]
        return events.with_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def is_second(self, events: Events) -> npt.NDArray[np.bool_]:
        """Return which of the events are of the second stream."""
        return events.are_of_second(self.second_from)

    def batch_of(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of one of the streams, 0 or 1, by their own names."""
        schema = self.second if number else self.first
        start = len(self.first) if number else 0
        columns = [batch.column(start + column) for column in range(len(schema))]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def key_groups(
        self, events: Events, keys: tuple[list[str], list[str]], max_parallelism: int
    ) -> npt.NDArray[np.int32]:
        """The key group of each event; 0 in a stream without keys."""
        groups = np.zeros(events.n_events, np.int32)
        is_second = self.is_second(events)
        for number, names in enumerate(keys):
            rows = np.flatnonzero(is_second == bool(number))
            if names and len(rows):
                columns = self.batch_of(number, events.batch).select(names)
                groups[rows] = event_key_groups(columns.take(pa.array(rows)), names, max_parallelism)
        return groups


def _nulls(schema: pa.Schema, rows: int) -> list[pa.Array]:
    """Columns of so many nulls."""
    nulls = _columns_of_nulls(schema, 1 << rows.bit_length()).slice(0, rows)
    return list(nulls.columns)


@lru_cache(maxsize=4)
def _columns_of_nulls(schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Nulls of which all batches of about one size have a part: they take memory in columns of most types."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)
