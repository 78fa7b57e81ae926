"""The highest rows of each key or window, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.changing_top import ChangingTopKernel
from flinkcore._native.relational import KernelResults
from flinkcore._native.timers import TimerHeap
from flinkcore._native.top_rows import TopKernel
from flinkcore.columnar.operator_plans.relational import without_kind
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, SortWords
from flinkcore.columnar.operator_plans.row_windows import windows_of
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.row_changes import identities_of, kinds_of
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.timestamp_range import WINDOWS_TAKE, require_timestamps
from flinkcore.errors import DataError
from flinkcore.time_plane.timeline import Timeline

_SIGN = np.uint64(1 << 63)


class TopStage(RelationalStage):
    """Keeps the highest rows of each key, or of each window of a key."""

    def __init__(self, context: StageContext, operator: TopRows, partition: int) -> None:
        (events,) = context.plan.input_schemas
        self._operator = operator
        self._ranking = operator.ranking(events)
        self._in_no_window = self._late_without_window = 0
        # Events by the number of the row that the kernel gets for them, and late ones that it does not get.
        self._events_of_rows: Int64s | None = None
        self._late_events = np.empty(0, np.int64)
        super().__init__(context, operator, partition)

    def _made_kernel(self, operator: TopRows, steps_done: int, result_limit: int) -> RelationalKernel:
        if operator.of_changes:
            return ChangingTopKernel(
                self._keys,
                self._timeline.steps,
                steps_done=steps_done,
                result_limit=result_limit,
                n=operator.n,
                skip=operator.skip,
                rank=operator.rank,
                n_words=self._ranking.n_words,
                has_tails=self._ranking.has_tails,
                ranks_shown=operator.rank_column is not None,
                changes=operator.changes,
                replaces=operator.unique_key is not None,
                of_limits=operator.limit_column is not None,
            )
        return top_kernel(
            operator,
            self._ranking,
            self._timers,
            self._timeline,
            steps_done=steps_done,
            result_limit=result_limit,
            update_before=self._context.plan.update_before,
        )

    def _kept_schemas(self, inputs: Sequence[pa.Schema], operator: TopRows) -> list[pa.Schema]:
        return list(map(without_kind, inputs))

    def _sort_words(self, rows: pa.RecordBatch, timestamps: Int64s) -> SortWords:
        return sort_words(self._operator, self._ranking, rows, timestamps)

    def _kernel_arguments(
        self, batch: pa.RecordBatch, *events: npt.NDArray[Any] | None
    ) -> tuple[npt.NDArray[Any] | None, ...]:
        timestamps = events[4]
        assert timestamps is not None
        words = self._sort_words(batch, timestamps)
        limit = self._operator.limit_column
        # Flink reads a null as 0.
        limits = None if limit is None else batch.column(limit).cast(pa.int64()).fill_null(0).to_numpy()
        if self._operator.of_changes:
            identities = identities_of(batch, self._operator.unique_key)
            return (*events, *words, kinds_of(batch), identities, None, limits)
        if self._operator.window is not None:
            if self._number > 0:
                require_timestamps(timestamps, self._operator.timestamp_range, WINDOWS_TAKE)
            windows = windows_of(self._operator.window, timestamps)
            rows, ends, is_last = windows.rows, windows.ends, windows.is_last
            if rows is not None and is_last is not None:
                self._count_without_window(rows, timestamps, events[5])
                self._events_of_rows = rows
                events = tuple(None if column is None else column[rows] for column in events)
                words = _repeated(words, rows)
            return (*events, *words, ends, is_last)
        name = self._operator.window_end
        given = None if name is None else given_ends(batch, name)
        return (*events, *words, given, None, limits)

    def _count_without_window(self, rows: Int64s, timestamps: Int64s, steps: npt.NDArray[Any] | None) -> None:
        """Count rows between windows: late ones are those that the watermark has reached, as in Flink."""
        assert steps is not None
        is_without = np.ones(len(timestamps), np.bool_)
        is_without[rows] = False
        watermarks = self._timeline.watermark_after(steps[is_without])
        is_late = timestamps[is_without] <= watermarks
        self._late_events = np.flatnonzero(is_without)[is_late]
        self._late_without_window += len(self._late_events)
        self._in_no_window += int(np.count_nonzero(~is_late))

    def _late_rows(self) -> Int64s:
        assert isinstance(self._kernel, TopKernel)
        late = self._kernel.take_late()
        if self._events_of_rows is None:
            return late
        return np.sort(np.concatenate([self._events_of_rows[late], self._late_events]))

    def _restored_columns(
        self, rows: pa.RecordBatch, columns: pa.RecordBatch
    ) -> Mapping[str, npt.NDArray[Any] | None]:
        if "timestamp" not in columns.schema.names:
            return {}
        return self._sort_words(rows, columns.column("timestamp").to_numpy())._asdict()

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of the rows, the bounds of their windows, and their ranks."""
        columns: list[pa.Array] = self._kept[0].take(results.left).columns
        if self._operator.window is not None:
            columns += self._window_bounds(self._operator.window, results)
        if results.values is not None:
            columns.append(pa.array(results.values))
        return columns

    def counts(self) -> dict[str, int]:
        counts = super().counts()
        counts["late"] += self._late_without_window
        return {**counts, "in_no_window": self._in_no_window}


