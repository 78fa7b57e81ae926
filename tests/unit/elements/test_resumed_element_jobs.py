"""Jobs over single elements that stop with checkpoints: sinks, what is refused, and what was forged."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.forged_checkpoints import forge, forge_table, with_column
from equipment.text_files import line_sink, lines_in
from equipment.timestamped_source import TimestampedSource
from jobs.checkpoint_trials import run_job
from jobs.checkpointed_numbers import CheckpointedNumbers
from jobs.early_ends import ends_early
from jobs.timed_elements import BY_VALUE, RULES, STRATEGY, Ruled, ValueIsTime

from flinkcore.checkpoint import Checkpoint, OperatorSnapshot, PendingCheckpoint
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.common import (
    Duration,
    Time,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    CoProcessFunction,
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.connectors.base import Sink, SinkWriter, Source, WriterContext
from flinkcore.datastream.connectors.collection import CollectionSplit
from flinkcore.datastream.connectors.file_system import FileSink
from flinkcore.datastream.connectors.number_seq import NumberSequenceSource, NumberSequenceSplit
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.state import StateTtlConfig, ValueStateDescriptor
from flinkcore.elements.arrivals.element_arrivals import arrival_times, positions_ahead
from flinkcore.elements.arrivals.restored_sources import SourcePlace
from flinkcore.elements.sources.source_contexts import checked_context_state
from flinkcore.elements.sources.source_watermarks import SourceWatermarks
from flinkcore.elements.tasks.subtask_state import SENT, elements_by_subtask, own_state, where_it_was
from flinkcore.errors import (
    CheckpointError,
    ConfigurationError,
    DataError,
    SchemaError,
    SourceError,
    UserCodeError,
)
from flinkcore.operators.state import DistributionMode, OperatorStateSnapshot

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
FIRST, SECOND = [("a", 1), ("b", 4), ("a", 12)], [("a", 15), ("b", 31), ("a", 33)]


class Sums(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, context.window().start, sum(value for _, value in elements)


class Counts(KeyedProcessFunction):
    """Counts the elements of a key, for as long as its time to live goes on."""

    def __init__(self, ttl_ms: int | None = None) -> None:
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("n", Types.LONG())
        if self.ttl_ms is not None:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(self.ttl_ms)).build())
        self.n = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.n.update((self.n.value() or 0) + 1)
        yield value[0], self.n.value()


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    return env


def timed(env: StreamExecutionEnvironment, elements: list[Any]) -> DataStream:
    swapped = env.from_collection([(number, key) for key, number in elements])
    assigned = swapped.assign_timestamps_and_watermarks(STRATEGY)
    return assigned.map(lambda value: (value[1], value[0]), PAIR)


def windows(elements: list[Any], size: int = 10, env: StreamExecutionEnvironment | None = None) -> DataStream:
    keyed = timed(env or environment(), elements).key_by(lambda value: value[0], Types.STRING())
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(size))).process(Sums())


def counts(elements: list[Any], ttl_ms: int | None = None) -> DataStream:
    return (
        environment().from_collection(elements, PAIR).key_by(lambda value: value[0]).process(Counts(ttl_ms))
    )


def stopped(stream: DataStream, path: Path) -> list[Any]:
    return list(stream.execute_and_collect(stop_with_checkpoint=path))


def resumed(stream: DataStream, path: Path) -> list[Any]:
    return list(stream.execute_and_collect(restore_from=path))


class Subtasks(ProcessFunction):
    """Says in which of its subtasks an element is."""

    def open(self, runtime_context: Any) -> None:
        self.index = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield *value, self.index


DEALT: dict[str, Callable[[DataStream], DataStream]] = {
    "rebalance": DataStream.rebalance,
    "rescale": DataStream.rescale,
    "shuffle": DataStream.shuffle,
}


def dealt(elements: list[Any], how: str, parallelism: int = 3) -> DataStream:
    """Elements that a source and then a map deal out to subtasks; each says to which."""
    numbers = environment().from_collection([(element,) for element in elements])
    once = DEALT[how](numbers).process(Subtasks()).set_parallelism(2)
    return DEALT[how](once).process(Subtasks()).set_parallelism(parallelism)


# ---- what goes on ----


@pytest.mark.parametrize("how", DEALT)
@pytest.mark.parametrize("cut", [1, 4, 5])
def test_elements_are_dealt_out_as_in_one_run(how: str, cut: int, tmp_path: Path) -> None:
    whole = list(dealt([*range(12)], how).execute_and_collect())
    before = stopped(dealt([*range(cut)], how), tmp_path / "c")
    assert sorted(before + resumed(dealt([*range(cut, 12)], how), tmp_path / "c")) == sorted(whole)


def test_at_another_parallelism_elements_are_dealt_out_anew(tmp_path: Path) -> None:
    stopped(dealt([0], "rebalance"), tmp_path / "c")
    assert resumed(dealt([1, 2], "rebalance", 4), tmp_path / "c") == [(1, 1, 1), (2, 0, 0)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_was_idle_at_the_checkpoint_is_heard_again(parallelism: int, tmp_path: Path) -> None:
    def stream(rows: list[tuple[int, str]]) -> DataStream:
        env = environment(parallelism)
        log = pa.table({"ts": [ts for ts, _ in rows], "part": [part for _, part in rows]})
        events = env.from_event_log(log, timestamp="ts", arrival="ts", split="part")
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(3))
        mapped = events.assign_timestamps_and_watermarks(strategy).map(lambda row: ("k", row.ts))
        keyed = mapped.key_by(lambda pair: pair[0], Types.STRING())
        return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Sums())

    env_rows = [(4, "a"), (34, "b")], [(34, "c"), (50, "a")]
    whole = list(stream(env_rows[0] + env_rows[1]).execute_and_collect())
    cut = stopped(stream(env_rows[0]), tmp_path / "c") + resumed(stream(env_rows[1]), tmp_path / "c")
    assert sorted(cut) == sorted(whole)
    assert len(whole) == 3


def test_keys_that_are_lists_and_dictionaries_go_on(tmp_path: Path) -> None:
    def keyed(elements: list[Any]) -> DataStream:
        stream = environment(2).from_collection(elements, PAIR)
        return stream.key_by(lambda value: [value[0], {"odd": value[1] % 2}]).process(Counts())

    parts = stopped(keyed(FIRST), tmp_path) + resumed(keyed(SECOND), tmp_path)
    assert parts == list(keyed(FIRST + SECOND).execute_and_collect())
    assert ("a", 3) in parts


def test_a_time_to_live_goes_on(tmp_path: Path) -> None:
    elements = [("a", n) for n in range(6)]
    whole = list(counts(elements, 3).execute_and_collect())
    assert (
        stopped(counts(elements[:2], 3), tmp_path / "c") + resumed(counts(elements[2:], 3), tmp_path / "c")
        == whole
    )
    slow = [("a", 0), *(("b", n) for n in range(5)), ("a", 1)]
    assert list(counts(slow, 3).execute_and_collect())[-1] == ("a", 1)
    parts = stopped(counts(slow[:4], 3), tmp_path / "d") + resumed(counts(slow[4:], 3), tmp_path / "d")
    assert parts[-1] == ("a", 1)


def test_broadcast_rules_go_on(tmp_path: Path) -> None:
    def ruled(rules: list[Any], elements: list[Any], parallelism: int) -> DataStream:
        env = environment(parallelism)
        broadcast = env.from_collection(rules, Types.TUPLE([Types.STRING(), Types.INT()])).broadcast(RULES)
        events = env.from_collection(elements).map(lambda value: (0, *value))
        return events.connect(broadcast).process(Ruled())

    stopped(ruled([("a", 3), ("b", 5)], [("x", 1), ("x", 2)], 2), tmp_path / "c")
    found = resumed(ruled([], [("a", 1), ("b", 2), ("c", 4)], 3), tmp_path / "c")
    assert sorted(found) == [("a", 3), ("b", 10), ("c", 0)]


def test_the_watermark_of_a_function_without_keys_goes_on(tmp_path: Path) -> None:
    class Tells(CoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield ctx.timer_service().current_watermark()

        process_element2 = process_element1

    def told(elements: list[Any]) -> DataStream:
        stream = timed(environment(), elements)
        return stream.connect(stream.filter(lambda value: False)).process(Tells())

    elements = [("a", 100 * n) for n in range(6)]
    whole = list(told(elements).execute_and_collect())
    assert stopped(told(elements[:4]), tmp_path / "c") + resumed(told(elements[4:]), tmp_path / "c") == whole
    assert whole[-1] > 0


# ---- sinks ----


def run_with_sink(elements: list[int], sink: Any, **checkpoints: Any) -> None:
    env = environment()
    env.from_collection(elements, Types.INT()).sink_to(sink)
    env.execute(**checkpoints)


def test_files_of_a_sink_appear_with_the_checkpoint_and_no_earlier(tmp_path: Path) -> None:
    run_with_sink([1, 2], line_sink(tmp_path / "out"), stop_with_checkpoint=tmp_path / "c")
    assert lines_in(tmp_path / "out") == ["1", "2"]
    run_with_sink([3], line_sink(tmp_path / "out"), restore_from=tmp_path / "c")
    assert lines_in(tmp_path / "out") == ["1", "2", "3"]


def test_what_a_run_had_prepared_and_could_not_commit_the_next_one_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(FileSink, "commit", lambda self, committables: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run_with_sink([1, 2], line_sink(tmp_path / "out"), stop_with_checkpoint=tmp_path / "c")
    assert [path.name[:6] for path in (tmp_path / "out").rglob("*") if path.is_file()] == [".part-"]
    for number in (3, 4):  # the second run finds it committed
        run_with_sink([number], line_sink(tmp_path / "out"), restore_from=tmp_path / "c")
    assert lines_in(tmp_path / "out") == ["1", "2", "3", "4"]


def test_a_checkpoint_that_fails_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bad(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_state(ValueStateDescriptor("held"))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.held.update(object())
            yield value

    env = environment()
    env.from_collection([1], Types.INT()).key_by(lambda v: v).process(Bad()).sink_to(
        line_sink(tmp_path / "out")
    )
    with pytest.raises(SchemaError, match="held"):
        env.execute(stop_with_checkpoint=tmp_path / "c")
    assert lines_in(tmp_path / "out") == []
    with pytest.raises(CheckpointError, match=r"is not a checkpoint|never completed"):
        Checkpoint.open(tmp_path / "c")


def two_sinks(first: Any, second: Any, **checkpoints: Any) -> None:
    env = environment()
    numbers = env.from_collection([1], Types.INT())
    for sink in (first, second):
        numbers.sink_to(sink)
    env.execute(**checkpoints)


class Unprepared(Sink):
    """Its writer fails when it prepares, or when it is closed."""

    def __init__(self, fails: str) -> None:
        self.fails = fails

    def create_writer(self, context: WriterContext) -> SinkWriter:
        fails = self.fails

        class Writer(SinkWriter):
            def write(self, element: Any) -> None:
                """Drop it."""

            def prepare_commit(self) -> list[Any]:
                if fails == "prepare":
                    raise ValueError("not prepared")
                return []

            def close(self) -> None:
                if fails == "close":
                    raise ValueError("not closed")

        return Writer()


@pytest.mark.parametrize("fails", ["prepare", "close"])
@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_sink_has_prepared_goes_if_another_one_fails(
    tmp_path: Path, fails: str, stops: bool, is_first: bool
) -> None:
    sinks = [Unprepared(fails), line_sink(tmp_path / "out")]
    with pytest.raises(ValueError, match="not "):
        two_sinks(
            *(sinks if is_first else sinks[::-1]),
            **({"stop_with_checkpoint": tmp_path / "c"} if stops else {}),
        )
    assert lines_in(tmp_path / "out") == []


def failing_manifest(self: Any, staged: str, name: str) -> None:
    raise OSError("no space left")


def failing_sync(self: Any, *names: str) -> None:
    if names == ("",):
        raise OSError("no answer")


def test_what_was_prepared_goes_if_the_checkpoint_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckpointDirectory, "move", failing_manifest)
    with pytest.raises(CheckpointError, match="no space left"):
        run_with_sink([1], line_sink(tmp_path / "out"), stop_with_checkpoint=tmp_path / "c")
    assert lines_in(tmp_path / "out") == []


def test_what_was_prepared_stays_if_the_checkpoint_is_complete_in_spite_of_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CheckpointDirectory, "sync", failing_sync)
        with pytest.raises(CheckpointError, match="no answer"):
            run_with_sink([1], line_sink(tmp_path / "out"), stop_with_checkpoint=tmp_path / "c")
    run_with_sink([2], line_sink(tmp_path / "out"), restore_from=tmp_path / "c")
    assert lines_in(tmp_path / "out") == ["1", "2"]


def test_a_checkpoint_that_cannot_be_listed_may_be_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlisted(self: Any) -> list[str]:
        raise CheckpointError("no answer")

    pending = PendingCheckpoint.begin(tmp_path / "c", 128)
    assert not pending.may_be_complete()
    monkeypatch.setattr(CheckpointDirectory, "names", unlisted)
    assert pending.may_be_complete()


def test_a_sink_of_files_cleans_up_after_the_writers_of_one_run_alone(tmp_path: Path) -> None:
    sink = line_sink(tmp_path / "out")
    context = WriterContext(0, 2, Types.STRING(), lambda: 0)
    same_run, another = replace(context, subtask_index=1), WriterContext(0, 1, Types.STRING(), lambda: 0)
    for each in (context, same_run, another):
        writer = sink.create_writer(each)
        writer.write("a")
        (committable,) = writer.prepare_commit()
    assert len({context.run_id, same_run.run_id, another.run_id}) == 2
    sink.clean_up(context.run_id)
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert left == [Path(committable.hidden)]


def test_committables_of_a_sink_of_the_users_are_in_the_checkpoint(tmp_path: Path) -> None:
    committed: list[Any] = []

    class Writer(SinkWriter):
        def __init__(self) -> None:
            self.held: list[Any] = []

        def write(self, element: Any) -> None:
            self.held.append(element)

        def prepare_commit(self) -> list[Any]:
            return [("rows", self.held)]

    class Kept(Sink):
        def create_writer(self, context: WriterContext) -> SinkWriter:
            return Writer()

        def commit(self, committables: Any) -> None:
            committed.append(list(committables))

    run_with_sink([1, 2], Kept(), stop_with_checkpoint=tmp_path / "c")
    run_with_sink([3], Kept(), restore_from=tmp_path / "c")
    assert committed == [[("rows", [1, 2])]] * 2 + [[("rows", [3])]]


@pytest.mark.parametrize("path", [b"../elsewhere", b"/etc/passwd", b"", b"a/../../b"])
def test_a_forged_file_of_a_sink_is_never_moved(path: bytes, tmp_path: Path) -> None:
    run_with_sink([1], line_sink(tmp_path / "out"), stop_with_checkpoint=tmp_path / "c")
    checkpoint = Checkpoint.open(tmp_path / "c")
    tables = [
        table
        for part in checkpoint.manifest.parts
        for table in part.tables
        if table.kind.value == "operator_state"
    ]
    at = next(number for number, table in enumerate(tables) if table.name == "flinkcore.committables")

    def forged(batch: pa.RecordBatch) -> pa.RecordBatch:
        return with_column(batch, batch.schema.names[0], [path])

    forge_table(tmp_path / "c", "operator_state", forged, at)
    with pytest.raises(CheckpointError, match="is not a file of a sink"):
        run_with_sink([2], line_sink(tmp_path / "out"), restore_from=tmp_path / "c")


# ---- what is refused ----


class Unbounded(Source):
    def create_splits(self, parallelism: int) -> list[NumberSequenceSplit]:
        return [NumberSequenceSplit("0", 1, 2)]

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED


class Unsaved(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        pass


def of_batch_mode(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env.from_collection([1])


def of_other_key_groups(env: StreamExecutionEnvironment) -> DataStream:
    stream = env.from_collection(FIRST).key_by(lambda v: v[0]).process(Counts())
    return stream.key_by(lambda v: v[0]).process(Counts()).set_max_parallelism(9)


def of_a_columnar_job(env: StreamExecutionEnvironment) -> DataStream:
    log = env.from_event_log(pa.table({"at": [1], "user": ["a"]}), timestamp="at", arrival="at")
    rows = log.assign_timestamps_and_watermarks(STRATEGY_OF_COLUMNS).key_by("user")
    return rows.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).aggregate(n=count()).map(str)


STRATEGY_OF_COLUMNS = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (of_batch_mode, "execution mode BATCH: set it to STREAMING"),
        (of_other_key_groups, r"steps by key with different max_parallelism \(9, 128\)"),
        (of_a_columnar_job, "a job over columns within one over single elements: run it alone"),
        (
            lambda env: env.from_source(
                NumberSequenceSource(1, 3),
                STRATEGY.with_watermark_alignment("group", Duration.of_millis(1)),
                "numbers",
            ),
            "a source whose splits are aligned: what a paused split has left would be lost",
        ),
        (
            lambda env: env.set_clock("system").from_source(
                TimestampedSource({"a": [(1, 1)]}), STRATEGY, "own"
            ),
            r"a reader of its own, whose splits no checkpoint can hold: let it have a split_serializer\(\)",
        ),
        (
            lambda env: env.from_source(Unbounded(), STRATEGY, "unbounded"),
            "an unbounded source, which comes to no cut by itself",
        ),
        (
            lambda env: env.from_source(
                NumberSequenceSource(1, 3), WatermarkStrategy.for_generator(Unsaved), "numbers"
            ),
            "a watermark generator without snapshots",
        ),
        (
            lambda env: env.from_collection([1]).assign_timestamps_and_watermarks(
                WatermarkStrategy.for_generator(Unsaved)
            ),
            "a watermark generator without snapshots .*: define snapshot_state and restore_state",
        ),
    ],
)
def test_what_has_no_checkpoints_is_refused_before_anything_runs(
    build: Callable[[StreamExecutionEnvironment], DataStream], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        build(environment()).execute_and_collect(stop_with_checkpoint=tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_limit_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="limit cancels the job"):
        counts(FIRST).execute_and_collect(limit=1, stop_with_checkpoint=tmp_path / "c")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda: windows(SECOND, 20), "window-.*: assigner: .*10.* then, .*20.* now"),
        (lambda: counts(SECOND), "logs and operators|operators of single elements .* then"),
        (
            lambda: windows(SECOND, env=environment().set_max_parallelism(64)),
            "has 128 key groups, but the job has max_parallelism 64",
        ),
    ],
)
def test_another_job_is_refused(other: Callable[[], DataStream], told: str, tmp_path: Path) -> None:
    stopped(windows(FIRST), tmp_path / "c")
    with pytest.raises(ConfigurationError, match=told):
        resumed(other(), tmp_path / "c")


def test_an_element_that_arrives_before_the_checkpoint_is_refused(tmp_path: Path) -> None:
    def both(first: list[int], second: list[int]) -> DataStream:
        env = environment()
        return env.from_collection(first, Types.INT()).union(env.from_collection(second, Types.INT()))

    stopped(both([1], [2, 3, 4]), tmp_path / "c")
    with pytest.raises(DataError, match="arrival 2 ms, but the checkpoint was taken after the arrival 3 ms"):
        resumed(both([5], []), tmp_path / "c")


# ---- what was forged ----


@pytest.mark.parametrize("name", ["flinkcore.inputs", "flinkcore.assigner", "flinkcore.time"])
@pytest.mark.parametrize("change", ["a row less", "a row twice", "rows exchanged"])
def test_states_of_the_runtime_that_contradict_themselves_are_refused(
    name: str, change: str, tmp_path: Path
) -> None:
    stopped(windows(FIRST), tmp_path / "c")
    checkpoint = Checkpoint.open(tmp_path / "c")
    tables = [
        table
        for part in checkpoint.manifest.parts
        for table in part.tables
        if table.kind.value == "operator_state"
    ]
    at = next(number for number, table in enumerate(tables) if table.name == name)
    rows = {"a row less": lambda n: range(n - 1), "a row twice": lambda n: [*range(n), n - 1]}
    if change == "rows exchanged" and name != "flinkcore.time":
        return  # there is one

    def forged(batch: pa.RecordBatch) -> pa.RecordBatch:
        order = rows.get(change, lambda n: [n - 1, *range(n - 1)])(batch.num_rows)
        return batch.take(pa.array(order, pa.int64()))

    forge_table(tmp_path / "c", "operator_state", forged, at)
    with pytest.raises(CheckpointError):
        resumed(windows(SECOND), tmp_path / "c")


@pytest.mark.parametrize("sent", [[[2, -1]], [[2, "1"]], [[2]], [2, 1], ["2"]])
def test_a_count_of_elements_that_is_none_is_refused(
    sent: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forged(snapshot: OperatorSnapshot, node: Any, index: int, selectors: Any) -> OperatorSnapshot:
        state = {SENT: own_state(index, sent)} if selectors else {}
        return replace(snapshot, operator_state={**snapshot.operator_state, **state})

    monkeypatch.setattr("flinkcore.elements.element_checkpoint.with_sent", forged)
    stopped(dealt([1, 2, 3], "rebalance"), tmp_path / "c")
    with pytest.raises(CheckpointError, match="in place of"):
        resumed(dealt([4], "rebalance"), tmp_path / "c")


@pytest.mark.parametrize("position", [0, 2, 4, 2**62])
def test_a_position_that_is_not_that_of_the_clock_is_refused(position: int, tmp_path: Path) -> None:
    stopped(windows(FIRST), tmp_path / "c")
    forge_table(tmp_path / "c", "splits", lambda batch: with_column(batch, "position", [position]))
    with pytest.raises(CheckpointError, match=r"its clock shows .3., and the last elements of its sources"):
        resumed(windows(SECOND), tmp_path / "c")


def test_a_log_whose_splits_all_end_before_its_cut_is_refused(tmp_path: Path) -> None:
    run_job("elements_windows", 0, stop_with_checkpoint=tmp_path / "c")

    def without_last(batch: pa.RecordBatch) -> pa.RecordBatch:
        ends = batch.column("last_arrival_ms")
        return batch.filter(pc.not_equal(ends, pc.max(ends)))

    forge_table(tmp_path / "c", "time_plane", without_last)
    with pytest.raises(CheckpointError, match="no split of a checkpoint has the last arrival"):
        run_job("elements_windows", 1, restore_from=tmp_path / "c")


def test_an_operator_that_is_left_out_or_has_another_watermark_is_refused(tmp_path: Path) -> None:
    stopped(windows(FIRST, env=environment(2)), tmp_path / "c")

    def other(content: dict[str, Any]) -> None:
        (part, *_) = [part for part in content["parts"] if part["uid"].startswith("window")]
        part["watermark_ms"] += 1

    forge(tmp_path / "c", other)
    with pytest.raises(CheckpointError, match="its subtasks have the watermarks"):
        resumed(windows(SECOND), tmp_path / "c")
    stopped(windows(FIRST), tmp_path / "d")
    forge(tmp_path / "d", lambda content: content["parts"].pop())
    with pytest.raises(CheckpointError, match="it has the operators"):
        resumed(windows(SECOND), tmp_path / "d")


def test_subtasks_of_a_source_function_go_on_where_they_were(tmp_path: Path) -> None:
    def numbers(stop: int, parallelism: int = 2) -> DataStream:
        source = (
            environment(parallelism)
            .add_source(CheckpointedNumbers(stop))
            .assign_timestamps_and_watermarks(BY_VALUE)
        )
        windows = source.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        return windows.reduce(lambda left, right: left + right)

    whole = list(numbers(11).execute_and_collect())
    assert whole == [12, 44, 54]
    assert stopped(numbers(6), tmp_path / "c") + resumed(numbers(11), tmp_path / "c") == whole


class Since(SourceFunction):
    """Emits what has come since, and has no state."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def run(self, ctx: Any) -> None:
        for number in self.numbers:
            ctx.collect_with_timestamp(number, number)
            ctx.emit_watermark(Watermark(number))

    def cancel(self) -> None:
        """It ends by itself."""


