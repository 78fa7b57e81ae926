"""Source functions in jobs: what they emit, when it arrives, and how they end."""

import threading
from typing import Any, ClassVar

import pytest
from equipment.interrupted_programs import interrupted

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common import Duration, Row, Types, Watermark
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    KeyedProcessFunction,
    ParallelSourceFunction,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.functions import PacedSourceContext
from flinkcore.elements.sources import stream_source
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    LifecycleError,
    UnsupportedOperationError,
    UserCodeError,
)

Context = PacedSourceContext[Any]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


class Emitting(SourceFunction):
    """Emits by a function of the context; its objects can be copied, and share what they note."""

    noted: ClassVar[list[Any]] = []

    def __init__(self, emit: Any) -> None:
        self._emit = emit
        self.cancelled = False

    def run(self, ctx: Context) -> None:
        self._emit(self, ctx)

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def noted() -> list[Any]:
    Emitting.noted = []
    return Emitting.noted


def counting(source: Emitting, ctx: Context) -> None:
    number = 0
    while not source.cancelled:
        ctx.collect(number)
        number += 1
    source.noted.append("left")


class Times(ProcessFunction):
    """Gives each value with its timestamp, the watermark that it meets, and the time of the clock."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


def timed(source: Emitting, ctx: Context) -> None:
    ctx.collect("a")
    ctx.collect_with_timestamp("b", 70)
    ctx.emit_watermark(Watermark(60))
    ctx.sleep(300)
    ctx.collect("c")


@pytest.mark.parametrize(
    ("characteristic", "expected"),
    [
        (
            TimeCharacteristic.EventTime,
            [("a", MIN_TIMESTAMP, MIN_TIMESTAMP, 1), ("b", 70, MIN_TIMESTAMP, 2), ("c", 70, 60, 303)],
        ),
        (
            TimeCharacteristic.IngestionTime,
            [("a", 1, MIN_TIMESTAMP, 1), ("b", 2, 0, 2), ("c", 303, 0, 303)],
        ),
        (
            TimeCharacteristic.ProcessingTime,
            [
                ("a", MIN_TIMESTAMP, MIN_TIMESTAMP, 1),
                ("b", MIN_TIMESTAMP, MIN_TIMESTAMP, 2),
                ("c", MIN_TIMESTAMP, MIN_TIMESTAMP, 303),
            ],
        ),
    ],
)
def test_the_time_characteristic_says_whose_times_count(
    env: StreamExecutionEnvironment, characteristic: TimeCharacteristic, expected: list[Any]
) -> None:
    stream = env.add_source(Emitting(timed)).process(Times())
    env.set_stream_time_characteristic(characteristic)  # counts when the job starts
    assert list(stream.execute_and_collect()) == expected


def test_a_function_without_end_gives_results_until_the_program_has_enough(
    env: StreamExecutionEnvironment, noted: list[Any]
) -> None:
    with env.add_source(Emitting(counting)).map(lambda value: value * 2).execute_and_collect() as results:
        assert [next(results) for _ in range(3)] == [0, 2, 4]
    assert noted == ["left"]


def test_a_result_comes_before_the_function_emits_the_next_element(env: StreamExecutionEnvironment) -> None:
    goes_on = threading.Event()
    Emitting.goes_on = goes_on  # type: ignore[attr-defined]

    other = env.from_collection(["x"], Types.STRING())
    results = iter(env.add_source(Emitting(waiting_function)).union(other).execute_and_collect())
    assert next(results) == 1
    goes_on.set()
    assert list(results) == ["x", 2]


def waiting_function(source: Emitting, ctx: Context) -> None:
    ctx.collect(1)
    assert source.goes_on.wait(60)  # type: ignore[attr-defined]
    ctx.collect(2)


def test_a_function_that_ignores_its_cancellation_ends_when_it_emits(
    env: StreamExecutionEnvironment, noted: list[Any]
) -> None:
    def endless(source: Emitting, ctx: Context) -> None:
        try:
            while True:
                ctx.collect("again")
        finally:
            source.noted.append("ended")

    with env.add_source(Emitting(endless)).execute_and_collect() as results:
        assert next(results) == "again"
    assert noted == ["ended"]


def test_a_function_that_does_not_return_is_left_behind(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stream_source, "CANCELLATION_TIMEOUT_S", 0.01)
    Emitting.goes_on = threading.Event()  # type: ignore[attr-defined]
    with env.add_source(Emitting(waiting_function)).execute_and_collect() as results:
        assert next(results) == 1
    assert "Emitting.run did not return" in caplog.text
    Emitting.goes_on.set()  # type: ignore[attr-defined]


def test_a_cancellation_that_fails_keeps_no_other_function_from_its_own(
    env: StreamExecutionEnvironment,
    noted: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Bad(Emitting):
        def cancel(self) -> None:
            raise KeyError("gone")

    monkeypatch.setattr(stream_source, "EMISSIONS_AHEAD", 4)
    before = set(threading.enumerate())  # one of another test may return later
    stream = env.add_source(Bad(counting)).union(env.add_source(Emitting(counting)))
    with stream.execute_and_collect() as results:
        assert [next(results) for _ in range(4)] == [0, 0, 1, 1]
    assert noted == ["left"]
    assert "Bad.cancel failed" in caplog.text
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("source function")]


def test_a_failure_of_the_function_comes_after_what_it_has_emitted(env: StreamExecutionEnvironment) -> None:
    def failing(source: Emitting, ctx: Context) -> None:
        ctx.collect(1)
        raise KeyError("gone")

    results = iter(env.add_source(Emitting(failing)).execute_and_collect())
    assert next(results) == 1
    with pytest.raises(UserCodeError, match=r"^Emitting.run failed: KeyError: 'gone'$"):
        next(results)


def test_a_failure_behind_the_function_cancels_it(env: StreamExecutionEnvironment, noted: list[Any]) -> None:
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        list(env.add_source(Emitting(counting)).map(lambda value: 1 // (5 - value)).execute_and_collect())
    assert noted == ["left"]


class Alarm(KeyedProcessFunction):
    """Sets a processing-time timer for 1 ms later at each element."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 1)
        yield value, timers.current_processing_time()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "timer", timestamp


