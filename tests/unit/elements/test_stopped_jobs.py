"""Jobs that are stopped amid their sources, with a checkpoint, and go on behind what these had emitted."""

import linecache
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from equipment.forged_checkpoints import forge_table, with_column
from equipment.text_files import line_sink, lines_in
from equipment.waiting import LONG_S, wait_until
from jobs.checkpointed_numbers import CheckpointedNumbers
from jobs.timed_elements import BY_VALUE

from flinkcore.checkpoint import Checkpoint
from flinkcore.common import Duration, JobStatus, Time, Types, WatermarkStrategy
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
from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.elements.background_run import _JobThread
from flinkcore.errors import (
    CheckpointError,
    ConfigurationError,
    JobCancelledError,
    LifecycleError,
    UserCodeError,
)

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


def test_a_savepoint_without_a_directory_is_refused(got: list[Any]) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async()
    with pytest.raises(ConfigurationError, match="Give savepoint_directory"):
        client.stop_with_savepoint(False)
    with pytest.raises(ConfigurationError, match="Give savepoint_directory"):
        client.trigger_savepoint()
    client.cancel().result()


def slow_sequence(env: StreamExecutionEnvironment, stop: int = 400) -> DataStream:
    numbers = env.from_source(NumberSequenceSource(0, stop - 1), WatermarkStrategy.no_watermarks(), "numbers")
    return numbers.filter(lambda number: time.sleep(0.001) is None)


def test_a_job_with_savepoints_goes_on_and_so_do_others_from_them(got: list[Any], tmp_path: Path) -> None:
    def count_all(env: StreamExecutionEnvironment) -> None:
        slow_sequence(env).key_by(lambda number: number % 3).process(Counted()).add_sink(Got())

    env = environment()
    count_all(env)
    client = env.execute_async()
    paths = []
    for least in (10, 50):
        wait_until(lambda: len(got) > least)  # noqa: B023
        paths.append(client.trigger_savepoint(str(tmp_path)).result())
        assert client.get_job_status().result() is JobStatus.RUNNING
    client.get_job_execution_result().result()
    whole = [(number, number // 3 + 1) for number in range(400)]
    assert got == whole
    for path, least in zip(paths, (10, 50), strict=True):
        got.clear()
        go_on(path, count_all)
        assert got == whole[len(whole) - len(got) :]
        assert 0 < len(got) < 400 - least
    with pytest.raises(LifecycleError, match="has come to its end"):
        client.trigger_savepoint(str(tmp_path)).result()


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_savepoint_has_of_sinks_is_committed_by_the_job_and_by_a_run_from_there(
    fails: bool, got: list[Any], tmp_path: Path
) -> None:
    goes_on = threading.Event()

    def write_all(env: StreamExecutionEnvironment, fails: bool) -> None:
        def fail(number: int) -> int:
            if fails and number == 399:
                goes_on.wait(LONG_S)
                raise ValueError("late")
            return number

        numbers = slow_sequence(env).map(fail, Types.LONG())
        numbers.add_sink(Got())
        numbers.map(str, Types.STRING()).sink_to(line_sink(tmp_path / "out"))

    def files() -> list[Path]:
        return [path for path in (tmp_path / "out").rglob("*") if path.is_file()]

    env = environment()
    write_all(env, fails)
    client = env.execute_async()
    wait_until(lambda: len(got) > 20)
    path = client.trigger_savepoint(str(tmp_path / "s")).result()
    goes_on.set()
    whole = [str(number) for number in range(400)]
    if fails:
        with pytest.raises(UserCodeError, match="late"):
            client.get_job_execution_result().result()
        assert [each.suffix for each in files()] == [".inprogress"]
        env = environment()
        write_all(env, False)
        env.execute(restore_from=path)
    else:
        client.get_job_execution_result().result()
    assert sorted(lines_in(tmp_path / "out"), key=int) == whole
    assert not [each for each in files() if each.suffix == ".inprogress"]


def test_a_job_whose_source_function_is_ahead_of_it_has_no_savepoint_and_goes_on(
    got: list[Any], tmp_path: Path
) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async()
    wait_until(lambda: bool(got))
    with pytest.raises(ConfigurationError, match="the position of a source function is known only after"):
        client.trigger_savepoint(str(tmp_path)).result()
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()
    assert not list(tmp_path.iterdir())


def test_a_savepoint_that_cannot_be_written_fails_no_job(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    slow_sequence(env).add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError):
        client.trigger_savepoint(str(tmp_path / "file")).result()
    client.get_job_execution_result().result()
    assert got == list(range(400))


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


def test_no_job_stops_amid_a_log(got: list[Any], tmp_path: Path) -> None:
    def slow_rows(env: StreamExecutionEnvironment) -> None:
        log = pa.table({"at": pa.array(range(200), pa.int64())})
        rows = env.from_event_log(log, timestamp="at", arrival="at").map(lambda row: row.at)
        rows.filter(lambda at: time.sleep(0.002) is None).add_sink(Got())

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    slow_rows(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 3)
    with pytest.raises(ConfigurationError, match=r"cannot stop within that event log. Let it run to its end"):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    client.get_job_execution_result().result()
    assert got == list(range(200))
    got.clear()
    slow_rows(env)
    client = env.execute_async(stop_with_checkpoint=tmp_path / "c")
    wait_until(lambda: len(got) > 3)
    client.cancel().result()
    with pytest.raises(JobCancelledError, match=r"was cancelled$"):
        client.get_job_execution_result().result()
    assert len(got) < 200
    assert not list((tmp_path / "c").iterdir())


def test_a_reader_without_a_serializer_is_not_stopped_amid_its_splits_on_the_arrival_clock(
    got: list[Any], tmp_path: Path
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    source = Unserialized([range(200)], ends=True)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "own", Types.LONG())
    numbers.filter(lambda number: time.sleep(0.002) is None).add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: len(got) > 3)
    with pytest.raises(ConfigurationError, match=r"let it have a split_serializer\(\)"):
        client.stop_with_savepoint(False, str(tmp_path)).result()
    client.cancel().result()


class Unwritten(PickleSerializer):
    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def serialize(self, value: Any) -> Any:
        if self.fails:
            raise ValueError("no bytes for it")
        return "text"


class Misread(PickleSerializer):
    def deserialize(self, data: bytes) -> Any:
        if data == super().serialize(None):
            raise EOFError("too short")
        return Waiting("another", ())


@pytest.mark.parametrize(
    ("serializer", "told"),
    [
        (Unwritten(True), r"split_serializer\(\) of the split '0' failed: ValueError: no bytes"),
        (Unwritten(False), r"split_serializer\(\) of the split '0' gave 'text', no bytes"),
    ],
)
def test_a_split_that_cannot_be_serialized_is_named(
    serializer: Serializer, told: str, got: list[Any], tmp_path: Path
) -> None:
    env = environment()
    source = Serialized([[0]], serializer=serializer)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "own").add_sink(Got())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    with pytest.raises(UserCodeError, match=told):
        client.stop_with_savepoint(False, str(tmp_path)).result()


