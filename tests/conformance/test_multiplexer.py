"""WatermarkOutputMultiplexer, and jobs with splits, against the traces of Flink's."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from equipment.canonical import canonical
from equipment.recorders import WatermarkOutputRecorder
from jobs.source_jobs import recorded_of_job

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.connectors import (
    InputStatus,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from flinkcore.elements.sources.watermark_output_multiplexer import WatermarkOutputMultiplexer
from flinkcore.errors import LifecycleError


class Listener:
    def __init__(self, recorder: WatermarkOutputRecorder, output_id: str) -> None:
        self.recorder = recorder
        self.output_id = output_id

    def on_watermark_update(self, watermark: int) -> None:
        self.recorder.add("split_watermark", id=self.output_id, ts=watermark)

    def on_idle_update(self, idle: bool) -> None:
        self.recorder.add("split_idle", id=self.output_id, idle=idle)


def apply(
    multiplexer: WatermarkOutputMultiplexer, recorder: WatermarkOutputRecorder, event: list[Any]
) -> None:
    match event:
        case ["periodic"]:
            multiplexer.on_periodic_emit()
        case ["register", output_id]:
            multiplexer.register_new_output(output_id, Listener(recorder, output_id))
        case ["unregister", output_id]:
            recorder.add("unregistered", id=output_id, found=multiplexer.unregister_output(output_id))
        case [verb, output_id, call, *timestamp]:
            immediate = verb == "immediate"
            get = multiplexer.get_immediate_output if immediate else multiplexer.get_deferred_output
            output = get(output_id)
            if call == "watermark":
                output.emit_watermark(Watermark(*timestamp))
            elif call == "idle":
                output.mark_idle()
            else:
                output.mark_active()


def trace(events: list[list[Any]]) -> dict[str, Any]:
    recorder = WatermarkOutputRecorder()
    multiplexer = WatermarkOutputMultiplexer(recorder)
    for recorder.at, event in enumerate(events):
        try:
            apply(multiplexer, recorder, event)
        except LifecycleError:
            recorder.add("error")
    return {"entries": recorder.entries}


def test_every_call_puts_out_what_flinks_multiplexer_does(multiplexer_scenario: dict[str, Any]) -> None:
    item = multiplexer_scenario["input"]
    expected = multiplexer_scenario["output"]
    assert canonical("multiplexer", item, trace(item["events"])) == canonical("multiplexer", item, expected)


# ---- as jobs ----

INTERVAL_MS = 50  # more than there are events between two periodic calls
MADE: list["QueuedCalls"] = []


class QueuedCalls(WatermarkGenerator[Any]):
    """Makes its next tick's calls of a deferred output when it is time."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        MADE.append(self)

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        raise AssertionError("there are no records")

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        for call, *timestamp in self.calls:
            make(output, call, *timestamp)
        self.calls.clear()


def make(output: WatermarkOutput, call: str, *timestamp: int) -> None:
    if call == "watermark":
        output.emit_watermark(Watermark(*timestamp))
    elif call == "idle":
        output.mark_idle()
    else:
        output.mark_active()


class ScriptedSplits(Source):
    """Splits that come and go, and emit, as a scenario says; at a periodic call it waits for the next tick."""

    def __init__(self, events: list[list[Any]]) -> None:
        self._events = events

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return []

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, Any]:
        return ScriptedSplitsReader(self._events, context)


class ScriptedSplitsReader(SourceReader[Any, SourceSplit]):
    def __init__(self, events: list[list[Any]], context: SourceReaderContext) -> None:
        self._events = deque(events)
        self._now_ms = context.current_processing_time
        self._tick_ms = 0
        self._generators: dict[str, QueuedCalls] = {}

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        if self._tick_ms >= self._now_ms():
            return InputStatus.NOTHING_AVAILABLE
        if not self._events:
            return InputStatus.END_OF_INPUT
        match self._events.popleft():
            case ["periodic"]:
                self._tick_ms = (self._now_ms() // INTERVAL_MS + 1) * INTERVAL_MS
            case ["register", output_id]:
                output.create_output_for_split(output_id)
                self._generators[output_id] = MADE[-1]
            case ["unregister", output_id]:
                output.release_output_for_split(output_id)
            case ["immediate", output_id, call, *timestamp]:
                make(output.create_output_for_split(output_id), call, *timestamp)
            case [_, output_id, *call]:
                self._generators[output_id].calls.append(call)
        return InputStatus.MORE_AVAILABLE

    def start(self) -> None:
        """Nothing to start."""

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        raise AssertionError("jobs take no checkpoint")

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        assert not splits

    def notify_no_more_splits(self) -> None:
        """Splits come as the script says."""

    def close(self) -> None:
        """Nothing to close."""


def of_a_job(scenario: dict[str, Any]) -> list[list[Any]] | None:
    """The events that a job can make: what fails is left out, and deferred calls come right before a periodic one."""
    entries = scenario["output"]["entries"]
    failing = {entry["at"] for entry in entries if entry["type"] == "error" or entry.get("found") is False}
    events = [event for at, event in enumerate(scenario["input"]["events"]) if at not in failing]
    for event, following in pairwise([*events, ["end"]]):
        if event[0] == "deferred" and following[0] not in ("deferred", "periodic"):
            return None
    return events


def without_repetitions(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What a source emits of watermarks that its outputs do: only what is news, and the end of the job."""
    emitted: list[tuple[Any, ...]] = []
    watermark, idle = MIN_TIMESTAMP, False
    for entry in [*entries, {"type": "end"}]:
        advances = entry["type"] == "watermark" and entry["ts"] > watermark
        if entry["type"] == "status" and not idle:
            idle = True
            emitted.append(("status", "idle"))
        elif (advances or entry["type"] == "end") and idle:
            idle = False
            emitted.append(("status", "active"))
        if advances:
            watermark = entry["ts"]
            emitted.append(("watermark", watermark))
    return [*emitted, ("watermark", MAX_TIMESTAMP)]


def test_jobs_whose_splits_emit_put_out_what_flinks_multiplexer_does(
    golden: Callable[[str], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = WatermarkStrategy.for_generator(QueuedCalls)
    expected: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for scenario in golden("multiplexer"):
        events = of_a_job(scenario)
        if events is None or scenario["flink"] != "2.3.0":
            continue
        MADE.clear()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.get_config().set_auto_watermark_interval(INTERVAL_MS)
        stream = env.from_source(ScriptedSplits(events), strategy, "scripted")
        heard, failed = recorded_of_job(partial(_same, stream), monkeypatch)
        name = scenario["name"]
        found[name] = "failed" if failed else [tuple(entry) for _, *entry in heard]
        expected[name] = without_repetitions(scenario["output"]["entries"])
    assert len(expected) > len(golden("multiplexer")) // 4
    assert found == expected


def _same(stream: DataStream) -> DataStream:
    return stream
