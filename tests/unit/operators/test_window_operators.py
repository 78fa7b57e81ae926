"""Window operators: functions, lateness, settings, and what is said when a function fails."""

from collections.abc import Iterable
from typing import Any

import pytest
from jobs.window_programs import (
    SIDE,
    TEN,
    Count,
    Elements,
    Given,
    Sum,
    Surroundings,
    record,
    values,
    windows_of,
)

from flinkcore.common import MAX_TIMESTAMP, Watermark
from flinkcore.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    RuntimeContext,
    WindowContext,
    WindowFunction,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    CountEvictor,
    CumulativeEventTimeWindows,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    NeverTrigger,
    PurgingTrigger,
    TimeWindow,
    WindowOperation,
)
from flinkcore.errors import ConfigurationError, LifecycleError, UserCodeError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.windowing import WindowOperator, make_window_operator


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


# ---- functions ----


class Applied(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        return [(key, window, list(inputs))]


class AppliedToAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
        return [(window, list(inputs))]


class ProcessedAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        yield context.window(), context.current_watermark(), list(elements)


FIRST = TimeWindow(0, 10)


@pytest.mark.parametrize(
    ("functions", "result"),
    [
        ({"window_function": Applied()}, ("a", FIRST, [("a", 1), ("a", 2)])),
        ({"window_function": AppliedToAll()}, (FIRST, [("a", 1), ("a", 2)])),
        ({"window_function": ProcessedAll()}, (FIRST, 9, [("a", 1), ("a", 2)])),
        ({"pre_aggregation": Sum()}, ("a", 3)),
        ({"pre_aggregation": Count()}, 2),
        ({"pre_aggregation": Count(), "window_function": Applied()}, ("a", FIRST, [2])),
        ({"pre_aggregation": Sum(), "window_function": ProcessedAll()}, (FIRST, 9, [("a", 3)])),
    ],
)
@pytest.mark.parametrize("evictor", [None, CountEvictor.of(5)])
def test_a_window_gives_what_its_functions_make_of_it(
    around: Surroundings, functions: dict[str, Any], result: Any, evictor: Any
) -> None:
    operator = around.windows(windows_of(TEN, evictor=evictor, **functions))
    operator.process_element(record("a", 1, 0))
    operator.process_element(record("a", 2, 5))
    operator.process_watermark(Watermark(9))
    assert around.output.take() == [("record", 9, result), ("watermark", 9)]


def test_functions_are_opened_before_elements_come_and_closed_once(around: Surroundings) -> None:
    calls: list[Any] = []

    class Opened(Applied):
        def open(self, runtime_context: RuntimeContext) -> None:
            calls.append(runtime_context.get_task_name())

        def close(self) -> None:
            calls.append("closed")

    class OpenedToo(Count):
        open = Opened.open
        close = Opened.close

    operator = around.windows(windows_of(TEN, pre_aggregation=OpenedToo(), window_function=Opened()))
    assert calls == ["task", "task"]
    operator.close()
    assert calls == ["task", "task", "closed", "closed"]


def test_results_of_a_window_carry_its_largest_timestamp_in_side_outputs_too(around: Surroundings) -> None:
    def both(context: Any, elements: Any) -> Any:
        yield 1
        yield SIDE, 2

    operator = around.windows(windows_of(TEN, window_function=Given(both)))
    operator.process_element(record("a", 1, 3))
    operator.process_watermark(Watermark(100))
    assert around.output.take() == [("record", 9, 1), ("side", 9, 2, "side"), ("watermark", 100)]


def test_a_result_of_none_is_no_record(around: Surroundings) -> None:
    class Nothing(Count):
        def get_result(self, accumulator: int) -> Any:
            return None

    operator = around.windows(windows_of(TEN, pre_aggregation=Nothing()))
    operator.process_element(record("a", 1, 3))
    operator.process_watermark(Watermark(9))
    assert around.output.take() == [("watermark", 9)]


def test_an_accumulator_of_none_empties_the_pane(around: Surroundings) -> None:
    class ForgetsAtThree(Count):
        def add(self, value: Any, accumulator: int) -> Any:
            return None if value[1] == 3 else accumulator + 1

    operator = around.windows(windows_of(TEN, pre_aggregation=ForgetsAtThree()))
    for value in (1, 2, 3, 4):
        operator.process_element(record("a", value, 5))
        around.keyed_state._check()
    for value in (1, 3):
        operator.process_element(record("b", value, 5))
    operator.process_watermark(Watermark(9))
    assert values(around) == [1]


# ---- failing functions ----


def drive(operator: WindowOperator, element: StreamRecord[Any]) -> None:
    operator.process_element(element)
    operator.process_watermark(Watermark(50))


class Failing(Count):
    def add(self, value: Any, accumulator: int) -> int:
        if value[1] == 13:
            raise ValueError("unlucky")
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        if accumulator == 2:
            raise ValueError("two")
        return accumulator


@pytest.mark.parametrize("assigner", [TEN, EventTimeSessionWindows(10)])
@pytest.mark.parametrize("evictor", [None, CountEvictor.of(5)])
def test_an_aggregate_function_that_raises_is_named(
    around: Surroundings, assigner: Any, evictor: Any
) -> None:
    operator = around.windows(windows_of(assigner, evictor=evictor, pre_aggregation=Failing()))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(UserCodeError, match=r"Failing.* failed at .* of the key 'a'.*: ValueError: unlucky"):
        drive(operator, record("a", 13, 1))
    other = Surroundings()
    operator = other.windows(windows_of(assigner, evictor=evictor, pre_aggregation=Failing()))
    for _ in range(2):
        operator.process_element(record("a", 1, 1))
    with pytest.raises(UserCodeError, match=r"Failing.* failed at the window .* of the key 'a'.*: two"):
        operator.process_watermark(Watermark(50))


def test_a_window_function_that_raises_or_gives_no_iterable_is_named(around: Surroundings) -> None:
    operator = around.windows(windows_of(TEN, window_function=Given(lambda context, elements: elements[9])))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(
        UserCodeError,
        match=r"Given.process failed at the window TimeWindow\(start=0, end=10\) of the key 'a': Index",
    ):
        operator.process_watermark(Watermark(9))
    other = Surroundings()
    operator = other.windows(windows_of(TEN, window_function=Given(lambda context, elements: 5)))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(UserCodeError, match=r"Given.process gave 5 at the window .* Yield elements"):
        operator.process_watermark(Watermark(9))


def test_windows_that_merge_have_no_state_of_their_own(around: Surroundings) -> None:
    def ask(context: WindowContext[Any], elements: Any) -> Any:
        context.window_state().get_state(ValueStateDescriptor("seen"))

    operator = around.windows(windows_of(EventTimeSessionWindows(10), window_function=Given(ask)))
    operator.process_element(record("a", 1, 1))
    with pytest.raises(
        UserCodeError, match=r"per-window state 'seen' is not possible with windows that merge"
    ):
        operator.process_watermark(Watermark(50))


# ---- settings ----


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"assigner": EventTimeSessionWindows(5), "trigger": NeverTrigger()},
            "NeverTrigger does not support merging",
        ),
        (
            {"assigner": EventTimeSessionWindows(5), "trigger": DeltaTrigger.of(1, lambda a, b: 0)},
            "DeltaTrigger does not support merging",
        ),
        (
            {"assigner": EventTimeSessionWindows(5), "trigger": PurgingTrigger.of(NeverTrigger())},
            "PurgingTrigger does not support merging",
        ),
        ({"allowed_lateness_ms": -1}, "allowed_lateness cannot be negative"),
        ({"allowed_lateness_ms": 2**63}, "beyond 64 bits"),
        ({"allowed_lateness_ms": 1.5}, "allowed lateness must be a whole number of milliseconds"),
        ({"trigger": "count"}, "a trigger is one such as"),
        ({"assigner": 10}, "takes an assigner"),
        ({"evictor": 10}, "an evictor is one such as"),
        ({"late_tag": "late"}, "late rows go to an OutputTag"),
        ({"pre_aggregation": lambda a, b: a}, "reduce by a ReduceFunction"),
        ({"window_function": len}, "a function over windows is a WindowFunction"),
        ({"window_function": None}, "windows need a function"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WindowOperation(
            **{"assigner": TEN, "trigger": EventTimeTrigger(), "window_function": Elements(), **settings}
        )


def test_an_operator_without_a_key_selector_takes_elements_with_their_keys(around: Surroundings) -> None:
    operator = make_window_operator(
        windows_of(TEN, pre_aggregation=Count()), None, around.output, around.keyed_state, around.clock
    )
    operator.open(around.runtime_context)
    operator.process_element_of_key("k", record("a", 1, 1))
    with pytest.raises(ConfigurationError, match="no key selector"):
        operator.process_element(record("a", 1, 1))
    operator.process_watermark(Watermark(9))
    assert values(around) == [1]


def test_elements_before_the_operator_is_open_are_refused(around: Surroundings) -> None:
    operator = make_window_operator(
        windows_of(TEN), lambda element: element[0], around.output, around.keyed_state, around.clock
    )
    with pytest.raises(LifecycleError, match="before the operator was opened"):
        operator.process_element(record("a", 1, 1))


def test_late_elements_are_counted_unless_they_have_a_side_output(around: Surroundings) -> None:
    operator = around.windows(windows_of(TEN, pre_aggregation=Count()))
    operator.process_watermark(Watermark(9))
    operator.process_element(record("a", 1, 9))
    assert operator.num_late_records_dropped == 1
    other = Surroundings()
    operator = other.windows(windows_of(TEN, pre_aggregation=Count(), late_tag=SIDE))
    operator.process_watermark(Watermark(9))
    operator.process_element(record("a", 1, 9))
    assert operator.num_late_records_dropped == 0
    assert other.output.take() == [("watermark", 9), ("side", 9, ("a", 1), "side")]


def test_nothing_is_left_when_all_windows_have_ended() -> None:
    for assigner in (TEN, EventTimeSessionWindows(10), CumulativeEventTimeWindows(20, 5)):
        surroundings = Surroundings()
        operator = surroundings.windows(windows_of(assigner, allowed_lateness_ms=7))
        for timestamp in (0, 3, 11, 12, 4, 30):
            operator.process_element(record("a", timestamp, timestamp))
        operator.process_watermark(Watermark(MAX_TIMESTAMP))
        assert operator.time_service_manager.num_event_time_timers() == 0
        assert all(not held.values for held in surroundings.keyed_state.snapshot().values())
