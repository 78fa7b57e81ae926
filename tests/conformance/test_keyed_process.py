"""KeyedProcessOperator against the traces of Flink's; its function does what the records say, with state in dicts."""

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from models.canonical import canonical
from models.recorders import OutputRecorder
from models.runtime_context import LoneSubtask

from flinkcore.common import OutputTag, Watermark
from flinkcore.datastream.functions import KeyedProcessFunction
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import KeyedProcessOperator
from flinkcore.runtime.processing_time import DrivenProcessingTimeService

SIDE = OutputTag("side")
DOMAINS = {TimeDomain.EVENT_TIME: "event", TimeDomain.PROCESSING_TIME: "processing"}


class Scripted(KeyedProcessFunction):
    """Executes ops: those of a record, and those given for a timer."""

    def __init__(self, callbacks: list[dict[str, Any]], recorder: "TimedRecorder") -> None:
        self.recorder = recorder
        self.callbacks: dict[tuple[Any, ...], deque[Any]] = defaultdict(deque)
        for callback in callbacks:
            self.callbacks[callback["domain"], callback["key"], callback["ts"]].append(callback["ops"])
        self.values: dict[str, int] = {}
        self.lists: dict[str, list[int]] = defaultdict(list)
        self.maps: dict[str, dict[str, int]] = defaultdict(dict)

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
        timers, key = ctx.timer_service(), ctx.get_current_key()
        if verb == "emit":
            yield arguments[0]
        elif verb == "side":
            yield SIDE, arguments[0]
        elif verb == "describe":
            yield self.description(ctx, where)
        elif verb == "vadd":
            self.values[key] = self.values.get(key, 0) + arguments[0]
        elif verb == "vclear":
            self.values.pop(key, None)
        elif verb == "ladd":
            self.lists[key].append(arguments[0])
        elif verb == "lclear":
            self.lists[key].clear()
        elif verb == "mput":
            self.maps[key][arguments[0]] = arguments[1]
        elif verb == "mremove":
            self.maps[key].pop(arguments[0], None)
        elif verb == "mclear":
            self.maps[key].clear()
        else:
            {
                "ret": timers.register_event_time_timer,
                "det": timers.delete_event_time_timer,
                "rpt": timers.register_processing_time_timer,
                "dpt": timers.delete_processing_time_timer,
            }[verb](arguments[0])

    def description(self, ctx: KeyedProcessFunction.Context, where: str) -> dict[str, Any]:
        key = ctx.get_current_key()
        return {
            "where": where,
            "key": key,
            "ctx_ts": ctx.timestamp(),
            "watermark": ctx.timer_service().current_watermark(),
            "now": ctx.timer_service().current_processing_time(),
            "value": self.values.get(key),
            "list": list(self.lists[key]),
            "map": dict(sorted(self.maps[key].items())),
        }


class TimedRecorder(OutputRecorder):
    """Names the timer that fires in every entry that it causes."""

    timer: list[Any] | None = None

    def add(self, kind: str, **fields: Any) -> None:
        super().add(kind, **({} if self.timer is None else {"timer": self.timer}), **fields)


def test_every_event_puts_out_what_flinks_operator_does(keyed_process_scenario: dict[str, Any]) -> None:
    item = keyed_process_scenario["input"]
    recorder = TimedRecorder()
    clock = DrivenProcessingTimeService(item["now"])
    operator = KeyedProcessOperator(
        Scripted(item["callbacks"], recorder), lambda value: value[0], recorder, KeyContext(), clock
    )
    operator.open(LoneSubtask())
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
        "keyed_process", item, keyed_process_scenario["output"]
    )
