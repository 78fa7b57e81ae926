"""Jobs that are stopped amid their sources, with a checkpoint, and go on behind what these had emitted."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from models.checkpointed_numbers import CheckpointedNumbers
from models.text_files import line_sink, lines_in
from models.timed_elements import BY_VALUE
from models.waiting import LONG_S, wait_until

from flinkcore.common import JobStatus, Time, Types, WatermarkStrategy
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.serializer import PickleSerializer, Serializer
from flinkcore.datastream import (
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.connectors import (
    NumberSequenceSource,
    RecordsBySplits,
    SourceReader,
    SourceReaderBase,
    SplitReader,
)
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import (
    ConfigurationError,
    JobCancelledError,
    LifecycleError,
    UnsupportedOperationError,
    UserCodeError,
)
from flinkcore.runtime.checkpoint import Checkpoint

TEST_ENDS = threading.Event()
"""What waits without end waits until then."""


class Got(SinkFunction):
    """Notes what comes, for all jobs of a test."""

    elements: ClassVar[list[Any]] = []

    def invoke(self, value: Any, context: Any = None) -> None:
        self.elements.append(value)


@pytest.fixture
def got() -> Iterator[list[Any]]:
    Got.elements.clear()
    TEST_ENDS.clear()
    yield Got.elements
    TEST_ENDS.set()
    Got.elements.clear()


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_clock("system")
    return env.set_parallelism(parallelism)


Build = Callable[[StreamExecutionEnvironment], object]


def stop_when(
    reached: Callable[[], bool],
    build: Build,
    folder: Path,
    parallelism: int = 1,
    savepoint: str | None = None,
) -> str:
    """Run a job, from a savepoint on, until something is reached; the savepoint with which it has stopped."""
    env = environment(parallelism)
    build(env)
    client = env.execute_async(restore_from=savepoint)
    wait_until(reached)
    return client.stop_with_savepoint(False, str(folder)).result()


def go_on(savepoint: str, build: Build, parallelism: int = 1) -> None:
    env = environment(parallelism)
    build(env)
    env.execute(restore_from=savepoint)


class Counted(KeyedProcessFunction):
    """Gives each number with how many there were of its key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def count_numbers(env: StreamExecutionEnvironment, stop: int | None = None) -> None:
    numbers = env.add_source(CheckpointedNumbers(stop), type_info=Types.LONG())
    numbers.key_by(lambda number: number % 3).process(Counted()).add_sink(Got())


