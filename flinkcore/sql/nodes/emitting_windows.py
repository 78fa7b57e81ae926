"""Windows of GROUP BY that emit before and after their end, as Flink's EMIT settings say: changes of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore._internal.arrow.same_rows import are_same_rows
from flinkcore.datastream import TimeDomain
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.functions import KeyedBatchProcessFunction, RowResults, RuntimeContext
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.state import ColumnState
from flinkcore.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.emit_strategy import EmitStrategy
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.window_functions import WindowMillis, WindowOfRow, windows_of_row
from flinkcore.sql.nodes.windows import SqlWindow, window_properties
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import LogicalType, Root

_START: Final = "start#"
_END: Final = "end#"
_IS_LAST: Final = "last window#"
"""Column of the rows: whether their window is the one of the row that ends last."""

_NEVER: Final = np.iinfo(np.int64).max
_COUNT: Final = AggregateCall("COUNT", (), -1, False, LogicalType(Root.BIGINT, False))


class EmittingWindows(KeyedBatchProcessFunction):
    """Aggregates rows by key and window, and emits the changes of results before, at and after the end of windows.

    Parameters
    ----------
    strategy : EmitStrategy
    aggregates : mapping of str to Aggregate
        Native aggregates, over columns of the rows.
    results : mapping of str to ColumnExpression
        Results of a window, from the columns of the aggregates.
    types : sequence of pyarrow.DataType
        Types of the results.

    Notes
    -----
    Follows Flink's ``AggregateWindowOperator`` of SQL with its ``EventTimeTriggers`` and ``ProcessingTimeTriggers``.
    """

    min_event_time_delay_ms = 0

    def __init__(
        self,
        strategy: EmitStrategy,
        aggregates: Mapping[str, Aggregate],
        results: Mapping[str, ColumnExpression],
        types: Sequence[pa.DataType],
    ) -> None:
        self._strategy = strategy
        self._aggregates, self._results = dict(aggregates), dict(results)
        self._schema = pa.schema(list(map(pa.field, results, types)))
        delays = [delay for delay in (strategy.early_ms, strategy.late_ms) if delay]
        self.min_processing_time_delay_ms = min(delays, default=None)
        # Flink leaves a late trigger out that fires with each row, for windows that have ended do so by themselves.
        self._late_ms = strategy.late_ms or None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the results of a window."""
        return self._schema

    def open(self, runtime_context: RuntimeContext) -> None:
        self._accumulators = runtime_context.get_column_aggregate_state("aggregates", self._aggregates)
        self._given = runtime_context.get_column_list_state("given", self._schema)
        self._changed = runtime_context.get_column_state("changed", np.bool_, False)
        self._has_ended = runtime_context.get_column_state("has ended", np.bool_, False)
        self._early = runtime_context.get_column_state("early firing", np.int64, _NEVER)
        self._late = self._early
        if self._late_ms != self._strategy.early_ms:  # triggers of one delay share their state
            self._late = runtime_context.get_column_state("late firing", np.int64, _NEVER)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[RowResults]:
        last = elements[_END].to_numpy() - 1
        is_late = last + self._strategy.lateness_ms <= elements.watermarks
        rows = np.flatnonzero(~is_late)
        if len(rows) < len(is_late):
            ctx.drop_late(int(np.count_nonzero(is_late & _flags(elements[_IS_LAST]))))
            if not len(rows):
                return
        ids, last, now = elements.key_ids[rows], last[rows], elements.processing_times[rows]
        has_passed = last <= elements.watermarks[rows]
        has_ended = has_passed & self._has_ended[ids]
        self._set_timers(ids, last, now, has_passed, has_ended, ctx)
        fires = has_passed & ~has_ended
        if self._strategy.early_ms == 0:
            fires |= ~has_passed
        batch = elements.batch if len(rows) == len(is_late) else elements.batch.take(pa.array(rows))
        if not fires.any():
            self._accumulators.add(ids, batch)
            self._changed[ids] = True
            return
        firing = np.flatnonzero(fires)
        given = self._evaluated(self._accumulators.running(ids, batch).take(pa.array(firing)))
        self._changed[ids] = ~fires  # of several rows of a key, the last one counts
        changes, numbers = self._changes(ids[firing], given, ctx)
        yield elements.results(changes, rows[firing][numbers])

    def _set_timers(
        self,
        ids: Int64s,
        last: Int64s,
        now: Int64s,
        has_passed: npt.NDArray[np.bool_],
        has_ended: npt.NDArray[np.bool_],
        ctx: KeyedBatchProcessFunction.Context,
    ) -> None:
        timers = ctx.timer_service()
        own, first = np.unique(ids, return_index=True)
        timers.register_event_time_timers(own, last[first] + self._strategy.lateness_ms)
        before = np.unique(ids[~has_passed], return_index=True)[1]
        if self._strategy.lateness_ms:
            timers.register_event_time_timers(ids[~has_passed][before], last[~has_passed][before])
        if self._strategy.early_ms:
            self._begin(self._early, self._strategy.early_ms, ids[~has_passed], now[~has_passed], timers)
        if self._late_ms:
            self._begin(self._late, self._late_ms, ids[has_ended], now[has_ended], timers)

    @staticmethod
    def _begin(firing: ColumnState, delay_ms: int, ids: Int64s, now: Int64s, timers: Any) -> None:
        """Set the first timer of keys that have none."""
        own, first = np.unique(ids, return_index=True)
        new = firing[own] == _NEVER
        own, due = own[new], now[first][new] + delay_ms
        firing[own] = due
        timers.register_processing_time_timers(own, due)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[RowResults]:
        ids, times = timers.key_ids, timers.timestamps
        is_over = np.zeros(len(ids), np.bool_)
        if timers.time_domain is TimeDomain.EVENT_TIME:
            last = timers.keys[_END].to_numpy() - 1
            fires = (times == last) & ~self._has_ended[ids]
            is_over = times == last + self._strategy.lateness_ms
            if self._late_ms:
                self._has_ended[ids[fires]] = True
        else:
            fires = np.zeros(len(ids), np.bool_)
            is_late = self._has_ended[ids]
            for firing, delay, own in (
                (self._early, self._strategy.early_ms, ~is_late),
                (self._late, self._late_ms, is_late),
            ):
                if delay:
                    due = own & (firing[ids] == times)
                    firing[ids[due]] = times[due] + delay
                    ctx.timer_service().register_processing_time_timers(ids[due], times[due] + delay)
                    fires |= due
        firing_rows = np.flatnonzero(fires & self._changed[ids])
        if len(firing_rows):
            own = ids[firing_rows]
            given = self._evaluated(self._accumulators.get(own))
            changes, numbers = self._changes(own, given, ctx)
            # A NaN differs from itself, and so is withdrawn and emitted again each time.
            places = np.arange(len(own))
            self._changed[own] = ~are_same_rows(given.columns, places, places)
            yield timers.results(changes, firing_rows[numbers])
        if is_over.any():
            self._clear(ids[is_over], ctx)

    def _clear(self, ids: Int64s, ctx: KeyedBatchProcessFunction.Context) -> None:
        ctx.timer_service().delete_processing_time_timers(ids)
        for state in (
            self._accumulators,
            self._given,
            self._changed,
            self._has_ended,
            self._early,
            self._late,
        ):
            state.clear(ids)

    def _evaluated(self, aggregates: pa.RecordBatch) -> pa.RecordBatch:
        columns = [result.evaluate(aggregates) for result in self._results.values()]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _changes(
        self, ids: Int64s, given: pa.RecordBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> tuple[pa.RecordBatch, Int64s]:
        """Return the changes by which the results of keys become these ones, and for each the number of its result."""
        own, first, places = np.unique(ids, return_index=True, return_inverse=True)
        stored, keys_of_stored = self._given.get(own)
        n_stored, n = stored.num_rows, len(ids)
        rows_before = np.full(len(own), -1)
        rows_before[keys_of_stored] = np.arange(n_stored)
        by_key = np.argsort(places, kind="stable")
        before = np.empty(n, np.int64)
        before[by_key[1:]] = n_stored + by_key[:-1]
        before[first] = rows_before
        after = n_stored + np.arange(n)
        columns = [pa.concat_arrays(pair) for pair in zip(stored.columns, given.columns, strict=True)]
        inserted, known = np.flatnonzero(before < 0), np.flatnonzero(before >= 0)
        updated = known[~are_same_rows(columns, before[known], after[known])]
        numbers = np.concatenate((inserted, updated, updated))
        sources = np.concatenate((after[inserted], before[updated], after[updated]))
        kinds = np.repeat(np.array(["+I", "-U", "+U"]), (len(inserted), len(updated), len(updated)))
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        last_of_key = np.empty(len(own), np.int64)
        last_of_key[places] = np.arange(n)
        self._given.update(own, given.take(pa.array(last_of_key)))
        keys = ctx.keys(ids[numbers])
        taken = pa.array(sources[order])
        changes = {
            **dict(zip(keys.schema.names, keys.columns, strict=True)),
            **{name: column.take(taken) for name, column in zip(self._schema.names, columns, strict=True)},
            ROW_KIND: pa.array(kinds[order]),
        }
        return pa.RecordBatch.from_arrays(list(changes.values()), list(changes)), numbers


def _flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


def emitting_windows(
    program: Program, node: PlanNode, rows: Rows, window: SqlWindow, strategy: EmitStrategy
) -> Rows:
    """Return the changes of aggregates by keys and windows, which are emitted as a strategy says.

    Parameters
    ----------
    program : Program
    node : PlanNode
        A group-window-aggregate.
    rows : Rows
    window : SqlWindow
    strategy : EmitStrategy
    """
    assigner = window.assigner
    if program.by_arrival:
        raise node.refuse(
            "EMIT for windows of processing time is not supported",
            "Leave table.exec.emit.* out, or take the rowtime",
        )
    if window.clock is not None or not isinstance(
        assigner, TumblingEventTimeWindows | SlidingEventTimeWindows
    ):
        raise node.refuse(
            "EMIT is supported for TUMBLE and HOP, by a time without daylight saving",
            "Leave table.exec.emit.* out, or take TIMESTAMP for TIMESTAMP_LTZ",
        )
    rows.require_inserts(node, "Aggregate rows that do not change, such as those of a table")
    rows.require_time(node, window.rowtime)
    native = NativeAggregates(node, rows.columns, rows.types, window.panes(rows.columns))
    calls = [AggregateCall.of(call, program.functions) for call in node.json["aggCalls"]]
    for call in calls:
        if call.function is not None:
            raise node.refuse(
                f"the function {call.function.name} over windows with EMIT is not supported",
                "Leave EMIT out, or aggregate by GROUP BY alone",
            )
    for call in calls or [_COUNT]:
        native.add(call)
    grouping = node.json["grouping"]
    keys = list(dict.fromkeys(rows.columns[number] for number in grouping))
    kinds = {rows.columns[number]: rows.types[number].arrow for number in grouping}
    names = [f"result#{number}" for number in range(len(native.results))]
    function = EmittingWindows(
        strategy,
        native.aggregates,
        dict(zip(names, native.results, strict=True)),
        [call.type.arrow for call in calls or [_COUNT]],
    )
    schema = pa.schema(
        [
            *(pa.field(key, kinds[key]) for key in keys),
            pa.field(_START, pa.int64()),
            pa.field(_END, pa.int64()),
            *function.schema,
            pa.field(ROW_KIND, pa.string()),
        ]
    )
    stream = _of_windows(rows, window, keys, native)
    results = stream.key_by(*keys, _START, _END).process(function, schema)
    bounds = {"window_start": _START, "window_end": _END}
    properties = window_properties(program, node, window.is_instant, bounds.__getitem__)
    columns = [*(pc.field(rows.columns[number]) for number in grouping), *map(pc.field, names[: len(calls)])]
    return program.of_operator(node, results, [*columns, *properties], changes=("-U", "+U"))


def _of_windows(rows: Rows, window: SqlWindow, keys: Sequence[str], native: NativeAggregates) -> Any:
    """Return each row once for each of its windows, with their bounds and what the aggregates read."""
    assigner = window.assigner
    assert isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows)
    time, kind = rows.columns[window.rowtime], rows.types[window.rowtime]
    streams = []
    for of_row in windows_of_row(assigner):

        def millis(name: str, of_row: WindowOfRow = of_row) -> WindowMillis:
            return WindowMillis(time, kind, of_row, name)

        is_last = pc.scalar(of_row.earlier == 0)
        added: dict[str, Any] = {_START: millis("start"), _END: millis("end"), _IS_LAST: is_last}
        streams.append(rows.stream.filter(millis("holds")).select(*keys, **native.arguments, **added))
    first, *others = streams
    return first.union(*others) if others else first
