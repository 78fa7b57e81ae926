"""The stage of relational operators: encode keys, run a native kernel over numbers, gather rows of results.

Rows wait by reference in `NumberedRows`; a kernel knows them by number, and keys by dense id::

    events ──▶ key ids, numbers of rows ──▶ kernel ──▶ numbers of rows, kinds, times ──▶ gather ──▶ results
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.relational import KernelResults
from flinkcore._native.timers import TimerHeap
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime
from flinkcore.columnar.operator_plans.row_windows import window_starts
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.relation_tables import TIMERS, RelationTables
from flinkcore.columnar.relational.row_changes import kind_column
from flinkcore.columnar.stages.placed_events import Order, PlacedEvents, cause_of_firing, order_of
from flinkcore.columnar.stages.restored_operator import RestoredOperator, StagePlace, SuspendedOperator
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import Events

MOST_RESULTS: Final = 1 << 16
"""Most results that wait in a kernel."""

DEAD_BATCHES: Final = 4
"""Rows that no state holds may take the memory of so many batches more than those that it does."""

LEAST_ROW_BYTES: Final = 16
"""A result is taken to have so many bytes at least, when it is decided how many may wait."""


class RelationalStage(Stage[Events]):
    """Runs a relational kernel over ordered events of one partition; a subclass makes the kernel.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    def __init__(self, context: StageContext, operator: Any, partition: int) -> None:
        plan, timeline = context.plan, context.timeline
        self._context, self._timeline, self._number = context, timeline, context.number
        self._batch_bytes = plan.batch_bytes
        self._key_group_range = context.key_group_range(partition)
        self._schema, self._has_late_output = plan.result_schema(), bool(operator.side_outputs)
        self._emissions = context.emission_times()
        self._end_ms = 0 if context.last_arrival_ms is None else timeline.end_ms(context.last_arrival_ms)
        self._results = 0
        self._sequence = 1
        restored = context.restored
        place = None if restored is None else restored.place(timeline)
        self._steps_done = 0 if place is None else place.steps
        self._clock_ms = MIN_TIMESTAMP if place is None else place.clock_ms
        self._operator_plan = operator
        self._expired_ms: int | None = None
        self._counts: Counter[str] = Counter()
        self._arrivals: Int64s | None = None
        self._open()
        if isinstance(restored, RestoredOperator):
            with refused_as(restored.origin):
                for snapshot in restored.snapshots(self._key_group_range, plan.max_parallelism):
                    self._tables.restore(snapshot.relations.items())
        elif isinstance(restored, SuspendedOperator):
            self._tables.restore((name, table) for _, name, table in restored.tables())

    def _open(self) -> None:
        """Begin without state."""
        plan, operator = self._context.plan, self._operator_plan
        key_schema = pa.schema(plan.key_fields)
        self._keys = KeyDictionary(key_schema, list(plan.keys), plan.max_parallelism, plan.key.nulls)
        self._timers = TimerHeap(plan.max_parallelism, self._key_group_range)
        self._kept = [NumberedRows(schema) for schema in self._kept_schemas(plan.input_schemas, operator)]
        limit = max(1, min(MOST_RESULTS, plan.batch_bytes // LEAST_ROW_BYTES))
        self._kernel = self._made_kernel(operator, self._steps_done, limit)
        self._tables = RelationTables(
            self._kernel, self._keys, self._timer_tables(), self._kept, self._restored_columns
        )

    # ---- what an operator has of its own ----

    in_any_order = False
    """True if results of watermarks may leave in any order: rows that lie together are then gathered together."""

    @abstractmethod
    def _made_kernel(self, operator: Any, steps_done: int, result_limit: int) -> RelationalKernel:
        """Return the kernel, which may use the timers and the timeline of the stage."""

    def _timer_tables(self) -> Mapping[str, TimerHeap]:
        """Return the timers by the name of their table in a checkpoint."""
        return {TIMERS: self._timers}

    def _kept_schemas(self, inputs: Sequence[pa.Schema], operator: Any) -> list[pa.Schema]:
        """Return the columns to keep of the rows of each input; all by default."""
        return list(inputs)

    def _key_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys of rows, by the names of the first input."""
        return batch.select(list(self._context.plan.keys))

    def _kernel_arguments(self, batch: pa.RecordBatch, *events: Any) -> tuple[Any, ...]:
        """Return the arguments of the kernel's `process`, those of all operators by default.

        Parameters
        ----------
        batch
            The rows of the events.
        *events
            Arguments of the kernels of all operators: keys, key groups, inputs, rows, timestamps, steps.
        """
        return events

    def _restored_columns(
        self, rows: pa.RecordBatch, columns: pa.RecordBatch
    ) -> Mapping[str, npt.NDArray[Any] | None]:
        """Return what the kernel takes of restored rows of the first input besides; nothing by default.

        Parameters
        ----------
        rows
            The rows.
        columns
            The other columns of their table.
        """
        return {}

    def _forget_expired(self, now_ms: int) -> None:
        """Forget the state that has expired at a processing time; nothing by default."""

    def _late_rows(self) -> Int64s:
        """Return the numbers of the events just taken in that were late; of operators with a side output of them."""
        raise NotImplementedError

    def _late_outputs(self, events: Events, at: Int64s) -> Iterator[StageOutput]:
        """Yield late rows, which lie `at` these places among the events, for their side outputs."""
        (tag,) = self._operator_plan.side_outputs
        yield StageOutput(tag, [events.batch.take(pa.array(at))])

    def _ready_results(self) -> KernelResults:
        """Return the results that wait in the kernel."""
        return self._kernel.take()

    def _taken_values(self, results: KernelResults) -> list[pa.Array]:
        """Return columns of values for the results just taken; none by default."""
        return []

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of results before row kind and time of emission: those of the first input, and values."""
        return [*self._kept[0].take(results.left).columns, *values]

    def _window_bounds(self, windows: WindowsByTime, results: KernelResults) -> list[pa.Array]:
        """Return the starts and ends of windows, of which results have the last millisecond as timestamp."""
        ends = results.timestamps + 1
        bound = self._own_schema.field("window_end").type
        return [pa.array(each).cast(bound) for each in (window_starts(windows, ends), ends)]

    @property
    def _own_schema(self) -> pa.Schema:
        """Columns of the results without the time of emission."""
        if self._emissions is None:
            return self._schema
        return self._schema.remove(len(self._schema) - 1)

    # ---- events ----

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Take in events in total order, and give what they and the watermarks before them make ready."""
        n = events.n_events if rows is None else len(rows)
        if not n:
            return
        batch, numbers, inputs = self._kept_rows(events, rows)
        chosen: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = (
            (lambda column: column) if rows is None else (lambda column: column[rows])
        )
        key_ids = self._keys.ids(self._key_columns(batch))
        if self._operator_plan.ttl_ms:
            self._arrivals = np.ascontiguousarray(chosen(events.arrivals))
        arguments = self._kernel_arguments(
            batch,
            key_ids,
            self._keys.key_group(key_ids),
            inputs,
            numbers,
            chosen(events.timestamps),
            chosen(events.steps),
        )
        taken = 0
        while taken < len(arguments[0]):
            taken = self._kernel.process(*arguments, first=taken)
            yield from self._taken(events, rows)
        if self._has_late_output and len(late := self._late_rows()):
            yield from self._late_outputs(events, _rows_of(late, rows))
        last = -1 if rows is None else int(rows[-1])
        self._steps_done, self._clock_ms = int(events.steps[last]), int(events.arrivals[last])
        if self._operator_plan.ttl_ms:
            self._free_expired()
        self._free_dead_rows()

    def _free_expired(self) -> None:
        """Move the state that has not expired to a new kernel, once in a time to live, so that memory is free again."""
        if self._expired_ms is None:
            self._expired_ms = self._clock_ms
        if self._clock_ms - self._expired_ms < self._operator_plan.ttl_ms:
            return
        self._expired_ms = self._clock_ms
        self._forget_expired(self._clock_ms)
        tables = list(self._tables.parts())
        self._counts.update(self._kernel.counts())
        self._open()
        self._tables.restore(tables)

    def _kept_rows(
        self, events: Events, rows: RowNumbers | None
    ) -> tuple[pa.RecordBatch, Int64s, npt.NDArray[np.int8] | None]:
        """Keep the rows of events. Return the events' columns, and the numbers and inputs of their rows."""
        batch = events.batch if rows is None else events.batch.take(pa.array(rows))
        (kept,) = self._kept
        first = kept.add(batch.select(kept.schema.names))
        return batch, first + np.arange(batch.num_rows), None

    def _free_dead_rows(self) -> None:
        """Free rows that no state holds, once they take more memory than those that it does, and some batches."""
        n_rows = sum(map(len, self._kept))
        if not n_rows:
            return
        n_bytes = sum(kept.nbytes for kept in self._kept)
        live_bytes = n_bytes * min(1.0, self._kernel.live_count / n_rows)
        if n_bytes - live_bytes > live_bytes + DEAD_BATCHES * self._batch_bytes:
            of_one = len(self._kept) == 1
            for number, kept in enumerate(self._kept):
                which = () if of_one else (number,)
                self._kernel.renumber(kept.keep(self._kernel.live_rows(*which)), *which)

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        yield from self._advanced(self._timeline.steps_before_arrival(until_ms))

    def suspend(self) -> Iterator[StageOutput]:
        yield from self._advanced(self._steps_done)

    def stop(self) -> Iterator[StageOutput]:
        """Let everything fire that comes before the cut: the timeline ends there."""
        yield from self._advanced(len(self._timeline))

    def finish(self) -> Iterator[StageOutput]:
        yield from self._all_taken(self._kernel.finish)

    def _advanced(self, steps: int) -> Iterator[StageOutput]:
        yield from self._all_taken(lambda: self._kernel.advance(steps))

    def _all_taken(self, go_on: Callable[[], bool]) -> Iterator[StageOutput]:
        done = False
        while not done:
            done = go_on()
            yield from self._taken(None, None)

    # ---- results ----

    def _taken(self, events: Events | None, rows: RowNumbers | None) -> Iterator[StageOutput]:
        yield from self._given(self._ready_results(), events, rows)

    def _given(
        self, results: KernelResults, events: Events | None, rows: RowNumbers | None
    ) -> Iterator[StageOutput]:
        """Gather results, and give them batch by batch."""
        if not len(results.left):
            return
        if self.in_any_order and events is None and not self._context.places_results:
            results = _in_order(results, np.argsort(results.left, kind="stable"))
        values = self._taken_values(results)
        if not self._context.plan.update_before and results.kinds is not None:
            shown = results.kinds != RowKind.UPDATE_BEFORE.value
            if not shown.all():
                results = _in_order(results, np.flatnonzero(shown))
                values = [column.filter(pa.array(shown)) for column in values]
        n = len(results.left)
        self._results += n
        n_rows = sum(map(len, self._kept))
        row_bytes = sum(kept.nbytes for kept in self._kept) // max(1, n_rows)
        step = max(1, self._batch_bytes // max(1, row_bytes))
        for begin in range(0, n, step):
            part = _part(results, begin, begin + step)
            columns = self._result_columns(part, [column.slice(begin, step) for column in values])
            if part.kinds is not None:
                columns = [*columns, kind_column(part.kinds)]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._own_schema)
            if self._emissions is not None:
                batch = self._with_emission_times(batch, part, events, rows)
            if self._context.places_results:
                placed = PlacedEvents.of(batch, part.timestamps, self._order(part, events, rows))
                yield PlacedOutput(None, [], placed)
            else:
                yield StageOutput(None, [batch])

    def _with_emission_times(
        self, batch: pa.RecordBatch, results: KernelResults, events: Events | None, rows: RowNumbers | None
    ) -> pa.RecordBatch:
        assert self._emissions is not None
        times = self._emissions.of_steps(np.maximum(results.steps, 0))
        by_event = results.events >= 0
        if events is not None and by_event.any():
            times[by_event] = self._emissions.of_events(events)[_rows_of(results.events[by_event], rows)]
        column = pa.array(times, mask=times == MIN_TIMESTAMP).cast(self._schema.field(-1).type)
        return pa.RecordBatch.from_arrays([*batch.columns, column], schema=self._schema)

    def _order(self, results: KernelResults, events: Events | None, rows: RowNumbers | None) -> Order:
        """Places of results: of an event at its place; of a watermark by timer, key group and their order in that."""
        n = len(results.left)
        steps = np.maximum(results.steps, 0)
        zeros = np.zeros(n, np.int64)
        columns: list[Int64s] = [
            np.minimum(self._timeline.clock_at(steps), self._end_ms) if len(self._timeline) else zeros,
            steps,
            np.full(n, AFTER_ALL_SPLITS),
            zeros,
            np.full(n, cause_of_firing(self._number, by_watermark=True)),
            results.fired,
            self._keys.key_group(results.key_ids).astype(np.int64),
            *(zeros for _ in range(self._number)),
        ]
        by_event = results.events >= 0
        if events is not None and by_event.any():
            places = _rows_of(results.events[by_event], rows)
            columns = [column.copy() for column in columns]
            for column, of_events in zip(columns, order_of(events, self._number), strict=True):
                column[by_event] = of_events[places]
        sequence = np.arange(self._sequence, self._sequence + n)
        self._sequence += n
        return (*columns, sequence)

    # ---- state ----

    def snapshot(self) -> OperatorSnapshot:
        """The rows and timers that the operator holds once it has stopped."""
        return OperatorSnapshot(
            self._key_group_range, self.current_watermark, relations=dict(self._tables.whole())
        )

    def suspended(self) -> tuple[StagePlace, Iterator[SnapshotTable]]:
        place = StagePlace(self._steps_done, self._clock_ms, self.current_watermark)
        parts = self._tables.parts()
        return place, (SnapshotTable(TableKind.RELATION, name, table) for name, table in parts)

    def memory_bytes(self) -> int:
        kept = sum(each.nbytes for each in self._kept)
        n_timers = sum(map(len, self._timer_tables().values()))
        return kept + self._keys.memory_bytes() + self._kernel.memory_bytes() + 80 * n_timers

    def shown_state(self) -> str:
        return f"{self._kernel.live_count:,} rows of {len(self._keys):,} keys"

    def counts(self) -> dict[str, int]:
        counts = {name: count + self._counts[name] for name, count in self._kernel.counts().items()}
        return {**counts, "results": self._results}

    @property
    def current_watermark(self) -> int:
        return self._kernel.current_watermark


def _in_order(results: KernelResults, order: Int64s) -> KernelResults:
    columns: Any = (None if column is None else column[order] for column in results)
    return KernelResults(*columns)


def _part(results: KernelResults, begin: int, end: int) -> KernelResults:
    columns: Any = (None if column is None else column[begin:end] for column in results)
    return KernelResults(*columns)


def _rows_of(events: Int64s, rows: RowNumbers | None) -> Int64s:
    """Rows of a batch of some of the events in it."""
    return events if rows is None else rows[events].astype(np.int64)
