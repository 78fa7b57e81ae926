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

from flinkcore.columnar.local.stage_run import StageRun, StageStep
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
    run: StageRun, steps: Iterator[StageStep[Events]], goes_alone: bool, is_before_last: bool
) -> Generator[StageStep[PlacedEvents], None, None]:
    """Yield the results of an operator, step by step, in total order, as what is ready.

    Results that take more memory than a batch wait in a temporary file. Those of the end of the log wait for the last
    ones, as do all once the state of a partition has spilled.

    Parameters
    ----------
    run
        The operator.
    steps
        Its steps.
    goes_alone
        Whether the results go to one operator, which takes nothing else. Only such a step may become several.
    is_before_last
        Whether only the last operator of the job takes the results.
    """
    until_ms: int | None = None
    defers = False
    with closing(PlacedMerge(run.context.plan.batch_bytes)) as merge:
        for step, outputs, defers_now in run.run(steps):
            side_outputs = list(step.outputs)
            for output in chain.from_iterable(outputs):
                if isinstance(output, PlacedOutput):
                    merge.add(output.events)
                else:
                    side_outputs.append(output)
            defers = defers or step.until_ms is None or defers_now()
            ready: list[PlacedEvents] = []
            if not defers:
                until_ms = step.until_ms
                results = merge.release(None)
                if goes_alone:
                    ready = yield from _in_steps(results, is_before_last)
                else:
                    ready = [events for events, _ in results]
            yield StageStep(_all_rows(ready), until_ms, side_outputs, step.events_read)
        last_arrival_ms = run.context.last_arrival_ms
        if last_arrival_ms is not None:
            ready = yield from _in_steps(merge.release(last_arrival_ms), is_before_last)
            if ready:
                yield StageStep(_all_rows(ready), last_arrival_ms)
        yield from _at_end(merge)


def _all_rows(ready: Iterable[PlacedEvents]) -> list[tuple[PlacedEvents, None]]:
    return [(events, None) for events in ready]


def _in_steps(
    results: Iterator[tuple[PlacedEvents, None]], is_before_last: bool
) -> Generator[StageStep[PlacedEvents], None, list[PlacedEvents]]:
    """Yield results, if they are several batches, in steps as of a log, and return the last ones.

    If a further operator takes in order what the next one makes of them, those of one arrival are in one step: several
    watermarks may come at one time, and some partitions have no row between them.
    """
    ready: list[PlacedEvents] = []
    for events, _ in results:
        if ready:
            first_ms = int(events.arrivals[0])
            given, ready = _divided(ready, None if is_before_last else first_ms)
            if given:
                yield StageStep(_all_rows(given), first_ms)
        ready.append(events)
    return ready


def _divided(
    ready: Iterable[PlacedEvents], before_ms: int | None
) -> tuple[list[PlacedEvents], list[PlacedEvents]]:
    """Return the rows that arrive before a time, or all if it is None, and the others."""
    before, others = [], []
    for events in ready:
        n_rows = events.n_events
        cut = n_rows if before_ms is None else int(np.searchsorted(events.arrivals, before_ms))
        if cut:
            before.append(events.slice(0, cut))
        if cut < n_rows:
            others.append(events.slice(cut, n_rows))
    return before, others


def _at_end(merge: PlacedMerge) -> Iterator[StageStep[PlacedEvents]]:
    """Yield what comes last; an operator passes its results on once it has processed all of it."""
    for events in merge.release(None):
        yield StageStep([events], None)


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
    sources: Sequence[Iterator[StageStep[PlacedEvents]]], batch_bytes: int
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
        yield from _at_end(merge)