def locked(source: Emitting, ctx: Context) -> None:
    with ctx.get_checkpoint_lock():
        ctx.collect("a")
        with ctx.get_checkpoint_lock():
            ctx.collect("b")
        ctx.collect("c")
    ctx.sleep(10)
    ctx.collect("d")


def test_all_that_is_emitted_under_the_lock_arrives_at_one_time(env: StreamExecutionEnvironment) -> None:
    stream = (
        env.add_source(Emitting(locked), type_info=Types.STRING())
        .key_by(lambda value: value)
        .process(Alarm())
    )
    timer = ("timer", 2)
    assert (
        list(stream.execute_and_collect())
        == [
            *[("a", 1), ("b", 1), ("c", 1), timer, timer, timer],
            *[("d", 12), ("timer", 13)],
        ][:-1]
    )


def test_a_silent_source_with_a_timeout_holds_no_watermark_back(env: StreamExecutionEnvironment) -> None:
    def silent(source: Emitting, ctx: Context) -> None:
        ctx.emit_watermark(Watermark(5))
        ctx.sleep(1000)
        ctx.collect("late")

    def regular(source: Emitting, ctx: Context) -> None:
        for at in range(10, 90, 10):
            ctx.sleep(9)
            ctx.collect_with_timestamp(at, at)
            ctx.emit_watermark(Watermark(at))

    watermarks = []
    for timeout in (None, Duration.of_millis(25)):
        quiet = env.add_source(Emitting(silent), idle_timeout=timeout)
        stream = quiet.union(env.add_source(Emitting(regular))).process(Times())
        watermarks.append(
            [watermark for value, _, watermark, _ in stream.execute_and_collect() if value != "late"]
        )
    assert watermarks == [[MIN_TIMESTAMP, *[5] * 7], [MIN_TIMESTAMP, 5, 5, 5, 5, 50, 60, 70]]


def test_an_element_is_what_it_was_when_it_was_emitted(env: StreamExecutionEnvironment) -> None:
    def growing(source: Emitting, ctx: Context) -> None:
        seen: list[int] = []
        for number in range(3):
            seen.append(number)
            ctx.collect(seen)

    assert list(env.add_source(Emitting(growing)).execute_and_collect()) == [[0], [0, 1], [0, 1, 2]]


def test_elements_have_the_declared_type(env: StreamExecutionEnvironment) -> None:
    def pairs(source: Emitting, ctx: Context) -> None:
        ctx.collect((1, "a"))
        ctx.collect((2, "b", 3))

    named = Types.ROW_NAMED(["n", "name"], [Types.INT(), Types.STRING()])
    results = iter(env.add_source(Emitting(pairs), type_info=named).execute_and_collect())
    assert next(results) == Row(n=1, name="a")
    with pytest.raises(DataError, match="3"):
        next(results)


