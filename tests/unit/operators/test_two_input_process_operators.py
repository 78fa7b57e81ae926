"""Operators of process functions with two inputs, keyed, not keyed, and broadcast."""

from typing import Any

import pytest

from flinkcore.common import MIN_TIMESTAMP, Watermark
from flinkcore.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    TimeDomain,
)
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.errors import LifecycleError, UserCodeError
from flinkcore.testing import (
    StreamRecord,
    for_broadcast_process_function,
    for_co_process_function,
    for_keyed_broadcast_process_function,
    for_keyed_co_process_function,
)


class Co(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return [(1, value, ctx.timer_service().current_watermark())]

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        if value == "bad":
            raise ValueError(value)
        return [(2, value, ctx.timestamp())]


def test_elements_of_two_streams_go_to_their_methods() -> None:
    with for_co_process_function(Co()) as harness:
        harness.process_watermark1(9)
        harness.process_watermark2(4)
        harness.process_element1("a", 5)
        harness.process_element2("b", 6)
        assert harness.get_output() == [
            Watermark(4),
            StreamRecord((1, "a", 4), 5),
            StreamRecord((2, "b", 6), 6),
        ]
        with pytest.raises(UserCodeError, match=r"Co.process_element2 failed at the element 'bad'"):
            harness.process_element2("bad")


class KeyedCo(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        self.seen.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return [(ctx.get_current_key(), self.seen.value())]

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        return [(ctx.get_current_key(), timestamp, ctx.timestamp(), ctx.time_domain())]


def test_two_keyed_streams_share_state_and_timers_of_a_key() -> None:
    with for_keyed_co_process_function(KeyedCo(), lambda value: value[0], lambda value: value) as harness:
        harness.process_element1("apple", 5)
        harness.process_element2("a", 6)
        harness.process_element2("b", 6)
        harness.process_watermark1(99)
        harness.process_watermark2(14)
        harness.process_watermark2(15)
        assert harness.get_output() == [
            StreamRecord(("a", "apple"), 6),
            StreamRecord(("b", None), 6),
            Watermark(14),
            StreamRecord(("a", 15, 15, TimeDomain.EVENT_TIME), 15),
            Watermark(15),
        ]
        assert harness.num_event_time_timers() == 0


# ---- broadcast ----

RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")


class Rules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        rules = ctx.get_broadcast_state(RULES)
        assert not hasattr(rules, "put")
        times = ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()
        return [(value, rules.get(value), times)]

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)


def test_a_broadcast_stream_gives_rules_to_the_other() -> None:
    with for_broadcast_process_function(Rules(), RULES) as harness:
        harness.process_element("a", 1)
        harness.process_broadcast_element(("a", 5), 2)
        harness.process_watermark(3)
        harness.process_broadcast_watermark(2)
        harness.process_element("a", 4)
        assert harness.get_output() == [
            StreamRecord(("a", None, (1, MIN_TIMESTAMP, 0)), 1),
            Watermark(2),
            StreamRecord(("a", 5, (4, 2, 0)), 4),
        ]


def test_a_broadcast_state_that_was_not_declared_is_refused() -> None:
    with (
        for_broadcast_process_function(Rules()) as harness,
        pytest.raises(UserCodeError, match="there is no broadcast state 'rules'"),
    ):
        harness.process_element("a", 1)


class KeyedRules(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        return [(ctx.get_current_key(), ctx.get_broadcast_state(RULES).get("limit"))]

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        if value == "touch state":
            self.count.update(5)
        ctx.get_broadcast_state(RULES).put("limit", value)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), self.count.value(), ctx.get_broadcast_state(RULES).get("limit")
        yield ctx.timestamp(), ctx.time_domain(), ctx.current_watermark()


def test_a_keyed_stream_has_timers_beside_a_broadcast_one() -> None:
    with for_keyed_broadcast_process_function(KeyedRules(), lambda value: value, RULES) as harness:
        harness.process_element("a", 1)
        harness.process_broadcast_element(7, 2)
        harness.process_element("a", 3)
        harness.process_watermark(20)
        harness.process_broadcast_watermark(30)
        assert harness.get_output() == [
            StreamRecord(("a", None), 1),
            StreamRecord(("a", 7), 3),
            StreamRecord(("a", 2, 7), 10),
            StreamRecord((10, TimeDomain.EVENT_TIME, 20), 10),
            Watermark(20),
        ]
        with pytest.raises(
            UserCodeError, match="process_broadcast_element failed at the element 'touch state' wi"
        ) as e:
            harness.process_broadcast_element("touch state")
        assert isinstance(e.value.__cause__, LifecycleError)
        assert harness.num_event_time_timers() == 0
