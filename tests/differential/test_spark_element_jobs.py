"""Jobs of Python objects give on Spark what they give embedded, in the same order."""

import random
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from equipment import timestamped_source
from equipment.sampling import sampled
from equipment.spark_sessions import spark_session
from equipment.text_files import line_sink, lines_in
from equipment.timestamped_source import TimestampedSource
from equipment.unordered_rows import UnorderedRows
from jobs import awaited, checkpointed_numbers, element_steps, source_jobs, timed_elements
from jobs.checkpointed_numbers import CheckpointedNumbers
from jobs.element_steps import as_element
from jobs.source_jobs import ListedSource
from jobs.timed_elements import BY_VALUE, LATE, RULES, Joined, Ruled, Timers, Windows, timed

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from flinkcore.common import (
    Duration,
    OutputTag,
    Row,
    Time,
    Types,
    WatermarkStrategy,
)
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    SinkFunction,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TimeCharacteristic,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.connectors.base import Sink, SinkWriter, WriterContext
from flinkcore.datastream.connectors.number_seq import NumberSequenceSource
from flinkcore.errors import ConfigurationError, LateEventsWarning, SourceError, UserCodeError
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.exchange import collecting

Job = Any


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    modules = (
        sys.modules[__name__],
        awaited,
        checkpointed_numbers,
        element_steps,
        source_jobs,
        timed_elements,
        timestamped_source,
    )
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # workers do not have it
    with spark_session("local[2]") as session:
        yield session
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


def embedded(parallelism: int = 1) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def on_spark(spark: Any, parallelism: int = 1) -> StreamExecutionEnvironment:
    return SparkExecutionEnvironment(spark).set_parallelism(parallelism)


def assert_both_give_the_same(spark: Any, job: Job, parallelism: int) -> list[Any]:
    expected = list(job(embedded(parallelism)).execute_and_collect())
    assert list(job(on_spark(spark, parallelism)).execute_and_collect()) == expected
    return expected


@pytest.mark.parametrize("parallelism", [1, 3])
def test_timers_and_watermarks_of_keyed_functions_are_those_of_an_embedded_run(
    spark: Any, parallelism: int
) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        return (
            timed(env, 1)
            .rebalance()
            .map(lambda value: value)
            .key_by(lambda value: value[1])
            .process(Timers())
        )

    results = assert_both_give_the_same(spark, job, parallelism)
    assert {"PROCESSING_TIME", "EVENT_TIME"} <= {result[3] for result in results if result[0] == "timer"}
    indices = {result[3] for result in results if result[0] == "element"}
    assert len(indices) > 1 or parallelism == 1


def test_keyed_stages_in_a_row_carry_watermarks(spark: Any) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        windows = (
            timed(env, 2).key_by(lambda value: value[1])
            .window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Windows())
        )  # fmt: skip
        again = windows.key_by(lambda value: value[2] % 3).window(
            SlidingEventTimeWindows.of(Time.milliseconds(400), Time.milliseconds(200))
        )
        return again.process(Windows()).key_by(lambda value: value[1]).process(Timers())

    results = assert_both_give_the_same(spark, job, 2)
    watermarks = {result[4] for result in results if result[0] == "element"}
    assert len(watermarks) > 3


def test_keys_that_change_and_their_elements_come_as_embedded(spark: Any) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        env.set_parallelism(3)
        numbers = env.from_collection(list(range(30)), Types.INT())
        sums = numbers.key_by(lambda value: {"modulo": [value % 5]}).reduce(lambda one, other: one + other)
        return sums.key_by(lambda value: [value % 3, {value % 2}])

    results = assert_both_give_the_same(spark, job, 3)
    assert all(row.f0 == [row.f1 % 3, {row.f1 % 2}] for row in results)


