"""Operators of process functions: results, timestamps, and what is said when a function fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from models.keyed_operators import Surroundings, record

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, OutputTag, Watermark
from flinkcore.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    TimeDomain,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, TimerError, UserCodeError
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import ProcessOperator
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo

SIDE = OutputTag("side")
UNKEYED = StreamingRuntimeContext(TaskInfo("visits", 6, 128, 2, 1, {"city": "Oslo"}))
Body = Callable[[Any, Any], Any]


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


class Keyed(KeyedProcessFunction):
    """Runs functions given by a test."""

    def __init__(self, body: Body, on_timer: Body = lambda timestamp, ctx: None) -> None:
        self.body = body
        self.timer_body = on_timer

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return self.body(value, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        return self.timer_body(timestamp, ctx)


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
def test_results_may_be_yielded_or_returned(around: Surroundings, body: Body) -> None:
    around.opened(Keyed(body)).process_element(record("k", "v", 5))
    assert around.output.take() == [
        ("record", 5, "v"),
        ("side", 5, "v", "side"),
        ("record", 5, (SIDE, 1, 2)),
        ("record", 5, None),
    ]


def test_no_results_are_none(around: Surroundings) -> None:
    around.opened(Keyed(lambda value, ctx: None)).process_element(record("k", "v"))
    assert around.output.take() == []


def test_a_record_without_a_timestamp_gives_such_records_but_side_outputs_the_minimum(
    around: Surroundings,
) -> None:
    def body(value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.timestamp()
        yield SIDE, 1

    around.opened(Keyed(body)).process_element(record("k", "v"))
    assert around.output.take() == [("record", None, None), ("side", MIN_TIMESTAMP, 1, "side")]


def test_results_are_emitted_as_they_are_made(around: Surroundings) -> None:
    def body(value: Any, ctx: Any) -> Iterator[Any]:
        yield 1
        yield len(around.output.entries)

    around.opened(Keyed(body)).process_element(record("k", "v"))
    assert around.output.take() == [("record", None, 1), ("record", None, 1)]


@pytest.mark.parametrize("given", [5, "text", b"bytes", {"a": 1}])
def test_what_is_no_sequence_of_results_is_refused(around: Surroundings, given: Any) -> None:
    operator = around.opened(Keyed(lambda value, ctx: given))
    with pytest.raises(
        UserCodeError, match=r"Keyed.process_element gave .* at the element \('k', 1\) of the key"
    ):
        operator.process_element(record("k", 1))
    assert around.output.take() == []


# ---- timers ----


def register_both(value: Any, ctx: Any) -> None:
    ctx.timer_service().register_event_time_timer(value[1])
    ctx.timer_service().register_processing_time_timer(value[1])


def describe(timestamp: int, ctx: Any) -> Iterator[Any]:
    yield timestamp, ctx.timestamp(), ctx.time_domain(), ctx.get_current_key()
    yield SIDE, ctx.timer_service().current_watermark()


def test_timer_results_carry_the_timestamp_in_event_time_only(around: Surroundings) -> None:
    operator = around.opened(Keyed(register_both, describe))
    operator.process_element(record("k", 10, 3))
    operator.process_watermark(Watermark(12))
    around.clock.advance_to(15)
    assert around.output.take() == [
        ("record", 10, (10, 10, TimeDomain.EVENT_TIME, "k")),
        ("side", 10, 12, "side"),
        ("watermark", 12),
        ("record", None, (10, 10, TimeDomain.PROCESSING_TIME, "k")),
        ("side", 10, 12, "side"),
    ]


def test_statuses_pass(around: Surroundings) -> None:
    around.opened(Keyed(register_both)).process_watermark_status(WatermarkStatus.IDLE)
    assert around.output.take() == [("status", "idle")]


def test_timers_and_state_go_on_in_operators_of_another_parallelism(around: Surroundings) -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(100)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            return [(ctx.get_current_key(), self.count.value())]

    operator = around.opened(Count())
    for i in range(30):
        operator.process_element(record(f"k{i % 20}", None))
    results = []
    for key_groups in ((0, 50), (51, 127)):
        part = Surroundings(key_groups)
        restored = part.keyed(Count())
        restored.time_service_manager.restore(operator.time_service_manager.snapshot())
        part.keyed_state.restore(around.keyed_state.snapshot())
        restored.open(part.runtime_context)
        restored.process_watermark(Watermark(MAX_TIMESTAMP))
        results += [entry[2] for entry in part.output.take() if entry[0] == "record"]
    assert sorted(results) == sorted((f"k{i}", 2 if i < 10 else 1) for i in range(20))


# ---- failures ----


def failing_generator(value: Any, ctx: Any) -> Iterator[Any]:
    yield "before"
    raise KeyError("gone")


def failing(value: Any, ctx: Any) -> Any:
    raise KeyError("gone")


@pytest.mark.parametrize("body", [failing, failing_generator])
def test_an_error_names_element_key_and_timestamp(around: Surroundings, body: Body) -> None:
    operator = around.opened(Keyed(body))
    with pytest.raises(UserCodeError) as error:
        operator.process_element(record("k", "v", 5))
    assert str(error.value) == (
        "Keyed.process_element failed at the element ('k', 'v') of the key 'k' with the timestamp 5: "
        "KeyError: 'gone'"
    )
    assert isinstance(error.value.__cause__, KeyError)


@pytest.mark.parametrize("body", [failing, failing_generator])
def test_an_error_of_a_timer_names_its_key_and_time(around: Surroundings, body: Body) -> None:
    operator = around.opened(Keyed(register_both, body))
    operator.process_element(record("k", 7))
    message = "Keyed.on_timer failed at the timer at 7 ms of the key 'k': KeyError: 'gone'"
    with pytest.raises(UserCodeError) as error:
        operator.process_watermark(Watermark(7))
    assert str(error.value) == message
    with pytest.raises(TimerError) as processing_time_error:
        around.clock.advance_to(7)
    assert str(processing_time_error.value.__cause__) == message


def test_an_error_downstream_is_not_the_functions(around: Surroundings) -> None:
    operator = around.opened(Keyed(generator))

    def collect(_: StreamRecord[Any]) -> None:
        raise OSError("full")

    around.output.collect = collect  # type: ignore[method-assign]
    operator = around.opened(Keyed(generator))
    with pytest.raises(OSError, match="full"):
        operator.process_element(record("k", "v"))


def test_an_error_names_long_and_unprintable_elements_briefly(around: Surroundings) -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError

    operator = around.opened(Keyed(failing), lambda element: "k")
    with pytest.raises(
        UserCodeError, match=r"x\.\.\. \(10002 characters\) of the key 'k' without a timestamp"
    ):
        operator.process_element(StreamRecord("x" * 10_000))
    with pytest.raises(UserCodeError, match="Unprintable whose repr raises RuntimeError"):
        operator.process_element(StreamRecord(Unprintable()))


def test_an_error_of_a_key_selector_names_the_element(around: Surroundings) -> None:
    operator = around.opened(Keyed(generator), lambda element: element["user"])
    with pytest.raises(
        UserCodeError, match=r"key selector failed at the element \{\} with the timestamp 5: KeyErr"
    ):
        operator.process_element(StreamRecord({}, 5))


def test_a_key_that_cannot_be_one_is_refused(around: Surroundings) -> None:
    operator = around.opened(Keyed(generator))
    with pytest.raises(DataError, match=r"the key \[\] of type list is not hashable"):
        operator.process_element(record([], 1))


def test_timers_and_state_need_a_key(around: Surroundings) -> None:
    class Early(Keyed):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("v")).update(1)

    with pytest.raises(LifecycleError, match="without a current key"):
        around.opened(Early(generator))


def test_an_element_before_open_is_refused(around: Surroundings) -> None:
    with pytest.raises(LifecycleError, match="before the operator was opened"):
        around.keyed(Keyed(generator)).process_element(record("k", 1))


# ---- without keys ----


def test_a_function_without_keys_sees_the_times_and_no_timers(around: Surroundings) -> None:
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

    operator = ProcessOperator(Unkeyed(body), around.output, around.clock)
    operator.open(UNKEYED)
    around.clock.advance_to(3)
    operator.process_element(StreamRecord("a", 1))
    operator.process_watermark(Watermark(7))
    operator.process_element(StreamRecord("b"))
    assert around.output.take() == [
        ("record", 1, ("a", 1, MIN_TIMESTAMP, 3)),
        ("watermark", 7),
        ("record", None, ("b", None, 7, 3)),
    ]


def test_an_error_without_keys_names_the_element(around: Surroundings) -> None:
    operator = ProcessOperator(Unkeyed(failing), around.output, around.clock)
    operator.open(UNKEYED)
    with pytest.raises(
        UserCodeError, match=r"^Unkeyed\.process_element failed at the element 'a' with the timestamp 1: "
    ):
        operator.process_element(StreamRecord("a", 1))


def test_functions_are_opened_with_their_task_and_closed(around: Surroundings) -> None:
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
    operator = ProcessOperator(function, around.output, around.clock)
    operator.open(UNKEYED)
    assert function.seen == ("visits", "visits (3/6)", 6, 128, 2, 1, "Oslo", "-")
    operator.close()
    assert function.closed