def test_a_source_function_without_states_begins_with_what_has_come_since(tmp_path: Path) -> None:
    def told(*numbers: int) -> DataStream:
        return environment().add_source(Since(*numbers)).process(Told())

    whole = list(told(1, 2, 3, 4).execute_and_collect())
    assert stopped(told(1, 2), tmp_path / "c") + resumed(told(3, 4), tmp_path / "c") == whole


def test_subtasks_without_splits_end_and_hold_back_no_watermark(tmp_path: Path) -> None:
    def numbers(first: int, last: int) -> DataStream:
        source = environment(3).from_source(OneSplit(first, last), BY_VALUE, "numbers", Types.LONG())
        windows = source.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        return windows.reduce(lambda left, right: left + right)

    assert stopped(numbers(0, 9), tmp_path / "c") == [6, 22]
    assert resumed(numbers(10, 13), tmp_path / "c") == [38, 25]


class OneSplit(Source):
    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def create_splits(self, parallelism: int) -> list[NumberSequenceSplit]:
        return [NumberSequenceSplit("0", self.first, self.last)]


def test_a_subtask_that_was_shorter_than_the_others_goes_on_behind_the_cut(tmp_path: Path) -> None:
    def numbers(*parts: tuple[int, int]) -> DataStream:
        source = environment(2).from_source(InParts(parts), BY_VALUE, "numbers", Types.LONG())
        windows = source.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        return windows.reduce(lambda left, right: left + right)

    assert stopped(numbers((0, 9), (0, 1)), tmp_path / "c") == [7, 22]
    assert resumed(numbers((10, 13), (10, 15)), tmp_path / "c") == [59, 79]


