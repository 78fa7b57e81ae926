"""One operator of a job in one process: all its partitions, step by step."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.python.replay_threads import ReplayThreads
from flinkcore.columnar.local.partition_threads import PartitionThreads
from flinkcore.columnar.replay.exchange import rows_by_partition
from flinkcore.columnar.replay.partition_run import PartitionRun
from flinkcore.columnar.stages.kinds import prepared_batches
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
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


class PreparedStep(NamedTuple):
    """A step, its events as they came and as the stages take them, and the rows of each partition.

    Attributes
    ----------
    deferring
        Numbers of the partitions some of whose results are still to come once they have processed the step.
    """

    step: StageStep[Events]
    ready: list[tuple[Events, Any, list[RowNumbers | None]]]
    deferring: list[int]


class StageOutputs(NamedTuple):
    """A step of an operator with its outputs.

    Attributes
    ----------
    step
        The step.
    outputs
        Outputs of each partition, to be taken before the next step.
    defers
        Whether some results of the step, or of one before, are still to come; known once the outputs have been taken.
    """

    step: StageStep[Events]
    outputs: Sequence[Iterable[StageOutput]]
    defers: Callable[[], bool]


class StageRun:
    """Runs the partitions of an operator.

    Parameters
    ----------
    context
        Context of the operator.
    partitions
        All its partitions.
    threads
        Threads of the replay.
    """

    def __init__(
        self, context: StageContext, partitions: Sequence[PartitionRun], threads: ReplayThreads
    ) -> None:
        self.context = context
        self.partitions = partitions
        self._batches = prepared_batches(context)
        self._threads = threads

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return max(partition.current_watermark for partition in self.partitions)

    def run(self, steps: Iterator[StageStep[Events]]) -> Generator[StageOutputs, None, None]:
        """Take in steps; each, with what every partition gave for it, in order. The end of the replay comes last."""
        if len(self.partitions) > 1:
            for prepared, outputs in PartitionThreads(
                steps,
                self._prepare,
                self._process,
                len(self.partitions),
                self._threads,
                _nbytes,
                self.context.plan.batch_bytes,
            ).run():
                yield StageOutputs(prepared.step, outputs, partial(bool, prepared.deferring))
                self._release(prepared)
        else:
            for step in steps:
                prepared = self._prepare(step)
                yield StageOutputs(step, [self._process(0, prepared)], partial(bool, prepared.deferring))
                self._release(prepared)
        ended = [partition.end() for partition in self.partitions]
        yield StageOutputs(StageStep([], None), ended, lambda: False)

    def _prepare(self, step: StageStep[Events]) -> PreparedStep:
        ready = [
            (events, self._batches.prepare(events), rows_by_partition(self.context, events, rows))
            for events, rows in step.ready
        ]
        return PreparedStep(step, ready, [])

    def _release(self, prepared: PreparedStep) -> None:
        for _, batch, _ in prepared.ready:
            self._batches.release(batch)

    def _process(self, number: int, prepared: PreparedStep) -> Iterator[StageOutput]:
        partition = self.partitions[number]
        for events, batch, rows in prepared.ready:
            for output in partition.process(events, batch, rows[number]):
                self._threads.check()  # also in the thread of another operator, which runs this one
                yield output
        until_ms = prepared.step.until_ms
        # Another operator waits for its results, even if no event comes.
        if self.context.places_results and until_ms is not None:
            yield from partition.advance(until_ms)
        if partition.defers:
            prepared.deferring.append(number)


def _nbytes(taken: StageStep[Events] | StageOutput) -> int:
    """Return how much memory events or results take."""
    if isinstance(taken, StageStep):
        return sum(events.batch_bytes for events, _ in taken.ready)
    if isinstance(taken, PlacedOutput):
        return taken.events.nbytes
    return sum(int(batch.nbytes) for batch in taken.batches)