class Shards(ParallelSourceFunction):
    """Each subtask emits its number, and what has been called so far."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")
        self.index = runtime_context.get_index_of_this_subtask()

    def run(self, ctx: Context) -> None:
        self.calls.append("run")
        for number in range(2):
            ctx.collect((self.index, number, tuple(self.calls)))

    def cancel(self) -> None:
        raise AssertionError("it ends by itself")

    def close(self) -> None:
        Emitting.noted.append((self.index, "close"))


def test_each_subtask_runs_a_parallel_function_of_its_own(
    env: StreamExecutionEnvironment, noted: list[Any]
) -> None:
    results = list(env.add_source(Shards()).set_parallelism(2).execute_and_collect())
    called = ("open", "run")
    assert results == [(0, 0, called), (1, 0, called), (0, 1, called), (1, 1, called)]
    assert sorted(noted) == [(0, "close"), (1, "close")]


def test_a_function_that_is_not_parallel_has_one_subtask(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(3)
    assert len(list(env.add_source(Emitting(timed)).execute_and_collect())) == 3
    with pytest.raises(ConfigurationError, match="parallelism of this source must be 1"):
        list(env.add_source(Emitting(timed)).set_parallelism(2).execute_and_collect())


def test_batch_mode_takes_bounded_functions_only_and_emits_the_last_watermark_only(
    env: StreamExecutionEnvironment,
) -> None:
    class Bounded(Emitting):
        boundedness = Boundedness.BOUNDED  # type: ignore[assignment]

    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(
        ConfigurationError, match=r"source function Emitting is unbounded.*BATCH.*STREAMING or AUTOMATIC"
    ):
        list(env.add_source(Emitting(timed)).execute_and_collect())
    stream = env.add_source(Bounded(timed)).process(Times())
    assert [watermark for _, _, watermark, _ in stream.execute_and_collect()] == [MIN_TIMESTAMP] * 3
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    with pytest.raises(
        ConfigurationError, match="ingestion time is not available without progressive watermarks"
    ):
        list(env.add_source(Bounded(timed)).execute_and_collect())


def test_a_source_of_another_kind_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        ConfigurationError, match=r"SourceFunction, not .*; take from_source for the source of the numbers 1"
    ):
        env.add_source(NumberSequenceSource(1, 3))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="at least 1 ms"):
        env.add_source(Emitting(timed), idle_timeout=Duration.of_millis(0))


def test_the_wrapper_of_java_functions_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="JVM"):
        SourceFunction("org.example.Source")


@pytest.mark.parametrize(
    ("emit", "error", "message"),
    [
        (lambda _, ctx: ctx.collect_with_timestamp("a", 1.5), DataError, "gave the timestamp 1.5"),
        (lambda _, ctx: ctx.emit_watermark(5), DataError, "emitted 5: a watermark"),
        (lambda _, ctx: ctx.sleep(-1), ConfigurationError, "sleep takes"),
        (lambda _, ctx: (ctx.close(), ctx.close(), ctx.collect(1)), LifecycleError, "closed its context"),
    ],
)
def test_what_cannot_be_emitted_fails_where_it_is_emitted(
    env: StreamExecutionEnvironment, emit: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        list(env.add_source(Emitting(emit)).execute_and_collect())


def test_a_function_cannot_sleep_under_the_lock(env: StreamExecutionEnvironment) -> None:
    def sleeping(source: Emitting, ctx: Context) -> None:
        with ctx.get_checkpoint_lock():
            ctx.sleep(1)

    with pytest.raises(LifecycleError, match="Emitting sleeps while it holds the checkpoint lock"):
        list(env.add_source(Emitting(sleeping)).execute_and_collect())


def test_a_window_of_an_ended_function_fires(env: StreamExecutionEnvironment) -> None:
    def idle_at_the_end(source: Emitting, ctx: Context) -> None:
        ctx.collect_with_timestamp("a", 3)
        ctx.mark_as_temporarily_idle()

    class Fires(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(10)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            yield timestamp, ctx.timer_service().current_watermark()

    stream = env.add_source(Emitting(idle_at_the_end), type_info=Types.STRING()).key_by(lambda value: value)
    assert list(stream.process(Fires()).execute_and_collect()) == [(10, MAX_TIMESTAMP)]


ENDLESS = """
    import time
    from flinkcore.datastream import SinkFunction, SourceFunction, StreamExecutionEnvironment

    class Ticks(SourceFunction):
        running = True

        def run(self, ctx):
            while self.running:
                ctx.collect("tick")
                time.sleep(0.01)
            print("left", flush=True)

        def cancel(self):
            self.running = False

    class Shown(SinkFunction):
        def invoke(self, value):
            print(value, flush=True)

    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_source(Ticks()).add_sink(Shown())
    env.execute()
    print("finished", flush=True)
"""


def test_ctrl_c_ends_a_function_without_end() -> None:
    end = interrupted(ENDLESS, first_line="tick")
    assert end.output.endswith("left\n")
    assert "finished" not in end.output
    assert end.errors.endswith("KeyboardInterrupt\n")
