"""Golden scenarios of source contexts as source functions of jobs."""

from itertools import groupby
from typing import Any

from flinkcore.common import Watermark
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import ParallelSourceFunction, RuntimeContext, SourceFunction
from flinkcore.datastream.functions import PacedSourceContext

Event = list[Any]


class ScriptedSource(SourceFunction):
    """Emits what a scenario says, each time at once, and lets the time between pass."""

    def __init__(self, events: list[Event], bounded: bool = False) -> None:
        self._events = events
        self._bounded = bounded

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        times = times_of(self._events)
        groups = groupby(zip(times, self._events, strict=True), key=lambda timed: timed[0])
        slept_ms = position = 0
        for time_ms, timed in groups:
            events = [event for _, event in timed if event[0] != "pt"]
            position += any(event[0] in ("collect", "collect_ts") for event in events)
            if events or time_ms == times[-1]:
                ctx.sleep(time_ms - position - slept_ms)
                slept_ms = time_ms - position
            with ctx.get_checkpoint_lock():
                for event in events:
                    emit(ctx, event)

    def cancel(self) -> None:
        raise AssertionError("the scenario comes to its end by itself")


class ListedSource(ParallelSourceFunction):
    """Emits every n-th element of a list in each of n subtasks, with times, watermarks and pauses that depend on it."""

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements

    def open(self, runtime_context: RuntimeContext) -> None:
        self._index = runtime_context.get_index_of_this_subtask()
        self._step = runtime_context.get_number_of_parallel_subtasks()

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        for element in self._elements[self._index :: self._step]:
            at, _, weight = element
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp(element, at)
                if weight % 3 == 0:
                    ctx.collect(element)
            if weight % 2:
                ctx.emit_watermark(Watermark(at))
            else:
                ctx.sleep(weight * 10)

    def cancel(self) -> None:
        """Nothing waits."""


def emit(ctx: PacedSourceContext[Any], event: Event) -> None:
    verb, *arguments = event
    if verb == "collect":
        ctx.collect(*arguments)
    elif verb == "collect_ts":
        ctx.collect_with_timestamp(*arguments)
    elif verb == "wm":
        ctx.emit_watermark(Watermark(*arguments))
    elif verb == "idle":
        ctx.mark_as_temporarily_idle()
    else:
        assert verb == "close"
        ctx.close()


def times_of(events: list[Event]) -> list[int]:
    """The clock at each event; that of the move for one that moves it."""
    times: list[int] = []
    for event in events:
        times.append(event[1] if event[0] == "pt" else times[-1] if times else 0)
    return times