def test_steps_without_a_sink_run(spark: Any) -> None:
    env = on_spark(spark)
    env.from_collection([0]).map(lambda value: 1 // value)
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        env.execute()


def test_steps_that_wait_give_the_results_in_the_embedded_order(spark: Any) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        stream = timed(env, 2)
        both = awaited.awaited(stream).union(stream).key_by(lambda value: value[1]).process(Timers())
        return awaited.awaited(both.map(as_element), capacity=50)

    results = assert_both_give_the_same(spark, job, 2)
    assert len(results) > 100


def test_an_error_of_a_call_that_waits_names_the_element(spark: Any) -> None:
    stream = on_spark(spark).from_collection([(1, 2), "text"])
    with pytest.raises(UserCodeError, match=r"Doubled\.async_invoke failed at the element 'text'.*TypeError"):
        list(awaited.awaited(stream).execute_and_collect())


def test_side_outputs_unions_and_late_rows_come_in_the_embedded_order(spark: Any) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        marked = timed(env, 3).key_by(lambda value: value[1]).process(Timers())
        windows = (
            timed(env, 4).key_by(lambda value: value[1])
            .window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
            .side_output_late_data(LATE).process(Windows())
        )  # fmt: skip
        return windows.union(marked.get_side_output(LATE), windows.get_side_output(LATE))

    results = assert_both_give_the_same(spark, job, 2)
    assert any(isinstance(result[1], str) and result[2] == 8 for result in results)


def test_the_driver_warns_of_the_late_elements_that_all_tasks_have_dropped(spark: Any) -> None:
    def warning_of(env: StreamExecutionEnvironment) -> str:
        windows = (
            timed(env, 4).key_by(lambda value: value[1])
            .window(TumblingEventTimeWindows.of(Time.milliseconds(30))).process(Windows()).name("windows")
        )  # fmt: skip
        with pytest.warns(LateEventsWarning) as caught:
            list(windows.execute_and_collect())
        assert caught[0].filename == __file__
        return str(caught[0].message)

    warning = warning_of(on_spark(spark, 2))
    assert warning == warning_of(embedded(2))
    assert warning.startswith("1.7 % of the events of 'windows' are late and are dropped: 2 of 120. ")


def test_connected_and_broadcast_streams_meet_as_embedded(spark: Any) -> None:
    def job(env: StreamExecutionEnvironment) -> DataStream:
        both = timed(env, 5).key_by(lambda v: v[1]).connect(timed(env, 6).key_by(lambda v: v[1]))
        joined = both.process(Joined()).map(lambda pair: (pair[0][0], pair[0][1], len(pair[1] or ())))
        rules = env.from_collection([("a", 2), ("b", 3), ("a", 5)]).broadcast(RULES)
        return joined.connect(rules).process(Ruled())

    results = assert_both_give_the_same(spark, job, 2)
    assert {"a", "b"} <= {key for key, product in results if product}


STEPS: dict[str, Any] = {
    "map": lambda s: s.map(lambda v: v * 3 + 1, Types.INT()),
    "filter": lambda s: s.filter(lambda v: v % 2 == 0),
    "flat_map": lambda s: s.flat_map(lambda v: [[v]] * (v % 3)).map(lambda v: v[0]),
    "rebalance": lambda s: s.rebalance(),
    "shuffle": lambda s: s.shuffle(),
    "rescale": lambda s: s.rescale(),
    "global": lambda s: s.global_(),
    "broadcast": lambda s: s.broadcast(),
    "twice": lambda s: s.union(s),
    "by key": lambda s: s.key_by(lambda v: v % 4).reduce(lambda a, b: a + b),
    "timers": lambda s: (
        s.map(lambda v: (v, "", abs(v) % 7))
        .key_by(lambda v: v[0] % 3)
        .process(Timers())
        .map(lambda v: len(v[0]) + (v[5] if v[0] == "timer" else v[1][0]))
    ),
}


@pytest.mark.parametrize("seed", sampled(range(8), 3))
def test_random_jobs_give_what_they_give_embedded(spark: Any, seed: int) -> None:
    chosen = random.Random(seed)
    names = [chosen.choice(sorted(STEPS)) for _ in range(chosen.randrange(1, 5))]
    own = [chosen.choice([None, 1, 2, 3]) for _ in names]
    chained, rate = chosen.random() < 0.7, chosen.choice([500, 1000, 3000])

    def job(env: StreamExecutionEnvironment) -> DataStream:
        env.get_config().set_chaining_enabled(chained)
        env.get_config().set_arrival_rate(rate)
        stream = env.from_collection(list(range(-5, 20)))
        if seed % 2:
            numbers = NumberSequenceSource(0, 30)
            stream = stream.union(env.from_source(numbers, BY_VALUE, "numbers"))
        for name, parallelism in zip(names, own, strict=True):
            stream = STEPS[name](stream)
            if parallelism is not None and name in ("map", "filter", "flat_map"):
                stream.set_parallelism(parallelism)
        return stream

    assert_both_give_the_same(spark, job, chosen.choice([1, 2, 3]))


@dataclass
class Purchase:
    user: str
    items: list[int]


@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
def test_source_functions_run_in_their_tasks_as_embedded(
    spark: Any, characteristic: TimeCharacteristic
) -> None:
    results = []
    for env in (on_spark(spark, 2), StreamExecutionEnvironment().set_parallelism(2)):
        env.set_stream_time_characteristic(characteristic)
        env.get_config().set_auto_watermark_interval(20)
        elements = [(at * 7 % 50, "abc"[at % 3], at % 5) for at in range(40)]
        stream = env.add_source(ListedSource(elements)).union(
            env.add_source(ListedSource(elements[::-1])).set_parallelism(1)
        )
        keyed = stream.key_by(lambda element: element[1], key_type=Types.STRING())
        results.append(list(keyed.process(Timers()).execute_and_collect()))
    assert results[0] == results[1] != []


def test_readers_of_sources_run_in_their_tasks_as_embedded(spark: Any) -> None:
    splits = {
        name: [((at, name, 1), at) for at in range(0, 300, step)] for name, step in (("a", 10), ("b", 3))
    }
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_millis(10), Duration.of_millis(3)
    )
    results = []
    for env in (on_spark(spark), StreamExecutionEnvironment()):
        env.get_config().set_auto_watermark_interval(5)
        stream = env.from_source(TimestampedSource(splits), strategy, "both")
        keyed = stream.key_by(lambda element: element[1], key_type=Types.STRING())
        results.append(list(keyed.process(Timers()).execute_and_collect()))
    assert results[0] == results[1] != []
    apart = on_spark(spark).from_source(TimestampedSource(splits), strategy, "both").set_parallelism(2)
    with pytest.raises(ConfigurationError, match="only the splits of one task can be aligned"):
        list(apart.execute_and_collect())


