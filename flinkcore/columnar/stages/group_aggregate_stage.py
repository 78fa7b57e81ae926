"""Aggregates over all rows of each key, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.same_rows import are_same_rows
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_expiry import KeyExpiry
from flinkcore._native.relational import KernelResults
from flinkcore.columnar.operator_plans.frame_plans import result_types
from flinkcore.columnar.operator_plans.group_aggregation import GroupAggregation
from flinkcore.columnar.relational.frame_aggregates import FRAMES, FrameAggregates, KeyIds
from flinkcore.columnar.relational.immediate_kernel import NO_RESULTS, ImmediateKernel
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.row_changes import kinds_of
from flinkcore.columnar.stages.arriving_rows import EXPIRY
from flinkcore.columnar.stages.function_accumulators import TABLE, FunctionAccumulators
from flinkcore.columnar.stages.kept_values_column import SHOWN, KeptValuesColumn
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import Events

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)

_COUNT: Final = ("count", None, None)
"""A last aggregate where rows are withdrawn: a key without rows has no result."""


class GroupKernel(ImmediateKernel):
    """A `RelationalKernel` that follows Flink's GroupAggFunction; results are values, not rows.

    Parameters
    ----------
    frames : FrameAggregates
        Over frames of all rows; the last aggregate is a count of rows if they are withdrawn.
    kept : mapping of int to KeptValuesColumn or FunctionAccumulators
        Aggregates that are not in frames, by their number among all.
    keys : KeyDictionary
    timeline : Timeline
    steps_done : int
    result_limit : int
    changes : bool
        Whether changes are emitted, and not the last results when the log ends.
    withdraws : bool
        Whether rows have a row kind.
    compared : callable
        Takes the aggregates, and returns the columns of which one changes where there is a change.
    counted : int or None
        Number of an aggregate among the compared ones that counts all rows of a key, so that each row is a change.
    expiry : KeyExpiry or None
        Times at which keys expire; with them, each row gives a change.
    update_before : bool
        Whether an update is also a ``-U``.

    Attributes
    ----------
    values : list of pyarrow.Array
        The aggregates of the results that were taken.
    """

    def __init__(
        self,
        frames: FrameAggregates,
        kept: Mapping[int, KeptValuesColumn | FunctionAccumulators],
        keys: KeyDictionary,
        timeline: Timeline,
        steps_done: int,
        result_limit: int,
        *,
        changes: bool,
        withdraws: bool,
        compared: Callable[[list[pa.Array]], Iterable[pa.Array]],
        counted: int | None = None,
        expiry: KeyExpiry | None = None,
        update_before: bool = True,
    ) -> None:
        super().__init__(timeline, steps_done, result_limit)
        self._frames, self._kept, self._keys = frames, kept, keys
        self._changes, self._withdraws, self._compared, self._counted = changes, withdraws, compared, counted
        self._expiry, self._update_before = expiry, update_before
        self._at_end: Int64s | None = None
        self.values: list[pa.Array] = []

    def process(
        self,
        key_ids: KeyIds,
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8] | None,
        rows: Int64s,
        timestamps: Int64s,
        steps: Int64s,
        batch: pa.RecordBatch,
        arrivals: Int64s | None = None,
        first: int = 0,
    ) -> int:
        """Take in events from number `first` on, as many as results may wait; return the number of the next one."""
        part = slice(first, first + max(1, self._result_limit // 2))
        ids, taken = key_ids[part], batch.slice(first, part.stop - first)
        retracts = None
        if self._withdraws:
            kinds = kinds_of(taken)
            retracts = ((kinds == _UPDATE_BEFORE) | (kinds == _DELETE)).astype(np.uint8)
        if self._changes:
            n = min(
                (column.fitting(ids, retracts, taken) for column in self._kept.values()), default=len(ids)
            )
            ids, taken = ids[:n], taken.slice(0, n)
            retracts = None if retracts is None else retracts[:n]
            times = expired = None
            if self._expiry is not None and arrivals is not None:
                times = arrivals[first : first + len(ids)]
                expired = self._expiry.write(ids, times).view(np.bool_)
            if self._counted is not None and not self._update_before:
                numbers, kinds = None, self._counted_changes(taken, ids, times, expired, self._counted)
            else:
                numbers, kinds = self._changed(taken, ids, retracts, times, expired)
            events = first + (np.arange(len(ids)) if numbers is None else numbers)
            chosen = slice(first, first + len(ids)) if numbers is None else events
            self._results = NO_RESULTS._replace(
                left=np.full(len(events), -1),
                kinds=kinds,
                events=events,
                steps=steps[chosen] - 1,
                fired=np.full(len(events), MIN_TIMESTAMP),
                key_ids=key_ids[chosen],
                timestamps=timestamps[chosen],
            )
        else:
            self._take_in(taken, ids, retracts, emits=False)
        self._taken_in(steps[first : first + len(ids)])
        return first + len(ids)

    def _counted_changes(
        self,
        rows: pa.RecordBatch,
        ids: KeyIds,
        times: Int64s | None,
        expired: npt.NDArray[np.bool_] | None,
        counted: int,
    ) -> npt.NDArray[np.uint8]:
        """Take in rows, of which each is a change. Return their kinds, and put the results after them into `values`."""
        self._take_in(rows, ids, None, emits=True, times=times, expired=expired)
        self.values = self._taken_results()
        return np.where(self.values[counted].to_numpy() == 1, _INSERT, _UPDATE_AFTER).astype(np.uint8)

    def _changed(
        self,
        rows: pa.RecordBatch,
        ids: KeyIds,
        retracts: npt.NDArray[np.uint8] | None,
        times: Int64s | None,
        expired: npt.NDArray[np.bool_] | None,
    ) -> tuple[Int64s | None, npt.NDArray[np.uint8]]:
        """Take in rows, and put the changes of their keys' results into `values`.

        Parameters
        ----------
        rows, ids, retracts
            The rows, their keys, and which of them are withdrawn.
        times
            Processing times of the rows (ms since the epoch), or None if keys never expire.
        expired
            For each row whether its key has expired before it, or None if keys never do.

        Returns
        -------
        tuple
            Numbers of the rows that make the changes, or None if each row makes one, and the kinds of the changes.
        """
        previous = self._frames.previous(ids)
        first = np.flatnonzero(previous < 0)
        own = ids[first]
        is_known = self._frames.rows_of(own) > 0
        self._emit(own)
        self._take_in(rows, ids, retracts, emits=True, times=times, expired=expired)
        values = self._taken_results()
        # The result before a row is that of the key's row before, or the one before all these rows.
        n, n_own = len(ids), len(own)
        before, after = previous + n_own, n_own + np.arange(n)
        before[first] = np.arange(n_own)
        had, has = np.ones(n, np.bool_), np.ones(n, np.bool_)
        had[first] = is_known
        if self._withdraws:
            counts = values.pop().to_numpy()
            had, has = counts[before] > 0, counts[after] > 0
        if expired is not None:
            had &= ~expired
        is_update = had & has
        if expired is None and self._counted is None:
            updated = np.flatnonzero(is_update)
            is_update[updated] = ~are_same_rows(self._compared(values), before[updated], after[updated])
        is_before = (had & ~has) | is_update if self._update_before else had & ~has
        is_after = (has & ~had) | is_update
        if not is_before.any() and is_after.all():
            self.values = [column.slice(n_own) for column in values]
            return None, np.where(had, _UPDATE_AFTER, _INSERT).astype(np.uint8)
        ends = np.cumsum(is_before.astype(np.int64) + is_after)
        n_results = int(ends[-1])
        events, sources = np.empty(n_results, np.int64), np.empty(n_results, np.int64)
        kinds = np.empty(n_results, np.uint8)
        for emits, places, results, of_update, alone in (
            (is_before, ends - is_after - 1, before, _UPDATE_BEFORE, _DELETE),
            (is_after, ends - 1, after, _UPDATE_AFTER, _INSERT),
        ):
            which = np.flatnonzero(emits)
            at = places[which]
            events[at], sources[at] = which, results[which]
            kinds[at] = np.where(is_update[which], of_update, alone)
        self.values = [column.take(pa.array(sources)) for column in values]
        return events, kinds

    def finish(self) -> bool:
        super().finish()
        if self._changes:
            return True
        if self._at_end is None:
            ids = np.arange(len(self._keys), dtype=np.uint32)
            ids = ids[self._frames.rows_of(ids) > 0]
            # By key group, so that results of all partitions merge in one order.
            self._at_end = ids[np.argsort(self._keys.key_group(ids), kind="stable")].astype(np.int64)
        ids = self._at_end[: self._result_limit].astype(np.uint32)
        if len(ids):
            ids = ids[: min((column.fitting(ids) for column in self._kept.values()), default=len(ids))]
        self._at_end = self._at_end[len(ids) :]
        self._emit(ids)
        self.values = self._taken_results()[: -1 if self._withdraws else None]
        n = len(ids)
        end = np.full(n, MAX_TIMESTAMP)
        steps = np.full(n, max(0, len(self._timeline) - 1))
        none = np.full(n, -1)
        self._results = NO_RESULTS._replace(
            left=none, events=none, steps=steps, fired=end, key_ids=ids, timestamps=end
        )
        return not len(self._at_end)

    def _take_in(
        self,
        rows: pa.RecordBatch,
        ids: KeyIds,
        retracts: npt.NDArray[np.uint8] | None,
        emits: bool,
        times: Int64s | None = None,
        expired: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        cleared = None
        if expired is not None:
            numbers = np.flatnonzero(expired)
            cleared = numbers, ids[numbers]
        self._frames.process(rows, ids, retracts=retracts, emits=emits, cleared=cleared)
        for column in self._kept.values():
            if isinstance(column, FunctionAccumulators):
                column.process(rows, ids, retracts, emits, times=times, cleared=cleared)
            else:
                assert cleared is None, "kept values are refused with a time to live"
                column.process(rows, ids, retracts, emits)

    def _emit(self, ids: KeyIds) -> None:
        self._frames.emit(ids)
        for column in self._kept.values():
            column.emit(ids)

    def _taken_results(self) -> list[pa.Array]:
        """Return the results that wait of all aggregates, in their order."""
        values = self._frames.take()
        for number, column in sorted(self._kept.items()):
            values.insert(number, column.take())
        return values

    def memory_bytes(self) -> int:
        of_expiry = 0 if self._expiry is None else self._expiry.memory_bytes()
        kept = sum(column.memory_bytes() for column in self._kept.values())
        return self._frames.memory_bytes() + kept + of_expiry

    def forget_expired(self, now_ms: int) -> None:
        """Forget the keys that have expired at a processing time."""
        assert self._expiry is not None
        ids = self._expiry.expire(now_ms)
        self._frames.clear(ids)
        for column in self._kept.values():
            if isinstance(column, FunctionAccumulators):
                column.clear(ids)

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        kept = {f"{TABLE}{number}": column.snapshot() for number, column in self._kept.items()}
        expiry = {} if self._expiry is None else {EXPIRY: self._expiry.snapshot()}
        return {FRAMES: self._frames.snapshot(), **kept, **expiry}

    def restore(self, table: str, keys: Int64s, rows: dict[str, Int64s], columns: pa.RecordBatch) -> None:
        if table == FRAMES:
            self._frames.restore(keys, columns)
            return
        if table == EXPIRY:
            assert self._expiry is not None
            self._expiry.restore(keys, columns.column("due").to_numpy())
            return
        kept = self._kept[int(table.removeprefix(TABLE))]
        if isinstance(kept, FunctionAccumulators):
            kept.restore(keys, columns, rows)
        else:
            kept.restore(keys, columns)


def _results(operator: GroupAggregation, values: list[pa.Array]) -> Iterable[pa.Array]:
    """Return the results that are made of aggregates, counts first: they change with most rows."""
    counts = {name for name, aggregate in operator.aggregates if aggregate.function == "count"}
    batch = pa.RecordBatch.from_arrays(values, [name for name, _ in operator.aggregates])
    if not operator.results:
        return (
            batch.column(name) for name in sorted(batch.schema.names, key=lambda name: name not in counts)
        )
    results = sorted(operator.results, key=lambda result: not result.required_columns <= counts)
    return (result.evaluate(batch) for result in results)


class GroupAggregateStage(RelationalStage):
    """Aggregates all rows of each key."""

    _kernel: GroupKernel

    def _made_kernel(
        self, operator: GroupAggregation, steps_done: int, result_limit: int
    ) -> RelationalKernel:
        (events,) = self._context.plan.input_schemas
        specs: list[Any] = []
        kept: dict[int, KeptValuesColumn | FunctionAccumulators] = {}
        types = result_types(operator.aggregates, events)
        for number, ((_, aggregate), kind) in enumerate(zip(operator.aggregates, types, strict=True)):
            if isinstance(aggregate, FunctionAggregate):
                kept[number] = FunctionAccumulators(aggregate)
            elif operator.withdraws and aggregate.function in SHOWN:
                assert aggregate.column is not None
                field = events.field(aggregate.column)
                kept[number] = KeptValuesColumn(
                    aggregate.function, field, kind, shown_bytes=self._context.plan.batch_bytes
                )
            else:
                specs.append(aggregate.spec)
        if operator.withdraws:
            specs.append(_COUNT)
        self._rows = pa.record_batch([], schema=pa.schema([]))
        return GroupKernel(
            FrameAggregates(events, specs, retracts=operator.withdraws),
            kept,
            self._keys,
            self._timeline,
            steps_done,
            result_limit,
            changes=operator.changes,
            withdraws=operator.withdraws,
            compared=partial(_results, operator),
            counted=operator.counted,
            expiry=KeyExpiry(operator.ttl_ms) if operator.ttl_ms else None,
            update_before=self._context.plan.update_before,
        )

    def _kept_rows(
        self, events: Events, rows: RowNumbers | None
    ) -> tuple[pa.RecordBatch, Int64s, npt.NDArray[np.int8] | None]:
        """Keep none: aggregates have all that is needed of rows."""
        self._rows = events.batch if rows is None else events.batch.take(pa.array(rows))
        return self._rows, np.zeros(self._rows.num_rows, np.int64), None

    def _kernel_arguments(self, batch: pa.RecordBatch, *events: Any) -> tuple[Any, ...]:
        return (*events, batch, self._arrivals)

    def _forget_expired(self, now_ms: int) -> None:
        self._kernel.forget_expired(now_ms)

    def _taken_values(self, results: KernelResults) -> list[pa.Array]:
        return self._kernel.values

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return keys and aggregates."""
        if results.kinds is None:
            keys = pa.record_batch(self._keys.keys()).take(pa.array(results.key_ids))
        else:
            keys = _rows_at(self._key_columns(self._rows), results.events)
        fields = zip((*keys.columns, *values), self._own_schema, strict=False)
        return [column.cast(field.type) if column.type != field.type else column for column, field in fields]

    def shown_state(self) -> str:
        return f"aggregates of {len(self._keys):,} keys"


def _rows_at(batch: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    """Return rows of a batch, at least one; those that follow each other are not copied."""
    first, n = int(places[0]), len(places)
    if np.array_equal(places, np.arange(first, first + n)):
        return batch.slice(first, n)
    return batch.take(pa.array(places))
