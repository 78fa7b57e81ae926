"""Triggers of the user's own: their state, and what is said when they fail."""

from typing import Any

import pytest
from jobs.window_programs import TEN, Sum, Surroundings, record, values, windows_of

from flinkcore.common import Time, Watermark, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.state import ReducingStateDescriptor, StateTtlConfig, ValueStateDescriptor
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
)
from flinkcore.errors import TimerError, UserCodeError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.windowing import WindowOperator


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


# ---- custom triggers ----


def drive(operator: WindowOperator, records: list[StreamRecord[Any]]) -> None:
    for element in records:
        operator.process_element(element)
    operator.process_watermark(Watermark(50))


class Scripted(Trigger[Any, Any]):
    """Gives what a test wants, or raises it."""

    def __init__(self, **results: Any) -> None:
        self.results = results

    def _result(self, method: str) -> Any:
        result = self.results.get(method, TriggerResult.CONTINUE)
        if isinstance(result, Exception):
            raise result
        return result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        ctx.register_event_time_timer(window.max_timestamp() - 1)
        return self._result("on_element")

    def on_event_time(self, time: int, window: Any, ctx: Any) -> Any:
        return self._result("on_event_time")

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> Any:
        return self._result("on_processing_time")

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        self._result("on_merge")

    def clear(self, window: Any, ctx: Any) -> None:
        self._result("clear")


@pytest.mark.parametrize(
    ("method", "assigner"),
    [("on_element", TEN), ("on_event_time", TEN), ("clear", TEN), ("on_merge", EventTimeSessionWindows(10))],
)
def test_a_trigger_that_raises_is_named_with_key_and_subject(
    around: Surroundings, method: str, assigner: Any
) -> None:
    trigger = Scripted(**{method: ValueError("no")})
    operator = around.windows(windows_of(assigner, trigger=trigger))
    with pytest.raises(
        UserCodeError, match=rf"Scripted.{method} failed at .* of the key 'a'.*: ValueError: no"
    ):
        drive(operator, [record("a", 1, 1), record("a", 1, 4)])


@pytest.mark.parametrize("method", ["on_element", "on_event_time"])
@pytest.mark.parametrize("result", [None, True, (True, False), "FIRE"])
def test_a_trigger_that_gives_no_trigger_result_is_an_error(
    around: Surroundings, method: str, result: Any
) -> None:
    operator = around.windows(windows_of(TEN, trigger=Scripted(**{method: result})))
    with pytest.raises(UserCodeError, match=rf"Scripted.{method} gave .* return a TriggerResult"):
        drive(operator, [record("a", 1, 1)])


def test_a_trigger_of_processing_time_that_raises_is_named(around: Surroundings) -> None:
    class AtTwenty(Scripted):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
            ctx.register_processing_time_timer(20)
            return TriggerResult.CONTINUE

    operator = around.windows(windows_of(TEN, trigger=AtTwenty(on_processing_time=KeyError("x"))))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(TimerError, match=r"AtTwenty.on_processing_time failed at the window TimeWindow"):
        around.clock.advance_to(20)


class FiresAtLimit(Trigger[Any, Any]):
    """Fires when the values of a window, merged ones included, come to ten."""

    TOTAL: Any = ReducingStateDescriptor("total", lambda a, b: a + b)

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        total = ctx.get_partitioned_state(self.TOTAL)
        total.add(element[1])
        return TriggerResult.FIRE_AND_PURGE if total.get() >= 10 else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.TOTAL)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.TOTAL).clear()


def test_the_state_of_a_trigger_belongs_to_key_and_window_and_is_merged(around: Surroundings) -> None:
    operator = around.windows(windows_of(EventTimeSessionWindows(10), trigger=FiresAtLimit()))
    operator.process_element(record("a", 4, 0))
    operator.process_element(record("b", 9, 0))
    operator.process_element(record("a", 5, 18))
    assert values(around) == []
    operator.process_element(record("a", 1, 9))  # bridges the sessions of a
    ((key, window, held),) = values(around)
    assert (key, window, sorted(held)) == ("a", TimeWindow(0, 28), [1, 4, 5])
    operator.process_watermark(Watermark(100))
    assert around.keyed_state.snapshot()["total"].values == []


