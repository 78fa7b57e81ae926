"""Joins of two keyed streams over columns, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.column_ops import Select, expression_columns
from flinkcore._internal.arrow.joined_batches import joined
from flinkcore._native.changing_join import ChangingJoinKernel
from flinkcore._native.interval_join import interval_join
from flinkcore._native.join_kernel import JoinKernel, JoinKind
from flinkcore._native.regular_join import regular_join
from flinkcore._native.relational import KernelResults
from flinkcore._native.temporal_join import temporal_join
from flinkcore._native.window_join import window_join
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime
from flinkcore.columnar.operator_plans.relational import without_kind
from flinkcore.columnar.operator_plans.row_windows import windows_of
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.pair_columns import PairColumns
from flinkcore.columnar.relational.ranked_pairs import RankedPairs
from flinkcore.columnar.relational.row_changes import Identities, Kinds, identities_of, kinds_of
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.columnar.stages.timestamp_range import require_timestamps
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.graph.join_operations import (
    JoinOperation,
    RegularJoin,
    TemporalJoin,
    TimeIntervalJoin,
    WindowJoin,
)
from flinkcore.time_plane.total_order import Events

JOIN_KINDS: Final[Mapping[type[JoinOperation], Callable[[Any], JoinKind]]] = {
    TimeIntervalJoin: lambda join: interval_join(join.lower_ms, join.upper_ms, join.by_clock),
    WindowJoin: lambda join: window_join(),
    RegularJoin: lambda join: regular_join(),
    TemporalJoin: lambda join: temporal_join(join.ttl_ms),
}
"""The kernel of each kind of join."""


class JoinStage(RelationalStage):
    """Joins two streams.

    The condition is evaluated over all pairs of rows that wait in the kernel, on the columns that it reads; then the
    rows of those that meet it are gathered.
    """

    _kernel: JoinKernel | ChangingJoinKernel | RankedPairs

    def __init__(self, context: StageContext, operator: Join, partition: int) -> None:
        assert context.inputs is not None
        self._inputs = context.inputs
        self._operation = operation = operator.operation
        first, second = context.plan.inputs
        self._keys_of = (
            [f"0.{name}" for name in first.key.names],
            [f"1.{name}" for name in second.key.names],
        )
        self._windows: WindowsByTime | None = None
        if isinstance(operation, WindowJoin):
            assert isinstance(operation.assigner, WindowsByTime)
            self._windows = operation.assigner
        self._timestamp_range = operator.timestamp_range
        self._changing = operator.changing
        self._keeps_changes = operator.keeps_changes
        self._changes: tuple[Kinds, Identities] | None = None
        self._gives_left_alone = operator.gives_left_alone
        self._condition: Select | None = None
        if operation.where is not None:
            self._condition = Select((), (("where", operation.where),))
            pairs = operator.pair_schema(context.plan.input_schemas)
            left, right = (without_kind(each.schema) for each in (first, second))
            self._read = PairColumns(left, right, pairs, expression_columns(operation.where))
        super().__init__(context, operator, partition)

    def _made_kernel(self, operator: Join, steps_done: int, result_limit: int) -> RelationalKernel:
        operation = operator.operation
        if operator.keeps_changes:
            assert isinstance(operation, RegularJoin)
            left, right = (
                (is_changing or ttl_ms > 0) and key is not None
                for is_changing, key, ttl_ms in zip(
                    operator.changing, operation.unique_keys, operation.ttl_ms, strict=True
                )
            )
            return ChangingJoinKernel(
                self._keys,
                self._timeline.steps,
                how=operation.how,
                has_condition=operation.where is not None,
                has_kinds=operation.changes,
                replaces=(left, right),
                steps_done=steps_done,
                result_limit=result_limit,
                ttl_ms=operation.ttl_ms,
            )
        return JoinKernel(
            JOIN_KINDS[type(operation)](operation),
            self._timers,
            self._timeline.steps,
            how=operation.how,
            has_condition=operation.where is not None,
            has_kinds=operation.changes,
            steps_done=steps_done,
            result_limit=result_limit,
            end_ms=MIN_TIMESTAMP if self._context.last_arrival_ms is None else self._context.last_arrival_ms,
        )

    def _kept_schemas(self, inputs: Sequence[pa.Schema], operator: Join) -> list[pa.Schema]:
        """All columns of left rows; of right rows that never come out, keys and those that the condition reads."""
        left, right = map(without_kind, inputs)
        if operator.gives_left_alone:
            read = {*self._context.plan.inputs[1].key.names}
            if self._condition is not None:
                read |= {*self._read.right}
            names = [name for name in right.names if name in read] or right.names[:1]
            right = pa.schema([right.field(name) for name in names])
        return [left, right]

    def _forget_expired(self, now_ms: int) -> None:
        assert isinstance(self._kernel, ChangingJoinKernel | JoinKernel)
        self._kernel.forget_expired(now_ms)

    # ---- events ----

    def _kept_rows(
        self, events: Events, rows: RowNumbers | None
    ) -> tuple[pa.RecordBatch, Int64s, npt.NDArray[np.int8] | None]:
        """Keep the rows of each input. Return the keys of all, by the names of the first input, numbers and inputs."""
        is_second = self._inputs.is_second(events)
        if rows is not None:
            is_second = is_second[rows]
        numbers = np.empty(len(is_second), np.int64)
        if self._keeps_changes:
            self._changes = np.zeros(len(is_second), np.uint8), np.zeros((len(is_second), 2), np.uint64)
        for side in range(2):
            places = np.flatnonzero(is_second == bool(side))
            if len(places):
                at = places if rows is None else rows[places]
                if self._changing[side] or (self._keeps_changes and self._operator_plan.ttl_ms):
                    whole = self._inputs.batch_of(side, events.batch)
                    self._read_changes(side, whole.take(pa.array(at)), places)
                numbers[places] = self._kept_of_side(side, events, at)
        return self._keys_of_rows(events, rows), numbers, is_second.astype(np.int8)

    def _kept_of_side(self, side: int, events: Events, at: npt.NDArray[Any]) -> Int64s:
        """Keep the rows of one input, which lie `at` these places, and return their numbers, which ascend."""
        kept = self._kept[side]
        names = kept.schema.names
        # State is restored in the order of the numbers.
        if not (at[1:] > at[:-1]).all():
            own = self._inputs.batch_of(side, events.batch).select(names)
            return kept.add(own.take(pa.array(at))) + np.arange(len(at))
        numbers = np.empty(len(at), np.int64)
        first = begin = 0
        for batch in events.batches:
            last = int(np.searchsorted(at, begin + batch.num_rows))
            if last > first:
                own, rows = self._inputs.batch_of(side, batch).select(names), at[first:last] - begin
                if 2 * len(rows) >= batch.num_rows:
                    # Rows of nulls in between cost less than a copy of the others.
                    numbers[first:last] = kept.add(own) + rows
                else:
                    numbers[first:last] = kept.add(own.take(pa.array(rows))) + np.arange(len(rows))
            first, begin = last, begin + batch.num_rows
        return numbers

    def _read_changes(self, side: int, rows: pa.RecordBatch, places: Int64s) -> None:
        """Find the kinds and identities of rows of one input, which are at these places among the events."""
        assert isinstance(self._operation, RegularJoin)
        assert self._changes is not None
        kinds, identities = self._changes
        if self._changing[side]:
            kinds[places] = kinds_of(rows)
        identities[places] = identities_of(rows, self._operation.unique_keys[side])

    def _keys_of_rows(self, events: Events, rows: RowNumbers | None) -> pa.RecordBatch:
        schema = pa.schema([pa.field(field.name, field.type) for field in self._context.plan.key_fields])
        if len(schema) == 0:
            # Only a batch that columns were taken from knows its number of rows.
            keys = events.batch.select([])
        else:
            keys = joined([self._keys_of_batch(batch, schema) for batch in events.batches])
        return keys if rows is None else keys.take(pa.array(rows))

    def _keys_of_batch(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        columns = [
            pc.coalesce(batch.column(first), batch.column(second))
            for first, second in zip(*self._keys_of, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _key_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    def _kernel_arguments(self, batch: pa.RecordBatch, *events: Any) -> tuple[Any, ...]:
        """The arguments of all operators, whether each row can match, and the ends of its windows."""
        *_, timestamps, _ = events
        if self._number > 0:
            takes = f"{self._operation.call} after another operator, and it takes"
            require_timestamps(timestamps, self._timestamp_range, takes)
        can_match = None
        if not self._operation.nulls_equal and any(column.null_count for column in batch.columns):
            can_match = np.ones(batch.num_rows, np.bool_)
            for column in batch.columns:
                can_match &= column.is_valid().to_numpy(zero_copy_only=False)
            can_match = can_match.view(np.uint8)
        if self._changes is not None:
            return *events, can_match, *self._changes, self._arrivals
        if self._arrivals is not None:
            return *events, can_match, None, None, self._arrivals
        if self._windows is None:
            return *events, can_match
        windows, each = windows_of(self._windows, timestamps), np.arange(len(timestamps) + 1)
        offsets = each if windows.rows is None else np.searchsorted(windows.rows, each)
        return *events, can_match, windows.ends, offsets

    def _late_rows(self) -> Int64s:
        assert isinstance(self._kernel, JoinKernel)
        return self._kernel.take_late()

    def _late_outputs(self, events: Events, at: Int64s) -> Iterator[StageOutput]:
        is_second = self._inputs.is_second(events)[at]
        for side, tag in enumerate(self._operator_plan.late_tags):
            late = at[is_second == bool(side)]
            if tag is not None and len(late):
                yield StageOutput(tag, [self._inputs.batch_of(side, events.batch).take(pa.array(late))])

    # ---- results ----

    def _ready_results(self) -> KernelResults:
        if self._condition is None:
            return self._kernel.take()
        pairs = self._kernel.pairs()
        if not len(pairs[0]):
            return self._kernel.take()
        met, _ = self._condition.apply(self._read.take(self._kept, *pairs))
        passed = pc.fill_null(met.column(0), False).to_numpy(zero_copy_only=False)
        return self._kernel.take(passed.view(np.uint8))

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of both rows, or of the left one, and the bounds of their window."""
        columns: list[pa.Array] = self._kept[0].take(results.left).columns
        if not self._gives_left_alone:
            assert results.right is not None
            columns += self._kept[1].take(results.right).columns
        if self._windows is not None:
            columns += self._window_bounds(self._windows, results)
        return columns