class InParts(Source):
    def __init__(self, parts: tuple[tuple[int, int], ...]) -> None:
        self.parts = parts

    def create_splits(self, parallelism: int) -> list[NumberSequenceSplit]:
        return [NumberSequenceSplit(str(number), *part) for number, part in enumerate(self.parts)]


@pytest.mark.parametrize("place", ["columns", "log", "source", "assigner"])
@pytest.mark.parametrize("at", ["event", "tick"])
def test_what_comes_behind_a_maximum_watermark_is_late_on_both_sides_of_a_cut(
    place: str, at: str, tmp_path: Path
) -> None:
    times = [1, 7, 9, 12, 30]  # a multiple of 7 is the last that the generator waits for
    strategy = WatermarkStrategy.for_generator(ends_early(at))

    def counted(first: int, last: int) -> list[int]:
        env, part = environment(), times[first:last]
        window = TumblingEventTimeWindows.of(Time.milliseconds(10))
        arrivals = range(first + 1, first + 1 + len(part))
        table = pa.table({"ts": pa.array(part, pa.int64()), "at": pa.array(arrivals, pa.int64())})
        log = env.from_event_log(table, timestamp="ts", arrival="at")
        if place == "columns":
            windows = log.assign_timestamps_and_watermarks(strategy).window_all(window)
            result = windows.aggregate(n=count()).execute(**checkpoints(first, last))
            return [row["n"] for row in result.to_arrow().to_pylist()]
        timed = strategy.with_timestamp_assigner(ValueIsTime())
        numbers = {
            "log": lambda: log.assign_timestamps_and_watermarks(strategy).map(lambda row: row.ts),
            "source": lambda: env.from_source(OneList(part), timed, "numbers", Types.LONG()),
            "assigner": lambda: env.from_collection(part, Types.LONG()).assign_timestamps_and_watermarks(
                timed
            ),
        }[place]().map(lambda number: 1, Types.LONG())
        added = numbers.window_all(window).reduce(lambda left, right: left + right)
        return list(added.execute_and_collect(**checkpoints(first, last)))

    def checkpoints(first: int, last: int) -> dict[str, Any]:
        before = {"restore_from": tmp_path / str(first)} if first else {}
        return before | ({"stop_with_checkpoint": tmp_path / str(last)} if last < len(times) else {})

    whole = counted(0, len(times))
    assert whole == [2]
    for cut in range(1, len(times)):
        assert counted(0, cut) + counted(cut, len(times)) == whole