def test_the_state_of_a_trigger_is_merged_if_it_has_a_time_to_live_too(around: Surroundings) -> None:
    class Living(FiresAtLimit):
        TOTAL = ReducingStateDescriptor("total", lambda a, b: a + b)

    Living.TOTAL.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(50)).build())
    operator = around.windows(windows_of(EventTimeSessionWindows(10), trigger=Living()))
    operator.process_element(record("a", 4, 0))
    around.clock.advance_to(30)
    operator.process_element(record("a", 5, 18))
    operator.process_element(record("a", 1, 9))  # bridges the sessions, both of which live
    assert len(values(around)) == 1
    operator.process_element(record("a", 9, 40))
    around.clock.advance_to(80)
    operator.process_element(record("a", 1, 50))  # joins a session whose total has expired
    assert values(around) == []


def test_a_trigger_that_merges_what_does_not_merge_is_an_error(around: Surroundings) -> None:
    class MergesValue(FiresAtLimit):
        def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
            ctx.merge_partitioned_state(ValueStateDescriptor("value"))

    operator = around.windows(windows_of(EventTimeSessionWindows(10), trigger=MergesValue()))
    operator.process_element(record("a", 4, 0))
    with pytest.raises(
        UserCodeError, match=r"'value' is a value state, which does not merge: .* or list state$"
    ):
        operator.process_element(record("a", 4, 5))


def test_a_trigger_that_fires_at_every_element_gives_all_that_came_so_far(around: Surroundings) -> None:
    operator = around.windows(
        windows_of(GlobalWindows.create(), trigger=CountTrigger.of(1), pre_aggregation=Sum())
    )
    for value in (1, 2, 3):
        operator.process_element(record("a", value))
    assert values(around) == [("a", 1), ("a", 3), ("a", 6)]


def test_a_subclass_of_a_built_in_trigger_is_asked(around: Surroundings) -> None:
    class Eager(EventTimeTrigger):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            super().on_element(element, timestamp, window, ctx)
            return TriggerResult.FIRE

    operator = around.windows(windows_of(TEN, trigger=Eager(), pre_aggregation=Sum()))
    for value in (1, 2):
        operator.process_element(record("a", value, 4))
    operator.process_watermark(Watermark(9))
    assert values(around) == [("a", 1), ("a", 3), ("a", 3)]


class LaterByThree(ContinuousEventTimeTrigger):
    """Says itself when it fires next, as a trigger of PyFlink's may."""

    def register_next_fire_timestamp(
        self, time: int, window: Any, ctx: Any, fire_timestamp_state: Any
    ) -> None:
        super().register_next_fire_timestamp(time + 3, window, ctx, fire_timestamp_state)


@pytest.mark.parametrize(("trigger", "firings"), [(ContinuousEventTimeTrigger(2), 2), (LaterByThree(2), 1)])
def test_a_continuous_trigger_may_say_itself_when_it_fires_next(
    around: Surroundings, trigger: ContinuousEventTimeTrigger, firings: int
) -> None:
    operator = around.windows(windows_of(TEN, trigger=trigger, pre_aggregation=Sum()))
    operator.process_element(record("a", 1, timestamp=1))
    operator.process_watermark(Watermark(5))
    assert values(around) == [("a", 1)] * firings


class CountsItsElements(EventTimeTrigger):
    """Has a metric of its own."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.get_metric_group().counter("elements").inc()
        return super().on_element(element, timestamp, window, ctx)


def test_a_trigger_may_have_metrics() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = (
        env.from_collection([("a", 1), ("a", 2)])
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by(lambda pair: pair[0])
        .window(EventTimeSessionWindows(10))
        .trigger(CountsItsElements())
    )
    windows.reduce(lambda one, other: one).name("sessions").print()
    assert env.execute().metrics["sessions.elements"] == 2
