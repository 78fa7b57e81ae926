"""Jobs on the system clock: timers between elements that are long in coming, and how such jobs end."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import pytest
from equipment.waiting import wait_until
from jobs.timed_elements import BY_VALUE

from flinkcore._internal.python.replay_threads import ReplayStoppedError, ReplayThreads
from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common import Duration, JobID, JobStatus, Time, Types, WatermarkStrategy
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ParallelSourceFunction,
    ProcessFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.functions import PacedSourceContext
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.datastream.state import StateTtlConfig, ValueStateDescriptor
from flinkcore.datastream.window import ProcessingTimeSessionWindows
from flinkcore.elements.background_run import BackgroundRun
from flinkcore.elements.system_clock import SystemJobClock
from flinkcore.elements.tasks.mailbox import JobMailbox, TaskMailbox
from flinkcore.errors import (
    ConfigurationError,
    JobCancelledError,
    TimerError,
    UserCodeError,
)

SHORT_MS = 20
LONG_S = 0.5

WAIT = "wait"
"""An element for which a function sleeps, and which goes no further."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_clock("system")


def waited(value: Any) -> bool:
    if value == WAIT:
        time.sleep(LONG_S)
    return bool(value != WAIT)


def bursts(env: StreamExecutionEnvironment, *elements: Any) -> DataStream:
    """Elements that come at once, except that nothing comes for a while where `WAIT` is among them."""
    return env.from_collection(elements).filter(waited)


class Remind(KeyedProcessFunction):
    """Gives each element, and its key a while later."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + SHORT_MS)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        assert timestamp <= time.time() * 1000
        yield f"{ctx.get_current_key()} later"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_timers_fire_while_nothing_comes(env: StreamExecutionEnvironment, parallelism: int) -> None:
    reminders = bursts(env.set_parallelism(parallelism), "a", WAIT, "b", WAIT, "c")
    rows = list(reminders.key_by(lambda value: value).process(Remind()).execute_and_collect())
    assert rows == ["a", "a later", "b", "b later", "c"]


def test_processing_time_is_that_of_the_machine(env: StreamExecutionEnvironment) -> None:
    class Now(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield ctx.timer_service().current_processing_time()

    before = time.time_ns() // 1_000_000
    (now,) = env.from_collection([1]).process(Now()).execute_and_collect()
    assert before <= now <= time.time_ns() // 1_000_000


def test_sessions_of_processing_time_end_while_nothing_comes(env: StreamExecutionEnvironment) -> None:
    stream = bursts(env, 1, 2, 3, WAIT, 4, 5, WAIT, 6)
    sums = (
        stream.key_by(lambda value: "all")
        .window(ProcessingTimeSessionWindows.with_gap(Time.milliseconds(300)))
        .reduce(lambda left, right: left + right)
    )
    assert list(sums.execute_and_collect()) == [6, 9]  # the last session has not ended when the input does


class AtItsTime(KeyedProcessFunction):
    """Gives each element, and again when the watermark has passed it."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        timestamp = ctx.timestamp()
        assert timestamp is not None
        ctx.timer_service().register_event_time_timer(timestamp - 1)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield f"passed {timestamp + 1}"