class OneList(Source):
    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def create_splits(self, parallelism: int) -> list[CollectionSplit]:
        return [CollectionSplit("0", self.numbers)]


def test_a_split_that_is_found_behind_a_cut_is_read_in_the_round_of_polls_of_the_cut(tmp_path: Path) -> None:
    def numbers(*parts: tuple[int, int]) -> DataStream:
        env = environment()
        env.get_config().set_arrival_rate(100)
        return env.from_source(InParts(parts), BY_VALUE, "numbers", Types.LONG()).process(WithTime())

    whole = [(1, 10), (5, 10), (8, 10), (2, 20), (6, 20)]
    assert list(numbers((1, 2), (5, 6), (8, 8)).execute_and_collect()) == whole
    assert stopped(numbers((1, 1)), tmp_path / "a") == whole[:1]
    second = numbers((2, 1), (5, 5)).execute_and_collect(
        restore_from=tmp_path / "a", stop_with_checkpoint=tmp_path / "b"
    )
    assert list(second) == whole[1:2]
    nothing = numbers((2, 1), (6, 5)).execute_and_collect(
        restore_from=tmp_path / "b", stop_with_checkpoint=tmp_path / "c"
    )
    assert list(nothing) == []
    assert resumed(numbers((2, 2), (6, 6), (8, 8)), tmp_path / "c") == whole[2:]
    # Without one, the next round begins.
    assert resumed(numbers((2, 2)), tmp_path / "a") == [(2, 20)]


