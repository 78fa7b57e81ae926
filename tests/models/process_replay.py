"""A keyed process function over a log, step by step: by a plain model of its world, and by the runtime's operator.

Both visit every millisecond from the first arrival to the last: first its events, each with the watermark that it
makes, then the processing-time timers that are due, then each watermark of the tick, then the timers due by that.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from equipment.recorders import OutputRecorder
from models.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP, ReplayModel

from flinkcore.common import OutputTag, Row, Watermark
from flinkcore.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from flinkcore.datastream.state import ListStateDescriptor, ValueStateDescriptor
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import KeyedProcessOperator
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

SIDE = OutputTag("side")
Emitted = tuple[str | None, Any, int | None]
"""Name of the side output, value, timestamp."""


class Scripted(KeyedProcessFunction):
    """Does at each element what the element says, and tells all that it sees; timers go on as long as there is fuel."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.fuel = runtime_context.get_state(ValueStateDescriptor("fuel"))
        self.registered = runtime_context.get_list_state(ListStateDescriptor("registered"))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        self.fuel.update(min((self.fuel.value() or 0) + 2, 5))
        yield self._seen("element", value.number, ctx)
        for action in value.actions.split():
            what, number = action.split(":")
            if what == "event":
                timers.register_event_time_timer(value.ts + int(number))
                self.registered.add(value.ts + int(number))
            elif what == "processing":
                timers.register_processing_time_timer(timers.current_processing_time() + int(number))
            elif what == "delete":
                for timestamp in list(self.registered.get() or ())[: int(number)]:
                    timers.delete_event_time_timer(timestamp)
            elif what == "forget":
                timers.delete_processing_time_timer(timers.current_processing_time() + int(number))
            else:
                self.fuel.clear()
        if value.number % 3 == 0:
            yield SIDE, (ctx.get_current_key(), value.number)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self._seen(ctx.time_domain().name, timestamp, ctx)
        timers = ctx.timer_service()
        fuel = self.fuel.value() or 0
        if fuel > 0 and timestamp % 2:
            self.fuel.update(fuel - 1)
            timers.register_event_time_timer(timestamp + 7 * fuel - 12)
            timers.delete_processing_time_timer(timestamp + 3)
        elif fuel > 0:
            self.fuel.update(fuel - 1)
            timers.register_processing_time_timer(timers.current_processing_time() + 20 * fuel - 45)
            yield SIDE, (ctx.get_current_key(), timestamp)

    def _seen(self, what: str, number: int, ctx: Any) -> tuple[Any, ...]:
        timers = ctx.timer_service()
        times = timers.current_watermark(), timers.current_processing_time(), ctx.timestamp()
        return (
            ctx.get_current_key(),
            what,
            number,
            *times,
            self.fuel.value(),
            len(list(self.registered.get() or ())),
        )


def happenings(model: ReplayModel, rows: list[Row]) -> Iterator[tuple[str, int, Any]]:
    """Yield kind, time and object: "element" (row, timestamp), "watermark" and "end" watermark, "due" None."""
    numbers = {split: number for number, split in enumerate(model.splits)}
    at: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row, event, arrival, position in zip(
        rows, model.events, model.arrivals, model.positions, strict=True
    ):
        at[arrival].append((numbers[event.split], position, 0, "element", (row, event.timestamp_ms)))
    ticks: dict[int, list[int]] = defaultdict(list)
    for (clock, watermark), (_, split, position) in zip(model.steps[:-1], model.places[:-1], strict=True):
        if split == float("inf"):
            ticks[clock].append(watermark)  # that of each split may advance the merged one
        else:
            at[clock].append((split, position, 1, "watermark", watermark))
    for time in range(min(model.arrivals, default=0), max(model.arrivals, default=-1) + 1):
        for *_, what, value in sorted(at[time], key=lambda entry: entry[:3]):
            yield what, time, value
        yield "due", time, None
        for watermark in ticks[time]:
            yield "watermark", time, watermark
            yield "due", time, None
    yield "end", max(model.arrivals, default=0), MAX_TIMESTAMP


class PlainContext:
    """What a function asks of its contexts and of the timer service, but for states and timers, from attributes."""

    key: Any
    subject_timestamp: int
    domain: TimeDomain
    watermark: int
    now: int

    def timer_service(self) -> Any:
        return self

    def current_watermark(self) -> int:
        return self.watermark

    def current_processing_time(self) -> int:
        return self.now

    def timestamp(self) -> int:
        return self.subject_timestamp

    def time_domain(self) -> TimeDomain:
        return self.domain

    def get_current_key(self) -> Any:
        return self.key