def test_periodic_watermarks_are_emitted_while_nothing_comes(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(SHORT_MS)
    # The wait is in a task of its own: that of the generator runs on.
    stream = bursts(env, 10, WAIT, 20, WAIT).rebalance().assign_timestamps_and_watermarks(BY_VALUE)
    rows = list(stream.key_by(lambda value: 0).process(AtItsTime()).execute_and_collect())
    assert rows == [10, "passed 10", 20, "passed 20"]


def test_a_stream_that_is_silent_for_long_is_idle(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(SHORT_MS)
    silent = env.add_source(Endless(WAIT), type_info=Types.PICKLED_BYTE_ARRAY()).filter(lambda value: False)
    idle = silent.assign_timestamps_and_watermarks(BY_VALUE.with_idleness(Duration.of_millis(SHORT_MS)))
    busy = env.from_collection([10]).assign_timestamps_and_watermarks(BY_VALUE)
    passed = busy.union(idle).key_by(lambda value: 0).process(AtItsTime())
    assert passed.execute_and_collect(limit=2) == [10, "passed 10"]


class Once(KeyedProcessFunction):
    """Gives whether an element is new to its key; what was seen is forgotten after a while."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        ttl = StateTtlConfig.new_builder(Time.milliseconds(300)).build()
        descriptor.enable_time_to_live(ttl)
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value, self.seen.value() is None
        self.seen.update(True)


def test_state_lives_as_long_as_the_machine_says(env: StreamExecutionEnvironment) -> None:
    once = bursts(env, "a", "a", WAIT, "a", "a").key_by(lambda value: value).process(Once())
    assert list(once.execute_and_collect()) == [("a", True), ("a", False)] * 2


# ---- sources without end ----


class Endless(SourceFunction):
    """Emits a value every few ms until it is cancelled."""

    cancelled: ClassVar[list[Any]] = []

    def __init__(self, value: Any) -> None:
        self.value = value
        self.runs = True

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        while self.runs:
            ctx.collect(self.value)
            ctx.sleep(5)

    def cancel(self) -> None:
        self.cancelled.append(self.value)
        self.runs = False


class EndlessEverywhere(Endless, ParallelSourceFunction):
    """Likewise, in each subtask."""


@pytest.fixture
def cancelled() -> Iterator[list[Any]]:
    Endless.cancelled.clear()
    Dropping.dropped.clear()
    yield Endless.cancelled
    Endless.cancelled.clear()


class Closing(MapFunction):
    closed: ClassVar[list[str]] = []

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        self.closed.append(threading.current_thread().name)


@pytest.fixture
def closed() -> Iterator[list[str]]:
    Closing.closed.clear()
    yield Closing.closed
    Closing.closed.clear()


def test_elements_come_while_an_endless_source_runs_which_a_limit_cancels(
    env: StreamExecutionEnvironment, cancelled: list[Any], closed: list[str]
) -> None:
    stream = env.add_source(Endless("x")).map(Closing())
    assert stream.execute_and_collect(limit=3) == ["x", "x", "x"]
    assert cancelled == ["x"]
    assert len(closed) == 1


def test_a_job_goes_on_while_its_program_does_something_else(env: StreamExecutionEnvironment) -> None:
    seen = threading.Event()

    class Note(SinkFunction):
        def invoke(self, value: Any, context: Any = None) -> None:
            seen.set()

    # Not copied: an event can be neither copied nor pickled.
    Note.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]
    stream = env.add_source(Endless("x"))
    stream.add_sink(Note())
    with stream.execute_and_collect() as results:
        assert seen.wait(5)
        assert next(results) == "x"


def endless_job(env: StreamExecutionEnvironment) -> Any:
    env.set_parallelism(2).add_source(EndlessEverywhere("x")).map(Closing()).add_sink(Dropping())
    return env.execute_async("endless")


class Dropping(SinkFunction):
    """Notes which of its copies have got something."""

    dropped: ClassVar[set[int]] = set()

    def invoke(self, value: Any, context: Any = None) -> None:
        self.dropped.add(id(self))


@pytest.mark.parametrize("clock", ["system", "arrival"])
def test_a_job_in_the_background_can_be_cancelled(
    clock: Any, cancelled: list[Any], closed: list[str]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_clock(clock)
    client = endless_job(env)
    result = client.get_job_execution_result()
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert not result.done()
    wait_until(lambda: len(Dropping.dropped) == 2)
    assert client.cancel().result() is None
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert client.get_job_status().result().is_globally_terminal_state()
    with pytest.raises(JobCancelledError, match="the job 'endless' was cancelled"):
        result.result()
    assert isinstance(client.get_job_execution_result().exception(), JobCancelledError)
    assert cancelled == ["x", "x"]
    assert len(closed) == 2
    assert client.cancel().done()


@pytest.mark.parametrize("clock", ["system", "arrival"])
def test_the_result_of_a_job_in_the_background_comes_when_it_has_ended(clock: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_clock(clock)

    class Counting(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.counter = runtime_context.get_metrics_group().counter("elements")

        def map(self, value: Any) -> Any:
            self.counter.inc()

    env.from_collection([1, 2, 3]).map(Counting()).name("count").add_sink(Dropping())
    client = env.execute_async("three")
    result = client.get_job_execution_result().result()
    assert result.metrics["count.elements"] == 3
    assert isinstance(result.get_job_id(), JobID)
    assert str(result.get_job_id()) == str(client.get_job_id())
    assert result.job_name == "three"
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_accumulators().result() == {}


def failing(value: Any) -> Any:
    raise ValueError(f"no {value}")


def test_the_error_of_a_job_is_raised_where_its_result_is_asked_for(env: StreamExecutionEnvironment) -> None:
    stream = env.add_source(Endless("x")).map(failing)
    with pytest.raises(UserCodeError, match="no x"):
        list(stream.execute_and_collect())
    stream.add_sink(Dropping())
    with pytest.raises(UserCodeError, match="no x"):
        env.execute()
    stream.add_sink(Dropping())
    client = env.execute_async()
    with pytest.raises(UserCodeError, match="no x"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_the_error_of_a_timer_ends_the_job(env: StreamExecutionEnvironment) -> None:
    class Late(Remind):
        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            raise ValueError("too late")

    with pytest.raises((UserCodeError, TimerError), match="too late"):
        list(env.add_source(Endless("x")).key_by(lambda value: value).process(Late()).execute_and_collect())


def test_ctrl_c_ends_an_endless_job(
    env: StreamExecutionEnvironment, cancelled: list[Any], closed: list[str]
) -> None:
    env.add_source(Endless("x")).map(Closing()).add_sink(Dropping())

    def interrupt() -> None:
        wait_until(lambda: len(Dropping.dropped) == 1)
        # Python loses an interrupt that comes in a callback of its garbage collector.
        while not (cancelled or has_ended.is_set()):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            has_ended.wait(2)

    has_ended = threading.Event()
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        env.execute()
    has_ended.set()
    interrupting.join()
    assert cancelled == ["x"]
    assert len(closed) == 1


@pytest.mark.parametrize("run", ["execute", "execute_async", "execute_and_collect"])
def test_ctrl_c_ends_a_job_whose_thread_has_just_begun(
    env: StreamExecutionEnvironment, cancelled: list[Any], monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    start = ReplayThreads.start

    def start_and_interrupt(threads: ReplayThreads, name: str, work: Callable[[], None]) -> NoReturn:
        start(threads, name, work)
        wait_until(lambda: len(Dropping.dropped) == 1)
        raise KeyboardInterrupt

    stream = env.add_source(Endless("x"))
    stream.add_sink(Dropping())
    monkeypatch.setattr(ReplayThreads, "start", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        getattr(stream if run == "execute_and_collect" else env, run)()
    assert cancelled == ["x"]


@dataclass(frozen=True)
class Slow(SourceSplit):
    """Gives an element, and further ones only after a long while."""

    split_id: str
    pause_s: float
    count: int

    def elements(self) -> Iterator[Any]:
        for number in range(self.count):
            if number:
                time.sleep(self.pause_s)
            yield f"{self.split_id}{number}"


class SlowSource(Source):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED

    def __init__(self, *splits: SourceSplit) -> None:
        self.splits = splits

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return list(self.splits)

    def produced_type(self) -> Any:
        return Types.PICKLED_BYTE_ARRAY()


def from_splits(env: StreamExecutionEnvironment, *splits: SourceSplit) -> DataStream:
    return env.from_source(SlowSource(*splits), WatermarkStrategy.no_watermarks(), "slow")


def test_timers_fire_while_no_split_gives_anything(env: StreamExecutionEnvironment) -> None:
    stream = from_splits(env, Slow("a", LONG_S, 2), Slow("b", 60, 2)).key_by(lambda value: value)
    rows = stream.process(Remind()).execute_and_collect(limit=5)
    assert sorted(rows[:2]) == ["a0", "b0"]
    assert sorted(rows[2:4]) == ["a0 later", "b0 later"]
    assert rows[4] == "a1"


def test_an_error_of_a_split_comes_after_its_elements(env: StreamExecutionEnvironment) -> None:
    @dataclass(frozen=True)
    class Broken(Slow):
        def elements(self) -> Iterator[Any]:
            yield from super().elements()
            raise ValueError("broken")

    with from_splits(env, Broken("a", 0, 2)).execute_and_collect() as results:
        assert [next(results), next(results)] == ["a0", "a1"]
        with pytest.raises(ValueError, match="broken"):
            next(results)


def test_sources_wait_for_each_other(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    aligned = BY_VALUE.with_watermark_alignment("group", Duration.of_millis(5), Duration.of_millis(2))
    few, many = (env.from_source(NumberSequenceSource(1, last), aligned, str(last)) for last in (3, 90))
    assert sorted(few.union(many).execute_and_collect()) == sorted([1, 2, 3, *range(1, 91)])


def test_ingestion_time_is_that_of_the_machine(env: StreamExecutionEnvironment) -> None:
    class Timestamps(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield ctx.timestamp(), ctx.timer_service().current_watermark()

    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    before = time.time_ns() // 1_000_000
    times = env.add_source(Endless("x")).process(Timestamps()).execute_and_collect(limit=3)
    after = time.time_ns() // 1_000_000
    assert all(before <= timestamp <= after and watermark < timestamp for timestamp, watermark in times)


# ---- the setting ----


def test_the_clock_is_a_setting(env: StreamExecutionEnvironment) -> None:
    assert env.get_clock() == "system"
    other = StreamExecutionEnvironment.get_execution_environment()
    assert other.get_clock() == "arrival"
    other.configure({"flinkcore.clock": "system"})
    assert other.get_clock() == "system"
    with pytest.raises(ConfigurationError, match="must be one of arrival, system, not 'wall'"):
        other.configure({"flinkcore.clock": "wall"})


def test_logs_and_columnar_jobs_have_arrivals(env: StreamExecutionEnvironment) -> None:
    pa = pytest.importorskip("pyarrow")
    log = env.from_event_log(pa.table({"at": [1, 2]}), timestamp="at")
    with pytest.raises(ConfigurationError, match="a columnar job cannot run on the system clock"):
        log.filter(pa.compute.field("at") > 1).to_arrow()
    with pytest.raises(ConfigurationError, match=r"with an event log .* cannot run on the system clock"):
        log.map(str).execute_and_collect()


def test_a_background_job_refuses_a_working_directory(
    env: StreamExecutionEnvironment, tmp_path: Any, cancelled: list[Any]
) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data.txt", "1")
    env.add_python_archive(tmp_path / "data.zip")
    with pytest.raises(ConfigurationError, match="no working directory of their own"):
        env.from_collection([1]).execute_and_collect()


# ---- cancelling ----


def test_a_source_function_that_was_cancelled_before_it_began_holds_up_nobody() -> None:
    from equipment.recorders import OutputRecorder

    from flinkcore.elements.sources.stream_source import StreamSource
    from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

    class Silent(SourceFunction):
        cancelled = threading.Event()

        def run(self, ctx: PacedSourceContext[Any]) -> None:
            self.cancelled.wait(20)

        def cancel(self) -> None:
            self.cancelled.set()

    source = StreamSource(
        Silent(),
        OutputRecorder(),
        DrivenProcessingTimeService(),
        Types.PICKLED_BYTE_ARRAY(),
        time_characteristic=TimeCharacteristic.EventTime,
        auto_watermark_interval_ms=0,
    )
    source.cancel()
    assert source.next_emission() is None
    source.close()
    assert Silent.cancelled.is_set()


# ---- how jobs end ----


def test_a_function_that_cannot_open_leaves_no_thread(env: StreamExecutionEnvironment) -> None:
    class Shut(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise ValueError("shut")

        def map(self, value: Any) -> Any:
            return value

    before = set(threading.enumerate())
    env.from_collection([1]).map(Shut()).assign_timestamps_and_watermarks(BY_VALUE).add_sink(Dropping())
    with pytest.raises(Exception, match="shut"):
        env.execute_async().get_job_execution_result().result()
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(5)
    assert [thread.name for thread in left if thread.is_alive()] == []


def test_a_job_that_is_cancelled_already_has_ended_when_it_is_closed(env: StreamExecutionEnvironment) -> None:
    is_busy, may_go_on = threading.Event(), threading.Event()
    ended: list[bool] = []

    def busy(value: Any) -> Any:
        is_busy.set()
        may_go_on.wait(20)
        return value

    stream = env.from_collection([1]).map(busy)
    job = ElementJob("busy", (), stream._transformation)
    run = BackgroundRun(job, env.get_config(), WorkingDirectory())
    run.start()
    assert is_busy.wait(20)
    run.cancel()
    closing = threading.Thread(target=lambda: (run.close(), ended.append(run.status.is_terminal_state())))
    closing.start()
    closing.join(0.05)
    may_go_on.set()
    closing.join(20)
    assert ended == [True]


class BadlyClosed:
    """Gives two elements; it cannot be closed."""

    def __init__(self) -> None:
        self.left = iter(["a", "b"])

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self.left)

    def close(self) -> None:
        raise OSError("stuck")


@dataclass(frozen=True)
class BadSplit(SourceSplit):
    split_id: str

    def elements(self) -> Iterator[Any]:
        return BadlyClosed()


@pytest.mark.parametrize("clock", ["system", "arrival"])
def test_a_split_that_cannot_be_closed_fails_the_job_after_its_elements(clock: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_clock(clock)
    with from_splits(env, BadSplit("bad")).execute_and_collect() as results:
        assert [next(results), next(results)] == ["a", "b"]
        with pytest.raises(OSError, match="stuck"):
            next(results)


# ---- mailboxes ----


@pytest.mark.parametrize(("put_s", "called_s"), [(0, [12, 17, 22]), (12, [12])])
def test_mails_that_put_mails_run_no_longer_than_the_first_one_has_waited(
    put_s: float, called_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    called: list[float] = []
    monkeypatch.setattr("flinkcore.elements.tasks.mailbox.monotonic", lambda: now_s)
    mailbox = JobMailbox(lambda: None, lambda: None)
    task = mailbox.of_task(0)

    def again() -> None:
        nonlocal now_s
        called.append(now_s)
        assert len(called) < 9, "sources would never have their turn"
        now_s += 5
        task.put(again)

    now_s = put_s
    task.put(again)
    now_s = 12
    mailbox.run()
    assert called == called_s
    assert mailbox.was_woken
    mailbox.run()
    assert called == [*called_s, called_s[-1] + 5]


def test_a_job_stops_between_two_mails() -> None:
    called: list[str] = []

    def check() -> None:
        if called:
            raise ReplayStoppedError

    mailbox = TaskMailbox(lambda: None, lambda: None, check, lambda is_waiting: None)
    mailbox.put(lambda: called.append("first"))
    mailbox.put(lambda: called.append("second"))
    with pytest.raises(ReplayStoppedError):
        mailbox.run()
    assert called == ["first"]


def test_mail_of_a_task_comes_before_what_others_send_it() -> None:
    from flinkcore.common import Watermark
    from flinkcore.elements.tasks.task_output import InputChannel
    from flinkcore.operators.records.stream_elements import StreamRecord

    seen: list[Any] = []
    mailbox = TaskMailbox(lambda: None, lambda: None, lambda: None, lambda is_waiting: None)
    noting: Callable[[Any], Callable[[], None]] = lambda what: lambda: seen.append(what)  # noqa: E731
    channel = mailbox.before(
        InputChannel(
            lambda record: seen.append(record.value),
            lambda element, number: seen.append(element),
            0,
            noting("end"),
        )
    )
    mailbox.put(noting("first"))
    channel.collect(StreamRecord("record"))
    mailbox.put(noting("second"))
    channel.process(Watermark(1), 0)
    mailbox.put(noting("third"))
    channel.end()
    assert seen == ["first", "record", "second", Watermark(1), "third", "end"]


def test_a_timer_that_is_cancelled_while_its_mail_waits_is_not_called() -> None:
    clock = SystemJobClock(lambda: None)
    try:
        called: list[int] = []
        first, second = clock.of_task(0), clock.of_task(1)
        timers = [first.register_timer(timestamp, called.append) for timestamp in (1, 2)]
        timers.append(first.schedule_with_fixed_delay(called.append, 0, 1000))
        second.register_timer(3, called.append)
        while sum(len(clock.mailbox_of(task)) for task in (0, 1)) < 4:
            clock.mailbox.wait(1)
        for timer in timers[1:]:
            assert timer.cancel()
        second.quiesce()
        second.register_timer(4, called.append)
        clock.mailbox.run()
        assert called == [1]
        assert timers[0].is_done
        assert not timers[0].cancel()
    finally:
        clock.close()