class WithTime(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timer_service().current_processing_time()


def test_a_reader_of_its_own_goes_on_with_splits_that_have_come_since(tmp_path: Path) -> None:
    def told(**splits: list[tuple[int, int]]) -> DataStream:
        stream = environment().from_source(TimestampedSource(splits), BY_VALUE, "own", Types.LONG())
        windows = stream.key_by(lambda number: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(4)))
        return windows.reduce(lambda left, right: left + right)

    before = stopped(told(a=[(1, 1), (5, 5)], b=[(2, 2)]), tmp_path / "c")
    assert before + resumed(told(c=[(6, 6), (9, 9)]), tmp_path / "c") == [3, 11, 9]


def test_a_source_function_goes_on_where_it_was(tmp_path: Path) -> None:
    def numbers(stop: int) -> DataStream:
        return environment().add_source(CheckpointedNumbers(stop)).map(lambda number: number)

    assert stopped(numbers(3), tmp_path / "c") == [0, 1, 2]
    assert resumed(numbers(5), tmp_path / "c") == [3, 4]
    assert resumed(numbers(3), tmp_path / "c") == []


class Told(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
def test_a_source_function_that_closes_its_context_goes_on_as_if_it_had_not(
    characteristic: TimeCharacteristic, tmp_path: Path
) -> None:
    class Marked(CheckpointedNumbers):
        closes = False

        def run(self, ctx: Any) -> None:
            while self.next < self.stop:
                ctx.collect(self.next)  # at the last timestamp
                ctx.collect_with_timestamp(self.next, 10 * self.next)
                ctx.emit_watermark(Watermark(10 * self.next))
                self.next += 1
            if self.closes:
                ctx.close()

    class Closing(Marked):
        closes = True

    def told(function: SourceFunction) -> DataStream:
        env = environment()
        env.set_stream_time_characteristic(characteristic)
        return env.add_source(function, idle_timeout=Duration.of_millis(3)).process(Told())

    whole = list(told(Marked(6)).execute_and_collect())
    cut = stopped(told(Closing(2)), tmp_path / "c")
    assert stopped(told(Closing(2)), tmp_path / "again") == cut
    assert cut + resumed(told(Closing(6)), tmp_path / "c") == whole


class FailsToTell(CheckpointedNumbers):
    def snapshot_state(self, context: Any) -> None:
        raise ValueError("no place")


class FailsToBegin(CheckpointedNumbers):
    def initialize_state(self, context: Any) -> None:
        raise ValueError("no states")


class ToldNothing(CheckpointedNumbers):
    def snapshot_state(self, context: Any) -> None:
        raise SourceError("told by the function")


@pytest.mark.parametrize(
    ("function", "error", "told"),
    [
        (FailsToTell(3), UserCodeError, r"^FailsToTell\.snapshot_state failed: ValueError: no place$"),
        (FailsToBegin(3), UserCodeError, r"^FailsToBegin\.initialize_state failed: ValueError: no states$"),
        (ToldNothing(3), SourceError, "^told by the function$"),
    ],
)
def test_a_source_function_whose_states_fail_is_named(
    function: SourceFunction, error: type[Exception], told: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=told) as raised:
        stopped(environment().add_source(function), tmp_path / "c")
    assert isinstance(raised.value.__cause__, ValueError) == (error is UserCodeError)
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        Checkpoint.open(tmp_path / "c")


def test_the_context_of_a_source_function_is_checked() -> None:
    event_time = [4, 0, 1, None, 0, 7]
    assert checked_context_state(event_time, TimeCharacteristic.EventTime) == tuple(event_time)
    for state in ([], [*event_time, 1], [None, 0, 1, None, 0, 7], [2**63, 0, 1, None, 0, 7]):
        with pytest.raises(SchemaError, match="in place of a source in EventTime"):
            checked_context_state(state, TimeCharacteristic.EventTime)
    with pytest.raises(SchemaError, match="in place of a source in ProcessingTime"):
        checked_context_state(event_time, TimeCharacteristic.ProcessingTime)


def test_the_watermarks_of_a_source_are_checked() -> None:
    watermarks = [7, False, True, 4, False, [["0", 7, 4, False]]]
    assert SourceWatermarks.of_elements([]) is None
    assert SourceWatermarks.of_elements(watermarks) == SourceWatermarks(*watermarks)
    for at, other in ((1, 0), (3, True), (3, 2**63), (4, None), (5, [["0", 7, 4]]), (5, [[0, 7, 4, False]])):
        forged = [*watermarks[:at], other, *watermarks[at + 1 :]]
        with pytest.raises(SchemaError, match="in place of the watermarks of a source"):
            SourceWatermarks.of_elements(forged)
    with pytest.raises(SchemaError, match="in place of the watermarks of a source"):
        SourceWatermarks.of_elements(watermarks[1:])


def test_the_place_of_a_source_is_checked() -> None:
    place = [3, 7, 1, 2, ["0", "1"]]
    assert SourcePlace.of_elements(place) == SourcePlace(*place)
    for at, other in (
        (0, -1),
        (0, True),
        (1, 2**63),
        (2, None),
        (3, -1),
        (3, 2**15 + 1),
        (4, "01"),
        (4, [0]),
    ):
        with pytest.raises(SchemaError, match="in place of the place of a source"):
            SourcePlace.of_elements([*place[:at], other, *place[at + 1 :]])
    with pytest.raises(SchemaError, match="in place of the place of a source"):
        SourcePlace.of_elements(place[1:])


def test_a_source_far_behind_the_last_arrival_goes_on_from_it_at_once() -> None:
    place = SourcePlace(3, 3, 1, 0, ["0"])
    arrival_ms = arrival_times(1000, 0)
    assert place.not_before(None, arrival_ms, 1) == place
    assert place.not_before((3, 1), arrival_ms, 1) == place
    assert place.not_before((3, 2), arrival_ms, 1) == SourcePlace(3, 3, 0, 0, [])
    far = 10**15
    assert place.not_before((far, 1), arrival_ms, 1) == SourcePlace(far - 1, 3, 0, 0, [])
    assert place.not_before((far, 2), arrival_ms, 1) == SourcePlace(far, 3, 0, 0, [])
    for rate, position in ((7, 5), (0.3, 40), (5000, 1)):
        slow = arrival_times(rate, 11)
        ahead = positions_ahead(slow, position, 4, (far, 4))
        assert (slow(position + ahead - 1), 4) <= (far, 4) < (slow(position + ahead), 4)
    assert positions_ahead(arrival_ms, 9, 4, (8, 4)) == 0


def test_at_another_parallelism_a_subtask_goes_on_where_the_least_watermark_was() -> None:
    before = [(5, False), (3, True), (4, False)]
    assert [where_it_was(before, index, 3, lambda own: own) for index in range(3)] == before
    assert [where_it_was(before, index, 2, lambda own: own) for index in range(2)] == [(4, False)] * 2
    assert where_it_was([(5, True), (3, True)], 0, 1, lambda own: own) == (3, True)


def test_states_of_subtasks_are_those_of_each_in_their_order() -> None:
    def union(*elements: Any) -> dict[str, OperatorStateSnapshot]:
        return {"own": OperatorStateSnapshot(DistributionMode.UNION, elements)}

    assert elements_by_subtask(union([0, "a"], (1, "b", 2)), "own", 2) == [["a"], ["b", 2]]
    for forged in (union([0, "a"]), union([1, "b"], [0, "a"]), union([0], 1), {}):
        with pytest.raises(SchemaError, match=r"state 'own'"):
            elements_by_subtask(forged, "own", 2)


def test_a_collection_that_has_come_to_its_end_leaves_nothing_out(tmp_path: Path) -> None:
    stopped(windows(FIRST), tmp_path / "c")
    forge_table(tmp_path / "c", "splits", lambda batch: with_column(batch, "state", [2]))
    with pytest.raises(CheckpointError, match="it leaves out 2 elements, though it has come to the end"):
        resumed(windows(SECOND), tmp_path / "c")