class PlainWorld(PlainContext):
    """Timers in lists, state in dictionaries; stands in for contexts, timer service and runtime context."""

    def __init__(self, function: KeyedProcessFunction, key_of: Callable[[Row], Any]) -> None:
        self.function = function
        self.key_of = key_of
        self.emitted: list[Emitted] = []
        self.timers: dict[TimeDomain, list[tuple[int, Any]]] = {domain: [] for domain in TimeDomain}
        self.watermark, self.now = MIN_TIMESTAMP, 0
        self.key: Any = None
        self.subject_timestamp = 0
        self.domain = TimeDomain.EVENT_TIME
        function.open(self)  # type: ignore[arg-type]

    def get_state(self, descriptor: Any) -> Any:
        return PlainState(self)

    get_list_state = get_state

    def _register(self, domain: TimeDomain, timestamp: int) -> None:
        if (timestamp, self.key) not in self.timers[domain]:
            self.timers[domain].append((timestamp, self.key))

    def _delete(self, domain: TimeDomain, timestamp: int) -> None:
        if (timestamp, self.key) in self.timers[domain]:
            self.timers[domain].remove((timestamp, self.key))

    def register_event_time_timer(self, timestamp: int) -> None:
        self._register(TimeDomain.EVENT_TIME, timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._register(TimeDomain.PROCESSING_TIME, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._delete(TimeDomain.EVENT_TIME, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._delete(TimeDomain.PROCESSING_TIME, timestamp)

    def _emit(self, results: Any, timestamp: int | None, side_timestamp: int) -> None:
        for result in results or ():
            if isinstance(result[0], OutputTag):
                self.emitted.append((result[0].tag_id, result[1], side_timestamp))
            else:
                self.emitted.append((None, result, timestamp))

    def fire(self, domain: TimeDomain, limit: int) -> None:
        waiting = self.timers[domain]
        while due := [timer for timer in waiting if timer[0] <= limit]:
            timestamp, self.key = min(due, key=lambda timer: timer[0])
            waiting.remove((timestamp, self.key))
            self.domain, self.subject_timestamp = domain, timestamp
            results = self.function.on_timer(timestamp, self)  # type: ignore[arg-type]
            self._emit(results, timestamp if domain is TimeDomain.EVENT_TIME else None, timestamp)

    def run(self, model: ReplayModel, rows: list[Row]) -> list[Emitted]:
        for what, self.now, value in happenings(model, rows):
            if what == "element":
                row, self.subject_timestamp = value
                self.key = self.key_of(row)
                timestamp = self.subject_timestamp
                self._emit(self.function.process_element(row, self), timestamp, timestamp)  # type: ignore[arg-type]
            elif what == "due":
                self.fire(TimeDomain.PROCESSING_TIME, self.now)
            else:
                self.watermark = value
                self.fire(TimeDomain.EVENT_TIME, value)
        return self.emitted


class PlainState:
    """A value, or a list, per key."""

    def __init__(self, world: PlainWorld) -> None:
        self.world = world
        self.values: dict[Any, Any] = {}

    def value(self) -> Any:
        return self.values.get(self.world.key)

    get = value

    def update(self, value: Any) -> None:
        self.values[self.world.key] = value

    def add(self, value: Any) -> None:
        self.values.setdefault(self.world.key, []).append(value)

    def clear(self) -> None:
        self.values.pop(self.world.key, None)


def operator_run(
    function: KeyedProcessFunction, key_of: Callable[[Row], Any], model: ReplayModel, rows: list[Row]
) -> list[Emitted]:
    """The runtime's operator, on a clock that is advanced millisecond by millisecond."""
    clock, output = DrivenProcessingTimeService(), OutputRecorder()
    backend = KeyedStateBackend(KeyContext(128), clock)
    operator = KeyedProcessOperator(function, key_of, output, backend, clock)
    operator.open(StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(backend)))
    for what, clock.now_ms, value in happenings(model, rows):
        if what == "element":
            operator.process_element(StreamRecord(*value))
        elif what == "due":
            clock.advance_to(clock.now_ms)
        else:
            operator.process_watermark(Watermark(value))
    return emitted_of(output)


def emitted_of(output: OutputRecorder) -> list[Emitted]:
    """What an operator has emitted."""
    emitted: list[Emitted] = []
    for kind, *entry in output.take():
        if kind == "record":
            emitted.append((None, entry[1], entry[0]))
        elif kind == "side":
            emitted.append((entry[2], entry[1], entry[0]))
    return emitted
