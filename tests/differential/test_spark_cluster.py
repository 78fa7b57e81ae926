"""Replays on executors that are processes of their own: same rows, also when tasks die or lack what replays need."""

import gc
import importlib
import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.sampling import at_night
from equipment.standalone_cluster import StandaloneCluster, bare_interpreter, site_packages_of
from equipment.waiting import wait_until

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.common import Encoder, ExecutionConfig, Types, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.connectors.file_system import FileSink
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, UserCodeError, WorkerLostError
from flinkcore.examples.flights import LATE, hourly_flights
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.columnar.task_outputs import BlocksOutput
from flinkcore.spark.logs import spark_log
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.spark.logs.spark_log import SparkLog
from flinkcore.spark.shipping import sent_files
from flinkcore.spark.shipping.wheel import installed_wheel


@pytest.fixture(scope="module")
def spark(cluster: StandaloneCluster) -> Iterator[Any]:
    # Executors do not have this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with cluster.session(bare_interpreter(cluster.folder / "bare")) as session:
        yield session
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def embedded() -> Any:
    return hourly_flights(StreamExecutionEnvironment().set_parallelism(1)).execute()


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def die_once(marker: str) -> None:
    """Kill the process, as the system does when memory runs out, unless that was done before."""
    if is_first(marker):
        os.kill(os.getpid(), signal.SIGKILL)


def lose_executor_once(marker: str, with_its_files: bool = False) -> None:
    """Kill the executor of this Python worker, and so lose what its tasks have sent, unless that was done before.

    An executor on the same machine may still read the files of one that is killed, if it has done so before.
    """
    if is_first(marker):
        if with_its_files:
            for folder in os.environ["SPARK_EXECUTOR_DIRS"].split(os.pathsep):
                for blocks in Path(folder).glob("blockmgr-*"):
                    shutil.rmtree(blocks, ignore_errors=True)  # into which the executor may write
        daemon = os.getppid()
        _, executor = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[:2]
        assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
        os.kill(int(executor), signal.SIGKILL)


def is_first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class DieOnce:
    """A column operation whose task dies at its second batch, the first time."""

    marker: str
    required_columns: frozenset[str] = frozenset()

    def narrowed(self, wanted: Any) -> tuple["DieOnce", Any]:
        return self, wanted

    def apply(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, None]:
        if batch.num_rows:
            die_once(self.marker)
        return batch, None


@dataclass(frozen=True)
class DieAfter:
    """A task output whose task dies after so many batches of it, the first time."""

    output: Any
    marker: str
    batches_before: int

    def batches(self, replay: Any) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self.output.batches(replay)):
            if number == self.batches_before:
                die_once(self.marker)
            yield batch


NEEDED = ("flinkcore", "numpy", "pyarrow", "pandas", "pyspark")
ONLY_HERE = ("only_the_driver_has_it", "models")
"""Modules that this process can import, and no worker can."""


def surroundings() -> str:
    """What Python of this process sees: its folders, its settings, and which modules it finds there."""
    found = {name: importlib.util.find_spec(name) for name in (*NEEDED, *ONLY_HERE)}
    origins = {name: spec.origin for name, spec in found.items() if spec is not None}
    for name in origins:
        importlib.import_module(name)
    modules = [vars(module).get("__file__") for module in sys.modules.values()]
    return json.dumps(
        {
            "origins": origins,
            "modules": sorted({os.path.abspath(file) for file in modules if file}),
            "path": [os.path.abspath(folder) for folder in sys.path],
            "process": os.getpid(),
            "settings": {
                "working directory": os.getcwd(),
                "environment": dict(os.environ),
                "interpreter": [sys.executable, sys.prefix, sys.exec_prefix],
                "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)],
                "limits": [
                    sys.getrecursionlimit(),
                    sys.getswitchinterval(),
                    gc.isenabled(),
                    gc.get_threshold(),
                ],
            },
        }
    )


class Tells(KeyedProcessFunction):
    """Gives what the processes see in which it runs."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str]]:
        yield (surroundings(),)


def seen_by_udf(spark: Any) -> dict[int, dict[str, Any]]:
    """What a function of the user's own sees on each worker, by process."""
    from pyspark.sql.functions import udf

    def look(_: int) -> str:
        import time

        time.sleep(0.2)  # so that all executors get some
        return surroundings()

    rows = spark.range(0, 4, 1, 4).select(udf(look, useArrow=False)("id")).collect()
    return {seen["process"]: seen for seen in (json.loads(row[0]) for row in rows)}


