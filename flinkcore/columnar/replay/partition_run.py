"""One partition of an operator, from what it is restored from to its end.

When the open state takes more than the partition's share of the memory, its key groups are split into parts. The stage
continues over the first part. State and further rows of the others wait in temporary files until it has ended. Each of
them may be split again::

    key groups   0 ┌─────────┬──────────────── 0 to 15, from the first row to the end
                16 │         └ state, rows ~~~ 16 to 31 ──▶ once 0 to 15 have ended
                32 │         └ state, rows ~~~ 32 to 47 ──▶ then
                   ┊
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, RowNumbers
from flinkcore._internal.python.memory_errors import memory_shown
from flinkcore._internal.python.process_memory import memory_limit, memory_of_machine
from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.replay.spilled_part import SpilledPart
from flinkcore.columnar.stages.kinds import new_stage, prepared_batches
from flinkcore.columnar.stages.partial_results import KEY, MergedPartials
from flinkcore.columnar.stages.stage import LEVELS, PreparedBatches, StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput, behind_steps
from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.errors import FlinkcoreError, OutOfMemoryError, SchemaError
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.time_plane.total_order import Events

PARTS: Final = 8
"""Key groups are split into so many parts: fewer would be split more often, and their rows written more often."""


LARGE_STATE: Final = 4
"""State of at least this part of the memory of a process is the reason for an allocation that fails."""


class PartitionRun:
    """Runs an operator over the rows of one partition.

    Parameters
    ----------
    context
        The operator, what it is restored from, and the memory of its open state.
    partition
        Number of the partition.
    pending
        Checkpoint with which the job stops, or None if it runs to its end.

    Attributes
    ----------
    partition
        Number of the partition.
    parts
        Parts of the checkpoint that the partition has written, once it has ended.
    """

    def __init__(self, context: StageContext, partition: int, pending: PendingCheckpoint | None) -> None:
        self.partition = partition
        self.parts: list[OperatorPart] = []
        self._context = context
        self._plan = context.plan
        self._pending = pending
        self._stage = new_stage(context, partition)
        self._is_open = True
        self._key_groups = context.key_group_range(partition)
        # Parts that take rows, and those for which all rows have come; of both, the last one is resumed first.
        self._waiting: list[SpilledPart] = []
        self._complete: list[SpilledPart] = []
        self._can_spill = any(each.key.names for each in context.plan.inputs)
        self._batches: PreparedBatches | None = None
        self._counts: Counter[str] = Counter()

    @classmethod
    @contextmanager
    def opened(
        cls, context: StageContext, partition: int, pending: PendingCheckpoint | None
    ) -> Iterator[PartitionRun]:
        """Yield the run of a partition, whose operator is closed after the block; errors in the block come first."""
        run = cls(context, partition, pending)
        try:
            yield run
        except BaseException:
            with suppress(Exception):
                run.close()
            raise
        run.close()

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return self._stage.current_watermark

    @property
    def defers(self) -> bool:
        """Return whether rows wait in files, so that their results come at the end."""
        return bool(self._waiting)

    def process(
        self, events: Events | MergedPartials, prepared: Any, rows: RowNumbers | None
    ) -> Iterator[StageOutput]:
        """Take in events, as `Stage.process` does, and yield what they make ready.

        Parameters
        ----------
        events
            One batch.
        prepared
            The batch as the stages take it.
        rows
            Rows of this partition, in total order, or None for all in the given order.
        """
        if self._waiting:
            rows = self._dealt(events, rows)
        with self._memory_errors():
            yield from self._behind_steps(self._stage.process(prepared, rows))
        with self._memory_errors(are_of_state=True):
            yield from self._spill_if_large()

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        """Let happen what is due before a time, ms since the epoch, for an operator that waits for the results."""
        with self._memory_errors():
            yield from self._behind_steps(self._stage.advance(until_ms))

    def end(self) -> Iterator[StageOutput]:
        """End with the log, or stop and write the parts of the checkpoint; yield the last outputs."""
        yield from self._end_stage()
        while self._waiting or self._complete:
            self._close_stage(self._stage.counts())
            # Rows that wait for a part go to the parts into which it is split, and to no others.
            self._complete += self._waiting
            self._waiting = []
            yield from self._resume(self._complete.pop())
            yield from self._end_stage()

    def counts(self) -> dict[str, int]:
        """Return the counts of events and firings so far, by their names in the report."""
        counts = self._stage.counts()
        return {name: counts.get(name, 0) + self._counts[name] for name in (counts | self._counts)}

    def close(self) -> None:
        """Release what the operator holds; called once, also after a failure."""
        for part in (*self._waiting, *self._complete):
            part.close()
        if self._is_open:
            self._close_stage({})

    def _end_stage(self) -> Iterator[StageOutput]:
        stage = self._stage
        with self._memory_errors():
            yield from self._behind_steps(stage.finish() if self._pending is None else stage.stop())
            if self._pending is not None:
                snapshot = stage.snapshot()
                self.parts.append(self._pending.writer().write(self._plan.uid, self.partition, snapshot))

    def _behind_steps(self, outputs: Iterator[StageOutput]) -> Iterator[StageOutput]:
        clock = self._plan.clock
        if clock is not None:
            outputs = (_with_instants(output, clock) for output in outputs)
        return behind_steps(outputs, self._plan.after, self._plan.batch_bytes)

    def _close_stage(self, counts: dict[str, int]) -> None:
        self._counts.update(counts)
        self._is_open = False
        self._stage.close()

    @contextmanager
    def _memory_errors(self, are_of_state: bool = False) -> Iterator[None]:
        """Name the operator in errors of allocations, and what to do if its state takes much of the memory.

        Else the run of the job says what to do.
        """
        try:
            yield
        except FlinkcoreError:
            raise
        except MemoryError as error:
            first, last = self._key_groups
            n_bytes, partitions = self._stage.memory_bytes(), self._context.partitions
            operator = (
                f"operator {self._context.number + 1} ({self._plan.uid}), partition {self.partition + 1} of "
                f"{partitions}, key groups {first} to {last}: {self._stage.shown_state()} take about {n_bytes:,} bytes"
            )
            asked = f" ({error})" if str(error) else ""
            of_process = memory_limit() or memory_of_machine()
            if not are_of_state and n_bytes * partitions < of_process // LARGE_STATE:
                raise MemoryError(f"{error}{', ' if asked else ''}in {operator}") from error
            raise OutOfMemoryError(
                f"there is no memory for the state{asked} of {operator}, and {self._context.memory_bytes or 0:,} are "
                f"the memory of the state of a partition. {memory_shown()}. {self._remedy()}"
            ) from error

    def _remedy(self) -> str:
        first, last = self._key_groups
        if self._can_spill and first < last:
            return (
                "Let taskmanager.memory.managed.size be less, so that state spills before, or give the process more "
                "memory (on Spark, spark.executor.pyspark.memory)"
            )
        return (
            "This state cannot be split further. Clear state that is no longer needed, by shorter windows, timers or "
            "times to live, add a column to the key, or give the process more memory"
        )

    # ---- state beyond the memory ----

    def _spill_if_large(self) -> Iterator[StageOutput]:
        first, last = self._key_groups
        limit = self._context.memory_bytes
        if limit is None or not self._can_spill or first == last or self._stage.memory_bytes() <= limit:
            return
        yield from self._behind_steps(self._stage.suspend())
        place, tables = self._stage.suspended()
        parts = [SpilledPart(key_groups, place) for key_groups in _parts_of(first, last)]
        try:
            for table in tables:
                for part in parts:
                    part.add_state(table)
        except BaseException as failure:
            for part in parts:
                part.close()
            if not isinstance(failure, SchemaError):
                raise
            # No column holds what the user's functions hold: they go on as they are, in memory.
            self._can_spill = False
            return
        counts = self._stage.counts()
        self._close_stage({name: count for name, count in counts.items() if name not in LEVELS})
        self._waiting += reversed(parts)
        yield from self._resume(self._waiting.pop())

    def _resume(self, part: SpilledPart) -> Iterator[StageOutput]:
        """Go on with a part, and take in the rows that wait for it."""
        try:
            self._key_groups = part.key_groups
            context = replace(self._context, key_groups=part.key_groups, restored=part.state())
            self._stage = new_stage(context, self.partition)
            self._is_open = True
            if self._batches is None:
                self._batches = prepared_batches(self._context)
            for events, rows in part.rows.read():
                prepared = self._batches.prepare(events)
                yield from self.process(events, prepared, rows)
                self._batches.release(prepared)
        finally:
            part.close()

    def _dealt(self, events: Events | MergedPartials, rows: RowNumbers | None) -> RowNumbers:
        """Write the rows of parts that wait for them, and return those of the current key groups."""
        if rows is None:
            n_rows = len(events.events.arrivals if isinstance(events, MergedPartials) else events.arrivals)
            rows = np.arange(n_rows, dtype=np.uint32)
        groups, are_of_all = self._groups_of(events, rows)
        for part in self._waiting:
            part.rows.add(events, rows[_within(groups, part.key_groups) | are_of_all])
        copies = len(self._waiting) * int(np.count_nonzero(are_of_all))
        if copies:
            self._counts["repeated"] -= copies
        own: RowNumbers = rows[_within(groups, self._key_groups) | are_of_all]
        return own

    def _groups_of(
        self, events: Events | MergedPartials, rows: RowNumbers
    ) -> tuple[Int32s, npt.NDArray[np.bool_]]:
        """Return the key group of each row, and which rows are broadcast."""
        plan, inputs = self._plan, self._context.inputs
        keys, of_all = list(plan.keys), np.zeros(len(rows), np.bool_)
        if isinstance(events, MergedPartials):
            of_events = event_key_groups(events.events.batch, keys, plan.max_parallelism)
            partial_keys = [KEY + name for name in keys]
            of_partials = event_key_groups(events.partials, partial_keys, plan.max_parallelism)
            return np.concatenate((of_events, of_partials))[rows], of_all
        if inputs is None:
            key_columns = events.batch.select(keys).take(rows)
            return event_key_groups(key_columns, keys, plan.max_parallelism), of_all
        own = events.take(rows)
        both = list(plan.inputs[0].key.names), list(plan.inputs[1].key.names)
        if plan.inputs[1].is_broadcast:
            of_all = inputs.is_second(own)
        return inputs.key_groups(own, both, plan.max_parallelism), of_all


def _with_instants(output: StageOutput, clock: LocalClock) -> StageOutput:
    """Return results with local times as timestamps as the next operator takes them."""
    if not isinstance(output, PlacedOutput):
        return output
    timestamps = clock.timers(output.events.timestamps)
    return replace(output, events=replace(output.events, timestamps=timestamps))


def _parts_of(first: int, last: int) -> list[tuple[int, int]]:
    """Split a range of key groups into parts."""
    n_groups = last + 1 - first
    n_parts = min(PARTS, n_groups)
    bounds = [first + n_groups * part // n_parts for part in range(n_parts + 1)]
    return [(start, end - 1) for start, end in pairwise(bounds)]


def _within(groups: Int32s, key_groups: tuple[int, int]) -> npt.NDArray[np.bool_]:
    first, last = key_groups
    within: npt.NDArray[np.bool_] = (groups >= first) & (groups <= last)
    return within
