"""Operators of process functions: results, timestamps, and what is said when a function fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from equipment.recorders import OutputRecorder

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    TimeDomain,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, TimerError, UserCodeError
from flinkcore.operators.process_operators import KeyedProcessOperator, ProcessOperator
from flinkcore.testing import (
    KeyedOneInputStreamOperatorTestHarness,
    OneInputStreamOperatorTestHarness,
    StreamOperatorParameters,
    StreamRecord,
    TaskInfo,
    WatermarkStatus,
    for_keyed_process_function,
    for_process_function,
)

SIDE = OutputTag("side")
Body = Callable[[Any, Any], Any]
Harness = KeyedOneInputStreamOperatorTestHarness[Any, Any, Any]


class Keyed(KeyedProcessFunction):
    """Runs functions given by a test."""

    def __init__(self, body: Body, on_timer: Body = lambda timestamp, ctx: None) -> None:
        self.body = body
        self.timer_body = on_timer

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return self.body(value, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        return self.timer_body(timestamp, ctx)


def keyed(body: Body, on_timer: Body = lambda timestamp, ctx: None) -> Harness:
    """Return the harness of a function whose elements are pairs of a key and a value."""
    return for_keyed_process_function(Keyed(body, on_timer), lambda element: element[0])


class Unkeyed(ProcessFunction):
    def __init__(self, body: Body) -> None:
        self.body = body

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return self.body(value, ctx)


# ---- results ----


def generator(value: Any, ctx: Any) -> Iterator[Any]:
    yield value[1]
    yield SIDE, value[1]
    yield (SIDE, 1, 2)
    yield None


def as_list(value: Any, ctx: Any) -> Any:
    return list(generator(value, ctx))


def as_iterator(value: Any, ctx: Any) -> Any:
    return iter(tuple(generator(value, ctx)))


def as_tuple(value: Any, ctx: Any) -> Any:
    return tuple(generator(value, ctx))


@pytest.mark.parametrize("body", [generator, as_list, as_iterator, as_tuple])
def test_results_may_be_yielded_or_returned(body: Body) -> None:
    with keyed(body) as harness:
        harness.process_element(("k", "v"), 5)
        assert harness.get_output() == [
            StreamRecord("v", 5),
            StreamRecord((SIDE, 1, 2), 5),
            StreamRecord(None, 5),
        ]
        assert harness.get_side_output(SIDE) == [StreamRecord("v", 5)]


def test_no_results_are_none() -> None:
    with keyed(lambda value, ctx: None) as harness:
        harness.process_element(("k", "v"))
        assert harness.get_output() == []


def test_a_record_without_a_timestamp_gives_such_records_but_contexts_and_side_outputs_the_minimum() -> None:
    def body(value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.timestamp()
        yield SIDE, 1

    with keyed(body) as harness:
        harness.process_element(("k", "v"))
        assert harness.get_output() == [StreamRecord(MIN_TIMESTAMP)]
        assert harness.get_side_output(SIDE) == [StreamRecord(1, MIN_TIMESTAMP)]


def test_results_are_emitted_as_they_are_made() -> None:
    def body(value: Any, ctx: Any) -> Iterator[Any]:
        yield 1
        yield SIDE, len(harness.get_output())
        yield len(harness.get_side_output(SIDE))

    with keyed(body) as harness:
        harness.process_element(("k", "v"))
        assert harness.extract_output_values() == [1, 1]


@pytest.mark.parametrize("given", [5, "text", b"bytes", {"a": 1}])
def test_what_is_no_sequence_of_results_is_refused(given: Any) -> None:
    with keyed(lambda value, ctx: given) as harness:
        with pytest.raises(
            UserCodeError, match=r"Keyed.process_element gave .* at the element \('k', 1\) of the key"
        ):
            harness.process_element(("k", 1))
        assert harness.get_output() == []


# ---- timers ----


def register_both(value: Any, ctx: Any) -> None:
    ctx.timer_service().register_event_time_timer(value[1])
    ctx.timer_service().register_processing_time_timer(value[1])


def describe(timestamp: int, ctx: Any) -> Iterator[Any]:
    yield timestamp, ctx.timestamp(), ctx.time_domain(), ctx.get_current_key()
    yield SIDE, ctx.timer_service().current_watermark()


def test_timer_results_carry_the_timestamp_in_event_time_only() -> None:
    with keyed(register_both, describe) as harness:
        harness.process_element(("k", 10), 3)
        harness.process_watermark(12)
        harness.set_processing_time(15)
        assert harness.get_output() == [
            StreamRecord((10, 10, TimeDomain.EVENT_TIME, "k"), 10),
            Watermark(12),
            StreamRecord((10, 10, TimeDomain.PROCESSING_TIME, "k")),
        ]
        assert harness.get_side_output(SIDE) == [StreamRecord(12, 10), StreamRecord(12, 10)]


def test_statuses_pass() -> None:
    with keyed(register_both) as harness:
        harness.process_watermark_status(WatermarkStatus.IDLE)
        assert harness.get_output() == [WatermarkStatus.IDLE]


def test_timers_and_state_go_on_in_operators_of_another_parallelism() -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor[int]("count"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(100)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            return [(ctx.get_current_key(), self.count.value())]

    with for_keyed_process_function(Count(), str) as harness:
        for i in range(30):
            harness.process_element(f"k{i % 20}")
        state = harness.snapshot()
    results = []
    for index in range(2):
        task = TaskInfo("count", parallelism=2, index=index)
        with for_keyed_process_function(Count(), str, task=task, restore_from=state) as part:
            part.process_watermark(MAX_TIMESTAMP)
            results += part.extract_output_values()
    assert sorted(results) == sorted((f"k{i}", 2 if i < 10 else 1) for i in range(20))


# ---- failures ----


def failing_generator(value: Any, ctx: Any) -> Iterator[Any]:
    yield "before"
    raise KeyError("gone")


def failing(value: Any, ctx: Any) -> Any:
    raise KeyError("gone")


@pytest.mark.parametrize("body", [failing, failing_generator])
def test_an_error_names_element_key_and_timestamp(body: Body) -> None:
    with keyed(body) as harness, pytest.raises(UserCodeError) as error:
        harness.process_element(("k", "v"), 5)
    assert str(error.value) == (
        "Keyed.process_element failed at the element ('k', 'v') of the key 'k' with the timestamp 5: "
        "KeyError: 'gone'"
    )
    assert isinstance(error.value.__cause__, KeyError)


@pytest.mark.parametrize("body", [failing, failing_generator])
def test_an_error_of_a_timer_names_its_key_and_time(body: Body) -> None:
    message = "Keyed.on_timer failed at the timer at 7 ms of the key 'k': KeyError: 'gone'"
    with keyed(register_both, body) as harness:
        harness.process_element(("k", 7))
        with pytest.raises(UserCodeError) as error:
            harness.process_watermark(7)
        assert str(error.value) == message
        with pytest.raises(TimerError) as processing_time_error:
            harness.set_processing_time(7)
        assert str(processing_time_error.value.__cause__) == message


def test_an_error_downstream_is_not_the_functions() -> None:
    class Full(OutputRecorder):
        def collect(self, record: StreamRecord[Any]) -> None:
            raise OSError("full")

    def operator(given: StreamOperatorParameters) -> ProcessOperator:
        return ProcessOperator(Unkeyed(generator), Full(), given.processing_time_service)

    with (
        OneInputStreamOperatorTestHarness[Any, Any](operator) as harness,
        pytest.raises(OSError, match="full"),
    ):
        harness.process_element(("k", "v"))


def test_an_error_names_long_and_unprintable_elements_briefly() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError

    with for_keyed_process_function(Keyed(failing), lambda element: "k") as harness:
        with pytest.raises(
            UserCodeError, match=r"x\.\.\. \(10002 characters\) of the key 'k' without a timestamp"
        ):
            harness.process_element("x" * 10_000)
        with pytest.raises(UserCodeError, match="Unprintable whose repr raises RuntimeError"):
            harness.process_element(Unprintable())


def test_an_error_of_a_key_selector_names_the_element() -> None:
    with (
        for_keyed_process_function(Keyed(generator), lambda element: element["user"]) as harness,
        pytest.raises(
            UserCodeError, match=r"key selector failed at the element \{\} with the timestamp 5: KeyErr"
        ),
    ):
        harness.process_element({}, 5)


def test_a_key_that_cannot_be_one_is_refused() -> None:
    with (
        keyed(generator) as harness,
        pytest.raises(
            DataError, match=r"the key .* of type generator cannot be one: a generator has no hash"
        ),
    ):
        harness.process_element(((each for each in ()), 1))


def test_timers_and_state_need_a_key() -> None:
    class Early(Keyed):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor[int]("v")).update(1)

    with pytest.raises(LifecycleError, match="without a current key"):
        for_keyed_process_function(Early(generator), str)


def test_an_element_before_open_is_refused() -> None:
    def unopened(given: StreamOperatorParameters) -> KeyedProcessOperator:
        operator = KeyedProcessOperator(
            Keyed(generator), str, given.output, given.keyed_state_backend, given.processing_time_service
        )
        with pytest.raises(LifecycleError, match="before the operator was opened"):
            operator.process_element(StreamRecord("k"))
        return operator

    KeyedOneInputStreamOperatorTestHarness(unopened, str)


# ---- without keys ----


def test_a_function_without_keys_sees_the_times_and_no_timers() -> None:
    def body(value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()
        for act in (
            timers.register_event_time_timer,
            timers.register_processing_time_timer,
            timers.delete_event_time_timer,
            timers.delete_processing_time_timer,
        ):
            with pytest.raises(
                ConfigurationError, match="the timer at 5 has no key: timers need a keyed stream"
            ):
                act(5)

    with for_process_function(Unkeyed(body)) as harness:
        harness.set_processing_time(3)
        harness.process_element("a", 1)
        harness.process_watermark(7)
        harness.process_element("b")
        assert harness.get_output() == [
            StreamRecord(("a", 1, MIN_TIMESTAMP, 3), 1),
            Watermark(7),
            StreamRecord(("b", MIN_TIMESTAMP, 7, 3)),
        ]


def test_an_error_without_keys_names_the_element() -> None:
    with (
        for_process_function(Unkeyed(failing)) as harness,
        pytest.raises(
            UserCodeError, match=r"^Unkeyed\.process_element failed at the element 'a' with the timestamp 1: "
        ),
    ):
        harness.process_element("a", 1)


def test_functions_are_opened_with_their_task_and_closed() -> None:
    class Task(Unkeyed):
        closed = False

        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = (
                runtime_context.get_task_name(),
                runtime_context.get_task_name_with_subtasks(),
                runtime_context.get_number_of_parallel_subtasks(),
                runtime_context.get_max_number_of_parallel_subtasks(),
                runtime_context.get_index_of_this_subtask(),
                runtime_context.get_attempt_number(),
                runtime_context.get_job_parameter("city", "-"),
                runtime_context.get_job_parameter("country", "-"),
            )
            with pytest.raises(ConfigurationError, match="the keyed state 'v' needs a keyed stream"):
                runtime_context.get_state(ValueStateDescriptor("v"))

        def close(self) -> None:
            self.closed = True

    function = Task(generator)
    with for_process_function(function, task=TaskInfo("visits", 6, 128, 2, 1, {"city": "Oslo"})):
        assert function.seen == ("visits", "visits (3/6)", 6, 128, 2, 1, "Oslo", "-")
        assert not function.closed
    assert function.closed