def test_a_source_function_goes_on_behind_what_it_had_emitted(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 5)
    path = client.stop_with_savepoint(False, str(tmp_path)).result()
    assert path.startswith(f"{tmp_path}/savepoint-{str(client.get_job_id())[:6]}-")
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_job_execution_result().result().job_name
    before = len(got)
    go_on(path, lambda env: count_numbers(env, before + 7))
    assert got == [(number, number // 3 + 1) for number in range(before + 7)]


def test_a_job_stops_again_and_again_at_any_parallelism(got: list[Any], tmp_path: Path) -> None:
    def count_all(env: StreamExecutionEnvironment) -> None:
        sources = [
            env.add_source(CheckpointedNumbers(60)).set_parallelism(1),
            env.from_source(NumberSequenceSource(100, 159), WatermarkStrategy.no_watermarks(), "sequence"),
            env.from_collection(list(range(200, 260))),
        ]
        first, *others = [source.filter(lambda number: time.sleep(0.001) is None) for source in sources]
        first.union(*others).key_by(lambda number: number // 100).process(Counted()).add_sink(Got())

    path = None
    for parallelism in (2, 3, 1, 2):
        before = len(got)
        path = stop_when(lambda: len(got) > before + 20, count_all, tmp_path, parallelism, path)  # noqa: B023
    assert path is not None
    assert len(got) < 180
    go_on(path, count_all, 3)
    assert sorted(number for number, _ in got) == [*range(60), *range(100, 160), *range(200, 260)]
    for kind in range(3):
        assert sorted(count for number, count in got if number // 100 == kind) == list(range(1, 61))


def test_a_savepoint_goes_where_the_settings_say(got: list[Any], tmp_path: Path) -> None:
    env = environment().set_default_savepoint_directory(str(tmp_path))
    count_numbers(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 1)
    assert Path(client.stop_with_savepoint(False).result()).parent == tmp_path


def test_a_savepoint_without_a_directory_or_at_the_end_of_time_is_refused(got: list[Any]) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async()
    with pytest.raises(ConfigurationError, match="give savepoint_directory"):
        client.stop_with_savepoint(False)
    with pytest.raises(UnsupportedOperationError, match=r"take stop_with_savepoint\(False\)"):
        client.stop_with_savepoint(True, "somewhere")
    with pytest.raises(UnsupportedOperationError, match=r"there is no trigger_savepoint"):
        client.trigger_savepoint()
    client.cancel().result()


def test_a_job_that_has_ended_has_no_savepoint(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    count_numbers(env, 3)
    client = env.execute_async()
    client.get_job_execution_result().result()
    with pytest.raises(LifecycleError, match="has come to its end"):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    assert not list(tmp_path.iterdir())


def test_a_job_that_has_something_without_checkpoints_goes_on(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    env.from_source(Unserialized(["a"]), WatermarkStrategy.no_watermarks(), "own").add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    with pytest.raises(ConfigurationError, match=r"let it have a split_serializer\(\)"):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()


class Reminding(KeyedProcessFunction):
    """Registers timers for an element, one of each kind, and gives them as they fire."""

    def __init__(self, after_ms: int) -> None:
        self.after_ms = after_ms

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + self.after_ms)
        timers.register_event_time_timer(value)
        yield "seen", value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.time_domain().name, ctx.get_current_key()


@dataclass(frozen=True)
class Waiting(SourceSplit):
    """Elements, after which nothing comes for as long as the split is read."""

    split_id: str
    listed: tuple[Any, ...]
    ends: bool = False

    def elements(self) -> Iterator[Any]:
        yield from self.listed
        if not self.ends:
            TEST_ENDS.wait(LONG_S)


class Splits(Source):
    """Splits that each have some elements."""

    def __init__(self, listed: Sequence[Sequence[Any]], ends: bool = False) -> None:
        self.listed = listed
        self.ends = ends

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.ends else Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[Waiting]:
        return [Waiting(str(index), tuple(each), self.ends) for index, each in enumerate(self.listed)]


def remind(env: StreamExecutionEnvironment, source: Source, after_ms: int) -> None:
    env.get_config().set_auto_watermark_interval(5)
    stream = env.from_source(source, BY_VALUE, "source", Types.LONG())
    stream.key_by(lambda value: value).process(Reminding(after_ms)).add_sink(Got())


def test_timers_that_are_overdue_fire_at_once_and_others_when_they_are_due(
    got: list[Any], tmp_path: Path
) -> None:
    path = stop_when(
        lambda: ("EVENT_TIME", 10) in got, lambda env: remind(env, Splits([[10, 20]]), 300), tmp_path
    )
    assert got == [("seen", 10), ("seen", 20), ("EVENT_TIME", 10)]
    time.sleep(0.35)
    got.clear()
    env = environment()
    remind(env, Splits([[10, 20, 30]]), 60_000)
    client = env.execute_async(restore_from=path)
    wait_until(lambda: ("EVENT_TIME", 20) in got)
    client.cancel().result()
    assert sorted(got[:3]) == [("PROCESSING_TIME", 10), ("PROCESSING_TIME", 20), ("seen", 30)]
    assert got[3:] == [("EVENT_TIME", 20)]


@pytest.mark.parametrize("parallelism", [(1, 1), (2, 2), (3, 2), (1, 3)])
def test_splits_are_read_on_at_any_parallelism(
    parallelism: tuple[int, int], got: list[Any], tmp_path: Path
) -> None:
    before, after = parallelism
    first = [[0, 10], [1, 11, 21], [2], [3]]
    path = stop_when(
        lambda: len([what for what, _ in got if what == "seen"]) == 7,
        lambda env: remind(env, Splits(first), 60_000),
        tmp_path,
        before,
    )
    second = Splits([[*each, 100 + number] for number, each in enumerate(first)], ends=True)
    go_on(path, lambda env: remind(env, second, 60_000), after)
    numbers = sorted([*(number for each in first for number in each), 100, 101, 102, 103])
    assert sorted(value for what, value in got if what == "seen") == numbers
    assert sorted(value for what, value in got if what == "EVENT_TIME") == numbers


def test_numbers_are_in_the_splits_that_they_were_in(got: list[Any], tmp_path: Path) -> None:
    def slow(number: Any) -> Any:
        time.sleep(0.002)
        return number

    def numbers(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(slow).add_sink(Got())

    path = stop_when(lambda: len(got) > 10, numbers, tmp_path, 2)
    assert len(got) < 100
    go_on(path, numbers, 3)
    assert sorted(got) == list(range(100))


# ---- readers of a source's own ----


class ListReader(SplitReader[Any, Waiting]):
    def __init__(self) -> None:
        self.left: dict[str, list[Any]] = {}

    def fetch(self) -> RecordsBySplits[Any]:
        records = {split_id: [left.pop(0)] for split_id, left in self.left.items() if left}
        return RecordsBySplits(records)

    def handle_splits_additions(self, splits: Sequence[Waiting]) -> None:
        for split in splits:
            self.left[split.split_id] = list(split.listed)

    def close(self) -> None:
        """Nothing is held."""


class Emitter:
    def emit_record(self, element: Any, output: Any, split_state: list[Any]) -> None:
        output.collect(element)
        split_state.pop(0)


class Reader(SourceReaderBase[Any, Waiting, list[Any]]):
    def initialized_state(self, split: Waiting) -> list[Any]:
        return list(split.listed)

    def to_split_type(self, split_id: str, split_state: list[Any]) -> Waiting:
        return Waiting(split_id, tuple(split_state))

    def on_split_finished(self, finished_splits: Any) -> None:
        """There is nothing to do."""


class Unserialized(Splits):
    def create_reader(self, context: Any) -> SourceReader[Any, Any]:
        return Reader(ListReader(), Emitter())


class Serialized(Unserialized):
    def split_serializer(self) -> Serializer:
        return PickleSerializer()


def test_splits_of_a_reader_of_its_own_are_in_the_checkpoint(got: list[Any], tmp_path: Path) -> None:
    def read(env: StreamExecutionEnvironment) -> None:
        source = Serialized([list(range(first, 40, 4)) for first in range(4)])
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "own", Types.LONG())
        stream.filter(lambda number: time.sleep(0.002) is None).add_sink(Got())

    path = stop_when(lambda: len(got) > 5, read, tmp_path, 2)
    assert len(got) < 40
    env = environment(3)
    read(env)
    client = env.execute_async(restore_from=path)
    wait_until(lambda: len(got) == 40)
    client.cancel().result()
    assert sorted(got) == list(range(40))


# ---- what stops a job that has a directory for its checkpoint ----


def write_numbers(env: StreamExecutionEnvironment, folder: Path, stop: int | None = None) -> None:
    numbers = env.add_source(CheckpointedNumbers(stop), type_info=Types.LONG())
    numbers.map(str, Types.STRING()).sink_to(line_sink(folder))
    numbers.add_sink(Got())


def test_a_job_that_is_cancelled_stops_with_its_checkpoint_and_commits(
    got: list[Any], tmp_path: Path
) -> None:
    env = environment()
    write_numbers(env, tmp_path / "out")
    client = env.execute_async("numbers", stop_with_checkpoint=tmp_path / "c")
    wait_until(lambda: len(got) > 3)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(
        JobCancelledError, match=r"the job 'numbers' was cancelled; its checkpoint is in .*/c$"
    ):
        client.get_job_execution_result().result()
    before = len(got)
    assert lines_in(tmp_path / "out") == sorted(str(number) for number in got)
    go_on(str(tmp_path / "c"), lambda env: write_numbers(env, tmp_path / "out", before + 5))
    assert got == list(range(before + 5))
    assert lines_in(tmp_path / "out") == sorted(map(str, range(before + 5)))


@pytest.mark.parametrize("collects", [True, False])
def test_ctrl_c_stops_a_job_with_its_checkpoint(collects: bool, got: list[Any], tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_until(lambda: len(got) > 5)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    env = environment()
    numbers = env.add_source(CheckpointedNumbers(), type_info=Types.LONG())
    numbers.add_sink(Got())
    thread = threading.Thread(target=interrupt)
    thread.start()
    taken: list[Any] = []
    to_checkpoint = {"stop_with_checkpoint": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt):
        taken.extend(numbers.execute_and_collect(**to_checkpoint)) if collects else env.execute(
            **to_checkpoint
        )
    thread.join()
    before = len(got)
    env = environment()
    numbers = env.add_source(CheckpointedNumbers(before + 2), type_info=Types.LONG())
    numbers.add_sink(Got())
    if collects:
        assert list(numbers.execute_and_collect(restore_from=tmp_path / "c")) == [before, before + 1]
    else:
        env.execute(restore_from=tmp_path / "c")
    assert got == list(range(before + 2))


def test_a_signal_to_end_stops_a_job_with_its_checkpoint(got: list[Any], tmp_path: Path) -> None:
    def terminate() -> None:
        wait_until(lambda: len(got) > 3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    env = environment()
    env.add_source(CheckpointedNumbers(), type_info=Types.LONG()).add_sink(Got())
    threading.Thread(target=terminate).start()
    with pytest.raises(SystemExit, match="143"):
        env.execute(stop_with_checkpoint=tmp_path / "c")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert Checkpoint.open(tmp_path / "c").uids


def test_a_job_that_fails_while_it_stops_raises_its_error(got: list[Any], tmp_path: Path) -> None:
    class Unsaved(CheckpointedNumbers):
        def snapshot_state(self, context: Any) -> None:
            raise ValueError("no place")

    def interrupt() -> None:
        wait_until(lambda: len(got) > 3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    env = environment()
    env.add_source(Unsaved(), type_info=Types.LONG()).add_sink(Got())
    threading.Thread(target=interrupt).start()
    with pytest.raises(UserCodeError, match=r"Unsaved\.snapshot_state failed"):
        env.execute(stop_with_checkpoint=tmp_path / "c")
    assert not list((tmp_path / "c").iterdir())


def test_a_program_that_takes_no_more_leaves_no_checkpoint(tmp_path: Path) -> None:
    numbers = environment().add_source(CheckpointedNumbers(), type_info=Types.LONG())
    with numbers.execute_and_collect(stop_with_checkpoint=tmp_path / "c") as results:
        assert next(results) == 0
    assert not list((tmp_path / "c").iterdir())


def sums(env: StreamExecutionEnvironment, elements: list[int]) -> DataStream:
    timed = env.from_collection(elements, Types.LONG()).assign_timestamps_and_watermarks(BY_VALUE)
    windows = timed.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.reduce(lambda left, right: left + right)


def test_the_end_of_all_sources_fires_nothing_and_what_was_read_is_left_out(tmp_path: Path) -> None:
    assert list(sums(environment(), [1, 2, 11]).execute_and_collect(stop_with_checkpoint=tmp_path / "c")) in (
        [],
        [3],
    )
    whole = sums(environment(), [1, 2, 11, 12]).execute_and_collect(restore_from=tmp_path / "c")
    assert list(whole)[-1] == 23


def test_a_source_that_has_ended_is_not_read_again(got: list[Any], tmp_path: Path) -> None:
    def both(env: StreamExecutionEnvironment, stop: int | None = None) -> None:
        short = env.from_collection([-1, -2], Types.LONG())
        plain = env.add_source(Once(-3), type_info=Types.LONG())
        numbers = env.add_source(CheckpointedNumbers(stop), type_info=Types.LONG())
        short.union(plain, numbers).add_sink(Got())

    path = stop_when(lambda: len(got) > 40 and min(got) == -3, both, tmp_path)
    before = max(got) + 1
    go_on(path, lambda env: both(env, before + 3))
    assert sorted(got) == list(range(-3, before + 3))


class Once(SourceFunction):
    """Emits a value, and ends."""

    def __init__(self, value: int) -> None:
        self.value = value

    def run(self, ctx: Any) -> None:
        ctx.collect(self.value)

    def cancel(self) -> None:
        """It ends by itself."""


class Deaf(SourceFunction):
    """Does not hear that it is cancelled."""

    def run(self, ctx: Any) -> None:
        while True:
            ctx.collect(1)
            time.sleep(0.001)

    def cancel(self) -> None:
        """Nothing is done."""


def test_a_function_that_does_not_return_when_it_is_cancelled_fails_the_stop(
    got: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.runtime.sources.stream_source.CANCELLATION_TIMEOUT_S", 0.1)
    env = environment()
    env.add_source(Deaf(), type_info=Types.LONG()).add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    with pytest.raises(UserCodeError, match=r"Deaf\.run did not return within 0\.1 s after cancel\(\)"):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    assert client.get_job_status().result() is JobStatus.FAILED


class Lingering(SourceFunction):
    """Leaves some time after it was cancelled: when the test says."""

    def run(self, ctx: Any) -> None:
        while not TEST_ENDS.wait(0.001):
            ctx.collect(1)

    def cancel(self) -> None:
        Got.elements.append("cancelled")


def test_a_job_that_stops_already_has_no_second_savepoint(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    env.add_source(Lingering(), type_info=Types.LONG()).add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    first = client.stop_with_savepoint(False, str(tmp_path))
    with pytest.raises(LifecycleError, match="stops already, with a checkpoint in "):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    TEST_ENDS.set()
    assert Checkpoint.open(first.result()).uids
    assert client.get_job_status().result() is JobStatus.FINISHED


def test_a_second_ctrl_c_waits_for_no_checkpoint(
    got: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.replay.elements.background_run.INTERRUPT_SECONDS", 0.1)

    def interrupt_twice() -> None:
        for reached in (1, "cancelled"):
            wait_until(lambda: reached in got)  # noqa: B023
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    env = environment()
    env.add_source(Lingering(), type_info=Types.LONG()).add_sink(Got())
    thread = threading.Thread(target=interrupt_twice)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        env.execute(stop_with_checkpoint=tmp_path / "c")
    thread.join()
    assert not list((tmp_path / "c").iterdir())


class Slowly(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        from asyncio import sleep

        await sleep(0.02)
        return [value]


def test_calls_that_are_in_flight_end_before_the_checkpoint(got: list[Any], tmp_path: Path) -> None:
    def slowly(env: StreamExecutionEnvironment, stop: int | None = None) -> None:
        numbers = env.add_source(CheckpointedNumbers(stop), type_info=Types.LONG())
        results = AsyncDataStream.ordered_wait(numbers, Slowly(), Time.seconds(5), 100, Types.LONG())
        results.add_sink(Got())

    path = stop_when(lambda: len(got) > 3, slowly, tmp_path)
    before = len(got)
    go_on(path, lambda env: slowly(env, before + 3))
    assert got == list(range(before + 3))


# ---- what is not the same job ----


def test_a_checkpoint_fits_jobs_on_the_same_clock(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    count_numbers(env, 3)
    env.execute(stop_with_checkpoint=tmp_path / "c")
    assert Checkpoint.open(tmp_path / "c").manifest.job["clock"] == "system"
    env = StreamExecutionEnvironment.get_execution_environment()
    count_numbers(env, 5)
    with pytest.raises(ConfigurationError, match=r"clock: .*system.* then, .*arrival.* now"):
        env.execute(restore_from=tmp_path / "c")
