"""Inputs of the operators of a job in one process: rows of logs, and results of other operators, step by step."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, zip_longest
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from flinkcore.columnar.local.stage_run import StageRun, StageStep, results_in_order
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.stages.placed_events import PlacedEvents, PlacedMerge, placed
from flinkcore.columnar.stages.stage_link import StageLink
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.time_plane.total_order import Events

Item = TypeVar("Item")


class SharedItems(Generic[Item]):
    """Iterator whose items all go to each of several readers, which may be in threads of their own.

    Parameters
    ----------
    items
        Read by one thread at a time. What it raises, every reader raises.
    readers
        Number of readers; items that one has read and another has not are held.
    """

    def __init__(self, items: Iterator[Item], readers: int) -> None:
        self._items = items
        self._held: list[deque[Item]] = [deque() for _ in range(readers)]
        self._failure: BaseException | None = None
        self._lock = Lock()

    def reader(self, number: int) -> Iterator[Item]:
        """Yield what a reader reads."""
        while self._has_next(number):
            yield self._held[number].popleft()

    def _has_next(self, number: int) -> bool:
        with self._lock:
            if self._held[number]:
                return True
            if self._failure is not None:
                raise self._failure
            try:
                item = next(self._items)
            except StopIteration:
                return False
            except BaseException as failure:
                self._failure = failure
                raise
            for held in self._held:
                held.append(item)
            return True


def passed_on(
    run: StageRun, steps: Iterator[StageStep[Events]], is_before_last: bool
) -> Generator[StageStep[PlacedEvents], None, None]:
    """Yield what an operator gives, step by step: its results, in total order, as what is ready.

    Once the state of a partition has spilled, all results wait in a file for its last ones.

    Parameters
    ----------
    run
        The operator.
    steps
        Its steps.
    is_before_last
        Whether only the last operator of the job takes the results.
    """
    until_ms: int | None = None
    defers = False
    batch_bytes = run.context.plan.batch_bytes
    with closing(PlacedMerge(batch_bytes)) as merge:
        for step, outputs, defers_now in run.run(steps):
            results: list[PlacedEvents] = []
            if defers:
                others = _waiting(outputs, merge)
            else:
                results, others = results_in_order(outputs, batch_bytes)
            side_outputs = [*step.outputs, *others]
            defers = defers or defers_now()
            if defers:
                for each in results:
                    merge.add(each)
                yield StageStep([], until_ms, side_outputs, step.events_read)
            else:
                until_ms = step.until_ms
                yield StageStep([(each, None) for each in results], until_ms, side_outputs, step.events_read)
        if defers:
            yield from _in_steps(merge, run.context.last_arrival_ms, is_before_last)


def _waiting(outputs: Iterable[Iterable[StageOutput]], merge: PlacedMerge) -> list[StageOutput]:
    """Let the results of all partitions wait, and return their other outputs."""
    others: list[StageOutput] = []
    for output in chain.from_iterable(outputs):
        if isinstance(output, PlacedOutput):
            merge.add(output.events)
        else:
            others.append(output)
    return others


def _in_steps(
    merge: PlacedMerge, last_arrival_ms: int | None, is_before_last: bool
) -> Iterator[StageStep[PlacedEvents]]:
    """Yield all results that wait, in steps as of a log: those of one arrival are in one step."""
    together: list[tuple[PlacedEvents, None]] = []
    if last_arrival_ms is not None:
        for events, _ in merge.release(last_arrival_ms):
            until_ms = int(events.arrivals[-1])
            cut = int(np.searchsorted(events.arrivals, until_ms))
            if cut:
                yield StageStep([*together, (events.slice(0, cut), None)], until_ms)
                together = []
            together.append((events.slice(cut, events.n_events), None))
    yield from _at_end(merge, together, is_before_last)


def _at_end(
    merge: PlacedMerge, together: Iterable[tuple[PlacedEvents, None]], is_before_last: bool
) -> Iterator[StageStep[PlacedEvents]]:
    """Yield what comes last, in one step if a further operator takes in order what the next one makes of it."""
    rest = chain(together, merge.release(None))
    if is_before_last:
        for events in rest:
            yield StageStep([events], None)
    else:
        yield StageStep(list(rest), None)


def linked(
    steps: Iterable[StageStep[PlacedEvents]], link: StageLink, inputs: ConnectedInputs | None
) -> Iterator[StageStep[PlacedEvents]]:
    """Steps of one operator as they come to another one."""
    for step in steps:
        ready: list[tuple[PlacedEvents, None]] = []
        for results, _ in step.ready:
            rows = link.passed_on(results)
            coming = rows.coming_to(link.number, link.input_number, inputs)
            if coming.n_events:
                ready += ((each, None) for each in coming.cut(link.plan.batch_bytes))
        yield StageStep(ready, step.until_ms, step.outputs, step.events_read)


def with_places(
    steps: Iterable[StageStep[Events]], number: int, inputs: ConnectedInputs | None
) -> Iterator[StageStep[PlacedEvents]]:
    """Steps of the logs whose rows are merged with results before operator `number`."""
    for step in steps:
        ready = [(placed(events, rows, number, inputs), None) for events, rows in step.ready]
        yield StageStep(ready, step.until_ms, step.outputs, step.events_read)


def without_outputs(steps: Iterable[StageStep[PlacedEvents]]) -> Iterator[StageStep[PlacedEvents]]:
    """Steps whose side outputs, and what was read for them, another reader of the same steps has."""
    for step in steps:
        yield replace(step, outputs=(), events_read=0)


def merged(
    sources: Sequence[Iterator[StageStep[PlacedEvents]]], batch_bytes: int, is_last: bool
) -> Iterator[StageStep[PlacedEvents]]:
    """Yield the steps of all sources of an operator, the rows of which have places, as those of one.

    All sources take the same steps; some have more at their ends. Where the time up to which a step goes is open, more
    may come to any place after the previous one: that waits for the end of all sources. Rows
    that take more memory than `batch_bytes` wait in a temporary file.
    """
    with closing(PlacedMerge(batch_bytes)) as merge:
        for together in zip_longest(*sources):
            steps = [step for step in together if step is not None]
            outputs: list[StageOutput] = []
            for step in steps:
                for events, _ in step.ready:
                    merge.add(events)
                outputs += step.outputs
            times = [step.until_ms for step in steps if step.until_ms is not None]
            until_ms = min(times) if len(times) == len(steps) else None
            ready = [] if until_ms is None else list(merge.release(until_ms))
            yield StageStep(ready, until_ms, outputs, sum(step.events_read for step in steps))
        yield from _at_end(merge, (), is_last)
