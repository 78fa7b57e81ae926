"""Golden scenarios of source contexts and of timestamps and watermarks as jobs with source functions."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from flinkcore.common import MAX_TIMESTAMP, Watermark
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    DataStream,
    ParallelSourceFunction,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.functions import PacedSourceContext
from flinkcore.errors import FlinkcoreError
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator
from flinkcore.operators.timers.processing_time import ProcessingTimeService

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
            position += any(event[0] in ("collect", "collect_ts", "r") for event in events)
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
    elif verb == "r":
        timestamp, value = arguments
        if timestamp is None:
            ctx.collect(value)
        else:
            ctx.collect_with_timestamp(value, timestamp)
    elif verb in ("wm", "w"):
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


class Unused(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        raise AssertionError("the operator records elements itself")


class RecordingOperator(OneInputStreamOperator):
    """Stands behind the source of a job, and records what comes, and when."""

    heard: list[tuple[Any, ...]]

    def __init__(self, function: ProcessFunction, output: Output, clock: ProcessingTimeService) -> None:
        super().__init__(output)
        self._clock = clock

    def process_element(self, record: StreamRecord[Any]) -> None:
        self.hear("record", record.timestamp, record.value)

    def process_watermark(self, watermark: Watermark) -> None:
        self.hear("watermark", watermark.timestamp)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.hear("status", status.value)

    def hear(self, *entry: Any) -> None:
        self.heard.append((self._clock.current_processing_time(), *entry))


def job_environment(item: dict[str, Any]) -> StreamExecutionEnvironment:
    """The environment of a scenario with the field `emit_progressive`."""
    env = StreamExecutionEnvironment.get_execution_environment()
    if not item["emit_progressive"]:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env


def recorded_of_job(
    stream: Callable[[], DataStream], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[Any, ...]], bool]:
    """What comes out of a stream, each with its time, and whether the job failed."""
    RecordingOperator.heard = heard = list[tuple[Any, ...]]()
    monkeypatch.setattr("flinkcore.elements.tasks.operator_makers.ProcessOperator", RecordingOperator)
    try:
        assert list(stream().process(Unused()).execute_and_collect()) == []
    except FlinkcoreError:
        return heard, True
    return heard, False


def expected_of_job(scenario: dict[str, Any]) -> tuple[list[tuple[Any, ...]], bool]:
    """What a scenario has recorded, as :func:`recorded_of_job` gives it, with the end of the job."""
    times = [*times_of(scenario["input"]["events"]), 0]
    entries = scenario["output"]["entries"]
    expected = [
        (
            times[entry["at"]],
            entry["type"],
            *(entry[field] for field in ("ts", "value", "status") if field in entry),
        )
        for entry in entries
        if entry["type"] in ("record", "watermark", "status")
    ]
    failed = any(entry["type"] == "error" for entry in entries)
    if not failed and scenario["kind"] == "source_contexts":  # the other kind has recorded the end
        statuses = [status for _, kind, status, *_ in expected if kind == "status"]
        if statuses[-1:] == ["idle"]:
            expected.append((times[-2], "status", "active"))
        expected.append((times[-2], "watermark", MAX_TIMESTAMP))
    return expected, failed