def test_a_split_that_is_read_back_as_another_one_is_refused(got: list[Any], tmp_path: Path) -> None:
    def read(env: StreamExecutionEnvironment, serializer: Serializer) -> None:
        source = Serialized([list(range(100))], serializer=serializer)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "own", Types.LONG())
        numbers.filter(lambda number: time.sleep(0.002) is None).add_sink(Got())

    env = environment()
    read(env, PickleSerializer())
    client = env.execute_async()
    wait_until(lambda: bool(got))
    path = Path(client.stop_with_savepoint(False, str(tmp_path)).result())
    env = environment()
    read(env, Misread())
    with pytest.raises(CheckpointError, match=r"Waiting\(split_id='another'.* in place of the split '0'"):
        env.execute(restore_from=path)
    none = PickleSerializer().serialize(None)
    forge_table(path, "splits", lambda batch: with_column(batch, "position", [none]))
    env = environment()
    read(env, Misread())
    with pytest.raises(
        CheckpointError, match=r"split_serializer\(\) of .* cannot read the split '0': EOFError: too short"
    ):
        env.execute(restore_from=path)


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


def test_a_reader_waits_for_all_of_its_splits_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flinkcore.datastream.connectors.iterator_source_reader._CLOSE_SECONDS", LONG_S)
    is_second_closed, is_first_closed = threading.Event(), threading.Event()

    @dataclass(frozen=True)
    class First(SourceSplit):
        split_id: str = "first"

        def elements(self) -> Iterator[int]:
            yield 1
            if is_second_closed.wait(LONG_S / 4):
                is_first_closed.set()

    @dataclass(frozen=True)
    class Second(SourceSplit):
        split_id: str = "second"

        def elements(self) -> Iterator[int]:
            try:
                yield from iter(int, 1)
            finally:
                is_second_closed.set()

    reader = IteratorSourceReader(lambda: None)
    reader.add_splits([First(), Second()])
    reader.close()
    assert is_first_closed.is_set()


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
    def __init__(
        self, listed: Sequence[Sequence[Any]], ends: bool = False, serializer: Serializer | None = None
    ) -> None:
        super().__init__(listed, ends)
        self.serializer = serializer or PickleSerializer()

    def split_serializer(self) -> Serializer:
        return self.serializer


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


