"""KeyedProcessOperator against the traces of Flink's, with a function that does what the records say."""

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from equipment.canonical import canonical
from equipment.recorders import TimedRecorder

from flinkcore.common import MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.datastream.state import (
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import KeyedProcessOperator
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

SIDE = OutputTag("side")
DOMAINS = {TimeDomain.EVENT_TIME: "event", TimeDomain.PROCESSING_TIME: "processing"}


class Scripted(KeyedProcessFunction):
    """Executes ops: those of a record, and those given for a timer."""

    def __init__(self, callbacks: list[dict[str, Any]], recorder: TimedRecorder) -> None:
        self.recorder = recorder
        self.callbacks: dict[tuple[Any, ...], deque[Any]] = defaultdict(deque)
        for callback in callbacks:
            self.callbacks[callback["domain"], callback["key"], callback["ts"]].append(callback["ops"])

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list: ListState[int] = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map: MapState[str, int] = runtime_context.get_map_state(MapStateDescriptor("map"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        _, ops = value
        for op in ops:
            yield from self.apply(ctx, "element", *op)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        domain, key = DOMAINS[ctx.time_domain()], ctx.get_current_key()
        self.recorder.timer = [domain, timestamp, key, None]
        yield {**self.description(ctx, "timer"), "timer_ts": timestamp, "domain": domain}
        callbacks = self.callbacks[domain, key, timestamp]
        for op in callbacks.popleft() if callbacks else ():
            yield from self.apply(ctx, "timer", *op)
        self.recorder.timer = None

    def apply(
        self, ctx: KeyedProcessFunction.Context, where: str, verb: str, *arguments: Any
    ) -> Iterator[Any]:
        timers = ctx.timer_service()
        if verb == "emit":
            yield arguments[0]
        elif verb == "side":
            yield SIDE, arguments[0]
        elif verb == "describe":
            yield self.description(ctx, where)
        elif verb == "vadd":
            self.value.update((self.value.value() or 0) + arguments[0])
        elif verb == "vclear":
            self.value.clear()
        elif verb == "ladd":
            self.list.add(arguments[0])
        elif verb == "lclear":
            self.list.clear()
        elif verb == "mput":
            self.map.put(*arguments)
        elif verb == "mremove":
            self.map.remove(arguments[0])
        elif verb == "mclear":
            self.map.clear()
        else:
            {
                "ret": timers.register_event_time_timer,
                "det": timers.delete_event_time_timer,
                "rpt": timers.register_processing_time_timer,
                "dpt": timers.delete_processing_time_timer,
            }[verb](arguments[0])

    def description(self, ctx: KeyedProcessFunction.Context, where: str) -> dict[str, Any]:
        return {
            "where": where,
            "key": ctx.get_current_key(),
            "ctx_ts": ctx.timestamp(),
            "watermark": ctx.timer_service().current_watermark(),
            "now": ctx.timer_service().current_processing_time(),
            "value": self.value.value(),
            "list": list(self.list.get()),
            "map": dict(sorted(self.map.items())),
        }


def with_minimum_for_null(output: Any) -> Any:
    """Java's contexts have null for an element without a timestamp, where PyFlink's have the minimum."""
    if isinstance(output, list):
        return [with_minimum_for_null(each) for each in output]
    if not isinstance(output, dict):
        return output
    return {
        name: MIN_TIMESTAMP if name == "ctx_ts" and value is None else with_minimum_for_null(value)
        for name, value in output.items()
    }


def test_every_event_puts_out_what_flinks_operator_does(keyed_process_scenario: dict[str, Any]) -> None:
    item = keyed_process_scenario["input"]
    recorder = TimedRecorder()
    clock = DrivenProcessingTimeService(item["now"])
    backend = KeyedStateBackend(KeyContext(), clock)
    operator = KeyedProcessOperator(
        Scripted(item["callbacks"], recorder), lambda value: value[0], recorder, backend, clock
    )
    operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(backend)))
    for recorder.at, (verb, *arguments) in enumerate(item["events"]):
        if verb == "r":
            timestamp, key, ops = arguments
            operator.process_element(StreamRecord((key, ops), timestamp))
        elif verb == "w":
            operator.process_watermark(Watermark(arguments[0]))
        elif verb == "s":
            operator.process_watermark_status(WatermarkStatus(arguments[0]))
        else:
            assert verb == "pt"
            clock.advance_to(arguments[0])
    assert canonical("keyed_process", item, {"entries": recorder.entries}) == canonical(
        "keyed_process", item, with_minimum_for_null(keyed_process_scenario["output"])
    )
