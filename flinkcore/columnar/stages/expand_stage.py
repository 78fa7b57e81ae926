"""Rows that become several."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.batch_bytes import pieces
from flinkcore._internal.arrow.joined_batches import taken
from flinkcore.columnar.operator_plans.expansion import Expansion
from flinkcore.columnar.stages.placed_events import PlacedEvents, order_of
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.columnar.stages.stateless_stage import StatelessStage
from flinkcore.time_plane.total_order import Events

SLICE_ROWS = 1 << 14
"""Most rows that are expanded at once."""


class ExpandStage(StatelessStage):
    """Emits the rows that are made of each row, in total order, and holds nothing.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    def __init__(self, context: StageContext, operator: Expansion, partition: int) -> None:
        super().__init__(context)
        self._number = context.number
        self._expansion = operator.expansion
        self._batch_bytes = context.plan.batch_bytes
        self._places_results = context.places_results

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        for part in events.pieces(rows, SLICE_ROWS):
            self._take_in(part)
            source = self._source(part)
            for numbers, added in self._expansion.expand(part.batch, self._batch_bytes):
                yield from self._expanded(part, source, numbers, added)

    def _expanded(
        self, part: Events, source: pa.RecordBatch, numbers: Int64s, added: list[pa.Array]
    ) -> Iterator[StageOutput]:
        is_copied = not np.array_equal(numbers, np.arange(part.n_events))
        slices = _slices(source, numbers, self._batch_bytes) if is_copied else [(0, len(numbers))]
        for start, stop in slices:
            own = numbers[start:stop]
            gathered = taken(source, own) if is_copied else source
            columns = dict(zip(source.schema.names, gathered.columns, strict=True))
            for field, column in zip(self._expansion.fields, added, strict=True):
                columns[field.name] = column.slice(start, stop - start)
            batch = pa.RecordBatch.from_arrays(
                [columns[name] for name in self._schema.names], schema=self._schema
            )
            if self._places_results:
                order = tuple(column[own] for column in order_of(part, self._number))
                sequence = np.arange(self._results + 1, self._results + 1 + len(own))
                placed = PlacedEvents.of(batch, part.timestamps[own], (*order, sequence))
                yield PlacedOutput(None, [], placed)
            else:
                yield StageOutput(None, [batch])
            self._results += len(own)

    def _source(self, part: Events) -> pa.RecordBatch:
        """Return the columns of results that come from the rows that are expanded."""
        added = {field.name for field in self._expansion.fields}
        names = [name for name in self._schema.names if name not in added]
        return self._with_emission_times(part, names)


def _slices(source: pa.RecordBatch, numbers: Int64s, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Divide rows that are made of those with ascending numbers into ranges of at most so many bytes, or of one row."""

    def too_large(start: int, stop: int) -> bool:
        first, last = int(numbers[start]), int(numbers[stop - 1])
        rows = source.slice(first, last + 1 - first)
        most_copies = int(np.bincount(numbers[start:stop] - first).max())
        return most_copies * sum(map(_row_bytes, rows.columns)) > most_bytes

    return pieces(0, len(numbers), too_large)


def _row_bytes(column: pa.Array) -> int:
    """Return the bytes of a column that a copy of its rows takes: a dictionary is not copied."""
    return int((column.indices if isinstance(column, pa.DictionaryArray) else column).nbytes)