INTERRUPTED = _JobThread.collected.__code__, _JobThread._take.__code__
"""Where the program waits for elements, and takes them."""


class InterruptAtLine:
    """Interrupts the program before a line of what it waits in, counted from its second element on."""

    def __init__(self, line: int, taken: list[Any]) -> None:
        self.left = line
        self.taken = taken

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        return self.at_line if frame.f_code in INTERRUPTED and self.taken else None

    def at_line(self, frame: Any, event: str, argument: Any) -> Any:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        is_without_signals = line.startswith(("with ", "try:"))  # also where they end
        if event == "line" and not is_without_signals:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.at_line


def test_ctrl_c_at_any_line_loses_no_element(tmp_path: Path) -> None:
    # In a process of its own: CPython 3.11 may hang where it traces functions that have run often.
    here = Path(__file__).parent
    program = "import sys; sys.path[:0] = sys.argv[2:]; import test_stopped_jobs as t; t.interrupt_lines(sys.argv[1])"
    command = [sys.executable, "-c", program, str(tmp_path), str(here), str(here.parents[1])]
    subprocess.run(command, check=True, timeout=120)


def interrupt_lines(folder: str) -> None:
    goes_on: list[int] = []
    for line in range(1, 19):
        path, taken = Path(folder, str(line)), list[Any]()
        numbers = environment().add_source(CheckpointedNumbers(), type_info=Types.LONG())
        results = numbers.execute_and_collect(stop_with_checkpoint=path)
        before, interrupt = sys.gettrace(), InterruptAtLine(line, taken)
        sys.settrace(interrupt)
        try:
            taken.extend(results)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert interrupt.left <= 0
        if list(path.iterdir()):
            numbers = environment().add_source(CheckpointedNumbers(len(taken) + 2), type_info=Types.LONG())
            further = list(numbers.execute_and_collect(restore_from=path))
            assert taken + further == list(range(len(taken) + 2)), f"line {line}"
            goes_on.append(line)
    assert len(goes_on) > 10


def test_a_job_that_stops_elsewhere_leaves_nothing_where_it_was_to_stop(
    got: list[Any], tmp_path: Path
) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async(stop_with_checkpoint=tmp_path / "own")
    wait_until(lambda: len(got) > 3)
    path = client.stop_with_savepoint(False, str(tmp_path / "other")).result()
    assert Checkpoint.open(path).uids
    assert not list((tmp_path / "own").iterdir())


def test_a_job_all_of_which_had_ended_before_has_its_checkpoint_again(got: list[Any], tmp_path: Path) -> None:
    def collection(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1, 2], Types.LONG()).add_sink(Got())

    env = environment()
    collection(env)
    env.execute(stop_with_checkpoint=tmp_path / "c")
    forge_table(tmp_path / "c", "splits", lambda batch: with_column(batch, "state", [-1]))
    env = environment()
    collection(env)
    env.execute(restore_from=tmp_path / "c", stop_with_checkpoint=tmp_path / "d")
    assert Checkpoint.open(tmp_path / "d").uids == Checkpoint.open(tmp_path / "c").uids
    assert got == [1, 2]


# ---- event time is advanced to its end ----


def windows_of(env: StreamExecutionEnvironment, source: Source) -> None:
    env.get_config().set_auto_watermark_interval(5)
    numbers = env.from_source(source, BY_VALUE, "source", Types.LONG())
    seen = numbers.map(lambda number: (Seen.numbers.append(number), number)[1], Types.LONG())
    windows = seen.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    windows.reduce(lambda left, right: left + right).add_sink(Got())


class Seen:
    numbers: ClassVar[list[int]] = []


@pytest.mark.parametrize("parallelism", [(1, 1), (2, 2), (2, 1)])
def test_all_windows_fire_before_a_job_stops_at_the_end_of_event_time(
    parallelism: tuple[int, int], got: list[Any], tmp_path: Path
) -> None:
    Seen.numbers.clear()
    env = environment(parallelism[0])
    windows_of(env, Splits([[1, 2, 11], [12, 25]]))
    client = env.execute_async()
    wait_until(lambda: len(Seen.numbers) == 5)
    path = client.stop_with_savepoint(True, str(tmp_path)).result()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert sorted(got) == [3, 23, 25]
    got.clear()
    env = environment(parallelism[1])
    windows_of(env, Splits([[1, 2, 11, 26], [12, 25, 3]], ends=True))
    env.execute(restore_from=path)
    assert sorted(got) == [3, 26]


