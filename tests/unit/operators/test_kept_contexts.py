"""Contexts that functions keep: they answer during a call, and refuse outside of one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import MIN_TIMESTAMP, Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.functions import (
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.window import EventTimeTrigger, WindowOperation
from flinkcore.errors import LifecycleError, UserCodeError
from flinkcore.testing import (
    for_broadcast_process_function,
    for_co_process_function,
    for_interval_join,
    for_keyed_broadcast_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_process_function,
    for_window_operation,
)

RULES = MapStateDescriptor("rules")
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))


class Keeping:
    """Keeps what each method is called with, and asks it during the call, also while results are taken."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.told: list[Any] = []

    def _keep(self, name: str, ctx: Any, *methods: str) -> Any:
        self.kept[name] = ctx
        for _ in range(2):
            self.told.append([getattr(ctx, method)() for method in methods])
            yield name

    def process_element(self, value: Any, ctx: Any) -> Any:
        if hasattr(ctx, "timer_service") and hasattr(ctx, "get_current_key"):
            ctx.timer_service().register_event_time_timer(20)
        return self._keep("element", ctx, "timestamp")

    process_element1 = process_element

    def process_element2(self, value: Any, ctx: Any) -> Any:
        return self._keep("second", ctx, "timestamp")

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return self._keep("broadcast", ctx, "timestamp")

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        with pytest.raises(LifecycleError):
            self.kept["element"].timestamp()
        return self._keep("timer", ctx, "timestamp", "time_domain", "get_current_key")


class Simple(Keeping, ProcessFunction): ...


class Keyed(Keeping, KeyedProcessFunction): ...


class Co(Keeping, CoProcessFunction): ...


class KeyedCo(Keeping, KeyedCoProcessFunction): ...


class Rules(Keeping, BroadcastProcessFunction): ...


class KeyedRules(Keeping, KeyedBroadcastProcessFunction): ...


def key_of(value: Any) -> Any:
    return value


