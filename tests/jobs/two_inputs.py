"""Operators with two inputs over two logs, element by element and millisecond by millisecond."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from equipment.recorders import OutputRecorder
from jobs.scripted_logs import Watermarks, modelled_by
from models.process_replay import Emitted, Scripted, emitted_of
from models.valve import ValveModel
from models.watermarks import MAX_TIMESTAMP, Event, ReplayModel

from flinkcore.common import OutputTag, Row, Watermark
from flinkcore.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
)
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")


class ScriptedCo(KeyedCoProcessFunction):
    """Does at each element of either stream what `Scripted` does."""

    open = Scripted.open
    process_element1 = Scripted.process_element
    process_element2 = Scripted.process_element
    on_timer = Scripted.on_timer
    _seen = Scripted._seen


class ScriptedRules(KeyedBroadcastProcessFunction):
    """Does what `Scripted` does, and tells how many rules it knows; gives results for rules, too."""

    open = Scripted.open
    on_timer = Scripted.on_timer
    _seen = Scripted._seen

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        known = list(ctx.get_broadcast_state(RULES).items())
        yield from Scripted.process_element(self, value, ctx)  # type: ignore[arg-type]
        if known:
            yield (value.user, "rules", sum(count for _, count in known), None, None, None, None, len(known))

    def process_broadcast_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value.who, (rules.get(value.who) or 0) + 1)
        times = ctx.current_watermark(), ctx.current_processing_time(), ctx.timestamp()
        yield (f"rule {value.who}", "rule", value.number, *times, None, None)
        yield OutputTag("side"), (f"rule {value.who}", -value.number)


class Telling(CoProcessFunction):
    """Tells what it sees, and how many elements it has seen."""

    def __init__(self) -> None:
        self.seen = 0

    def _tell(self, what: str, user: str, value: Row, ctx: Any) -> Iterator[Any]:
        self.seen += 1
        timers = ctx.timer_service()
        times = timers.current_watermark(), timers.current_processing_time(), ctx.timestamp()
        yield (user, what, value.number, *times, self.seen, None)

    def process_element1(self, value: Row, ctx: Any) -> Iterator[Any]:
        return self._tell("first", value.user, value, ctx)

    def process_element2(self, value: Row, ctx: Any) -> Iterator[Any]:
        return self._tell("second", value.who, value, ctx)


class TellingRules(BroadcastProcessFunction):
    """Tells what it sees, and the rules that it knows."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        times = ctx.current_watermark(), ctx.current_processing_time(), ctx.timestamp()
        yield (value.user, "element", value.number, *times, rules.get(value.user), None)

    def process_broadcast_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(RULES).put(value.who, value.number)
        yield (value.who, "rule", value.number, ctx.current_watermark(), None, None, None, None)


def replay_models(
    logs: list[list[Event]],
    bounds: Sequence[Watermarks],
    idlenesses: Sequence[int | None],
    interval_ms: int,
) -> list[ReplayModel]:
    """The timelines of logs that are replayed together, with `strategy_of(bound, idleness)` each."""

    def model(log: int, replay_range: tuple[int, int] | None) -> ReplayModel:
        out_of_orderness_ms, make_generator = modelled_by(bounds[log])
        return ReplayModel(
            logs[log],
            out_of_orderness_ms,
            idlenesses[log],
            interval_ms,
            make_generator=make_generator,
            replay_range=replay_range,
        )

    arrivals = [arrival for log in range(len(logs)) for arrival in model(log, None).arrivals]
    replay_range = (min(arrivals), max(arrivals)) if arrivals else None
    return [model(log, replay_range) for log in range(len(logs))]