def test_a_source_that_was_idle_at_the_end_of_event_time_holds_no_watermark_back(
    got: list[Any], tmp_path: Path
) -> None:
    def both(env: StreamExecutionEnvironment, numbers: Sequence[int]) -> None:
        env.get_config().set_auto_watermark_interval(5)
        strategy = BY_VALUE.with_idleness(Duration.of_millis(20))
        idle = env.from_source(Splits([[]]), strategy, "idle", Types.LONG())
        busy = env.from_source(Splits([numbers]), BY_VALUE, "busy", Types.LONG())
        seen = idle.union(busy).map(lambda number: (Seen.numbers.append(number), number)[1], Types.LONG())
        windows = seen.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        windows.reduce(lambda left, right: left + right).add_sink(Got())

    env = environment()
    both(env, [1, 11])
    client = env.execute_async()
    wait_until(lambda: got == [1])
    path = client.stop_with_savepoint(True, str(tmp_path)).result()
    assert got == [1, 11]
    env = environment()
    both(env, [1, 11, 21, 31])
    client = env.execute_async(restore_from=path)
    wait_until(lambda: got == [1, 11, 21])
    client.cancel().result()


def test_a_source_function_goes_on_after_the_end_of_event_time(got: list[Any], tmp_path: Path) -> None:
    env = environment()
    count_numbers(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 5)
    path = client.stop_with_savepoint(True, str(tmp_path)).result()
    before = len(got)
    env = environment()
    count_numbers(env, before + 7)
    env.execute(restore_from=path)
    assert got == [(number, number // 3 + 1) for number in range(before + 7)]


@pytest.mark.parametrize("awaits", [False, True])
def test_a_job_on_the_arrival_clock_stops_at_the_end_of_event_time(
    awaits: bool, got: list[Any], tmp_path: Path
) -> None:
    def windows(env: StreamExecutionEnvironment, in_background: bool) -> None:
        timed = env.from_collection(list(range(300)), Types.LONG()).assign_timestamps_and_watermarks(BY_VALUE)
        slow = timed.filter(lambda number: not in_background or time.sleep(0.001) is None)
        sums = slow.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        results = sums.reduce(lambda left, right: left + right)
        if awaits:
            results = AsyncDataStream.ordered_wait(results, Slowly(), Time.seconds(5), 2, Types.LONG())
        results.add_sink(Got())

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    windows(env, True)
    client = env.execute_async()
    wait_until(lambda: len(got) > 2)
    path = client.stop_with_savepoint(True, str(tmp_path)).result()
    assert len(got) < 30
    windows(env, False)
    env.execute(restore_from=path)
    assert sum(got) == sum(range(300))
    assert len(got) in (30, 31)


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
    monkeypatch.setattr("flinkcore.elements.sources.stream_source.CANCELLATION_TIMEOUT_S", 0.1)
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
    monkeypatch.setattr("flinkcore.elements.background_run.INTERRUPT_SECONDS", 0.1)

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


class Quiet(CheckpointedNumbers):
    """Emits three numbers, and then nothing until it is cancelled."""

    def run(self, ctx: Any) -> None:
        while self.next < 3:
            ctx.collect(self.next)
            self.next += 1
        while self.runs:
            time.sleep(0.001)


@pytest.mark.parametrize("others", [0, 1])
def test_a_function_that_emits_nothing_is_stopped_on_the_arrival_clock(
    others: int, got: list[Any], tmp_path: Path
) -> None:
    def numbers(env: StreamExecutionEnvironment) -> None:
        quiet = env.add_source(Quiet(), type_info=Types.LONG())
        further = [env.add_source(Quiet(), type_info=Types.LONG()) for _ in range(others)]
        quiet.union(*further).add_sink(Got())

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    numbers(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 2)
    path = client.stop_with_savepoint(False, str(tmp_path)).result()
    assert sorted(got) == sorted([0, 1, 2] * (1 + others))
    numbers(env)
    client = env.execute_async(restore_from=path)
    client.stop_with_savepoint(False, str(tmp_path)).result()
    assert len(got) == 3 * (1 + others)


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


def test_calls_that_are_in_flight_end_before_a_savepoint(got: list[Any], tmp_path: Path) -> None:
    def slowly(env: StreamExecutionEnvironment) -> None:
        numbers = slow_sequence(env, 200)
        AsyncDataStream.ordered_wait(numbers, Slowly(), Time.seconds(5), 100, Types.LONG()).add_sink(Got())

    env = environment()
    slowly(env)
    client = env.execute_async()
    wait_until(lambda: len(got) > 3)
    path = client.trigger_savepoint(str(tmp_path)).result()
    client.get_job_execution_result().result()
    assert got == list(range(200))
    got.clear()
    go_on(path, slowly)
    assert got == list(range(200))[-len(got) :]
    assert 0 < len(got) < 200


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
