"""Aggregates over the rows before each row, over the key groups of one partition.

Rows wait in `PendingRows` until they have come up in the order of time; each then moves the frame of its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_expiry import KeyExpiry
from flinkcore._native.pending_rows import PendingRows
from flinkcore._native.relational import KernelResults
from flinkcore.columnar.operator_plans.frame_plans import columns_of, native_specs
from flinkcore.columnar.operator_plans.over import Over
from flinkcore.columnar.operator_plans.row_ranking import RowRanking
from flinkcore.columnar.relational.frame_aggregates import FRAMES, FrameAggregates
from flinkcore.columnar.relational.frame_rows import FRAME_ROWS, RowsInFrames
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.stages.arriving_rows import ArrivingRows
from flinkcore.columnar.stages.function_accumulators import TABLE, FunctionAccumulators
from flinkcore.columnar.stages.order_of_rows import order_with_columns
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate


class OverKernel:
    """A `RelationalKernel`: the order in which rows come up, and the frames of keys.

    Parameters
    ----------
    order : PendingRows or ArrivingRows
    frames : FrameAggregates
    functions : mapping of int to FunctionAccumulators
        Aggregates that are functions in Python, by their number among all.
    keys : KeyDictionary
    kept : NumberedRows
    ranking : RowRanking or None
        Order of rows of equal timestamps.
    in_frames : RowsInFrames or None
        Rows in frames, for a savepoint; None if only their aggregates are needed.
    """

    def __init__(
        self,
        order: PendingRows | ArrivingRows,
        frames: FrameAggregates,
        functions: Mapping[int, FunctionAccumulators],
        keys: KeyDictionary,
        kept: NumberedRows,
        ranking: RowRanking | None,
        in_frames: RowsInFrames | None,
    ) -> None:
        self.order, self.frames, self.functions, self._keys = order, frames, functions, keys
        self._kept, self._ranking, self._in_frames = kept, ranking, in_frames
        self.process = order.process
        self.advance = order.advance
        self.finish = order.finish
        self.counts = order.counts
        self.cleared: tuple[Int64s, npt.NDArray[np.uint32]] | None = None

    @property
    def is_full(self) -> bool:
        return self.order.is_full

    def take(self) -> KernelResults:
        """Return the rows that have come up; `cleared` then has the keys whose frames are forgotten among them."""
        self.cleared = self.order.take_cleared()
        results = self.order.take()
        if self._in_frames is not None:  # it forgets the keys, too
            self._in_frames.add(results.left, results.key_ids, results.timestamps, self.cleared)
        if not len(results.left):
            self._clear(self.cleared[1])
        if self._ranking is None:
            return results
        # The rows of a key and timestamp have one firing, so that nothing but their numbers differs.
        order = order_with_columns(results, self._ranking, self._kept)
        return results._replace(left=results.left[order])

    def forget_expired(self, now_ms: int) -> None:
        """Forget the keys that have expired at a processing time."""
        expired = self.order.expire(now_ms)
        self._clear(expired)
        if self._in_frames is not None:
            self._in_frames.clear(expired)

    def _clear(self, key_ids: npt.NDArray[np.uint32]) -> None:
        self.frames.clear(key_ids)
        for function in self.functions.values():
            function.clear(key_ids)

    @property
    def current_watermark(self) -> int:
        return self.order.current_watermark

    def memory_bytes(self) -> int:
        of_functions = sum(each.memory_bytes() for each in self.functions.values())
        of_rows = 0 if self._in_frames is None else self._in_frames.memory_bytes()
        return self.order.memory_bytes() + self.frames.memory_bytes() + of_functions + of_rows

    @property
    def live_count(self) -> int:
        return self.order.live_count + (0 if self._in_frames is None else len(self._in_frames))

    def live_rows(self) -> Int64s:
        """Return the numbers of the rows that wait, and of those in frames, if these are kept."""
        waiting = self.order.live_rows()
        return waiting if self._in_frames is None else np.concatenate([waiting, self._in_frames.live_rows()])

    def renumber(self, rows: Int64s) -> None:
        """Take new numbers for these rows."""
        if self._in_frames is not None:
            n_waiting = len(rows) - len(self._in_frames)
            self._in_frames.renumber(rows[n_waiting:])
            rows = rows[:n_waiting]
        self.order.renumber(rows)

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        functions = {f"{TABLE}{number}": each.snapshot() for number, each in self.functions.items()}
        rows = {} if self._in_frames is None else {FRAME_ROWS: self._in_frames.snapshot()}
        return {FRAMES: self.frames.snapshot(), **functions, **rows, **self.order.snapshot()}

    def restore(self, table: str, keys: Int64s, rows: dict[str, Int64s], columns: pa.RecordBatch) -> None:
        if table == FRAMES:
            self.frames.restore(keys, columns)
        elif table == FRAME_ROWS:
            assert self._in_frames is not None
            times, nothing = columns.column("timestamp").to_numpy(), np.zeros(0, np.int64)
            self._in_frames.add(
                rows["row"], keys.astype(np.uint32), times, (nothing, nothing.astype(np.uint32))
            )
        elif table.startswith(TABLE):
            self.functions[int(table.removeprefix(TABLE))].restore(keys, columns, rows)
        else:
            self.order.restore(table, keys, self._keys.key_group(keys.astype(np.uint32)), rows, columns)


class OverStage(RelationalStage):
    """Adds aggregates over the frame of each row to it."""

    _kernel: OverKernel

    def _made_kernel(self, operator: Over, steps_done: int, result_limit: int) -> RelationalKernel:
        (events,) = self._context.plan.input_schemas
        self._peers = operator.peers
        order: PendingRows | ArrivingRows
        if operator.by_time:
            order = PendingRows(
                self._timeline.steps,
                max_parallelism=self._context.plan.max_parallelism,
                key_groups=self._key_group_range,
                steps_done=steps_done,
                result_limit=result_limit,
                bounded=operator.is_bounded,
                range_ms=operator.range_ms if operator.is_bounded else None,
                first_ms=0 if operator.order_by is None else MIN_TIMESTAMP,
                ttl_ms=operator.ttl_ms,
                end_ms=self._end_ms,
            )
        else:
            expiry = None
            if operator.ttl_ms:
                expiry = KeyExpiry(operator.ttl_ms, by_timer=operator.expires_by_timer)
            order = ArrivingRows(self._timeline, steps_done, result_limit, expiry)
        bounds: Any = {"rows": operator.rows, "range_ms": operator.range_ms, "peers": operator.peers}
        frames = FrameAggregates(events, native_specs(operator.aggregates), **bounds)
        functions = {
            number: FunctionAccumulators(aggregate, **bounds)
            for number, (_, aggregate) in enumerate(operator.aggregates)
            if isinstance(aggregate, FunctionAggregate)
        }
        read = columns_of(operator.aggregates)
        self._read = [name for name in events.names if name in read] or events.names[:1]
        in_frames = None
        if operator.keeps_frame_rows:
            in_frames = RowsInFrames(rows=operator.rows, range_ms=operator.range_ms)
        ranking = operator.ranking(events)
        return OverKernel(order, frames, functions, self._keys, self._kept[0], ranking, in_frames)

    def _kernel_arguments(self, batch: pa.RecordBatch, *events: Any) -> tuple[Any, ...]:
        return events if self._arrivals is None else (*events, self._arrivals)

    def _forget_expired(self, now_ms: int) -> None:
        self._kernel.forget_expired(now_ms)

    def _late_rows(self) -> Int64s:
        assert isinstance(self._kernel.order, PendingRows)
        return self._kernel.order.take_late()

    def _taken_values(self, results: KernelResults) -> list[pa.Array]:
        """Return the aggregates of the rows that have come up."""
        frames, functions = self._kernel.frames, self._kernel.functions
        cleared, times = self._kernel.cleared, results.timestamps
        rows = self._kept[0].take(results.left, self._read)
        numbers = frames.process(rows, results.key_ids, times, cleared=cleared)
        values = frames.take()
        for number, function in sorted(functions.items()):
            function.process(rows, results.key_ids, times=times, cleared=cleared)
            values.insert(number, function.take())
        return [column.take(pa.array(numbers)) for column in values] if self._peers else values
