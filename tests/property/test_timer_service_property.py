"""InternalTimerService against a model, with callbacks that change timers, snapshots and other parallelisms."""

from collections import deque
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
from equipment.example_counts import examples
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from models.timer_service import MAX_TIMESTAMP, TimerRow, TimerServiceModel, int_key_group

from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.timers import InternalTimer, InternalTimerService
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

MAX_PARALLELISM = 4
DOMAINS = st.sampled_from(["event", "processing"])
KEYS = st.integers(0, 9)
NAMESPACES = st.one_of(st.none(), st.integers(0, 5), st.tuples(st.integers(0, 2)))
TIMESTAMPS = st.one_of(st.integers(-5, 40), st.just(MAX_TIMESTAMP))
TIMES = st.one_of(st.integers(-6, 41), st.just(MAX_TIMESTAMP))
CHANGES = st.lists(st.tuples(st.booleans(), DOMAINS, NAMESPACES, TIMESTAMPS), max_size=3)

Change = tuple[bool, str, Any, int]  # register or delete, domain, namespace, timestamp


class Part:
    """A service of some key groups, and its model; what fires in either, and in what order."""

    def __init__(self, machine: "TimerServices", key_groups: tuple[int, int], now: int) -> None:
        self.machine = machine
        self.key_groups = key_groups
        self.clock = DrivenProcessingTimeService(now)
        self.key_context = KeyContext(MAX_PARALLELISM, key_groups, first_sweep=2)
        self.service = InternalTimerService("timers", self.key_context, self.clock, first_namespace_sweep=2)
        self.model = TimerServiceModel(now, machine.model_fires)

    def start(self) -> None:
        self.service.start(self)
        self.model.start()

    def change(self, register: bool, domain: str, namespace: Any, timestamp: int) -> None:
        service = self.service
        if domain == "event":
            act = service.register_event_time_timer if register else service.delete_event_time_timer
        else:
            act = service.register_processing_time_timer if register else service.delete_processing_time_timer
        act(namespace, timestamp)

    def event_time_timers(self) -> list[TimerRow]:
        found: list[TimerRow] = []
        keys = self.key_context
        self.service.for_each_event_time_timer(lambda ns, ts: found.append((ts, keys.current_key, ns)))
        return found

    def processing_time_timers(self) -> list[TimerRow]:
        found: list[TimerRow] = []
        keys = self.key_context
        self.service.for_each_processing_time_timer(lambda ns, ts: found.append((ts, keys.current_key, ns)))
        return found

    def on_event_time(self, timer: InternalTimer) -> None:
        self.fires("event", timer)

    def on_processing_time(self, timer: InternalTimer) -> None:
        self.fires("processing", timer)

    def fires(self, domain: str, timer: InternalTimer) -> None:
        assert self.key_context.current_key == timer.key
        assert self.key_context.current_key_group == int_key_group(timer.key, MAX_PARALLELISM)
        row = (timer.timestamp_ms, timer.key, timer.namespace)
        self.machine.fired.append(
            (domain, row, self.service.current_watermark(), self.service.current_processing_time())
        )
        for change in self.machine.plan.popleft() if self.machine.plan else ():
            self.change(*change)


class TimerServices(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.fired: list[Any] = []
        self.expected: list[Any] = []
        self.plan: deque[list[Change]] = deque()
        self.model_plan: deque[list[Change]] = deque()
        self.parts = [Part(self, (0, MAX_PARALLELISM - 1), 0)]
        self.parts[0].start()

    def model_fires(self, model: TimerServiceModel, domain: str, row: TimerRow) -> None:
        self.expected.append((domain, row, model.watermark, model.now))
        for change in self.model_plan.popleft() if self.model_plan else ():
            change_model(model, row[1], change)

    @rule(key=KEYS, changes=CHANGES)
    def change(self, key: int, changes: list[Change]) -> None:
        group = int_key_group(key, MAX_PARALLELISM)
        part = next(part for part in self.parts if part.key_groups[0] <= group <= part.key_groups[1])
        part.key_context.set_current_key(key)
        for change in changes:
            part.change(*change)
            change_model(part.model, key, change)

    @rule(changes=CHANGES)
    def change_timers_in_a_coming_callback(self, changes: list[Change]) -> None:
        self.plan.append(changes)
        self.model_plan.append(changes)

    @rule(watermark=TIMES)
    def advance_watermark(self, watermark: int) -> None:
        for part in self.parts:
            part.service.advance_watermark(watermark)
            part.model.advance_watermark(watermark)

    @rule(time=TIMES)
    def advance_clock(self, time: int) -> None:
        for part in self.parts:
            part.clock.advance_to(time)
            part.model.advance_clock(time)

    @rule(cuts=st.sets(st.integers(1, MAX_PARALLELISM - 1)), by_key_group=st.booleans())
    def rescale(self, cuts: set[int], by_key_group: bool) -> None:
        bounds = [0, *sorted(cuts), MAX_PARALLELISM]
        old, now = self.parts, self.parts[0].model.now
        self.parts = [Part(self, (a, b - 1), now) for a, b in pairwise(bounds)]
        for part in old:
            first, last = part.key_groups
            ranges = [(group, group) for group in range(first, last + 1)] if by_key_group else [(first, last)]
            for key_groups in ranges:
                snapshot = part.service.snapshot(key_groups)
                for new in self.parts:
                    new.service.restore(snapshot)
                    restore_model(new, part.model, key_groups)
        for part in self.parts:
            part.start()

    @invariant()
    def services_and_models_agree(self) -> None:
        assert self.fired == self.expected
        for part in self.parts:
            found = {"event": part.event_time_timers(), "processing": part.processing_time_timers()}
            assert found == part.model.timers
            assert part.service.num_event_time_timers() == len(found["event"])
            assert part.service.num_processing_time_timers(None) == sum(
                ns is None for _, _, ns in found["processing"]
            )
            assert part.clock.pending_timers == (part.model.clock_timer is not None)
            part.service._check()


def change_model(model: TimerServiceModel, key: int, change: Change) -> None:
    register, domain, namespace, timestamp = change
    (model.register if register else model.delete)(domain, (timestamp, key, namespace))


def restore_model(part: Part, of: TimerServiceModel, key_groups: tuple[int, int]) -> None:
    first, last = max(key_groups[0], part.key_groups[0]), min(key_groups[1], part.key_groups[1])
    for domain, timers in of.timers.items():
        part.model.timers[domain] += [
            timer for timer in timers if first <= int_key_group(timer[1], MAX_PARALLELISM) <= last
        ]


TestTimerServices = TimerServices.TestCase
TestTimerServices.settings = settings(deadline=None, max_examples=examples(50), stateful_step_count=40)