def folders_of_the_driver() -> set[Path]:
    """Where this process looks for modules, but for those of Python itself."""
    standard = Path(sysconfig.get_path("stdlib"))
    own = {standard, standard / "lib-dynload", Path(sysconfig.get_path("platstdlib"), "lib-dynload")}
    folders = {Path(folder).absolute() for folder in sys.path} | {Path(__file__).parents[2]}
    return {folder for folder in folders if folder not in own and folder.is_dir()}


def of_the_driver(seen: dict[str, Any]) -> list[str]:
    """The folders and files of the driver's that a worker sees, but for what Spark itself puts on its path."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    spark = [*home.glob("python/lib/*.zip"), *home.glob("jars/spark-core_*.jar")]
    assert len(spark) == 3
    environment = seen["settings"]["environment"].get("PYTHONPATH", "").split(os.pathsep)
    paths = [*seen["path"], *environment, *seen["modules"], *seen["settings"]["interpreter"]]
    return [
        path
        for path in map(Path, filter(None, paths))
        if any(path.is_relative_to(folder) for folder in folders_of_the_driver())
        and not any(path.is_relative_to(each) for each in spark)
    ]


def test_workers_see_nothing_of_the_driver_and_functions_outside_replays_see_no_replay(
    spark: Any, cluster: StandaloneCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{ONLY_HERE[0]}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert json.loads(surroundings())["origins"].keys() == {*NEEDED, *ONLY_HERE}
    before = seen_by_udf(spark)
    for seen in before.values():
        assert seen["origins"].keys() == {*NEEDED} - {"flinkcore"}, "this test begins the session"
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    log = pa.table({"user": range(8), "ts": range(8)})
    keyed = env.from_event_log(log, timestamp="ts").key_by("user")
    columnar = keyed.process(Tells(), pa.schema({"text": pa.string()})).to_arrow()
    elements = env.from_collection([1, 2]).map(lambda _: surroundings()).execute_and_collect()
    in_tasks = [json.loads(text) for text in (*columnar["text"].to_pylist(), *elements)]
    assert {seen["process"] for seen in in_tasks} & before.keys(), "workers are used again"
    after = seen_by_udf(spark)
    own = str(cluster.folder / "bare")
    for seen in (*before.values(), *in_tasks, *after.values()):
        assert of_the_driver(seen) == []
        assert seen["origins"].keys() & {*ONLY_HERE} == set()
        assert seen["settings"]["interpreter"][1:] == [own, own]
        for name in ("numpy", "pyarrow", "pandas"):
            assert seen["origins"][name].startswith(f"{own}/")
    sent = f"flinkcore-{installed_wheel().build}"
    for seen in in_tasks:
        assert Path(seen["origins"]["flinkcore"]).parents[1].name == sent
    for process in before.keys() & after.keys():
        was, now = before[process], after[process]
        assert now["settings"] == was["settings"]
        more = [folder for folder in now["path"] if folder not in was["path"]]
        assert [Path(folder).name for folder in more] in ([], [sent])
        assert all(Path(folder).is_relative_to(was["settings"]["working directory"]) for folder in more)
        assert [folder for folder in now["path"] if folder not in more] == was["path"]


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_rows_are_those_of_an_embedded_replay(spark: Any, embedded: Any, parallelism: int) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(parallelism)).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert rows(result.get_side_output(LATE).to_arrow()) == rows(embedded.get_side_output(LATE).to_arrow())
    assert result.report == embedded.report


def test_parallelism_is_the_number_of_cores_of_all_executors(spark: Any) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
    assert result.to_dataframe().rdd.getNumPartitions() == 2


def test_executors_that_lack_flinkcore_are_sent_it(spark: Any, embedded: Any) -> None:
    from pyspark.sql.functions import udf

    def folder_of_flinkcore(_: int) -> str:
        import flinkcore

        return os.path.dirname(os.path.dirname(flinkcore.__file__))

    assert rows(hourly_flights(SparkExecutionEnvironment(spark)).to_arrow()) == rows(embedded.to_arrow())
    found = spark.range(2).select(udf(folder_of_flinkcore, useArrow=False)("id")).collect()
    assert all(f"flinkcore-{installed_wheel().build}" in row[0] for row in found)


@at_night
def test_an_executor_that_joins_after_the_first_job_runs_replays_too(
    spark: Any, cluster: StandaloneCluster, embedded: Any
) -> None:
    from pyspark.sql.functions import udf

    def where_and_which(_: int) -> str:
        import time
        from importlib.util import find_spec

        time.sleep(0.2)  # so that all executors get some
        spec = find_spec("flinkcore")
        return f"{os.getcwd()} {spec and os.path.dirname(os.path.dirname(spec.origin))}"

    def replayed() -> list[str]:
        return rows(hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(6)).to_arrow())

    expected = rows(embedded.to_arrow())
    assert replayed() == expected
    with cluster.another_worker("late"):
        wait_until(lambda: spark.sparkContext.defaultParallelism == 3)
        assert replayed() == expected
        # An executor whose first Python worker starts slowly gets no task of a short job, and no flinkcore.
        found: list[list[str]] = []

        def is_seen_on_the_late_one() -> bool:
            assert replayed() == expected
            rows = spark.range(0, 9, 1, 9).select(udf(where_and_which, useArrow=False)("id")).collect()
            places = [row[0].split() for row in rows]
            found.extend(place for place in places if place[1] != "None")
            return any("work-late" in place for place, _ in found)

        wait_until(is_seen_on_the_late_one)
    assert all(f"flinkcore-{installed_wheel().build}" in package for _, package in found)


def jobs_shown(spark: Any) -> list[tuple[str, str, str]]:
    """Description, group and status of the jobs that Spark's UI and its REST API show, in order."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    return [
        (job.description().get(), job.jobGroup().get(), job.status().toString())
        for job in sorted(found, key=lambda job: job.jobId())
        if job.jobGroup().isDefined()
    ]


