"""Harnesses of every kind of operator: what goes in, what comes out, and what is said about mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from equipment.operators import Forward, Union
from jobs.golden_generators import LegacyBounded

from flinkcore.common import (
    MAX_TIMESTAMP,
    Duration,
    OutputTag,
    Time,
    TimestampAssigner,
    Watermark,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkcore.datastream.state import (
    MapStateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.datastream.timestamps import AssignerWithPunctuatedWatermarks
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, TimerError, UserCodeError
from flinkcore.testing import (
    BroadcastOperatorTestHarness,
    OneInputStreamOperatorTestHarness,
    StreamOperatorParameters,
    StreamRecord,
    TaskInfo,
    TwoInputStreamOperatorTestHarness,
    WatermarkStatus,
    assert_output,
    for_broadcast_process_function,
    for_co_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_process_function,
    for_watermark_strategy,
)

SIDE = OutputTag("side")
RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")


class Body(ProcessFunction):
    """Runs a function given by a test."""

    def __init__(self, body: Callable[[Any, Any], Any] = lambda value, ctx: [value]) -> None:
        self.body = body
        self.n_closed = 0

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return self.body(value, ctx)

    def close(self) -> None:
        self.n_closed += 1


class Count(KeyedProcessFunction):
    """Counts per key, and tells at a timer of each domain."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor[int]("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(100)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), self.count.value()


def first(value: Any) -> Any:
    return value[0]


# ---- operators with one input ----


def test_everything_that_an_operator_emits_is_kept_in_order() -> None:
    def body(value: Any, ctx: Any) -> Iterator[Any]:
        yield value + 1
        yield SIDE, value

    with for_process_function(Body(body)) as harness:
        harness.process_element(1, 5)
        harness.process_watermark(5)
        harness.process_watermark_status(WatermarkStatus.IDLE)
        harness.process_elements([StreamRecord(2, 6), StreamRecord(3)])
        assert harness.get_output() == [
            StreamRecord(2, 5),
            Watermark(5),
            WatermarkStatus.IDLE,
            StreamRecord(3, 6),
            StreamRecord(4),
        ]
        assert harness.extract_output_values() == [2, 3, 4]
        assert [record.value for record in harness.get_side_output(SIDE)] == [1, 2, 3]
        assert harness.get_side_output(OutputTag("other")) == []


def test_output_that_was_taken_does_not_come_again() -> None:
    with for_process_function(Body()) as harness:
        harness.process_element("a")
        assert harness.take_output() == [StreamRecord("a")]
        harness.process_element("b")
        assert harness.take_output() == [StreamRecord("b")]
        harness.process_element("c")
        harness.get_output().clear()
        assert harness.get_output() == []


def test_timers_of_both_domains_fire_at_watermark_and_clock() -> None:
    with for_keyed_process_function(Count(), first) as harness:
        harness.process_element(("a", 1))
        harness.process_element(("a", 2))
        assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (1, 1)
        harness.process_watermark(100)
        assert_output(harness.take_output(), [StreamRecord(("a", 2), 100), Watermark(100)])
        harness.set_processing_time(99)
        assert harness.take_output() == []
        harness.advance_time(Duration.of_millis(1))
        assert_output(harness.take_output(), [StreamRecord(("a", 2))])
        assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (0, 0)
        assert (harness.get_processing_time(), harness.get_current_watermark()) == (100, 100)


def test_a_watermark_that_goes_back_is_passed_on_as_by_flinks_harness() -> None:
    with for_process_function(Body(lambda value, ctx: [ctx.timer_service().current_watermark()])) as harness:
        for watermark in (9, 4):
            harness.process_watermark(watermark)
            harness.process_element("now")
        assert harness.get_output() == [Watermark(9), StreamRecord(9), Watermark(4), StreamRecord(4)]