ONE_INPUT: list[tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = [
    (Simple, for_process_function),
    (Keyed, lambda function: for_keyed_process_function(function, key_of)),
]
TWO_INPUTS: list[tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = [
    (Co, for_co_process_function),
    (KeyedCo, lambda function: for_keyed_co_process_function(function, key_of, key_of)),
    (Rules, lambda function: for_broadcast_process_function(function, RULES)),
    (KeyedRules, lambda function: for_keyed_broadcast_process_function(function, key_of, RULES)),
]


def refuses_all(contexts: dict[str, Any]) -> int:
    """Assert that contexts refuse all that is of an element, a timer or a window; return how many questions."""
    questions = [
        (context, method)
        for context in contexts.values()
        for method in ("timestamp", "get_current_key", "time_domain", "window", "window_state")
        if hasattr(context, method)
    ]
    for context, method in questions:
        with pytest.raises(LifecycleError, match=rf"^{method}\(\) is asked of a context outside of the call"):
            getattr(context, method)()
    return len(questions)


@pytest.mark.parametrize(("kind", "harness_of"), ONE_INPUT)
def test_a_context_refuses_between_elements(kind: Any, harness_of: Any) -> None:
    function = kind()
    with harness_of(function) as harness:
        harness.process_element("a", 7)
        assert function.told == [[7], [7]]
        assert refuses_all(function.kept) == (2 if kind is Keyed else 1)
        harness.process_element("b")
        assert function.told[2:] == [[MIN_TIMESTAMP], [MIN_TIMESTAMP]]
        harness.process_watermark(30)
        assert refuses_all(function.kept) == (5 if kind is Keyed else 1)


@pytest.mark.parametrize(("kind", "harness_of"), TWO_INPUTS)
def test_contexts_of_two_inputs_refuse_between_elements(kind: Any, harness_of: Any) -> None:
    function = kind()
    with harness_of(function) as harness:
        if isinstance(function, Rules | KeyedRules):
            harness.process_element("a", 7)
            harness.process_broadcast_element("b", 8)
        else:
            harness.process_element1("a", 7)
            harness.process_element2("b", 8)
        assert function.told == [[7], [7], [8], [8]]
        assert refuses_all(function.kept) == {Co: 2, KeyedCo: 4, Rules: 2, KeyedRules: 3}[kind]
        harness.process_both_watermarks(30)
        assert refuses_all(function.kept) == {Co: 2, KeyedCo: 7, Rules: 2, KeyedRules: 6}[kind]


def test_a_context_refuses_after_a_call_that_failed() -> None:
    class Failing(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            self.kept = ctx
            raise ValueError(value)

    function = Failing()
    with for_process_function(function) as harness:
        with pytest.raises(UserCodeError):
            harness.process_element("a", 7)
        with pytest.raises(LifecycleError):
            function.kept.timestamp()


def test_a_timer_service_may_be_kept() -> None:
    class KeepsTimers(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            self.timers = getattr(self, "timers", None) or ctx.timer_service()
            self.timers.register_event_time_timer(ctx.timestamp())

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            return [(ctx.get_current_key(), timestamp)]

    with for_keyed_process_function(KeepsTimers(), key_of) as harness:
        harness.process_element("a", 1)
        harness.process_element("b", 2)
        harness.process_watermark(2)
        assert [record.value for record in harness.extract_output_stream_records()] == [("a", 1), ("b", 2)]


def test_a_context_of_pairs_refuses_between_them() -> None:
    class Pairs(ProcessJoinFunction[str, str]):
        def process_element(self, left: str, right: str, ctx: Any) -> Any:
            self.kept = ctx
            yield ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()

    function = Pairs()
    with for_interval_join(IntervalJoinOperation(-2, 2, function), key_of, key_of) as harness:
        harness.process_element1("a", 5)
        harness.process_element2("a", 6)
        assert [record.value for record in harness.extract_output_stream_records()] == [(5, 6, 6)]
        for method in ("get_left_timestamp", "get_right_timestamp", "get_timestamp"):
            with pytest.raises(LifecycleError, match=method):
                getattr(function.kept, method)()


@pytest.mark.parametrize("kind", [ProcessWindowFunction, ProcessAllWindowFunction])
def test_a_context_of_windows_refuses_between_them(kind: Any) -> None:
    class Windows(kind):  # type: ignore[misc]
        def process(self, *arguments: Any) -> Any:
            self.kept = arguments[-2]
            yield self.kept.window().start

        def clear(self, context: Any) -> None:
            self.cleared = context.window().start

    function = Windows()
    operation = WindowOperation(WINDOWS, EventTimeTrigger(), window_function=function)
    with for_window_operation(operation, key_of) as harness:
        harness.process_element("a", 5)
        harness.process_watermark(9)
        assert [record.value for record in harness.extract_output_stream_records()] == [0]
        assert function.cleared == 0
        assert refuses_all({"window": function.kept}) == 2
        assert function.kept.current_watermark() == 9


class AsksLater(KeyedProcessFunction):
    """Asks the context of an element when a timer fires."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.kept = ctx
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.kept.timestamp()


def test_jobs_name_the_function_that_asks_a_kept_context() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    log = env.from_event_log(pa.table({"user": ["a"], "ts": [5]}), timestamp="ts")
    over_log = log.assign_timestamps_and_watermarks(strategy).key_by("user")
    with pytest.raises(
        UserCodeError, match=r"AsksLater.on_timer failed at .*timestamp\(\) is asked of a context"
    ):
        over_log.process(AsksLater(), pa.schema({"n": pa.int64()})).to_arrow()
    elements = env.from_collection([("a", 5)]).assign_timestamps_and_watermarks(strategy)
    with pytest.raises(
        UserCodeError, match=r"AsksLater.on_timer failed at .*timestamp\(\) is asked of a context"
    ):
        list(elements.key_by(lambda value: value[0]).process(AsksLater()).execute_and_collect())