def top_kernel(
    operator: TopRows,
    ranking: RowRanking,
    timers: TimerHeap,
    timeline: Timeline,
    *,
    steps_done: int,
    result_limit: int,
    update_before: bool = True,
) -> TopKernel:
    """Return the kernel of an operator, whose rows have this order."""
    return TopKernel(
        timers,
        timeline.steps,
        steps_done=steps_done,
        result_limit=result_limit,
        n=operator.n,
        skip=operator.skip,
        rank=operator.rank,
        n_words=1 if operator.by_time else ranking.n_words,
        has_tails=ranking.has_tails,
        latest_first=operator.latest_first,
        ranks_shown=operator.rank_column is not None,
        changes=operator.changes,
        of_windows=operator.of_windows,
        of_limits=operator.limit_column is not None,
        least_watermark=operator.least_watermark_ms,
        update_before=update_before,
    )


def sort_words(operator: TopRows, ranking: RowRanking, rows: pa.RecordBatch, timestamps: Int64s) -> SortWords:
    """Return the sort keys of rows with these event times."""
    if not operator.by_time:
        return ranking.of(rows)
    words = timestamps.view(np.uint64) ^ _SIGN
    return SortWords((~words if operator.latest_first else words).reshape(-1, 1), None, None)


def given_ends(rows: pa.RecordBatch, name: str) -> Int64s:
    """Return the ends of the windows of rows, which a column has, in ms since the epoch; a DataError for nulls."""
    column = rows.column(name)
    if column.null_count:
        raise DataError(
            f"the column {name!r}, the end of each row's window, has nulls: filter such rows out first",
            column=name,
        )
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    ends: Int64s = column.to_numpy()
    return ends


def _repeated(words: SortWords, rows: Int64s) -> SortWords:
    """Sort keys of rows, of which some come more than once."""
    if words.tail_ends is None or words.tails is None:
        return SortWords(np.ascontiguousarray(words.words[rows]), None, None)
    offsets = pa.py_buffer(np.ascontiguousarray(words.tail_ends))
    tails = pa.Array.from_buffers(
        pa.large_binary(), len(words.words), [None, offsets, pa.py_buffer(words.tails)]
    )
    taken = tails.take(pa.array(rows))
    _, ends, data = taken.buffers()
    return SortWords(
        np.ascontiguousarray(words.words[rows]),
        np.frombuffer(ends, np.int64)[: len(rows) + 1] if len(rows) else np.zeros(1, np.int64),
        np.frombuffer(data or b"", np.uint8),
    )