def test_a_watermark_strategy_runs_on_the_harnesss_clock() -> None:
    class OfText(TimestampAssigner):
        def extract_timestamp(self, value: str, record_timestamp: int) -> int:
            return int(value)

    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
        .with_timestamp_assigner(OfText())
        .with_idleness(Duration.of_millis(150))
    )
    with for_watermark_strategy(strategy, 100) as harness:
        harness.process_element("30")
        harness.process_element("20")
        harness.advance_time(100)
        assert harness.take_output() == [StreamRecord("30", 30), StreamRecord("20", 20), Watermark(24)]
        for _ in range(3):
            harness.advance_time(100)
        assert harness.take_output() == [WatermarkStatus.IDLE]
        harness.process_element("50")
    assert harness.get_output() == [StreamRecord("50", 50), WatermarkStatus.ACTIVE, Watermark(44)]


def test_a_function_knows_its_task() -> None:
    class Task(ProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.name = runtime_context.get_task_name_with_subtasks()
            self.city = runtime_context.get_job_parameter("city", "")

        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield self.name, self.city

    task = TaskInfo("visits", parallelism=6, index=2, job_parameters={"city": "Oslo"})
    with for_process_function(Task(), task=task) as harness:
        harness.process_element(1)
    assert harness.extract_output_values() == [("visits (3/6)", "Oslo")]


def test_any_operator_may_be_tested() -> None:
    with OneInputStreamOperatorTestHarness[str, str](lambda given: Forward(given.output)) as harness:
        harness.process_element("a", 1)
    with TwoInputStreamOperatorTestHarness[str, str, Any](lambda given: Union(given.output)) as two:
        two.process_element1("a", 1)
        two.process_elements2([StreamRecord("b")])
        two.process_elements1([StreamRecord("c")])
    assert (harness.extract_output_values(), two.extract_output_values()) == (
        ["a"],
        [(1, "a"), (2, "b"), (1, "c")],
    )


def test_a_value_is_shown_as_it_was_when_it_was_emitted() -> None:
    seen: list[int] = []

    def body(value: Any, ctx: Any) -> Iterator[Any]:
        seen.append(value)
        yield seen
        yield SIDE, {"seen": seen}

    with for_process_function(Body(body)) as harness:
        harness.process_element(1)
        harness.process_element(2)
        assert harness.extract_output_values() == [[1], [1, 2]]
        assert [record.value for record in harness.get_side_output(SIDE)] == [{"seen": [1]}, {"seen": [1, 2]}]


def test_the_harness_of_watermarks_takes_legacy_assigners() -> None:
    assigner = LegacyBounded(Time.milliseconds(10))
    with for_watermark_strategy(assigner, 100) as harness:
        harness.process_element(50)
        harness.advance_time(100)
        assert harness.get_output() == [StreamRecord(50, 50), Watermark(40)]
    with for_watermark_strategy(MarkedElements()) as harness:
        harness.process_element(7)
        assert harness.get_output() == [StreamRecord(7, 7), Watermark(7)]
    assert assigner.largest_timestamp_ms == LegacyBounded(Time.milliseconds(10)).largest_timestamp_ms


class MarkedElements(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value

    def check_and_get_next_watermark(self, last_element: int, extracted_timestamp: int) -> Watermark:
        return Watermark(extracted_timestamp)


def test_a_record_of_the_test_is_not_changed() -> None:
    class Timestamp(TimestampAssigner):
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:
            return value

    record = StreamRecord(7)
    with for_watermark_strategy(
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(Timestamp())
    ) as harness:
        harness.process_element(record)
    assert (record, harness.get_output()) == (StreamRecord(7), [StreamRecord(7, 7)])


# ---- operators with two inputs ----


class Both(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield 1, value, ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield 2, value, ctx.timestamp()


def test_the_watermark_of_two_inputs_is_the_lesser_one() -> None:
    with for_co_process_function(Both()) as harness:
        harness.process_watermark1(9)
        assert harness.take_output() == []
        harness.process_watermark2(4)
        harness.process_element1("a", 5)
        harness.process_element2("b", 6)
        harness.process_both_watermarks(12)
        assert harness.get_current_watermark() == 12
        assert harness.get_output() == [
            Watermark(4),
            StreamRecord((1, "a", 4), 5),
            StreamRecord((2, "b", 6), 6),
            Watermark(12),
        ]


def test_an_idle_input_does_not_hold_the_watermark_back() -> None:
    with for_co_process_function(Both()) as harness:
        harness.process_watermark1(9)
        harness.process_watermark_status2(WatermarkStatus.IDLE)
        assert harness.get_current_watermark() == 9
        harness.process_watermark_status1(WatermarkStatus.IDLE)
        assert harness.get_output() == [Watermark(9), WatermarkStatus.IDLE]


def test_a_broadcast_input_gives_rules_to_the_other() -> None:
    class Rules(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
            yield value, ctx.get_broadcast_state(RULES).get(value), ctx.current_watermark()

        def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
            ctx.get_broadcast_state(RULES).put(*value)

    with for_broadcast_process_function(Rules(), RULES) as harness:
        harness.process_broadcast_element(("a", 5))
        harness.get_broadcast_state(RULES).put("b", 6)
        harness.process_watermark(3)
        harness.process_broadcast_watermark(2)
        harness.process_element("a")
        harness.process_broadcast_watermark_status(WatermarkStatus.IDLE)
        harness.process_element("b")
        assert harness.extract_output_values() == [("a", 5, 2), ("b", 6, 3)]
        assert dict(harness.get_broadcast_state(RULES).items()) == {"a": 5, "b": 6}
        harness.process_watermark_status(WatermarkStatus.IDLE)
        assert harness.get_output()[-1] is WatermarkStatus.IDLE


# ---- life ----


def test_a_harness_is_opened_and_closed_once() -> None:
    function = Body()
    with for_process_function(function) as harness, pytest.raises(LifecycleError, match="open already"):
        harness.open()
    harness.close()
    assert function.n_closed == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda harness: harness.process_element(1),
        lambda harness: harness.process_watermark(1),
        lambda harness: harness.process_watermark_status(WatermarkStatus.IDLE),
        lambda harness: harness.set_processing_time(1),
        lambda harness: harness.snapshot(),
        lambda harness: harness.open(),
    ],
)
def test_nothing_goes_in_after_close_and_the_output_stays(call: Callable[[Any], None]) -> None:
    with for_process_function(Body()) as harness:
        harness.process_element("a")
    with pytest.raises(LifecycleError, match=r"\w+\(\) comes after the harness was closed"):
        call(harness)
    assert harness.extract_output_values() == ["a"]


def test_nothing_goes_in_before_open() -> None:
    harness = OneInputStreamOperatorTestHarness[str, str](lambda given: Forward(given.output))
    with pytest.raises(LifecycleError, match=r"process_element\(\) needs an open harness\. Call open\(\)"):
        harness.process_element("a")
    harness.close()


@pytest.mark.parametrize("call", ["process_element(1)", "snapshot()", "set_processing_time(5)", "close()"])
def test_a_callback_cannot_use_the_harness_that_runs_it(call: str) -> None:
    harness = for_process_function(Body(lambda value, ctx: eval(f"harness.{call}", {"harness": harness})))
    with pytest.raises(UserCodeError) as error:
        harness.process_element("a")
    assert isinstance(error.value.__cause__, LifecycleError)
    assert str(error.value.__cause__) == (
        f"{call.partition('(')[0]}() was called by what process_element() runs; wait until that has returned"
    )
    harness.close()


def test_an_operator_is_not_finished_after_an_error_but_closed() -> None:
    class Calls(Forward):
        calls: list[str]

        def finish(self) -> None:
            self.calls.append("finish")

        def close(self) -> None:
            self.calls.append("close")

    def harness() -> OneInputStreamOperatorTestHarness[str, str]:
        return OneInputStreamOperatorTestHarness(lambda given: Calls(given.output))

    Calls.calls = []
    with harness():
        pass
    assert Calls.calls == ["finish", "close"]
    Calls.calls = []
    with pytest.raises(KeyError), harness():
        raise KeyError
    assert Calls.calls == ["close"]


def test_a_function_that_cannot_be_opened_is_closed() -> None:
    class Unopenable(Body):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise OSError("no connection")

    function = Unopenable()
    with pytest.raises(OSError, match="no connection"):
        for_process_function(function)
    assert function.n_closed == 1


# ---- mistakes ----


@pytest.mark.parametrize("timestamp", ["5", 5.0, True, MAX_TIMESTAMP + 1])
def test_what_is_no_time_is_refused(timestamp: Any) -> None:
    message = r"the \w+ ?\w* is an int of 64 bits, in milliseconds since the epoch, not "
    with for_process_function(Body()) as harness:
        for call in (
            lambda: harness.process_element(1, timestamp),
            lambda: harness.process_watermark(timestamp),
            lambda: harness.process_watermark(Watermark(timestamp)),
            lambda: harness.set_processing_time(timestamp),
        ):
            with pytest.raises(DataError, match=message):
                call()
        assert harness.get_output() == []


def test_a_record_brings_its_own_timestamp() -> None:
    with for_process_function(Body()) as harness, pytest.raises(DataError, match="has its own timestamp"):
        harness.process_element(StreamRecord(1, 5), 6)


def test_a_status_is_one_of_two() -> None:
    with for_process_function(Body()) as harness, pytest.raises(DataError, match=r"WatermarkStatus\.IDLE or"):
        harness.process_watermark_status("idle")  # type: ignore[arg-type]


def test_a_side_output_is_asked_for_by_its_tag() -> None:
    with (
        for_process_function(Body()) as harness,
        pytest.raises(ConfigurationError, match="OutputTag, not by 'side'"),
    ):
        harness.get_side_output("side")  # type: ignore[arg-type]


@pytest.mark.parametrize("key_selector", [None, "account"])
def test_a_key_selector_is_a_function(key_selector: Any) -> None:
    with pytest.raises(ConfigurationError, match="key_selector is a function from an element to its key"):
        for_keyed_process_function(Count(), key_selector)
    with pytest.raises(ConfigurationError, match="key_selector2 is a function"):
        for_keyed_co_process_function(NoOp(), first, key_selector)


class NoOp(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None: ...

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None: ...


def test_a_maker_takes_an_instance_of_its_kind_of_function() -> None:
    with pytest.raises(ConfigurationError, match=r"a KeyedProcessFunction, not a class\. Make a Count\(\)"):
        for_keyed_process_function(Count, first)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="this harness takes a ProcessFunction, not <"):
        for_process_function(Count())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="this harness takes a WatermarkStrategy, not 5"):
        for_watermark_strategy(5)  # type: ignore[arg-type]


def test_a_harness_takes_a_function_that_makes_its_operator() -> None:
    with pytest.raises(ConfigurationError, match="a harness makes its operator by a function"):
        OneInputStreamOperatorTestHarness(5)  # type: ignore[arg-type]
    with pytest.raises(
        ConfigurationError, match="takes a TwoInputStreamOperator, and its operator factory gave"
    ):
        BroadcastOperatorTestHarness(lambda given: Forward(given.output))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            lambda given: given.keyed_state_backend,
            "the operator needs keyed state. Take a harness whose name",
        ),
        (lambda given: given.key_selector, "the operator needs 1 key selectors, the harness was given 0"),
    ],
)
def test_an_operator_with_keys_needs_a_keyed_harness(
    asked: Callable[[StreamOperatorParameters], Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        OneInputStreamOperatorTestHarness(asked)


def test_a_subtask_is_one_of_its_operators() -> None:
    with pytest.raises(ConfigurationError, match="the subtask index 2 is out of range for the parallelism 2"):
        for_process_function(Body(), task=TaskInfo("body", parallelism=2, index=2))


def test_an_error_of_the_function_names_the_element_and_has_its_cause() -> None:
    def fail(value: Any, ctx: Any) -> Any:
        raise KeyError("gone")

    with for_process_function(Body(fail)) as harness:
        with pytest.raises(
            UserCodeError, match=r"Body.process_element failed at the element 1 with the timestamp 5"
        ):
            harness.process_element(1, 5)
        with pytest.raises(UserCodeError):
            harness.process_element(2)


def test_an_error_of_a_processing_time_timer_is_a_timer_error() -> None:
    class Fail(Count):
        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            raise KeyError("gone")

    with for_keyed_process_function(Fail(), first) as harness:
        harness.process_element(("a", 1))
        with pytest.raises(TimerError) as error:
            harness.set_processing_time(100)
        assert isinstance(error.value.__cause__, UserCodeError)
