"""Steps whose calls wait for something outside of the job, on both clocks."""

import asyncio
import functools
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from jobs.timed_elements import ValueIsTime

from flinkcore.common import (
    Duration,
    JobStatus,
    Time,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    async_retry_predicates,
)
from flinkcore.datastream.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
)
from flinkcore.elements import async_levels
from flinkcore.elements.tasks import stream_element_queues
from flinkcore.elements.tasks.mailbox import TaskMailbox
from flinkcore.elements.tasks.stream_element_queues import MailboxQueue
from flinkcore.errors import ConfigurationError, DataError, JobCancelledError, UserCodeError
from flinkcore.operators.async_calls import AsyncCall, AsyncCalls
from flinkcore.operators.records.stream_elements import StreamRecord

LONG = Time.seconds(60)
CLOCKS = pytest.mark.parametrize("clock", ["arrival", "system"])


def environment(clock: Any = "arrival", parallelism: int = 1) -> StreamExecutionEnvironment:
    return (
        StreamExecutionEnvironment.get_execution_environment().set_clock(clock).set_parallelism(parallelism)
    )


class Together(AsyncFunction[Any, Any]):
    """No call ends before so many have begun."""

    def __init__(self, count: int) -> None:
        self.count = count

    def open(self, runtime_context: Any) -> None:
        self.begun = self.running = self.most = 0
        self.all_have_begun = asyncio.Event()

    async def async_invoke(self, value: Any) -> list[Any]:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        if self.begun >= self.count:
            self.all_have_begun.set()
        await self.all_have_begun.wait()
        self.running -= 1
        return [(value, self.most)]


@CLOCKS
@pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])
def test_calls_run_at_the_same_time_up_to_the_capacity(clock: Any, wait: Any) -> None:
    stream = environment(clock).from_collection(list(range(40)), Types.INT())
    results = list(wait(stream, Together(10), LONG, capacity=10).execute_and_collect())
    assert sorted(value for value, _ in results) == list(range(40))
    assert max(most for _, most in results) == 10


class Released(AsyncFunction[int, int]):
    """A call ends when that of the next greater number has, of those of the same ten."""

    def open(self, runtime_context: Any) -> None:
        self.ended = {number: asyncio.Event() for number in range(100)}

    async def async_invoke(self, value: int) -> list[int]:
        if value % 10 != 9:
            await self.ended[value + 1].wait()
        self.ended[value].set()
        return [value, -value]


TENS = [7, 8, 9, 17, 18, 19]
IN_ORDER = [7, -7, 8, -8, 9, -9, 17, -17, 18, -18, 19, -19]


@CLOCKS
def test_ordered_results_come_in_the_order_of_the_elements(clock: Any) -> None:
    stream = environment(clock).from_collection(TENS)
    assert list(AsyncDataStream.ordered_wait(stream, Released(), LONG).execute_and_collect()) == IN_ORDER


def test_on_the_arrival_clock_unordered_results_do_so_too() -> None:
    stream = environment().from_collection(TENS)
    assert list(AsyncDataStream.unordered_wait(stream, Released(), LONG).execute_and_collect()) == IN_ORDER


def test_on_the_system_clock_unordered_results_come_as_they_are_there() -> None:
    stream = environment("system").from_collection([7, 8, 9])
    results = list(AsyncDataStream.unordered_wait(stream, Released(), LONG).execute_and_collect())
    assert results == [9, -9, 8, -8, 7, -7]


class WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class EachTime(WatermarkGenerator[Any]):
    """A watermark after each element."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        pass


EACH = WatermarkStrategy.for_generator(EachTime).with_timestamp_assigner(ValueIsTime())


class AllAtOnce(AsyncFunction[int, int]):
    """All calls end when that for 19 has begun, those for greater numbers earlier."""

    def open(self, runtime_context: Any) -> None:
        self.has_come = asyncio.Event()

    async def async_invoke(self, value: int) -> list[int]:
        if value == 19:
            self.has_come.set()
        await self.has_come.wait()
        for _ in range(20 - value):
            await asyncio.sleep(0)
        return [value]


@CLOCKS
def test_results_have_the_timestamp_of_their_element_and_watermarks_wait_for_them(clock: Any) -> None:
    stream = environment(clock).from_collection(TENS).assign_timestamps_and_watermarks(EACH)
    waited = AsyncDataStream.unordered_wait(stream, AllAtOnce(), LONG).process(WithTime())
    before = zip(TENS, [-(2**63), *TENS], strict=False)
    assert list(waited.execute_and_collect()) == [(value, value, watermark) for value, watermark in before]


@CLOCKS
def test_windows_behind_a_step_that_waits_are_complete(clock: Any) -> None:
    stream = environment(clock).from_collection(TENS).assign_timestamps_and_watermarks(EACH)
    waited = AsyncDataStream.unordered_wait(stream, AllAtOnce(), LONG)
    windows = waited.key_by(lambda value: "all").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    sums = windows.reduce(lambda one, other: one + other)
    assert list(sums.execute_and_collect()) == [7 + 8 + 9, 17 + 18 + 19]


class AtArrival(KeyedProcessFunction):
    """Gives what the clock shows at each element, and at a timer 1 ms later."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        now_ms = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now_ms + 1)
        yield value, now_ms

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", timestamp, ctx.timer_service().current_processing_time()


def test_on_the_arrival_clock_a_call_takes_no_time() -> None:
    env = environment()
    env.get_config().set_arrival_rate(100)
    waited = AsyncDataStream.ordered_wait(env.from_collection([7, 8, 9]), Released(), LONG)
    results = waited.filter(lambda value: value > 0).key_by(lambda value: 0).process(AtArrival())
    assert list(results.execute_and_collect()) == [
        *((7, 10), ("timer", 11, 11)),
        *((8, 20), ("timer", 21, 21)),
        *((9, 30),),  # the end comes 1 ms later, before timers of its time
    ]


def test_elements_that_do_not_wait_are_held_back_by_no_more_than_a_line_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_levels, "MOST_WAITING", 5)
    stream = environment().from_collection(list(range(100)), Types.INT())
    waited = AsyncDataStream.ordered_wait(stream.filter(lambda value: value % 20 == 0), Together(1), LONG)
    both = waited.map(lambda pair: pair[0]).union(stream.map(lambda value: -value))
    expected = [each for value in range(100) for each in ([value] if value % 20 == 0 else []) + [-value]]
    assert list(both.execute_and_collect()) == expected


