"""One operator of a job in one process: all its partitions, step by step."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.python.replay_threads import ReplayThreads
from flinkcore._native.exchange import partition_rows
from flinkcore.columnar.local.partition_threads import PartitionThreads
from flinkcore.columnar.stages.opened_stage import PreparedBatches
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput, behind_steps
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.time_plane.total_order import Events

EventsT_co = TypeVar("EventsT_co", bound=Events, covariant=True)


@dataclass(frozen=True)
class StageStep(Generic[EventsT_co]):
    """Step of an operator: what comes to it at once.

    Attributes
    ----------
    ready
        Events, and their rows in total order (None for the given order); in total order one after the other.
    until_ms
        Lower bound of the arrivals still to come, or None after the last event.
    outputs
        Side outputs of what came before the operator.
    events_read
        Rows of the logs that were read for this step.
    """

    ready: Sequence[tuple[EventsT_co, RowNumbers | None]]
    until_ms: int | None
    outputs: Iterable[StageOutput] = ()
    events_read: int = 0


@dataclass(frozen=True)
class PreparedEvents:
    """Ordered events as the stages take them, and the rows of each partition."""

    events: Any
    rows: list[RowNumbers | None]


@dataclass(frozen=True)
class PreparedStep:
    """A step whose events are ready for the partitions."""

    step: StageStep[Events]
    ready: list[PreparedEvents] = field(default_factory=list)


class StageRun:
    """Runs the partitions of an operator.

    Parameters
    ----------
    context
        Of the operator.
    stages
        One for each partition.
    end
        Ends the stage of a partition, and gives the last results.
    threads
        Those of the replay.
    """

    def __init__(
        self,
        context: StageContext,
        stages: list[Stage[Any]],
        end: Callable[[int, Stage[Any]], Iterable[StageOutput]],
        threads: ReplayThreads,
    ) -> None:
        self.stages = stages
        self.context = context
        self._batches = PreparedBatches(context)
        self._end = end
        self._threads = threads

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return max(stage.current_watermark for stage in self.stages)

    def run(
        self, steps: Iterator[StageStep[Events]]
    ) -> Generator[tuple[StageStep[Events], list[Iterable[StageOutput]]], None, None]:
        """Take in steps; each, with what every partition gave for it, in order. The end of the replay comes last."""
        if len(self.stages) > 1:
            for prepared, outputs in PartitionThreads(
                steps, self._prepare, self._process, len(self.stages), self._threads
            ).run():
                yield prepared.step, list(outputs)
                self._release(prepared)
        else:
            for step in steps:
                prepared = self._prepare(step)
                yield step, [self._process(0, prepared)]
                self._release(prepared)
        yield (
            StageStep([], None),
            [
                behind_steps(self._end(partition, stage), self.context.plan.after)
                for partition, stage in enumerate(self.stages)
            ],
        )

    def _prepare(self, step: StageStep[Events]) -> PreparedStep:
        return PreparedStep(
            step,
            [
                PreparedEvents(self._batches.prepare(events), self._rows_by_partition(events, rows))
                for events, rows in step.ready
            ],
        )

    def _release(self, prepared: PreparedStep) -> None:
        for ready in prepared.ready:
            self._batches.release(ready.events)

    def _process(self, partition: int, prepared: PreparedStep) -> Iterator[StageOutput]:
        stage = self.stages[partition]
        for ready in prepared.ready:
            outputs = stage.process(ready.events, ready.rows[partition])
            for output in behind_steps(outputs, self.context.plan.after):
                self._threads.check()  # also in the thread of another operator, which runs this one
                yield output
        until_ms = prepared.step.until_ms
        # Another operator waits for its results, also where no event comes.
        if self.context.places_results and until_ms is not None:
            yield from stage.advance(until_ms)

    def _rows_by_partition(self, events: Events, rows: RowNumbers | None) -> list[RowNumbers | None]:
        """The rows that each partition gets, in total order; None: all, as they lie."""
        plan, inputs, partitions = self.context.plan, self.context.inputs, len(self.stages)
        if partitions == 1:
            return [rows]
        if inputs is None:
            groups = event_key_groups(events.batch, plan.keys, plan.max_parallelism)
        else:
            keys = list(plan.inputs[0].keys), list(plan.inputs[1].keys)
            groups = inputs.key_groups(events, keys, plan.max_parallelism)
        order, bounds = partition_rows(groups, plan.max_parallelism, partitions, rows)
        by_partition = [order[bounds[p] : bounds[p + 1]] for p in range(partitions)]
        if inputs is None or not (plan.inputs[1].is_broadcast):
            return list(by_partition)
        is_wanted = np.zeros((partitions, len(events.splits)), np.bool_)
        for partition, own in enumerate(by_partition):
            is_wanted[partition, own] = True
        is_wanted[:, inputs.is_second(events)] = True
        in_order = np.arange(len(events.splits), dtype=np.uint32) if rows is None else rows
        return [in_order[wanted[in_order]] for wanted in is_wanted]


def results_in_order(
    outputs: Iterable[Iterable[StageOutput]],
) -> tuple[PlacedEvents | None, list[StageOutput]]:
    """Return the results of all partitions in total order, or None, and their other outputs."""
    results: list[PlacedEvents] = []
    others: list[StageOutput] = []
    for output in chain.from_iterable(outputs):
        if isinstance(output, PlacedOutput):
            results.append(output.events)
        else:
            others.append(output)
    return (PlacedEvents.concatenate(results).sorted() if results else None), others
