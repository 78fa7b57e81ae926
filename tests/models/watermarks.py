"""A plain model of what makes a timeline, step by step: generators, an operator per split, the valve, ticks.

Nothing is skipped and nothing summarised: every operator is called at every tick.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from models.valve import MIN_TIMESTAMP, ValveModel

MAX_TIMESTAMP = 2**63 - 1
Output = tuple[str, int | str]


class Generator(Protocol):
    def on_event(self, timestamp_ms: int) -> list[Output]: ...
    def on_periodic_emit(self, clock_ms: int) -> list[Output]: ...


class BoundedOutOfOrderness:
    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.max_timestamp = MIN_TIMESTAMP + delay_ms + 1

    def on_event(self, timestamp_ms: int) -> list[Output]:
        self.max_timestamp = max(self.max_timestamp, timestamp_ms)
        return []

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        return [("watermark", self.max_timestamp - self.delay_ms - 1)]


class NoWatermarks:
    def on_event(self, timestamp_ms: int) -> list[Output]:
        return []

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        return []


class Punctuated:
    """An even timestamp is a watermark."""

    def on_event(self, timestamp_ms: int) -> list[Output]:
        return [("watermark", timestamp_ms)] if timestamp_ms % 2 == 0 else []

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        return []


class WithIdleness:
    def __init__(self, of: Generator, timeout_ms: int) -> None:
        self.of = of
        self.timeout_ms = timeout_ms
        self.counter = self.last_counter = 0
        self.start_of_inactivity_ms = 0
        self.is_idle_now = False

    def on_event(self, timestamp_ms: int) -> list[Output]:
        self.counter += 1
        self.is_idle_now = False
        return self.of.on_event(timestamp_ms)

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        if self._check_if_idle(clock_ms):
            if self.is_idle_now:
                return []
            self.is_idle_now = True
            return [("status", "idle")]
        return self.of.on_periodic_emit(clock_ms)

    def _check_if_idle(self, clock_ms: int) -> bool:
        if self.counter != self.last_counter:
            self.last_counter = self.counter
            self.start_of_inactivity_ms = 0
            return False
        if self.start_of_inactivity_ms == 0:
            self.start_of_inactivity_ms = clock_ms
            return False
        return clock_ms - self.start_of_inactivity_ms > self.timeout_ms


def generator_of(parameters: dict[str, Any]) -> Generator:
    """The generator of a golden scenario."""
    kind = parameters["type"]
    if kind == "bounded":
        return BoundedOutOfOrderness(parameters["delay"])
    if kind == "ascending":
        return BoundedOutOfOrderness(0)
    if kind == "punctuated":
        return Punctuated()
    if kind == "idleness":
        return WithIdleness(generator_of(parameters["of"]), parameters["timeout"])
    assert kind == "none"
    return NoWatermarks()


class Operator:
    """What TimestampsAndWatermarksOperator emits: its generator's output, less what does not advance."""

    def __init__(self, generator: Generator, opened_ms: int) -> None:
        self.generator = generator
        self.opened = opened_ms
        self.current_watermark = MIN_TIMESTAMP
        self.idle = False

    def process_element(self, timestamp_ms: int) -> list[Output]:
        return self._emit(self.generator.on_event(timestamp_ms))

    def periodic_emit(self, clock_ms: int) -> list[Output]:
        return self._emit(self.generator.on_periodic_emit(clock_ms - self.opened))

    def process_watermark(self, timestamp_ms: int) -> list[Output]:
        return self._emit([("watermark", timestamp_ms)]) if timestamp_ms == MAX_TIMESTAMP else []

    def _emit(self, outputs: list[Output]) -> list[Output]:
        emitted: list[Output] = []
        for kind, value in outputs:
            if kind == "status":
                if not self.idle:
                    emitted.append((kind, value))
                self.idle = True
            elif value > self.current_watermark:
                self.current_watermark = value
                if self.idle:
                    emitted.append(("status", "active"))
                self.idle = False
                emitted.append((kind, value))
        return emitted


@dataclass(frozen=True)
class Event:
    split: Any
    arrival_ms: int | None
    timestamp_ms: int
    kept: bool = True