@pytest.mark.parametrize("ordered", [True, False])
def test_on_the_system_clock_no_more_than_that_waits_for_a_call(
    monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    monkeypatch.setattr(stream_element_queues, "MOST_WAITING", 5)
    call, emitted = AsyncCall(StreamRecord("a"), None), list[Any]()

    def nothing() -> None:
        pass

    mailbox = TaskMailbox(nothing, nothing, nothing, lambda is_waiting: queue.done(call))
    queue = MailboxQueue(mailbox, 100, ordered)
    queue.add_call(call, functools.partial(emitted.append, "call"))
    for number in range(5):
        queue.add_other(functools.partial(emitted.append, number))
    assert emitted == []
    queue.add_other(functools.partial(emitted.append, 5))
    assert emitted == ["call", 0, 1, 2, 3, 4, 5]


class Hanging(AsyncFunction[Any, Any]):
    """Calls never end."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.Event().wait()
        return []

    def timeout(self, value: Any) -> list[Any]:
        return [f"no {value}"]


@CLOCKS
def test_calls_that_take_too_long_give_what_timeout_gives(clock: Any) -> None:
    stream = environment(clock).from_collection([1, 2, 3])
    waited = AsyncDataStream.ordered_wait(stream, Hanging(), Time.milliseconds(30))
    assert list(waited.execute_and_collect()) == ["no 1", "no 2", "no 3"]


class HoldsUpTheLoop(Hanging):
    async def async_invoke(self, value: Any) -> list[Any]:
        threading.Event().wait(0.06)
        return [value]


@CLOCKS
def test_a_coroutine_that_blocks_is_timed_out_too(clock: Any) -> None:
    stream = environment(clock).from_collection([1])
    waited = AsyncDataStream.ordered_wait(stream, HoldsUpTheLoop(), Time.milliseconds(30))
    assert list(waited.execute_and_collect()) == ["no 1"]


class HangingWithDefault(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.Event().wait()
        return []


@CLOCKS
def test_without_a_timeout_of_its_own_a_function_fails(clock: Any) -> None:
    stream = environment(clock).from_collection([1])
    waited = AsyncDataStream.ordered_wait(stream, HangingWithDefault(), Time.milliseconds(10))
    with pytest.raises(UserCodeError, match=r"HangingWithDefault.timeout failed at the element 1.*timed out"):
        list(waited.execute_and_collect())


class Failing(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        if value == 3:
            raise ValueError(f"bad value {value}")
        return [value]


@CLOCKS
@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_error_fails_the_job_with_the_line_of_the_user(clock: Any, parallelism: int) -> None:
    stream = environment(clock, parallelism).from_collection([1, 2, 3, 4])
    waited = AsyncDataStream.unordered_wait(stream, Failing(), LONG)
    with pytest.raises(
        UserCodeError, match=r"Failing.async_invoke failed at the element 3.*bad value 3"
    ) as told:
        list(waited.execute_and_collect())
    lines = told.value.__cause__.__traceback__  # type: ignore[union-attr]
    while lines.tb_next is not None:  # type: ignore[union-attr]
        lines = lines.tb_next  # type: ignore[union-attr]
    assert Path(lines.tb_frame.f_code.co_filename) == Path(__file__)  # type: ignore[union-attr]


class Seen(MapFunction):
    values: ClassVar[list[Any]] = []

    def map(self, value: Any) -> Any:
        self.values.append(value)


def test_on_the_arrival_clock_an_error_comes_in_its_place() -> None:
    Seen.values = []
    waited = AsyncDataStream.unordered_wait(environment().from_collection([1, 2, 3, 4]), Failing(), LONG)
    with pytest.raises(UserCodeError, match="bad value 3"):
        list(waited.map(Seen()).execute_and_collect())
    assert Seen.values == [1, 2]


class Giving(AsyncFunction[Any, Any]):
    def __init__(self, result: Any) -> None:
        self.result = result

    async def async_invoke(self, value: Any) -> Any:
        return self.result


@CLOCKS
@pytest.mark.parametrize(
    ("result", "told"),
    [(None, "cannot be none"), (7, "not 7"), ("text", "not 'text'"), ({"a": 1}, "of list type, not")],
)
def test_a_result_that_is_no_list_is_refused(clock: Any, result: Any, told: str) -> None:
    waited = AsyncDataStream.ordered_wait(environment(clock).from_collection([1]), Giving(result), LONG)
    with pytest.raises(
        UserCodeError, match=f"Giving.async_invoke failed at the element 1.*{told}.*Return a list"
    ):
        list(waited.execute_and_collect())


@CLOCKS
def test_a_result_of_another_type_than_declared_is_refused(clock: Any) -> None:
    stream = environment(clock).from_collection([1])
    pairs = Types.TUPLE([Types.INT(), Types.INT()])
    waited = AsyncDataStream.ordered_wait(stream, Giving(["text"]), LONG, output_type=pairs)
    with pytest.raises(DataError, match="Giving gave 'text'"):
        list(waited.execute_and_collect())


class Cancelled(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        raise asyncio.CancelledError


@CLOCKS
def test_a_coroutine_that_is_cancelled_from_within_fails_the_job(clock: Any) -> None:
    waited = AsyncDataStream.ordered_wait(environment(clock).from_collection([1]), Cancelled(), LONG)
    with pytest.raises(UserCodeError, match="the coroutine was cancelled"):
        list(waited.execute_and_collect())


class Gone(BaseException):
    """Neither an Exception nor known to asyncio."""


async def exits() -> None:
    sys.exit(3)


class Ending(AsyncFunction[Any, Any]):
    """Ends in one of several ways what calls it, at the element 3; other calls may wait for a retry."""

    def __init__(self, how: str) -> None:
        self.how = how

    async def async_invoke(self, value: Any) -> list[Any]:
        if value != 3:
            return [value]
        if self.how == "sys.exit":
            sys.exit(3)
        if self.how == "another error":
            raise Gone("gone")
        if self.how == "GeneratorExit":
            raise GeneratorExit
        if self.how == "in a task":
            await asyncio.create_task(exits())
        if self.how == "in a callback":
            asyncio.get_running_loop().call_soon(sys.exit, 3)
        elif self.how == "all tasks":
            for task in asyncio.all_tasks():
                task.cancel()
        elif self.how == "loop":
            asyncio.get_running_loop().stop()
        await asyncio.Event().wait()
        return []


@CLOCKS
@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("sys.exit", r"the element 3 .*SystemExit: 3"),
        ("another error", r"the element 3 .*Gone: gone"),
        ("GeneratorExit", r"the element 3 .*GeneratorExit"),
        ("in a task", r"the element 3 .*SystemExit: 3"),
        ("in a callback", r"the loop .* ended by SystemExit: 3"),
        ("all tasks", r"cancelled"),
        ("loop", r"the loop .* was stopped"),
    ],
)
def test_what_ends_a_coroutine_or_the_loop_fails_the_job(
    clock: Any, seconds: int, how: str, told: str
) -> None:
    stream = environment(clock).from_collection(list(range(9)))
    waited = AsyncDataStream.ordered_wait(stream, Ending(how), Time.seconds(seconds), 2)
    with pytest.raises(UserCodeError, match=rf"Ending.async_invoke failed at .*{told}"):
        list(waited.execute_and_collect())


def test_a_call_after_the_end_of_the_loop_has_failed() -> None:
    ended = threading.Event()
    calls = AsyncCalls(Ending("loop"), NoRetryStrategy(), 0, lambda call: ended.set())
    calls.start()
    first = calls.call(StreamRecord(3))
    assert ended.wait(20)
    second = calls.call(StreamRecord(1))
    calls.stop()
    assert (first.is_done, second.is_done) == (True, True)
    assert first.failure is second.failure
    assert "was stopped" in str(second.failure)


@CLOCKS
def test_what_ends_a_coroutine_is_no_reason_to_try_again(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(9, 60_000, None, async_retry_predicates.has_exception_predicate)
    stream = environment(clock).from_collection([3])
    waited = AsyncDataStream.ordered_wait_with_retry(stream, Ending("sys.exit"), LONG, strategy)
    with pytest.raises(UserCodeError, match="SystemExit: 3"):
        list(waited.execute_and_collect())


class CancelsOthers(AsyncFunction[Any, Any]):
    """The second call cancels the first one, which waits to be tried again."""

    def open(self, runtime_context: Any) -> None:
        self.has_failed = asyncio.Event()

    async def async_invoke(self, value: Any) -> list[Any]:
        if value == 1:
            self.has_failed.set()
            raise ValueError
        await self.has_failed.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return [value]


@CLOCKS
def test_a_call_that_is_cancelled_before_it_is_tried_again_fails_the_job(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(9, 60_000, None, async_retry_predicates.has_exception_predicate)
    stream = environment(clock).from_collection([1, 2])
    waited = AsyncDataStream.ordered_wait_with_retry(stream, CancelsOthers(), Time.seconds(600), strategy)
    with pytest.raises(UserCodeError, match=r"async_invoke failed at the element 1 .*cancelled"):
        list(waited.execute_and_collect())


class ExitsLate(HangingWithDefault):
    def timeout(self, value: Any) -> list[Any]:
        sys.exit(2)


class ExitsAsItIsRead(AsyncFunction[Any, Any]):
    """Gives results that end the process as they are read."""

    async def async_invoke(self, value: Any) -> Any:
        return (sys.exit(number) for number in [2])


@CLOCKS
@pytest.mark.parametrize(
    ("function", "method", "timeout"),
    [(ExitsLate(), "timeout", Time.milliseconds(10)), (ExitsAsItIsRead(), "async_invoke", LONG)],
)
def test_a_function_that_exits_outside_of_its_coroutine_fails_the_job(
    clock: Any, function: Any, method: str, timeout: Time
) -> None:
    stream = environment(clock).from_collection([1])
    waited = AsyncDataStream.ordered_wait(stream, function, timeout)
    with pytest.raises(UserCodeError, match=rf"{method} failed at the element 1 .*SystemExit: 2"):
        list(waited.execute_and_collect())


@CLOCKS
def test_a_predicate_that_exits_fails_the_job(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(5, 1, lambda result: sys.exit(2), None)
    with pytest.raises(
        UserCodeError, match=r"Flaky.retry strategy failed at the element '[ab]'.*SystemExit: 2"
    ):
        retried(Flaky(0), strategy, clock)


class Flaky(AsyncFunction[Any, Any]):
    """Fails so many times for each element, or gives so many empty results."""

    def __init__(self, fails: int, is_empty: bool = False) -> None:
        self.fails = fails
        self.is_empty = is_empty

    def open(self, runtime_context: Any) -> None:
        self.attempts: dict[Any, int] = {}

    async def async_invoke(self, value: Any) -> list[Any]:
        self.attempts[value] = attempt = self.attempts.get(value, 0) + 1
        if attempt <= self.fails:
            if self.is_empty:
                return []
            raise TimeoutError(f"attempt {attempt}")
        return [(value, attempt)]

    def timeout(self, value: Any) -> list[Any]:
        return [(value, "timed out")]


TIMED_OUT = functools.partial(
    async_retry_predicates.exception_type_predicate, expected_error_type=TimeoutError
)


def retried(function: Flaky, strategy: Any, clock: Any, timeout: Time = LONG) -> list[Any]:
    stream = environment(clock).from_collection(["a", "b"])
    waited = AsyncDataStream.ordered_wait_with_retry(stream, function, timeout, strategy)
    again = AsyncDataStream.unordered_wait_with_retry(stream, function, timeout, strategy)
    results = list(waited.execute_and_collect())
    assert sorted(again.execute_and_collect()) == sorted(results)
    return results


@CLOCKS
def test_calls_are_tried_again_after_errors(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, TIMED_OUT)
    assert retried(Flaky(2), strategy, clock) == [("a", 3), ("b", 3)]
    with pytest.raises(UserCodeError, match=r"Flaky.async_invoke failed at the element '[ab]'.*attempt 3"):
        retried(Flaky(3), strategy, clock)


@CLOCKS
def test_calls_are_tried_again_after_results(clock: Any) -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(
        2, 1, 4, 2.0, async_retry_predicates.empty_result_predicate, None
    )
    assert retried(Flaky(2, is_empty=True), strategy, clock) == [("a", 3), ("b", 3)]
    assert retried(Flaky(3, is_empty=True), strategy, clock) == []


@CLOCKS
def test_errors_that_are_no_reason_are_not_tried_again(clock: Any) -> None:
    of_values = functools.partial(
        async_retry_predicates.exception_type_predicate, expected_error_type=ValueError
    )
    with pytest.raises(UserCodeError, match="attempt 1"):
        retried(Flaky(1), AsyncRetryStrategy.fixed_delay(9, 1, None, of_values), clock)
    with pytest.raises(UserCodeError, match="attempt 1"):
        retried(Flaky(1), AsyncRetryStrategy.no_restart(), clock)


@CLOCKS
def test_the_timeout_counts_for_all_attempts(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(5, 60_000, None, async_retry_predicates.has_exception_predicate)
    timed_out = [("a", "timed out"), ("b", "timed out")]
    assert retried(Flaky(1), strategy, clock, Time.milliseconds(20)) == timed_out


@CLOCKS
def test_an_error_of_a_predicate_fails_the_job(clock: Any) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(5, 1, lambda result: result.size, None)
    with pytest.raises(UserCodeError, match=r"Flaky.retry strategy failed at the element '[ab]'.*size"):
        retried(Flaky(0), strategy, clock)


def test_the_delays_of_strategies() -> None:
    fixed = FixedDelayRetryStrategy(2, 5, None, None)
    assert [fixed.get_backoff_time_millis(attempts) for attempts in (1, 2)] == [5, 5]
    assert [fixed.can_retry(attempts) for attempts in (1, 2, 3)] == [True, True, False]
    growing = ExponentialBackoffDelayRetryStrategy(4, 10, 100, 2.5, None, None)
    assert [growing.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4, 99)] == [
        10,
        25,
        62,
        100,
        100,
    ]
    none = NoRetryStrategy[Any]()
    assert (none.can_retry(1), none.get_backoff_time_millis(1)) == (False, -1)


class NoCoroutine(AsyncFunction[Any, Any]):
    def async_invoke(self, value: Any) -> Any:
        return [value]


class NoPredicate(NoRetryStrategy[Any]):
    def get_retry_predicate(self) -> Any:
        return None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"async_function": NoCoroutine()}, "should be declared as 'async def'"),
        ({"async_function": lambda value: [value]}, "derived from AsyncFunction"),
        ({"data_stream": [1, 2]}, "takes a DataStream"),
        ({"timeout": "10 s"}, "takes a length of time"),
        ({"capacity": 0}, "at least 1, not 0"),
        ({"capacity": 1.5}, "at least 1, not 1.5"),
        ({"async_retry_strategy": None}, "AsyncRetryStrategy, not None"),
        ({"async_retry_strategy": NoPredicate()}, "is None"),
        (
            {"async_retry_strategy": FixedDelayRetryStrategy(1, 1, None, None), "timeout": Time.seconds(0)},
            "Timeout should be configured",
        ),
        ({"output_type": "INT"}, "output_type"),
    ],
)
def test_what_has_no_meaning_is_refused_at_once(arguments: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {
        "data_stream": environment().from_collection([1]),
        "async_function": Failing(),
        "timeout": Duration.of_seconds(1),
        "async_retry_strategy": AsyncRetryStrategy.no_restart(),
    }
    with pytest.raises(ConfigurationError, match=told):
        AsyncDataStream.ordered_wait_with_retry(**(given | arguments))


@pytest.mark.parametrize("name", ["max_attempts", "initial_delay", "max_retry_delay", "multiplier"])
def test_numbers_of_strategies_are_above_zero(name: str) -> None:
    settings = {"max_attempts": 1, "initial_delay": 1, "max_retry_delay": 1, "multiplier": 1.0} | {name: 0}
    with pytest.raises(ConfigurationError, match=f"{name} should be greater than zero"):
        AsyncRetryStrategy.exponential_backoff(
            **settings,  # type: ignore[arg-type]
            result_predicate=None,
            exception_predicate=None,
        )


class Endless(AsyncFunction[Any, Any]):
    """Calls do not end by themselves."""

    begun: ClassVar[threading.Event]
    ended: ClassVar[list[str]]

    async def async_invoke(self, value: Any) -> list[Any]:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append("call")
        return []

    def close(self) -> None:
        self.ended.append("function")


@pytest.fixture
def endless() -> Endless:
    Endless.begun, Endless.ended = threading.Event(), []
    return Endless()


@CLOCKS
def test_a_job_that_waits_can_be_cancelled(clock: Any, endless: Endless) -> None:
    env = environment(clock)
    AsyncDataStream.ordered_wait(env.from_collection([1, 2]), endless, LONG, 1).print()
    client = env.execute_async()
    assert endless.begun.wait(20)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()
    assert endless.ended == ["call", "function"]


def results_of(stream: DataStream, **checkpoints: Any) -> list[Any]:
    return list(stream.execute_and_collect(**checkpoints))


def test_a_job_that_stops_with_a_checkpoint_waits_for_its_calls(tmp_path: Path) -> None:
    def job(elements: list[int]) -> DataStream:
        env = environment()
        env.get_config().set_arrival_rate(100)
        waited = AsyncDataStream.unordered_wait(env.from_collection(elements), Released(), LONG)
        return waited.filter(lambda value: value > 0).key_by(lambda value: 0).process(AtArrival())

    first = results_of(job([7, 8, 9]), stop_with_checkpoint=tmp_path)
    second = results_of(job([18, 19]), restore_from=tmp_path)
    assert first + second == results_of(job([7, 8, 9, 18, 19]))
