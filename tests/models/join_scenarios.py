"""The programs of golden join scenarios, and the form in which their outputs are compared."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from models.recorders import OutputRecorder

from flinkcore.common import OutputTag, Time, Watermark
from flinkcore.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from flinkcore.datastream.functions.co_group_window_function import CoGroupWindowFunction, WindowJoinFunction
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.tagged_union import TaggedUnion
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
from flinkcore.errors import ConfigurationError, FlinkcoreError
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import IntervalJoinOperator
from flinkcore.runtime.processing_time import DrivenProcessingTimeService
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.runtime.windowing import make_window_operator

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
    functions: dict[str, WindowJoinFunction] = {
        "co_group": Groups(),
        "join": Join(),
        "flat_join": FlatJoin(),
    }
    assigner = assigner_of(item["assigner"])
    trigger: Trigger[Any, Any] = assigner.get_default_trigger(None)
    if "count" in item["trigger"]:
        trigger = CountTrigger.of(item["trigger"]["count"])
        trigger = PurgingTrigger.of(trigger) if item["trigger"]["purging"] else trigger
    return WindowOperation(
        assigner,
        trigger,
        None if item["evictor"] is None else CountEvictor.of(item["evictor"]),
        item["allowed_lateness"],
        window_function=CoGroupWindowFunction(functions[item["function"]]),
    )


def interval_operation_of(item: dict[str, Any]) -> IntervalJoinOperation:
    if item["processing_time"]:
        raise ConfigurationError("intervals are of event time")
    return IntervalJoinOperation(
        item["lower"],
        item["upper"],
        Pairs(),
        not item["lower_exclusive"],
        not item["upper_exclusive"],
        OutputTag("left") if item["left_late"] else None,
        OutputTag("right") if item["right_late"] else None,
    )


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