def queries_shown(spark: Any) -> list[str]:
    """Descriptions of the queries that Spark's UI and its REST API show, in order."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    queries = [found.apply(number) for number in range(found.size())]
    return [query.description() for query in sorted(queries, key=lambda query: query.executionId())]


def test_spark_shows_which_pass_of_which_replay_runs_and_what_became_of_the_events(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_log, "SMALL_LOG_BYTES", 0)

    def batches() -> ReplayReport:
        result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
        assert list(result.to_batches())
        return result.report

    def table_read_later() -> ReplayReport:
        result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
        result.get_side_output(LATE).to_arrow()
        return result.report

    def files_and_checkpoint() -> ReplayReport:
        stream = hourly_flights(SparkExecutionEnvironment(spark))
        return stream.execute(stop_with_checkpoint=tmp_path / "checkpoint").write_parquet(tmp_path / "out")

    groups = set()
    for run in (batches, table_read_later, files_and_checkpoint):
        before = len(jobs_shown(spark))
        report = run()
        jobs = jobs_shown(spark)[before:]
        passes = {"flinkcore: pass 1 of 2, times of the log", "flinkcore: pass 2 of 2, events by key"}
        preflight = "flinkcore: what the executors have"
        assert {description for description, _, _ in jobs} - {preflight} == passes
        assert {status for _, _, status in jobs} == {"SUCCEEDED"}
        (group,) = {group for _, group, _ in jobs}
        groups.add(group)
        counts = f"flinkcore: 33,798 events, {report.results:,} results, 191 late, 0 dropped, 0 rejected"
        assert queries_shown(spark)[-1] == counts
    assert len(groups) == 3


def test_map_task_that_dies_is_done_again(spark: Any, embedded: Any, tmp_path: Path) -> None:
    marker = str(tmp_path / "died")
    plan = make_plan(
        StreamGraph(hourly_flights(StreamExecutionEnvironment())._transformation), ExecutionConfig()
    )
    (log,) = plan.logs
    plan = replace(plan, logs=(replace(log, after=(DieOnce(marker), *log.after)),))
    files = FileInput(tuple(plan.logs[0].log.chunks(3)))
    replay = SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 2)
    # The first pass does not come past the operation; planning does, without rows.
    assert replay.time_planes[0].events == 33_798
    assert not os.path.exists(marker)
    result = SparkResult(replay)
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert os.path.exists(marker)
    assert result.report == embedded.report


KINDS = pa.schema({"user": pa.int64(), "n": pa.int64()})


class Doubled(KeyedProcessFunction):
    """Gives each element twice: at once, and with a timer."""

    def __init__(self, dies: Callable[[], None]) -> None:
        self._dies = dies

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
        yield value.user, value.n

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp > 3000:  # fired by the end of the log, as many others
            self._dies()
        yield ctx.get_current_key(), timestamp


def job_of_three_operators(env: StreamExecutionEnvironment, markers: Path) -> DataStream:
    """A job whose processes die amid the first two operators, if they have not yet."""
    log = pa.table({"user": [n % 13 for n in range(4000)], "n": range(4000), "ts": range(4000)})
    rows = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    first = rows.key_by("user").process(Doubled(partial(lose_executor_once, str(markers / "first"))), KINDS)
    odd = first.with_columns(user=pc.multiply(pc.field("user"), 3))
    second = odd.key_by("user").process(Doubled(partial(lose_executor_once, str(markers / "second"))), KINDS)
    windows = second.union(first).key_by("user").window(TumblingEventTimeWindows(500))
    return windows.aggregate(rows=count(), total=sum_("n"))


@at_night
def test_processes_killed_in_each_phase_of_a_job_of_three_operators_change_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = ("times", "map", "first", "second", "results")
    done, markers = tmp_path / "done", tmp_path / "markers"
    for folder in (done, markers):
        folder.mkdir()
    for phase in phases:
        (done / phase).touch()
    embedded = job_of_three_operators(StreamExecutionEnvironment(), done).execute()
    stream = job_of_three_operators(StreamExecutionEnvironment(), markers)
    plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
    (log,) = plan.logs
    before, after = (DieOnce(str(markers / phase)) for phase in ("times", "map"))
    log = replace(log, before=(before, *log.before), after=(after, *log.after))
    files = FileInput(tuple(log.log.chunks(3)))
    results = DieAfter(BlocksOutput(), str(markers / "results"), 0)
    monkeypatch.setattr("flinkcore.spark.columnar.result.BlocksOutput", lambda: results)
    # Of a table the driver would read the times.
    monkeypatch.setattr("flinkcore.spark.columnar.replay.chunks_with_times_here", lambda spark, logs: None)
    replay = SparkReplay(spark, replace(plan, logs=(log,)), [SparkLog(log, files)], 2)
    result = SparkResult(replay)
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.report == embedded.report
    assert sorted(marker.name for marker in markers.iterdir()) == sorted(phases)


def executors_of(spark: Any) -> set[str]:
    found = spark.sparkContext._jsc.sc().getExecutorIds()
    return {found.apply(number) for number in range(found.size())}


@at_night
def test_rows_of_a_dataframe_that_are_lost_with_executors_are_told_of_and_another_run_gives_them(
    spark: Any,
) -> None:
    def totals(env: StreamExecutionEnvironment, log: Any) -> DataStream:
        stream = env.from_event_log(log, timestamp="n", arrival="n")
        assigned = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        return (
            assigned.key_by("user")
            .window(TumblingEventTimeWindows(500))
            .aggregate(rows=count(), total=sum_("n"))
        )

    log = spark.range(0, 4000, 1, 4).selectExpr("id % 13 AS user", "id AS n").where("rand() < 2")
    stream = totals(SparkExecutionEnvironment(spark).set_parallelism(2), log)
    result = stream.execute()
    assert result._replay.time_planes[0].events == 4000
    lost = executors_of(spark)
    for number in lost:
        assert spark.sparkContext._jsc.sc().killAndReplaceExecutor(number)
    wait_until(lambda: not lost & executors_of(spark))
    with pytest.raises(WorkerLostError, match=r"rows of the DataFrame .* is gone.*Run the job again"):
        result.to_arrow()
    table = pa.table({"user": [n % 13 for n in range(4000)], "n": range(4000)})
    assert rows(stream.to_arrow()) == rows(totals(StreamExecutionEnvironment(), table).to_arrow())


NUMBERS = pa.table({"user": [n % 13 for n in range(4000)], "n": range(4000)})
GONE = r"rows of the DataFrame .* is gone.*Run the job again"


def numbers_to_evaluate(spark: Any, passed: Callable[[int], int] | None = None) -> Any:
    """The same rows as a DataFrame of four partitions that Spark has to evaluate; a function may pass each number."""
    from pyspark.sql.functions import udf

    # Each executor is given one of the first two partitions, and so keeps rows.
    wait_until(lambda: len(executors_of(spark)) == 2)
    number = "id" if passed is None else udf(passed, "long", useArrow=False)("id").alias("id")
    numbers = spark.range(0, 4000, 1, 4).select(number)
    return numbers.where("rand(1) < 2").selectExpr("id % 13 AS user", "id AS n")


def doubled_numbers(env: StreamExecutionEnvironment, log: Any, dies: Callable[[], None]) -> DataStream:
    stream = env.from_event_log(log, timestamp="n", arrival="n")
    assigned = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    return assigned.key_by("user").process(Doubled(dies), KINDS)


@pytest.fixture(scope="module")
def doubled_here() -> Any:
    return doubled_numbers(StreamExecutionEnvironment(), NUMBERS, lambda: None).execute()


def test_python_worker_that_dies_amid_the_job_that_reads_kept_rows_of_a_dataframe_changes_nothing(
    spark: Any, doubled_here: Any, tmp_path: Path
) -> None:
    marker = tmp_path / "died"
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    result = doubled_numbers(env, numbers_to_evaluate(spark), partial(die_once, str(marker))).execute()
    assert result._replay.time_planes[0].events == 4000
    assert not marker.exists()
    assert rows(result.to_arrow()) == rows(doubled_here.to_arrow())
    assert marker.exists()
    assert result.report == doubled_here.report


def test_executor_that_is_lost_with_its_files_amid_the_job_that_reads_rows_it_keeps_is_told_of(
    spark: Any, doubled_here: Any, tmp_path: Path
) -> None:
    marker = tmp_path / "died"
    dies = partial(lose_executor_once, str(marker), with_its_files=True)
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    stream = doubled_numbers(env, numbers_to_evaluate(spark), dies)
    result = stream.execute()
    assert result._replay.time_planes[0].events == 4000
    assert not marker.exists()
    with pytest.raises(WorkerLostError, match=GONE):
        result.to_arrow()
    assert marker.exists()
    assert rows(stream.to_arrow()) == rows(doubled_here.to_arrow())


@pytest.mark.parametrize(
    ("dies", "number"),
    [
        pytest.param(die_once, 3999, id="Python worker in the last row"),
        # Before it keeps any.
        pytest.param(lose_executor_once, 0, id="executor in the first row", marks=at_night),
    ],
)
def test_process_that_dies_as_it_evaluates_a_dataframe_changes_nothing(
    spark: Any, doubled_here: Any, tmp_path: Path, dies: Callable[[str], None], number: int
) -> None:
    marker = tmp_path / "died"

    def passed(value: int) -> int:
        if value == number:
            dies(str(marker))
        return value

    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    result = doubled_numbers(env, numbers_to_evaluate(spark, passed), lambda: None).execute()
    assert result._replay.time_planes[0].events == 4000
    assert marker.exists()
    assert rows(result.to_arrow()) == rows(doubled_here.to_arrow())
    assert result.report == doubled_here.report


def rows_of_this_run_or_the_next(stream: DataStream) -> list[str]:
    """Rows of a stream; it is run again if it tells that rows of its DataFrame are gone."""
    try:
        return rows(stream.to_arrow())
    except WorkerLostError as error:
        if re.search(GONE, str(error)) is None:
            raise
    return rows(stream.to_arrow())


@at_night
@pytest.mark.parametrize("evaluates", [True, False], ids=["evaluating it", "reading what is kept"])
def test_executor_that_dies_when_it_keeps_rows_of_a_dataframe_loses_none_unnoticed(
    spark: Any, doubled_here: Any, tmp_path: Path, evaluates: bool
) -> None:
    marker = tmp_path / "died"
    dies = partial(lose_executor_once, str(marker))

    def passed(value: int) -> int:
        if evaluates and value == 3999:  # of the last partition
            dies()
        return value

    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    numbers = numbers_to_evaluate(spark, passed)
    stream = doubled_numbers(env, numbers, (lambda: None) if evaluates else dies)
    found = rows_of_this_run_or_the_next(stream)
    assert marker.exists()
    assert found == rows(doubled_here.to_arrow())


def test_reduce_task_that_dies_is_done_again(
    spark: Any, embedded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = str(tmp_path / "died")
    monkeypatch.setattr(
        "flinkcore.spark.columnar.result.BlocksOutput", lambda: DieAfter(BlocksOutput(), marker, 2)
    )
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert os.path.exists(marker)
    assert result.report == embedded.report


def test_files_of_a_task_that_dies_are_not_in_the_result(
    spark: Any, embedded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flinkcore.spark.columnar.task_outputs import FilesOutput

    # It dies when its files are complete and before Spark knows of them.
    marker = str(tmp_path / "died")
    monkeypatch.setattr(
        "flinkcore.spark.columnar.result.FilesOutput",
        lambda directories: DieAfter(FilesOutput(directories), marker, 0),
    )
    out = tmp_path / "out"
    report = hourly_flights(SparkExecutionEnvironment(spark)).write_parquet(out)
    assert os.path.exists(marker)
    assert report == embedded.report
    assert sorted(path.name for path in out.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    assert rows(pq.read_table(out)) == rows(embedded.to_arrow())


@at_night
def test_job_that_fails_leaves_no_files(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkException

    from flinkcore.spark.columnar.task_outputs import FilesOutput

    monkeypatch.setattr(
        "flinkcore.spark.columnar.result.FilesOutput",
        lambda directories: DieAfter(FilesOutput(directories), "/nonexistent/marker", 1),
    )
    with pytest.raises(PySparkException):
        hourly_flights(SparkExecutionEnvironment(spark)).write_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def dying_job(env: StreamExecutionEnvironment, markers: Path, folder: Path) -> list[Any]:
    """A job of elements, of each of whose levels a task dies as it has sent and written something, the first time."""

    def pair(value: int) -> tuple[int, int]:
        if value == 700:
            die_once(str(markers / "pairs"))
        return value % 7, value

    def total(first: tuple[int, int], second: tuple[int, int], level: str) -> tuple[int, int]:
        if first[1] > 40_000:
            lose_executor_once(str(markers / level))
        return first[0], first[1] + second[1]

    pairs = env.from_collection(range(1000)).rebalance().map(pair)
    totals = pairs.key_by(lambda pair: pair[0]).reduce(partial(total, level="totals"))
    totals.sink_to(FileSink.for_row_format(str(folder), Encoder.simple_string_encoder()).build())
    halves = totals.key_by(lambda pair: pair[0] % 2).reduce(partial(total, level="halves"))
    return list(halves.execute_and_collect())


def test_tasks_of_elements_that_die_in_each_level_are_done_again(spark: Any, tmp_path: Path) -> None:
    done, markers = tmp_path / "done", tmp_path / "died"
    for folder in (done, markers):
        folder.mkdir()
    for level in ("pairs", "totals", "halves"):
        (done / level).touch()
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    expected = dying_job(environment, done, tmp_path / "embedded")
    on_spark = SparkExecutionEnvironment(spark).set_parallelism(2)
    assert dying_job(on_spark, markers, tmp_path / "spark") == expected
    assert sorted(marker.name for marker in markers.iterdir()) == ["halves", "pairs", "totals"]
    assert visible_lines(tmp_path / "spark") == visible_lines(tmp_path / "embedded")


class Totals(KeyedProcessFunction):
    """Totals of keys; its task dies as it closes it, having written its part of a checkpoint."""

    def __init__(self, dies: Callable[[], None]) -> None:
        self._dies = dies

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[tuple[int, int]]:
        self._total.update((self._total.value() or 0) + value[1])
        yield value[0], self._total.value()

    def close(self) -> None:
        self._dies()


def stopping_job(
    env: StreamExecutionEnvironment, numbers: range, markers: Path, folder: Path, **checkpoints: Any
) -> list[Any]:
    """A job that stops with a checkpoint or goes on from one; a task of each level dies, the first time."""
    markers.mkdir(exist_ok=True)

    def pair(value: int) -> tuple[int, int]:
        if value == numbers[len(numbers) // 2]:
            die_once(str(markers / "pairs"))
        return value % 7, value

    def half(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        if second[1] > 10 * numbers[len(numbers) // 2]:
            lose_executor_once(str(markers / "halves"))
        return first[0], first[1] + second[1]

    pairs = env.from_collection(numbers).rebalance().map(pair)
    dies = partial(die_once, str(markers / "totals"))
    totals = pairs.key_by(lambda pair: pair[0]).process(
        Totals(dies), Types.TUPLE([Types.LONG(), Types.LONG()])
    )
    totals.sink_to(FileSink.for_row_format(str(folder), Encoder.simple_string_encoder()).build())
    halves = totals.key_by(lambda pair: pair[0] % 2).reduce(half)
    return list(halves.execute_and_collect(**checkpoints))


@at_night
def test_tasks_of_elements_that_die_leave_the_checkpoint_of_the_job_as_it_is(
    spark: Any, tmp_path: Path
) -> None:
    levels = ["halves", "pairs", "totals"]
    done = tmp_path / "done"
    done.mkdir()
    for level in levels:
        (done / level).touch()
    embedded = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    on_spark = SparkExecutionEnvironment(spark).set_parallelism(2)
    whole = stopping_job(embedded, range(1000), done, tmp_path / "whole")
    checkpoint, parts, embedded_parts = (
        tmp_path / "checkpoint",
        tmp_path / "parts",
        tmp_path / "embedded parts",
    )
    died = tmp_path / "died", tmp_path / "died again"
    first = stopping_job(on_spark, range(600), died[0], parts, stop_with_checkpoint=checkpoint)
    shutil.copytree(parts, embedded_parts)
    assert sorted(marker.name for marker in died[0].iterdir()) == levels
    died[1].mkdir()
    (died[1] / "halves").touch()  # an executor takes long to start
    second = stopping_job(on_spark, range(600, 1000), died[1], parts, restore_from=checkpoint)
    assert sorted(marker.name for marker in died[1].iterdir()) == levels
    assert sorted(first + second) == sorted(whole)
    assert visible_lines(parts) == visible_lines(tmp_path / "whole")
    assert second == stopping_job(embedded, range(600, 1000), done, embedded_parts, restore_from=checkpoint)
    assert visible_lines(embedded_parts) == visible_lines(tmp_path / "whole")


def visible_lines(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return sorted(line for path in files for line in path.read_text().splitlines())


USER_MODULE = """
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.datastream.state import ValueStateDescriptor