def test_objects_of_classes_of_the_program_are_elements_and_change_without_trace(spark: Any) -> None:
    class Growing(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = Purchase("all", [])

        def map(self, value: Purchase) -> Purchase:
            self.held.items += value.items
            return self.held

    purchases = [Purchase("ada", [1, 2]), Purchase("bob", [3])]

    def job(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection(purchases).map(Growing()).key_by(lambda p: p.user).map(lambda p: p)

    results = assert_both_give_the_same(spark, job, 1)
    assert results == [Purchase("all", [1, 2]), Purchase("all", [1, 2, 3])]


def test_what_is_printed_comes_in_order_and_before_what_is_collected_behind_it(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(env: StreamExecutionEnvironment) -> tuple[list[Any], str]:
        numbers = env.from_collection([1, 2, 3, 4], Types.INT()).rebalance()
        numbers.map(lambda v: v, Types.INT()).print("in")
        tens = numbers.map(lambda v: v * 10, Types.INT())
        tens.key_by(lambda v: v % 3).reduce(lambda a, b: a + b).print("sum")
        collected = list(tens.execute_and_collect())
        return collected, capsys.readouterr().out

    assert run(on_spark(spark, 2)) == run(embedded(2))


def test_files_of_a_sink_appear_at_the_end_or_not_at_all(spark: Any, tmp_path: Path) -> None:
    env = on_spark(spark, 2)
    stream = env.from_collection(["a", "b", "c"], Types.STRING()).rebalance().map(str.upper, Types.STRING())
    stream.sink_to(line_sink(tmp_path / "all"))
    result = env.execute("files")
    assert lines_in(tmp_path / "all") == ["A", "B", "C"]
    assert result.job_name == "files"
    stream.sink_to(line_sink(tmp_path / "cancelled"))
    assert stream.execute_and_collect(limit=1) == ["A"]
    assert not [path for path in (tmp_path / "cancelled").rglob("*") if path.is_file()]
    of_another_run = tmp_path / "failed" / f".part-{uuid4()}-0.inprogress"
    of_another_run.parent.mkdir()
    of_another_run.touch()
    stream.map(lambda text: 1 / (text != "C")).sink_to(line_sink(tmp_path / "failed"))
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        env.execute()
    assert [path for path in (tmp_path / "failed").rglob("*") if path.is_file()] == [of_another_run]


class Letters(Sink):
    """Writes nothing: commits what came into a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LettersWriter(context.subtask_index)

    def commit(self, committables: Sequence[Any]) -> None:
        with self._path.open("a") as file:
            file.write(repr(list(committables)))


class LettersWriter(SinkWriter):
    def __init__(self, index: int) -> None:
        self._index = index
        self._letters: list[str] = []

    def write(self, element: Any) -> None:
        self._letters.append(element)

    def prepare_commit(self) -> list[Any]:
        return [(self._index, "".join(self._letters))]


def test_a_sink_of_ones_own_is_committed_once_by_the_driver(spark: Any, tmp_path: Path) -> None:
    env = on_spark(spark, 2)
    env.from_collection(list("abcd")).rebalance().sink_to(Letters(tmp_path / "committed"))
    env.execute()
    assert (tmp_path / "committed").read_text() == "[(0, 'ac'), (1, 'bd')]"


class Appending(SinkFunction):
    def __init__(self, path: Path) -> None:
        self._path = path

    def invoke(self, value: Any) -> None:
        with self._path.open("a") as file:
            file.write(f"{value} ")


def test_a_sink_function_is_called_in_its_task(spark: Any, tmp_path: Path) -> None:
    env = on_spark(spark)
    env.from_collection([1, 2, 3]).add_sink(Appending(tmp_path / "appended"))
    env.execute()
    assert (tmp_path / "appended").read_text() == "1 2 3 "


class Measured(MapFunction):
    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group().add_group("shop")
        self.counter, self.sizes = group.counter("sold"), group.distribution("sizes")
        self.index = runtime_context.get_index_of_this_subtask()
        group.gauge("index", lambda: self.index)

    def map(self, value: int) -> int:
        self.counter.inc(value)
        self.sizes.update(value)
        return value


def test_metrics_are_those_of_an_embedded_run(spark: Any) -> None:
    def metrics(env: StreamExecutionEnvironment) -> dict[str, Any]:
        numbers = env.from_collection([3, 5, 8]).rebalance().map(Measured()).name("once")
        numbers.key_by(lambda value: value).map(Measured()).name("twice").print()
        return env.execute().metrics

    assert metrics(on_spark(spark, 2)) == metrics(embedded(2))
    same_name = metrics(embedded(1))
    assert same_name["once.shop.sold"] == 16


FAILING = {
    "map": lambda s: s.map(lambda value: 10 // (value - 2)),
    "key selector": lambda s: s.key_by(lambda value: 1 // (value - 2)).reduce(lambda a, b: a),
    "timer": lambda s: s.key_by(lambda value: 0).process(FailingTimer()),
    "reduce": lambda s: s.key_by(lambda value: 0).reduce(lambda a, b: a // (b - 3)),
    "states of a source function": lambda s: s.get_execution_environment().add_source(FailsToBegin([])),
    "partitioner": lambda s: s.partition_custom(lambda key, n: 99, lambda value: value).map(str),
}


@pytest.mark.parametrize("failing", sampled(FAILING, 2))
def test_a_failing_function_raises_the_error_of_an_embedded_run(spark: Any, failing: str) -> None:
    def failure(env: StreamExecutionEnvironment) -> tuple[str, str]:
        with pytest.raises(UserCodeError) as raised:
            list(FAILING[failing](env.from_collection([1, 2, 3])).execute_and_collect())
        return str(raised.value), repr(raised.value.__cause__)

    assert failure(on_spark(spark, 2)) == failure(embedded(2))


class FailsToBegin(source_jobs.ScriptedSource, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        raise ValueError("no states")

    def snapshot_state(self, context: Any) -> None:
        """There is none."""


class FailingTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(2)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        raise ValueError(f"no {timestamp}")


def test_what_cannot_be_sent_is_named(spark: Any) -> None:
    env = on_spark(spark, 2)
    with pytest.raises(UserCodeError, match=r"cannot be sent to Spark's workers.*in open\(\)"):
        env.from_collection([1]).map(lambda value: spark).execute_and_collect()
    numbers = env.from_collection([1]).map(lambda value: (step for step in ()))
    with pytest.raises(
        UserCodeError, match=r"lambda> gave, the element .*cannot be sent to another task.*generator"
    ):
        list(numbers.execute_and_collect())


class Unreadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_elements_that_cannot_go_to_a_worker_are_named(spark: Any) -> None:
    env = on_spark(spark)
    unsent = env.from_collection([1, (step for step in ())]).map(str)
    with pytest.raises(UserCodeError, match=r"element 1 of the collection, <generator.*cannot pickle"):
        list(unsent.execute_and_collect())
    unread = env.from_collection([1, 2, Unreadable()]).map(str)
    with pytest.raises(UserCodeError, match=r"element 2 of the collection, <.*Unreadable.*: invalid literal"):
        list(unread.execute_and_collect())


def row_of(number: int) -> tuple[int, str, int]:
    return number * 3 % 17 + number, "abc"[number % 3], number % 9


def test_jobs_stop_and_go_on_in_turn_on_spark_and_embedded_at_any_parallelism(
    spark: Any, tmp_path: Path
) -> None:
    rows = list(map(row_of, range(40)))

    def run(env: StreamExecutionEnvironment, some: list[Any], out: str, **checkpoints: Any) -> list[Any]:
        stream = env.from_collection(some).assign_timestamps_and_watermarks(timed_elements.STRATEGY)
        keyed = stream.key_by(lambda row: row[1]).process(Timers()).map(as_element)
        keyed.map(str, Types.STRING()).sink_to(line_sink(tmp_path / out))
        return list(keyed.execute_and_collect(**checkpoints))

    whole = run(embedded(), rows, "whole")
    first, second = tmp_path / "first", tmp_path / "second"
    parts = run(on_spark(spark, 2), rows[:15], "parts", stop_with_checkpoint=first)
    parts += run(embedded(3), rows[15:21], "parts", restore_from=first, stop_with_checkpoint=second)
    parts += run(on_spark(spark, 3), rows[21:], "parts", restore_from=second)
    assert sorted(parts) == sorted(whole)
    assert lines_in(tmp_path / "parts") == lines_in(tmp_path / "whole")


def test_tasks_that_get_nothing_are_in_the_checkpoint_with_which_a_job_stops(
    spark: Any, tmp_path: Path
) -> None:
    def sums(env: StreamExecutionEnvironment, numbers: list[int], **checkpoints: Any) -> list[Any]:
        same_task = env.from_collection(numbers, Types.INT()).key_by(lambda number: 0)
        keyed = same_task.reduce(lambda one, other: one + other).key_by(lambda total: 1)
        return list(keyed.reduce(lambda one, other: one + other).execute_and_collect(**checkpoints))

    checkpoint, empty = tmp_path / "first", tmp_path / "of nothing"
    whole = sums(embedded(3), [1, 2, 3, 4])
    assert sums(on_spark(spark, 3), [1, 2], stop_with_checkpoint=checkpoint) == whole[:2]
    assert sums(on_spark(spark, 2), [3, 4], restore_from=checkpoint) == whole[2:]
    assert sums(on_spark(spark, 2), [], restore_from=checkpoint, stop_with_checkpoint=empty) == []
    assert sums(embedded(2), [3, 4], restore_from=empty) == whole[2:]


def test_the_system_clock_and_jobs_in_the_background_are_refused(spark: Any) -> None:
    env = SparkExecutionEnvironment(spark)
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"a job on Spark runs within execute\(\)"):
        env.execute_async()
    env.set_clock("system")
    refused = "a job on Spark cannot run on the system clock: its tasks run one after the other"
    with pytest.raises(ConfigurationError, match=refused):
        env.from_collection([1]).execute_and_collect()
    with pytest.raises(ConfigurationError, match=refused):
        env.from_event_log(pa.table({"at": [1]}), timestamp="at").to_arrow()


@pytest.mark.parametrize("kind", ["add_source", "from_source", "subtasks"])
def test_sources_stop_and_go_on_in_turn_on_spark_and_embedded(spark: Any, kind: str, tmp_path: Path) -> None:
    def run(env: StreamExecutionEnvironment, start: int, stop: int, **checkpoints: Any) -> list[Any]:
        env.get_config().set_auto_watermark_interval(5)
        if kind == "add_source":
            stream, other = (
                env.add_source(CheckpointedNumbers(stop)).set_parallelism(1)
                .map(row_of).set_parallelism(1)
                .assign_timestamps_and_watermarks(timed_elements.STRATEGY)
                for _ in range(2)
            )  # fmt: skip
        else:
            numbers = env.from_source(NumberSequenceSource(start, stop - 1), BY_VALUE, "numbers")
            if kind == "from_source":
                numbers.set_parallelism(1)
            stream = numbers.map(row_of)
            elements = [(n * 5 % 17 + n, "abc"[n % 3], n % 9) for n in range(start, stop)]
            collection = env.from_collection(elements)
            other = collection.assign_timestamps_and_watermarks(timed_elements.STRATEGY)
        keyed = stream.union(other).key_by(lambda row: row[1]).process(Timers()).map(as_element)
        return list(keyed.execute_and_collect(**checkpoints))

    first, second = tmp_path / "first", tmp_path / "second"
    apart = []
    alone = [embedded(1)] * 3 if kind != "subtasks" else [embedded(2), embedded(3), embedded(3)]
    for environments in (alone, [on_spark(spark, 2), embedded(3), on_spark(spark, 3)]):
        parts = run(environments[0], 0, 15, stop_with_checkpoint=first)
        parts += run(environments[1], 15, 21, restore_from=first, stop_with_checkpoint=second)
        parts += run(environments[2], 21, 40, restore_from=second)
        apart.append(sorted(parts))
    assert apart[0] == apart[1] != []


def test_a_source_that_gives_something_else_when_it_is_read_again_is_refused(
    spark: Any, tmp_path: Path
) -> None:
    class Growing(CheckpointedNumbers):
        def run(self, ctx: Any) -> None:
            path = Path(self.path)
            for number in range(path.read_text().count("x")):
                ctx.collect((number, "a", 0))
            with path.open("a") as file:
                file.write("x")

    source = Growing(0)
    source.path = str(tmp_path / "grows")
    Path(source.path).write_text("xx")
    with pytest.raises(
        SourceError, match=r"end at the arrival 3 ms, and when they were read before, .* at 2 ms"
    ):
        list(on_spark(spark).add_source(source).execute_and_collect(stop_with_checkpoint=tmp_path / "c"))


def test_settings_that_have_no_meaning_are_refused_before_anything_runs(spark: Any) -> None:
    env = on_spark(spark)
    table = pa.table({"ts": [1]})
    by_element = env.from_event_log(table, timestamp="ts").map(lambda row: row)
    with pytest.raises(ConfigurationError, match="DataStream has no select, which LogStream has"):
        by_element.select("ts").execute_and_collect()
    with pytest.raises(ConfigurationError, match="the job runs element by element, because of"):
        by_element.to_dataframe()


def log_table(number: int = 300) -> pa.Table:
    chosen = random.Random(9)
    arrivals = [1_000_000 + 11 * row for row in range(number)]
    return pa.table(
        {
            "split": [row % 3 for row in range(number)],
            "arrival": arrivals,
            "ts": pa.array(
                [None if chosen.random() < 0.02 else arrival - chosen.randrange(900) for arrival in arrivals]
            ),
            "user": [chosen.choice("abcd") for _ in range(number)],
        }
    )


def test_a_reader_gives_its_rows_to_every_job_over_the_stream(spark: Any) -> None:
    log = pa.table({"k": ["a", "b"], "ts": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(log.schema, log.to_batches())
    stream = on_spark(spark).from_event_log(reader, timestamp="ts")
    for _ in range(2):
        assert list(stream.map(lambda row: row.k).execute_and_collect()) == ["a", "b"]
        assert stream.to_arrow().num_rows == 2


BAD = OutputTag("bad")


def of_log(env: StreamExecutionEnvironment, log: Any) -> DataStream:
    settings: dict[str, Any] = {
        "timestamp": "ts",
        "arrival": "arrival",
        "split": "split",
        "on_bad_row": BAD,
    }
    stream = env.from_event_log(log, **settings)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(300))
    return stream.assign_timestamps_and_watermarks(bounded.with_idleness(Duration.of_millis(100)))


class Seen(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(value.arrival + 50)
        yield value.user, ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("kind", ["table", "files", "dataframe"])
def test_event_logs_are_sources_of_elements(spark: Any, tmp_path: Path, kind: str) -> None:
    import pyarrow.parquet as pq

    table = log_table()
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=100)
    logs = {
        "table": table,
        "files": str(tmp_path / "log.parquet"),
        "dataframe": spark.read.parquet(str(tmp_path / "log.parquet")),
    }

    def job(env: StreamExecutionEnvironment, log: Any) -> DataStream:
        stream = of_log(env, log)
        seen = stream.key_by(lambda row: row.user).process(Seen())
        return seen.union(stream.get_side_output(BAD).map(lambda row: (row.user, None, None)))

    expected = list(job(embedded(2), table).execute_and_collect())
    assert list(job(on_spark(spark, 2), logs[kind]).execute_and_collect()) == expected
    assert sum(ts is None for _, ts, _ in expected) == table.column("ts").null_count


def test_rows_of_a_columnar_job_on_spark_go_on_as_elements(spark: Any) -> None:
    def windows(env: StreamExecutionEnvironment, log: Any) -> DataStream:
        per_user = of_log(env, log).key_by("user").window(TumblingEventTimeWindows.of(Time.seconds(1)))
        return per_user.side_output_late_data(LATE).aggregate(n=count())

    expected = windows(embedded(1), UnorderedRows(log_table()))
    columns = "split long, arrival long, ts long, user string"
    log = spark.createDataFrame(log_table().to_pylist(), columns).coalesce(1)
    given = windows(on_spark(spark, 1), log)
    assert list(given.map(lambda row: row.n).execute_and_collect()) == list(
        expected.map(lambda row: row.n).execute_and_collect()
    )
    late = given.get_side_output(LATE).map(lambda row: row.user)
    assert list(late.execute_and_collect()) == list(
        expected.get_side_output(LATE).map(lambda row: row.user).execute_and_collect()
    )


def test_many_and_large_elements_pass_in_several_runs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["x" * (20_000 * (at % 5)) + str(at) for at in range(900)]

    def job(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_collection(texts, Types.STRING()).rebalance().map(lambda text: [text])
        return stream.key_by(lambda text: len(text[0]) % 7).map(lambda text: text[0])

    assert list(job(on_spark(spark, 2)).execute_and_collect()) == texts


def test_results_come_to_the_driver_a_part_at_a_time(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "COLLECTED_BYTES", 1 << 20)
    context = spark.sparkContext

    def results() -> Any:
        numbers = on_spark(spark, 2).from_collection(range(400), Types.INT()).rebalance()
        return numbers.map(lambda number: f"{number:050000}").execute_and_collect()

    def jobs() -> int:
        return len(context.statusTracker().getJobIdsForGroup("results"))

    context.setJobGroup("results", "results in parts")
    tracemalloc.start()
    try:
        with results() as texts:
            assert int(next(texts)[-9:]) == 0
            jobs_before, _ = jobs(), tracemalloc.reset_peak()
            assert [int(text[-9:]) for text in texts] == list(range(1, 400))
        _, peak_bytes = tracemalloc.get_traced_memory()
        jobs_after = jobs()
        with results() as texts:
            next(texts)
        jobs_of_one = jobs() - jobs_after
    finally:
        tracemalloc.stop()
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)
    assert peak_bytes < 10 << 20 < 400 * 50_000
    # The driver has asked for a few of some twenty parts when it gives the first element.
    assert jobs_after - jobs_before > 10 > jobs_of_one
    assert context._jsc.getPersistentRDDs().isEmpty()


def test_many_small_payloads_come_to_the_driver_a_part_at_a_time(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "COLLECTED_BYTES", 2 << 20)
    monkeypatch.setattr(collecting, "SMALL_ROWS", 20)
    rows = spark.range(0, 600, 1, 2).selectExpr("id", "cast(lpad(id, 20000, '0') as binary) AS payload")
    tracemalloc.start()
    try:
        with closing(collecting.collected_in_parts(rows, "id")) as found:
            numbers = [int(row.payload[-9:]) for row in found]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers == list(range(600))
    assert peak_bytes < 9 << 20 < 600 * 20_000


@pytest.mark.parametrize("is_kept", [False, True])
def test_early_payloads_are_those_of_few_partitions(spark: Any, is_kept: bool) -> None:
    rows = spark.range(0, 60, 1, 6).selectExpr("id", "cast(lpad(id, 9, '0') as binary) AS payload")
    rows = rows.localCheckpoint() if is_kept else rows
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    with closing(collecting.KeptPayloads(rows, "id", small_partitions=3, is_kept=is_kept)) as kept:
        assert (spark.sparkContext._jsc.getPersistentRDDs().size() == before) is is_kept
        assert [row.id for row in kept.index if row.payload is not None] == list(range(30))
        assert [int(row.payload) for row in kept.rows()] == list(range(60))


def test_a_source_that_says_it_never_ends_is_refused(spark: Any) -> None:
    class Endless(NumberSequenceSource):
        @property
        def boundedness(self) -> Boundedness:
            return Boundedness.CONTINUOUS_UNBOUNDED

    stream = on_spark(spark).from_source(Endless(1, 2), WatermarkStrategy.no_watermarks(), "endless")
    with pytest.raises(ConfigurationError, match="this source is unbounded, and on Spark a task sends"):
        stream.execute_and_collect()


def test_a_source_that_is_not_there_is_told_as_it_is(spark: Any) -> None:
    from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat

    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/nonexistent").build()
    stream = on_spark(spark).from_source(source, WatermarkStrategy.no_watermarks(), "files")
    with pytest.raises(SourceError, match="'/nonexistent' does not exist"):
        list(stream.execute_and_collect())


def test_rejected_rows_of_two_logs_come_in_the_order_of_the_logs(spark: Any) -> None:
    def log_of(name: str) -> pa.Table:
        return pa.table(
            {"ts": pa.array([None, 5, None, 7]), "user": [f"{name}{number}" for number in range(4)]}
        )

    def job(env: StreamExecutionEnvironment) -> DataStream:
        logs = [env.from_event_log(log_of(name), timestamp="ts", on_bad_row=BAD) for name in "yxz"]
        first, *others = [log.map(lambda row: row.user) for log in logs]
        return first.union(*others, *(log.get_side_output(BAD).map(lambda row: row.user) for log in logs))

    assert len(assert_both_give_the_same(spark, job, 2)) == 12