def happenings(models: list[ReplayModel], rows: list[list[Row]]) -> Iterator[tuple[str, int, int, Any]]:
    """Yield kind, time, number of the log, and object: "element" (row, timestamp), "watermark", ..."""
    at: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    ticks: dict[int, list[tuple[str, int, Any]]] = defaultdict(list)
    first_split = 0
    for log, model in enumerate(models):
        numbers = {split: first_split + number for number, split in enumerate(model.splits)}
        for row, event, arrival, position in zip(
            rows[log], model.events, model.arrivals, model.positions, strict=True
        ):
            at[arrival].append(
                (numbers[event.split], position, 0, 0, log, "element", (row, event.timestamp_ms))
            )
        for number, ((clock, split, position), kind, value) in enumerate(model.merged):
            if split == math.inf:
                ticks[clock].append((kind, log, value))
            else:
                at[clock].append((first_split + split, position, 1, number, log, kind, value))
        first_split += len({event.split for event in model.log})
    arrivals = [arrival for model in models for arrival in model.arrivals]
    for time in range(min(arrivals, default=0), max(arrivals, default=-1) + 1):
        for *_, log, what, value in sorted(at[time], key=lambda entry: entry[:4]):
            yield what, time, log, value
        yield "due", time, 0, None
        for what, log, value in ticks[time]:
            yield what, time, log, value
            yield "due", time, 0, None
    yield "end", max(arrivals, default=0), 0, None


def union_run(
    function: Any, of_user: Callable[[Row], Any], models: list[ReplayModel], rows: list[list[Row]]
) -> list[Emitted]:
    """What the runtime's operator emits behind a valve with a channel for each log."""
    clock, output, valve = DrivenProcessingTimeService(), OutputRecorder(), ValveModel(len(models))
    backend = KeyedStateBackend(KeyContext(128), clock)
    operator = KeyedProcessOperator(function, of_user, output, backend, clock)
    operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(backend)))
    for what, clock.now_ms, log, value in happenings(models, rows):
        if what == "element":
            operator.process_element(StreamRecord(*value))
        elif what == "due":
            clock.advance_to(clock.now_ms)
        elif what == "end":  # of all logs at once
            operator.process_watermark(Watermark(MAX_TIMESTAMP))
        else:
            put = valve.input_watermark if what == "watermark" else valve.input_watermark_status
            for kind, merged in put(log, value):
                if kind == "watermark":
                    operator.process_watermark(Watermark(int(merged)))
    return emitted_of(output)


def operator_run(function: Any, happened: Iterable[tuple[str, int, int, Any]]) -> list[Emitted]:
    """What the runtime's operator of a function emits."""
    clock, output = DrivenProcessingTimeService(), OutputRecorder()
    backend, states = KeyedStateBackend(KeyContext(128), clock), OperatorStateBackend()

    def of_user(row: Row) -> Any:
        return row.user

    def of_who(row: Row) -> Any:
        return row.who

    operator: Any
    store: DefaultKeyedStateStore | None = DefaultKeyedStateStore(backend)
    if isinstance(function, KeyedCoProcessFunction):
        operator = KeyedCoProcessOperator(function, of_user, of_who, output, backend, clock)
    elif isinstance(function, KeyedBroadcastProcessFunction):
        operator = KeyedBroadcastProcessOperator(function, of_user, [RULES], output, backend, states, clock)
    elif isinstance(function, BroadcastProcessFunction):
        operator, store = BroadcastProcessOperator(function, [RULES], output, states, clock), None
    else:
        operator, store = CoProcessOperator(function, output, clock), None
    operator.open(StreamingRuntimeContext(TaskInfo("task"), store))
    statuses = {"idle": WatermarkStatus.IDLE, "active": WatermarkStatus.ACTIVE}
    for what, clock.now_ms, log, value in happened:
        if what == "element":
            (operator.process_element1, operator.process_element2)[log](StreamRecord(*value))
        elif what == "due":
            clock.advance_to(clock.now_ms)
        elif what == "end":  # of all logs at once
            operator.process_watermark(Watermark(MAX_TIMESTAMP))
        elif what == "watermark":
            (operator.process_watermark1, operator.process_watermark2)[log](Watermark(value))
        else:
            (operator.process_watermark_status1, operator.process_watermark_status2)[log](statuses[value])
    return emitted_of(output)