class Doubled(KeyedProcessFunction):
    def process_element(self, value, ctx):
        from its_helper import twice
        yield value.user, twice(value.number)

def doubled_number(number):
    return 2 * number
"""


@pytest.fixture
def user_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that this process can import, and executors cannot."""
    (tmp_path / "its_function.py").write_text(USER_MODULE)
    (tmp_path / "its_helper.py").write_text("def twice(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("its_function", "its_helper"):
        sys.modules.pop(name, None)


def doubled(env: StreamExecutionEnvironment) -> Any:
    from its_function import Doubled  # type: ignore[import-not-found]

    log = pa.table({"user": ["a", "b"], "number": [1, 2], "ts": [1, 2]})
    stream = env.from_event_log(log, timestamp="ts").key_by("user")
    return stream.process(Doubled(), pa.schema({"user": pa.string(), "number": pa.int64()}))


def doubled_elements(env: StreamExecutionEnvironment) -> Iterator[Any]:
    from its_function import doubled_number

    return env.from_collection([1, 2]).map(doubled_number).execute_and_collect()


def test_a_module_of_the_users_that_executors_lack_is_named_and_can_be_sent(
    spark: Any, user_modules: Path
) -> None:
    env = SparkExecutionEnvironment(spark).set_parallelism(1)
    advice = r"need the module 'its_function'.*env.add_python_file with the path of its_function.py"
    with pytest.raises(UserCodeError, match=advice):
        doubled(env).to_arrow()
    with pytest.raises(UserCodeError, match=advice):
        list(doubled_elements(env))
    env.add_python_file(user_modules / "its_function.py")
    env.add_python_file(user_modules)
    assert doubled(env).to_arrow().to_pydict() == {"user": ["a", "b"], "number": [2, 4]}
    assert list(doubled_elements(env)) == [2, 4]
    # Workers are used again, and have imported what is changed now.
    (user_modules / "its_helper.py").write_text("def twice(number):\n    return number + number + 1\n")
    env.add_python_file(user_modules)
    assert doubled(env).to_arrow().to_pydict() == {"user": ["a", "b"], "number": [3, 5]}


def test_functions_on_executors_find_archives_under_their_target_directories(
    spark: Any, tmp_path: Path
) -> None:
    class Reads(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str]]:
            yield (Path("target/data/text").read_text(),)

    def pack(text: str) -> None:
        with ZipFile(tmp_path / "first.zip", "w") as packing:
            packing.writestr("data/text", text)

    pack("zip")
    (tmp_path / "text").write_text("tar")
    with tarfile.open(tmp_path / "second.tar.gz", "w:gz") as packing:
        packing.add(tmp_path / "text", "data/text")
    env = SparkExecutionEnvironment(spark).set_parallelism(1)
    env.add_python_archive(tmp_path / "first.zip", "target")
    env.add_python_archive(tmp_path / "second.tar.gz")
    log = pa.table({"user": ["a", "b"], "ts": [1, 2]})
    keyed = env.from_event_log(log, timestamp="ts").key_by("user")
    columnar = keyed.process(Reads(), pa.schema({"text": pa.string()}))
    elements = env.from_collection(["target/data/text", "second.tar.gz/data/text"])
    elements = elements.map(lambda path: Path(path).read_text())
    for text in ("zip", "changed"):
        pack(text)
        env.add_python_archive(tmp_path / "first.zip", "target")
        assert columnar.to_arrow()["text"].to_pylist() == [text, text]
        assert sorted(elements.execute_and_collect()) == sorted([text, "tar"])


