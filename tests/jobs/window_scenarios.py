"""The programs of golden window scenarios, as operations of the row path."""

from collections.abc import Iterable, Iterator
from typing import Any

from equipment.recorders import OutputRecorder, TimedRecorder

from flinkcore.common import OutputTag, Row, Time, Watermark
from flinkcore.datastream.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowContext,
)
from flinkcore.datastream.state import ValueState, ValueStateDescriptor
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.errors import FlinkcoreError, TimerError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers import InternalTimer
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.windowing import WindowOperator, make_window_operator

Element = tuple[str, int]
LATE = OutputTag("late")
BEYOND_64_BITS = {
    "window-edge-overflow_window_end": 0,
    "window-edge-near_min": 0,
    "window-edge-after_the_end": 2,
}
"""Flink wraps around, or takes the record for late; flinkcore refuses the timestamp of the last record applied."""
FIRINGS: ValueStateDescriptor[int] = ValueStateDescriptor("firings")


def ms(value: int) -> Time:
    return Time.milliseconds(value)


def assigner_of(item: dict[str, Any]) -> WindowAssigner[Any, Any]:
    kind = item["type"]
    is_event_time = not kind.endswith("_processing")
    base = kind.removesuffix("_processing")
    if base == "tumbling":
        tumbling = TumblingEventTimeWindows if is_event_time else TumblingProcessingTimeWindows
        return tumbling.of(ms(item["size"]), ms(item["offset"]))
    if base == "sliding":
        sliding = SlidingEventTimeWindows if is_event_time else SlidingProcessingTimeWindows
        return sliding.of(ms(item["size"]), ms(item["slide"]), ms(item["offset"]))
    session = EventTimeSessionWindows if is_event_time else ProcessingTimeSessionWindows
    if base == "session":
        return session.with_gap(ms(item["gap"]))
    if base == "dynamic_session":
        return session.with_dynamic_gap(lambda element: element[1])
    if base == "global_end_of_stream":
        return GlobalWindows.create_with_end_of_stream_trigger()
    assert base == "global"
    return GlobalWindows.create()


def delta(old: Element, new: Element) -> float:
    return new[1] - old[1]


def trigger_of(item: dict[str, Any], assigner: WindowAssigner[Any, Any]) -> Trigger[Any, Any]:
    kind = item["type"]
    if kind == "default":
        return assigner.get_default_trigger(None)
    if kind == "event_time":
        return EventTimeTrigger.create()
    if kind == "processing_time":
        return ProcessingTimeTrigger.create()
    if kind == "count":
        return CountTrigger.of(item["n"])
    if kind == "purging":
        return PurgingTrigger.of(trigger_of(item["of"], assigner))
    if kind == "continuous_event_time":
        return ContinuousEventTimeTrigger.of(ms(item["interval"]))
    if kind == "continuous_processing_time":
        return ContinuousProcessingTimeTrigger.of(ms(item["interval"]))
    if kind == "delta":
        return DeltaTrigger.of(item["threshold"], delta)
    assert kind == "timeout"
    return ProcessingTimeoutTrigger.of(
        trigger_of(item["of"], assigner),
        ms(item["timeout"]),
        item["reset_on_record"],
        item["clear_on_timeout"],
    )


def evictor_of(item: dict[str, Any] | None) -> Evictor[Any] | None:
    if item is None:
        return None
    if item["type"] == "count":
        return CountEvictor.of(item["n"], item["after"])
    if item["type"] == "time":
        return TimeEvictor.of(ms(item["size"]), item["after"])
    assert item["type"] == "delta"
    return DeltaEvictor.of(item["threshold"], delta, item["after"])


class Reduce(ReduceFunction[Element]):
    """Reduces the values by sum, min, max, or keeps the second argument."""

    def __init__(self, op: str) -> None:
        self.op = op

    def reduce(self, value1: Element, value2: Element) -> Element:
        if self.op == "last":
            return value2
        function: Any = {"sum": lambda a, b: a + b, "min": min, "max": max}[self.op]
        return value1[0], function(value1[1], value2[1])


class Aggregate(AggregateFunction[Element, list[int], list[int]]):
    """Sum, count, min and max of the values."""

    def create_accumulator(self) -> list[int]:
        return [0, 0, 2**63 - 1, -(2**63)]

    def add(self, value: Element, accumulator: list[int]) -> list[int]:
        return self.merge(accumulator, [value[1], 1, value[1], value[1]])

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator.copy()

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [
            acc_a[0] + acc_b[0],
            acc_a[1] + acc_b[1],
            min(acc_a[2], acc_b[2]),
            max(acc_a[3], acc_b[3]),
        ]


