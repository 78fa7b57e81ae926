"""The highest pairs of a join, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.column_ops import apply_ops, narrow_ops
from flinkcore._native.join_kernel import JoinKernel
from flinkcore._native.relational import KernelResults
from flinkcore._native.timers import TimerHeap
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.ranked_join import RankedJoin
from flinkcore.columnar.operator_plans.row_ranking import SortWords
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.pair_columns import PairColumns
from flinkcore.columnar.relational.ranked_pairs import MOST_ROWS, RankedPairs, pairs_of, rows_of
from flinkcore.columnar.stages.join_stage import JoinStage
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.columnar.stages.top_stage import given_ends, sort_words, top_kernel
from flinkcore.common import MAX_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.time_plane.total_order import Events

TIMERS_OF_RANK: Final = "rank_timers"


class RankedJoinStage(JoinStage):
    """Joins two streams, and ranks the pairs of each key by number: only columns that order them are gathered before.

    The rank has the watermarks of the join. Those that a join passes on to other operators are lower: instead, the ends
    of windows are so much later here.
    """

    _kernel: RankedPairs

    def __init__(self, context: StageContext, operator: RankedJoin, partition: int) -> None:
        self._ranked = operator
        self.in_any_order = not operator.top.changes
        first, second = context.plan.inputs
        joined = operator.join.pair_schema(context.plan.input_schemas)
        wanted = frozenset(operator.top.by)
        if operator.top.window_end is not None:
            wanted |= {operator.top.window_end}
        self._before_rank, of_rank = narrow_ops(operator.between, wanted)
        self._of_rank = PairColumns(first.schema, second.schema, joined, of_rank)
        self._after_rank, of_results = narrow_ops(operator.between, None)
        self._of_results = PairColumns(first.schema, second.schema, joined, of_results)
        self._ranking = operator.top.ranking(operator.pairs)
        super().__init__(context, operator.join, partition)

    def _made_kernel(self, operator: Join, steps_done: int, result_limit: int) -> RelationalKernel:
        join = super()._made_kernel(operator, steps_done, result_limit)
        assert isinstance(join, JoinKernel)
        self._timers_of_rank = TimerHeap(self._context.plan.max_parallelism, self._key_group_range)
        top = top_kernel(
            self._ranked.top,
            self._ranking,
            self._timers_of_rank,
            self._timeline,
            steps_done=steps_done,
            result_limit=result_limit,
            update_before=self._context.plan.update_before,
        )
        return RankedPairs(join, top, lambda *pairs: self._rank_columns(*pairs)[1])

    def _timer_tables(self) -> Mapping[str, TimerHeap]:
        return {**super()._timer_tables(), TIMERS_OF_RANK: self._timers_of_rank}

    # ---- from the join to the rank ----

    def _taken(self, events: Events | None, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Offer the pairs that the join has to the rank, and give what that has."""
        pairs = super()._ready_results()
        if len(pairs.left):
            # The step in force is the last one before an event. The watermark of a timer comes after its pairs.
            steps = np.maximum(pairs.steps + (pairs.events >= 0), 0)
            for results in self._offered(pairs, steps):
                yield from self._given(results, events if self._ranked.top.changes else None, rows)
        yield from self._given(self._kernel.top.take(), None, None)

    def _offered(self, pairs: KernelResults, steps: Int64s) -> Iterator[KernelResults]:
        """Offer pairs to the rank, and yield its results; those that a pair has come when and where that pair comes."""
        assert pairs.right is not None
        if max(map(len, self._kept)) >= MOST_ROWS:
            raise DataError(
                f"{self._ranked.function_name} keeps {MOST_ROWS:,} rows of a stream: raise the parallelism"
            )
        ranked, words, chosen = self._rank_columns(pairs.left, pairs.right, pairs.timestamps)
        of_chosen = slice(None) if chosen is None else chosen
        key_ids = pairs.key_ids[of_chosen]
        causes = [column[of_chosen] for column in (pairs.events, pairs.steps, pairs.fired)]
        arguments = (
            key_ids,
            self._keys.key_group(key_ids),
            None,
            pairs_of(pairs.left, pairs.right)[of_chosen],
            pairs.timestamps[of_chosen],
            steps[of_chosen],
            *words,
            self._ends(ranked),
            None,
        )
        taken = 0
        while taken < len(key_ids):
            taken = self._kernel.top.process(*arguments, first=taken)
            results = self._kernel.top.take()
            if self._ranked.top.changes:  # without windows, so that no watermark has any
                events, steps, fired = (column[results.events] for column in causes)
                results = results._replace(events=events, steps=steps, fired=fired)
            yield results

    def _rank_columns(
        self, left: Int64s, right: Int64s, timestamps: Int64s
    ) -> tuple[pa.RecordBatch, SortWords, RowNumbers | None]:
        """Return the columns that order pairs, their sort keys, and which pairs are left by filters."""
        batch, chosen = apply_ops(self._before_rank, self._of_rank.take(self._kept, left, right))
        of_chosen = timestamps if chosen is None else timestamps[chosen]
        return batch, sort_words(self._ranked.top, self._ranking, batch, of_chosen), chosen

    def _ends(self, ranked: pa.RecordBatch) -> Int64s | None:
        name = self._ranked.top.window_end
        if name is None:
            return None
        ends, later = given_ends(ranked, name), self._ranked.held_back_ms
        if later and len(ends) and int(ends.max()) > MAX_TIMESTAMP - later:
            raise DataError(
                f"the column {name!r}, the end of each row's window, has {int(ends.max())} ms, which is more than "
                f"{MAX_TIMESTAMP - later}: filter such rows out first",
                column=name,
            )
        return ends + later

    # ---- results ----

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of the pairs, and their ranks."""
        batch, _ = apply_ops(self._after_rank, self._of_results.take(self._kept, *rows_of(results.left)))
        columns: list[pa.Array] = batch.columns
        if results.values is not None:
            columns.append(pa.array(results.values))
        return columns

    def _given(
        self, results: KernelResults, events: Events | None, rows: RowNumbers | None
    ) -> Iterator[StageOutput]:
        if self._ranked.top.of_windows:
            results = results._replace(timestamps=results.timestamps - self._ranked.held_back_ms)
        yield from super()._given(results, events, rows)
