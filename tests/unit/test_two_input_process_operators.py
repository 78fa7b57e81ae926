"""Operators of process functions with two inputs, keyed, not keyed, and broadcast."""

from typing import Any

import pytest
from models.keyed_operators import Surroundings

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
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
)
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo

UNKEYED = StreamingRuntimeContext(TaskInfo("task"))


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


class Co(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return [(1, value, ctx.timer_service().current_watermark())]

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        if value == "bad":
            raise ValueError(value)
        return [(2, value, ctx.timestamp())]


def test_elements_of_two_streams_go_to_their_methods(around: Surroundings) -> None:
    operator = CoProcessOperator(Co(), around.output, around.clock)
    operator.open(UNKEYED)
    operator.process_watermark1(Watermark(9))
    operator.process_watermark2(Watermark(4))
    operator.process_element1(StreamRecord("a", 5))
    operator.process_element2(StreamRecord("b", 6))
    assert around.output.take() == [("watermark", 4), ("record", 5, (1, "a", 4)), ("record", 6, (2, "b", 6))]
    with pytest.raises(UserCodeError, match=r"Co.process_element2 failed at the element 'bad'"):
        operator.process_element2(StreamRecord("bad"))


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


def test_two_keyed_streams_share_state_and_timers_of_a_key(around: Surroundings) -> None:
    operator = KeyedCoProcessOperator(
        KeyedCo(),
        lambda value: value[0],
        lambda value: value,
        around.output,
        around.keyed_state,
        around.clock,
    )
    with pytest.raises(LifecycleError, match="before the operator was opened"):
        operator.process_element2(StreamRecord("a", 6))
    operator.open(around.runtime_context)
    operator.process_element1(StreamRecord("apple", 5))
    operator.process_element2(StreamRecord("a", 6))
    operator.process_element2(StreamRecord("b", 6))
    operator.process_watermark1(Watermark(99))
    operator.process_watermark2(Watermark(14))
    operator.process_watermark2(Watermark(15))
    assert around.output.take() == [
        ("record", 6, ("a", "apple")),
        ("record", 6, ("b", None)),
        ("watermark", 14),
        ("record", 15, ("a", 15, 15, TimeDomain.EVENT_TIME)),
        ("watermark", 15),
    ]
    assert operator.time_service_manager.num_event_time_timers() == 0


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


def test_a_broadcast_stream_gives_rules_to_the_other(around: Surroundings) -> None:
    operator = BroadcastProcessOperator(Rules(), [RULES], around.output, around.operator_state, around.clock)
    operator.open(UNKEYED)
    operator.process_element1(StreamRecord("a", 1))
    operator.process_element2(StreamRecord(("a", 5), 2))
    operator.process_watermark1(Watermark(3))
    operator.process_watermark2(Watermark(2))
    operator.process_element1(StreamRecord("a", 4))
    assert around.output.take() == [
        ("record", 1, ("a", None, (1, MIN_TIMESTAMP, 0))),
        ("watermark", 2),
        ("record", 4, ("a", 5, (4, 2, 0))),
    ]


def test_a_broadcast_state_that_was_not_declared_is_refused(around: Surroundings) -> None:
    operator = BroadcastProcessOperator(Rules(), [], around.output, around.operator_state, around.clock)
    operator.open(UNKEYED)
    with pytest.raises(UserCodeError, match="there is no broadcast state 'rules'"):
        operator.process_element1(StreamRecord("a", 1))


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


def test_a_keyed_stream_has_timers_beside_a_broadcast_one(around: Surroundings) -> None:
    operator = KeyedBroadcastProcessOperator(
        KeyedRules(),
        lambda value: value,
        [RULES],
        around.output,
        around.keyed_state,
        around.operator_state,
        around.clock,
    )
    operator.open(around.runtime_context)
    operator.process_element1(StreamRecord("a", 1))
    operator.process_element2(StreamRecord(7, 2))
    operator.process_element1(StreamRecord("a", 3))
    operator.process_watermark1(Watermark(20))
    operator.process_watermark2(Watermark(30))
    assert around.output.take() == [
        ("record", 1, ("a", None)),
        ("record", 3, ("a", 7)),
        ("record", 10, ("a", 2, 7)),
        ("record", 10, (10, TimeDomain.EVENT_TIME, 20)),
        ("watermark", 20),
    ]
    with pytest.raises(
        UserCodeError, match="process_broadcast_element failed at the element 'touch state' wi"
    ) as e:
        operator.process_element2(StreamRecord("touch state"))
    assert isinstance(e.value.__cause__, LifecycleError)
    assert operator.time_service_manager.num_event_time_timers() == 0
