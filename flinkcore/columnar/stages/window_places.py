"""The places of the results of windows in the total order, where another operator takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.joined_batches import joined, taken
from flinkcore._internal.arrow.ordered_values import is_integral, ordered_integers
from flinkcore._internal.arrow.packed_order import rows_in_order
from flinkcore.columnar.operator_plans.native_windows import since_starts
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.stages.external_sort import ExternalSort
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, Order, PlacedEvents, cause_of_firing
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput
from flinkcore.common import MAX_TIMESTAMP
from flinkcore.datastream.window import LocalEventTimeWindows, TumblingEventTimeWindows, WindowStagger
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS

_MOMENTS: Final = 3
"""Columns after those of the results while these are sorted: step, fired, key group."""


class _FiredSort(ExternalSort[pa.RecordBatch]):
    """Sorts results by what fired them, their key groups and some of their columns.

    Parameters
    ----------
    what
        As of `ExternalSort`.
    columns
        Numbers of the columns.
    """

    def __init__(self, what: str, columns: list[int]) -> None:
        super().__init__(what)
        self._columns = columns

    def n_rows(self, rows: pa.RecordBatch) -> int:
        return int(rows.num_rows)

    def nbytes(self, rows: pa.RecordBatch) -> int:
        return int(rows.nbytes)

    def concatenated(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return joined(parts)

    def order(self, rows: pa.RecordBatch) -> npt.NDArray[np.intp]:
        columns = [*rows.columns[-_MOMENTS:], *(rows.column(number) for number in self._columns)]
        if all(_is_of_integers(column) for column in columns):
            return rows_in_order([ordered_integers(column) for column in columns])
        keys = pa.table(columns, [str(number) for number in range(len(columns))])
        indices = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
        order: npt.NDArray[np.intp] = indices.to_numpy().astype(np.intp)
        return order

    def taken(self, rows: pa.RecordBatch, numbers: RowNumbers) -> pa.RecordBatch:
        return taken(rows, numbers)

    def sliced(self, rows: pa.RecordBatch, start: int, stop: int) -> pa.RecordBatch:
        return rows.slice(start, stop - start)

    def packed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    def unpacked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch


class WindowPlaces:
    """Places the results of windows over the key groups of one partition.

    Parameters
    ----------
    context
        Context of the operator.
    aggregation
        The operator.
    """

    def __init__(self, context: StageContext, aggregation: WindowAggregation) -> None:
        last_arrival_ms = context.last_arrival_ms
        self._counts_rows = aggregation.fires_by_count
        self._window = aggregation.window
        self._allowed_lateness_ms = aggregation.allowed_lateness_ms
        self._timeline = context.timeline
        self._end_ms = 0 if last_arrival_ms is None else context.timeline.end_ms(last_arrival_ms)
        self._number = context.number
        self._keys = list(context.plan.keys)
        self._max_parallelism = context.plan.max_parallelism
        self._sequence = 1
        self._schema = context.plan.result_schema()
        sorted_by = [self._schema.get_field_index(name) for name in ("window_start", *self._keys)]
        self._fired = _FiredSort("results of windows", sorted_by)

    def rows_alone(self, timestamps: Int64s, steps: Int64s) -> list[int]:
        """Return which rows may fire a window: one with a count, or one that is over and still kept.

        Each is taken in alone, so that it is known which results are its own.
        """
        if self._counts_rows:
            return list(range(len(timestamps)))
        if self._allowed_lateness_ms == 0:
            return []
        watermarks = self._timeline.watermark_after(steps)
        late: list[int] = np.flatnonzero(self._first_firings_ms(timestamps) <= watermarks).tolist()
        return late

    def _first_firings_ms(self, timestamps: Int64s) -> Int64s:
        """A time that no window of each row is over before."""
        window = self._window
        if isinstance(window, TumblingEventTimeWindows) and window.window_stagger is WindowStagger.ALIGNED:
            since = since_starts(timestamps, window.offset_ms, window.size_ms)
            return timestamps - since + (window.size_ms - 1)
        if isinstance(window, LocalEventTimeWindows):
            _, ends = window.calendar.bounds(timestamps)
            return ends - 1
        return timestamps

    def fired_by_event(self, batches: Iterable[pa.RecordBatch], place: Order) -> Iterator[PlacedOutput]:
        """Results of an event, which have its place."""
        fired = list(batches)
        if not fired:
            return
        batch = joined(fired)
        places = tuple(np.repeat(column, batch.num_rows) for column in place)
        yield _placed(batch, _timestamps(batch), (*places, self._sequence_of(batch)))

    def fired_by_steps(
        self, batches: Iterable[pa.RecordBatch], first_step: int = 0
    ) -> Iterator[PlacedOutput]:
        """Results in an order that does not depend on what else is in the partition: by window and key.

        No step before `first_step` has fired one: the maximum watermark may have come during the log, and fire again at
        its end.
        """
        for batch in batches:
            self._fired.add(self._with_moments(batch, first_step))
        while (rows := self._fired.take()) is not None:
            yield self._placed_by_steps(rows)

    def _with_moments(self, batch: pa.RecordBatch, first_step: int) -> pa.RecordBatch:
        """Return results with the moment and the key group of their firing in further columns."""
        steps = np.maximum(
            _of_runs(batch.column("watermark").to_numpy(), self._timeline.steps_below), first_step
        )
        groups = event_key_groups(batch, self._keys, self._max_parallelism).astype(np.int64)
        moments = map(pa.array, (steps, _timestamps(batch), groups))
        names = [str(number) for number in range(batch.num_columns + _MOMENTS)]
        return pa.RecordBatch.from_arrays([*batch.columns, *moments], names)

    def _placed_by_steps(self, rows: pa.RecordBatch) -> PlacedOutput:
        batch = pa.RecordBatch.from_arrays(rows.columns[:-_MOMENTS], schema=self._schema)
        steps, fired, groups = (column.to_numpy() for column in rows.columns[-_MOMENTS:])
        clocks = np.minimum(_of_runs(steps, self._timeline.clock_at), self._end_ms)
        n_rows = batch.num_rows
        zeros = np.zeros(n_rows, np.int64)
        order = (
            clocks,
            steps,
            np.full(n_rows, AFTER_ALL_SPLITS),
            zeros,
            np.full(n_rows, cause_of_firing(self._number, by_watermark=True)),
            fired,
            groups,
            self._sequence_of(batch),
            *(zeros for _ in range(self._number)),
        )
        assert len(order) == FIXED_COLUMNS + 1 + self._number
        return _placed(batch, fired, order)

    def close(self) -> None:
        """Release what an error has left."""
        self._fired.close()

    def _sequence_of(self, batch: pa.RecordBatch) -> Int64s:
        sequence = np.arange(self._sequence, self._sequence + batch.num_rows)
        self._sequence += batch.num_rows
        return sequence


def _is_of_integers(column: pa.Array) -> bool:
    return not column.null_count and is_integral(column.type) and not pa.types.is_floating(column.type)


def _of_runs(values: Int64s, function: Callable[[Int64s], Int64s]) -> Int64s:
    """Return a function of values, which is called with one of each run of equal values."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return np.repeat(function(values[starts]), np.diff(starts, append=len(values)))


def _placed(batch: pa.RecordBatch, timestamps: Int64s, order: Order) -> PlacedOutput:
    return PlacedOutput(None, [], PlacedEvents.of(batch, timestamps, order))


def _timestamps(batch: pa.RecordBatch) -> Int64s:
    """The maximum timestamps of the windows, which are the timestamps of their results."""
    ends = batch.column("window_end").cast(pa.int64())
    timestamps: Int64s = ends.fill_null(0).to_numpy() - 1
    if ends.null_count:
        of_global_windows = ends.is_null().to_numpy(zero_copy_only=False)
        timestamps = np.where(of_global_windows, MAX_TIMESTAMP, timestamps)
    return timestamps
