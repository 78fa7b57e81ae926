"""The programs of golden join scenarios, built through the public API, and the form in which outputs are compared."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
from equipment.recorders import OutputRecorder

from flinkcore.common import OutputTag, Time, Watermark, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.errors import FlinkcoreError
from flinkcore.operators.interval_join_operator import IntervalJoinOperator
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.windowing import make_window_operator

Element = tuple[str, int]
FIVES = OutputTag("fives")


class Pairs(ProcessJoinFunction[Element, Element]):
    def process_element(
        self, left: Element, right: Element, ctx: ProcessJoinFunction.Context
    ) -> Iterator[Any]:
        yield [left[1], right[1], ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()]
        if right[1] % 5 == 0:
            yield FIVES, left[1]


class Groups(CoGroupFunction[Element, Element]):
    def co_group(self, first: list[Element], second: list[Element]) -> Iterator[Any]:
        yield [(first or second)[0][0], [value for _, value in first], [value for _, value in second]]


class Join(JoinFunction[Element, Element, Any]):
    def join(self, first: Element, second: Element) -> Any:
        return [*first, second[1]]


class FlatJoin(FlatJoinFunction[Element, Element]):
    def join(self, first: Element, second: Element) -> Iterator[Any]:
        for number in range((first[1] + second[1]) % 3):
            yield [*first, second[1], number]


def assigner_of(assigner: list[Any]) -> WindowAssigner[Any, Any]:
    kind, *lengths = assigner
    size, *slide = map(Time.milliseconds, lengths)
    if kind == "tumbling":
        return TumblingEventTimeWindows.of(size)
    return SlidingEventTimeWindows.of(size, slide[0]) if slide else EventTimeSessionWindows.with_gap(size)


def window_operation_of(item: dict[str, Any]) -> WindowOperation:
    env = StreamExecutionEnvironment.get_execution_environment()
    left, right = (
        env.from_event_log(
            pa.table({"key": ["k"], "value": [0], "ts": [0]}), timestamp="ts"
        ).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        for _ in range(2)
    )
    is_co_group = item["function"] == "co_group"
    joined: Any = left.co_group(right) if is_co_group else left.join(right)
    windows = joined.where("key").equal_to("key").window(assigner_of(item["assigner"]))
    if "count" in item["trigger"]:
        trigger: Trigger[Any, Any] = CountTrigger.of(item["trigger"]["count"])
        windows = windows.trigger(PurgingTrigger.of(trigger) if item["trigger"]["purging"] else trigger)
    if item["evictor"] is not None:
        windows = windows.evictor(CountEvictor.of(item["evictor"]))
    windows = windows.allowed_lateness(item["allowed_lateness"])
    function = {"co_group": Groups(), "join": Join(), "flat_join": FlatJoin()}[item["function"]]
    stream = windows.apply(function, pa.schema({"key": pa.string()}))
    operation: WindowOperation = stream._transformation.function
    return operation


def interval_operation_of(item: dict[str, Any]) -> IntervalJoinOperation:
    env = StreamExecutionEnvironment.get_execution_environment()
    left, right = (env.from_collection([("k", 0)]).key_by(key_of) for _ in range(2))
    join = left.interval_join(right)
    join = join.in_processing_time() if item["processing_time"] else join.in_event_time()
    joined = join.between(item["lower"], item["upper"])
    if item["lower_exclusive"]:
        joined = joined.lower_bound_exclusive()
    if item["upper_exclusive"]:
        joined = joined.upper_bound_exclusive()
    if item["left_late"]:
        joined = joined.side_output_left_late_data(OutputTag("left"))
    if item["right_late"]:
        joined = joined.side_output_right_late_data(OutputTag("right"))
    operation: IntervalJoinOperation = joined.process(Pairs())._transformation.function  # type: ignore[attr-defined]
    return operation


class JoinRecorder(OutputRecorder):
    """Late elements go out as their values."""

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        value = record.value[1] if isinstance(record.value, tuple) else record.value
        super().collect_side(output_tag, StreamRecord(value, record.timestamp))


class JoinRun:
    """An operator of a join with what it needs around it, driven by the events of a scenario."""

    def __init__(self, kind: str, item: dict[str, Any], recorder: JoinRecorder) -> None:
        self.is_interval = kind == "interval_join"
        clock = DrivenProcessingTimeService(0)
        self.backend = KeyedStateBackend(KeyContext(), clock)
        self.operator: Any
        if self.is_interval:
            operation = interval_operation_of(item)
            self.operator = IntervalJoinOperator(operation, key_of, key_of, recorder, self.backend, clock)
        else:
            windows = window_operation_of(item)
            self.operator = make_window_operator(windows, tagged_key, recorder, self.backend, clock)
        self.operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(self.backend)))

    def apply(self, verb: str, *arguments: Any) -> None:
        operator = self.operator
        if verb in "lr":
            timestamp, key, value = arguments
            if self.is_interval:
                process = operator.process_element1 if verb == "l" else operator.process_element2
                process(StreamRecord((key, value), timestamp))
            else:
                tagged = TaggedUnion.one((key, value)) if verb == "l" else TaggedUnion.two((key, value))
                operator.process_element(StreamRecord(tagged, timestamp))
        elif verb in ("s1", "s2"):
            getattr(operator, f"process_watermark_status{verb[1]}")(WatermarkStatus(arguments[0]))
        else:
            getattr(operator, f"process_watermark{verb[1:]}")(Watermark(arguments[0]))


def key_of(element: Element) -> str:
    return element[0]


def tagged_key(element: TaggedUnion[Element, Element]) -> str:
    return element.get_one()[0] if element.is_one() else element.get_two()[0]  # type: ignore[index]


def run(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """Returns the output of a scenario; an error ends it."""
    recorder = JoinRecorder()
    try:
        join = JoinRun(kind, item, recorder)
    except FlinkcoreError:
        recorder.add("error")
        return {"entries": recorder.entries}
    try:
        for recorder.at, event in enumerate(item["events"]):
            join.apply(*event)
            join.backend._check()
    except FlinkcoreError:
        recorder.add("error")
    return {
        "entries": recorder.entries,
        "timers": join.operator.time_service_manager.num_event_time_timers(),
        "state": join.backend.num_key_value_state_entries(),
    }


def canonical(kind: str, item: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """An output without what Flink leaves open: the orders of timers, of buckets of an interval join, of sessions."""
    entries = [
        {name: entry[name] for name in entry if name not in ("class", "message")}
        for entry in output["entries"]
    ]
    ordered: list[dict[str, Any]] = []
    if kind == "interval_join":
        for _, group in groupby(joined(entries), key=lambda entries: entries[0]["at"]):
            ordered += [entry for entries in sorted(group, key=bucket) for entry in entries]
    else:
        is_session = item["assigner"][0] == "session"
        for _, group in groupby(entries, key=lambda entry: (entry["at"], entry["type"], entry.get("ts"))):
            run = list(group)
            if run[0]["type"] == "record":
                if is_session:
                    run = [
                        {**entry, "value": [sorted(v) if isinstance(v, list) else v for v in entry["value"]]}
                        for entry in run
                    ]
                run.sort(key=lambda entry: entry["value"] if is_session else entry["value"][0])
            ordered += run
    return {**output, "entries": ordered}


def joined(entries: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Entries, each with the side outputs of its pair."""
    pairs: list[list[dict[str, Any]]] = []
    for entry in entries:
        if entry.get("tag") == FIVES.tag_id:
            pairs[-1].append(entry)
        else:
            pairs.append([entry])
    return pairs


def bucket(entries: list[dict[str, Any]]) -> Any:
    return entries[0]["value"][2:4] if entries[0]["type"] == "record" else []