def test_only_the_interpreter_of_the_workers_is_accepted(spark: Any) -> None:
    env = SparkExecutionEnvironment(spark)
    env.set_python_executable(spark.sparkContext.pythonExec)
    with pytest.raises(
        ConfigurationError, match=r"run by .*bare/bin/python.*spark.pyspark.python., '/opt/python'"
    ):
        env.set_python_executable("/opt/python")


@contextmanager
def workers_that_run(interpreter: Path, spark: Any) -> Iterator[Any]:
    """A session of the same application that has sent nothing, and whose Python workers run another interpreter."""
    with (
        patch.object(spark.sparkContext, "pythonExec", str(interpreter)),
        patch.object(sent_files, "_SENT", {}),
    ):
        yield spark.newSession()


def test_executors_with_another_build_take_the_drivers(spark: Any, cluster: StandaloneCluster) -> None:
    interpreter = bare_interpreter(cluster.folder / "other")
    package = site_packages_of(interpreter) / "flinkcore"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "0.0.1"')

    def version_on_worker(_: int) -> str:
        import flinkcore

        return flinkcore.__version__

    with workers_that_run(interpreter, spark) as session:
        from pyspark.sql.functions import udf

        # Workers are used again; one that has imported another build ends, and its task is done again.
        versions = session.range(2).select(udf(version_on_worker, useArrow=False)("id")).collect()
        assert {row[0] for row in versions} == {"0.0.1"}
        found = hourly_flights(SparkExecutionEnvironment(session)).to_arrow()
        assert found.num_rows == hourly_flights(StreamExecutionEnvironment()).to_arrow().num_rows