@dataclass
class ReplayModel:
    """The timeline of a log of events, in log order; rows that are not kept take a position only.

    `places` are those of the steps in the total order (arrival, split number, position); ticks lie after all events
    with their clock. `merged` is what the valve puts out, statuses too, each with its place. A log that is replayed
    with others lasts as long as all of them, which is its `replay_range`.
    """

    log: list[Event]
    out_of_orderness_ms: int | None
    idleness_ms: int | None
    interval_ms: int
    rate: float = 1000.0
    arrival_start_ms: int = 0
    make_generator: Callable[[], Generator] | None = None
    replay_range: tuple[int, int] | None = None
    steps: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[int, float, float]] = field(default_factory=list)
    idle_spans: list[tuple[Any, int, int]] = field(default_factory=list)
    merged: list[tuple[tuple[int, float, float], str, Any]] = field(default_factory=list)
    holders: list[tuple[int, set[Any]]] = field(default_factory=list)
    leads: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.splits = sorted({event.split for event in self.log})
        self.events: list[Event] = []
        self.arrivals: list[int] = []
        self.positions: list[int] = []
        self._place()
        self.final_watermarks = dict.fromkeys(self.splits, MIN_TIMESTAMP)
        if self.events and self.replay_range is None:
            self.replay_range = min(self.arrivals), max(self.arrivals)
        if self.replay_range is not None:
            self._replay(*self.replay_range)
        self.steps.append((MAX_TIMESTAMP, MAX_TIMESTAMP))
        self.places.append((MAX_TIMESTAMP, math.inf, math.inf))

    def _place(self) -> None:
        running: dict[Any, int] = {}
        rows = dict.fromkeys(self.splits, 0)
        for event in self.log:
            position = rows[event.split]
            rows[event.split] += 1
            if not event.kept:
                continue
            arrival = event.arrival_ms
            if arrival is None:
                arrival = self.arrival_start_ms + math.floor(position * 1000 / self.rate)
            running[event.split] = max(arrival, running.get(event.split, arrival))
            self.events.append(event)
            self.arrivals.append(running[event.split])
            self.positions.append(position)

    def _generator(self) -> Generator:
        generator: Generator = NoWatermarks()
        if self.out_of_orderness_ms is not None:
            generator = BoundedOutOfOrderness(self.out_of_orderness_ms)
        if self.make_generator is not None:
            generator = self.make_generator()
        return generator if self.idleness_ms is None else WithIdleness(generator, self.idleness_ms)

    def _replay(self, first: int, last: int) -> None:
        self.splits = self.splits or [None]
        first_tick = -(-first // self.interval_ms) * self.interval_ms if self.interval_ms else last + 1
        opened = first_tick - self.interval_ms if self.interval_ms else first
        self.opened = opened
        self.operators = {split: Operator(self._generator(), opened) for split in self.splits}
        self.valve = ValveModel(len(self.splits))
        self.idle_since: dict[Any, int] = {}
        order = sorted(range(len(self.events)), key=lambda i: (self.arrivals[i], self.events[i].split, i))
        seen = 0
        for tick in range(first_tick, last + 1, self.interval_ms or 1):
            seen = self._process(order, seen, tick)
            for split in self.splits:
                self._periodic_emit(split, tick)
        self._process(order, seen, last)
        for split in self.splits:
            self._periodic_emit(split, last)
        self.idle_spans += [(split, since, last) for split, since in self.idle_since.items()]
        self.idle_spans.sort()
        self.final_watermarks = {split: self.operators[split].current_watermark for split in self.splits}

    def _process(self, order: list[int], seen: int, clock_ms: int) -> int:
        while seen < len(order) and self.arrivals[order[seen]] <= clock_ms:
            event = self.events[order[seen]]
            place = self.place_of(order[seen])
            self._to_valve(
                event.split, place, self.operators[event.split].process_element(event.timestamp_ms)
            )
            seen += 1
        return seen

    def _periodic_emit(self, split: Any, clock_ms: int) -> None:
        self._to_valve(split, (clock_ms, math.inf, math.inf), self.operators[split].periodic_emit(clock_ms))

    def _to_valve(self, split: Any, place: tuple[int, float, float], emitted: list[Output]) -> None:
        channel, clock_ms = self.splits.index(split), place[0]
        for kind, value in emitted:
            if value == "idle":
                self.idle_since[split] = clock_ms
            elif value == "active":
                self.idle_spans.append((split, self.idle_since.pop(split), clock_ms))
            put = self.valve.input_watermark if kind == "watermark" else self.valve.input_watermark_status
            for merged_kind, merged in put(channel, value):
                self.merged.append((place, merged_kind, merged))
                if merged_kind == "watermark":
                    self.steps.append((clock_ms, int(merged)))
                    self.places.append(place)
            counting = {
                split: channel.watermark
                for split, channel in zip(self.splits, self.valve.channels, strict=True)
                if channel.aligned
            }
            least = min(counting.values(), default=None)
            self.holders.append((clock_ms, {split for split, own in counting.items() if own == least}))
            lowest = sorted(counting.values())[:2]
            lead = lowest[1] - lowest[0] if len(lowest) == 2 else 0
            self.leads.append((clock_ms, clock_ms - self.opened if lead and least == MIN_TIMESTAMP else lead))

    def place_of(self, event: int) -> tuple[int, float, float]:
        """Where the event of this number, in log order, lies in the total order."""
        return self.arrivals[event], self.splits.index(self.events[event].split), self.positions[event]

    def watermark_at(self, event: int) -> int:
        """The watermark in force for the event of this number, in log order."""
        place = self.place_of(event)
        return max(
            (watermark for at, (_, watermark) in zip(self.places, self.steps, strict=True) if at < place),
            default=MIN_TIMESTAMP,
        )

    def holders_of(self, arrival_ms: int) -> set[Any]:
        """The splits with the least watermark of those that count, as an event with this arrival finds them."""
        return next((splits for clock, splits in reversed(self.holders) if clock < arrival_ms), set())

    def watermark_of(self, arrival_ms: int) -> int:
        """The watermark in force for an event with this arrival."""
        return max(
            (watermark for clock, watermark in self.steps if clock < arrival_ms), default=MIN_TIMESTAMP
        )