class Process(ProcessWindowFunction[Any, Any, str, Any]):
    """Gives all that the function may see."""

    def __init__(self, recorder: OutputRecorder, window_state: bool, global_state: bool) -> None:
        self.recorder = recorder
        self.window_state = window_state
        self.global_state = global_state

    def process(self, key: str, context: WindowContext[Any], elements: Iterable[Any]) -> Iterator[Any]:
        seen = {
            "key": key,
            **bounds(context.window()),
            "elements": [element[1] if isinstance(element, tuple | Row) else element for element in elements],
            "watermark": context.current_watermark(),
            "now": context.current_processing_time(),
        }
        if self.window_state:
            seen["window_firings"] = count_up(context.window_state().get_state(FIRINGS))
        if self.global_state:
            seen["global_firings"] = count_up(context.global_state().get_state(FIRINGS))
        yield seen

    def clear(self, context: WindowContext[Any]) -> None:
        self.recorder.add("clear", **bounds(context.window()))
        if self.window_state:
            context.window_state().get_state(FIRINGS).clear()


def bounds(window: Any) -> dict[str, Any]:
    is_time = isinstance(window, TimeWindow)
    return {"start": window.start if is_time else None, "end": window.end if is_time else None}


def count_up(state: ValueState[int]) -> int:
    count = (state.value() or 0) + 1
    state.update(count)
    return count


def operation_of(item: dict[str, Any], recorder: OutputRecorder) -> WindowOperation:
    assigner = assigner_of(item["assigner"])
    function = item["function"]
    kind = function["type"]
    process = Process(recorder, function.get("window_state", False), function.get("global_state", False))
    aggregation: Any = None
    if kind.startswith("reduce"):
        aggregation = Reduce(function.get("op", "sum"))
    elif kind.startswith("aggregate"):
        aggregation = Aggregate()
    return WindowOperation(
        assigner,
        trigger_of(item["trigger"], assigner),
        evictor_of(item["evictor"]),
        item["allowed_lateness"],
        LATE if item["late_output"] else None,
        aggregation,
        process if kind == "list" or kind.endswith("_process") else None,
    )


class WindowRun:
    """A window operator with what it needs around it, driven by the events of a scenario."""

    def __init__(self, item: dict[str, Any], recorder: TimedRecorder) -> None:
        self.item = item
        self.recorder = recorder
        self.clock = DrivenProcessingTimeService(item["now"])
        self.backend = KeyedStateBackend(KeyContext(), self.clock)
        self.operator: WindowOperator = make_window_operator(
            operation_of(item, recorder), lambda element: element[0], recorder, self.backend, self.clock
        )
        self._trace("on_event_time", "event")
        self._trace("on_processing_time", "processing")

    def _trace(self, method: str, domain: str) -> None:
        call = getattr(self.operator, method)

        def traced(timer: InternalTimer) -> None:
            start = bounds(timer.namespace)["start"]
            self.recorder.timer = [domain, timer.timestamp_ms, timer.key, start]
            call(timer)
            self.recorder.timer = None

        setattr(self.operator, method, traced)

    def open(self) -> None:
        self.operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(self.backend)))

    def apply(self, at: int) -> None:
        self.recorder.at = at
        verb, *arguments = self.item["events"][at]
        if verb == "r":
            timestamp, key, value = arguments
            self.operator.process_element(StreamRecord((key, value), timestamp))
        elif verb == "w":
            self.operator.process_watermark(Watermark(arguments[0]))
        elif verb == "s":
            self.operator.process_watermark_status(WatermarkStatus(arguments[0]))
        else:
            assert verb == "pt"
            self.clock.advance_to(arguments[0])

    def counts(self) -> dict[str, int]:
        timers = self.operator.time_service_manager
        return {
            "late_dropped": self.operator.num_late_records_dropped,
            "event_timers": timers.num_event_time_timers(),
            "processing_timers": timers.num_processing_time_timers(),
        }


def run(item: dict[str, Any]) -> dict[str, Any]:
    """Return the output of a scenario; an error ends it."""
    recorder = TimedRecorder()
    try:
        window_run = WindowRun(item, recorder)
        window_run.open()
    except FlinkcoreError:
        recorder.add("error")
        return {"entries": recorder.entries}
    try:
        for at in range(len(item["events"])):
            window_run.apply(at)
            window_run.backend._check()
    except (FlinkcoreError, TimerError):
        recorder.timer = None
        recorder.add("error")
    return {"entries": recorder.entries, **window_run.counts()}


def wanted_output(scenario: dict[str, Any]) -> dict[str, Any]:
    """What flinkcore gives for a scenario: what Flink gives, up to a timestamp that flinkcore refuses."""
    output: dict[str, Any] = scenario["output"]
    refused = BEYOND_64_BITS.get(scenario["name"])
    if refused is None:
        return output
    before = [entry for entry in output["entries"] if entry["at"] < refused]
    return {"entries": [*before, {"at": refused, "type": "error"}]}