def test_executors_without_pyarrow_are_one_error_before_the_job(
    spark: Any, cluster: StandaloneCluster
) -> None:
    interpreter = bare_interpreter(cluster.folder / "empty")
    for path in (cluster.folder / "empty" / "packages").glob("pyarrow*"):
        path.unlink()
    with workers_that_run(interpreter, spark) as session:
        job = hourly_flights(SparkExecutionEnvironment(session)).execute()
        with pytest.raises(
            ConfigurationError, match=r"empty/bin/python.*needs pyarrow 19 or later and has none"
        ):
            job.to_arrow()


def test_a_worker_with_old_packages_is_refused_by_the_tasks_that_it_runs_too(
    spark: Any, cluster: StandaloneCluster
) -> None:
    interpreter = bare_interpreter(cluster.folder / "aging")
    with workers_that_run(interpreter, spark) as session:
        assert hourly_flights(SparkExecutionEnvironment(session)).to_arrow().num_rows
        # As on an executor that joins after the first job.
        packages = cluster.folder / "aging" / "packages"
        for path in packages.glob("numpy-*.dist-info"):
            path.unlink()
        (packages / "numpy-1.20.0.dist-info").mkdir()
        (packages / "numpy-1.20.0.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 1.20.0\n")
        with pytest.raises(
            ConfigurationError,
            match=r"aging/bin/python.*needs numpy 1\.2\d or later and has 1\.20\.0: install it",
        ):
            hourly_flights(SparkExecutionEnvironment(session)).to_arrow()
