"""Windows in tasks of Spark against the traces of Flink's: both paths, order for order, at two parallelisms.

Every scenario is a replay of its own, with its map task, its rows of the exchange, and a reduce task for each partition
that stops with a checkpoint; all of them go through one run of Spark.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from models.canonical import canonical_entries
from models.columnar_scenarios import OVERFLOWING, why_not_columnar
from models.replayed_scenarios import LATE, ColumnarPath, RowPath, why_not_replayed
from models.spark_sessions import spark_session

pytest.importorskip("pyspark")

from models.spark_stages import PartitionOutput, SmallReplay, run_all

import flinkcore
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.errors import FlinkcoreError
from flinkcore.replay.plans.replay_plan import make_plan
from flinkcore.runtime.java_keys import JavaKeys

# PySpark warns of every pandas 3, which replays do not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

PARALLELISMS = (1, 2)
MAX_PARALLELISM = 128
Path_ = type[RowPath] | type[ColumnarPath]
Entry = dict[str, Any]


def small_replay(path: Path_, item: dict[str, Any], parallelism: int, directory: Path) -> SmallReplay | None:
    """The replay of a scenario; None: its job, or a row of its log, is refused."""
    try:
        stream = path.job(StreamExecutionEnvironment(), item)
        plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
        return SmallReplay.of(plan, parallelism, directory)
    except FlinkcoreError:
        return None


class SparkRun:
    """What Spark gave for each path, scenario and parallelism."""

    def __init__(self, scenarios: list[dict[str, Any]], directory: Path) -> None:
        self._outputs: dict[tuple[str, str, int], list[PartitionOutput]] = {}
        names, replays = [], []
        for scenario in scenarios:
            for path, why_not in ((RowPath, why_not_row), (ColumnarPath, why_not_columns)):
                if why_not(scenario) is not None:
                    continue
                for parallelism in PARALLELISMS:
                    replay = small_replay(path, scenario["input"], parallelism, directory / str(len(names)))
                    if replay is not None:
                        names.append((path.__name__, scenario["name"], parallelism))
                        replays.append(replay)
        paths = [str(Path(flinkcore.__file__).parents[1]), str(Path(__file__).parents[1])]
        with spark_session("local[2]", spark_executorEnv_PYTHONPATH=":".join(paths)) as spark:
            self._outputs = dict(zip(names, run_all(spark, replays), strict=True))

    def of(self, path: Path_, scenario: dict[str, Any], parallelism: int) -> list[PartitionOutput]:
        refused = [PartitionOutput(error="refused")]
        return self._outputs.get((path.__name__, scenario["name"], parallelism), refused)


@pytest.fixture(scope="module")
def spark_run(golden: Any, tmp_path_factory: pytest.TempPathFactory) -> SparkRun:
    return SparkRun([*golden("window"), *golden("seed_trace")], tmp_path_factory.mktemp("checkpoints"))


def why_not_row(scenario: dict[str, Any]) -> str | None:
    return why_not_replayed(scenario)


def why_not_columns(scenario: dict[str, Any]) -> str | None:
    return why_not_columnar(scenario["input"]) or why_not_replayed(scenario)


def key_of(item: dict[str, Any], entry: Entry) -> str:
    key: str = entry["timer"][2] if "timer" in entry else item["events"][entry["at"]][2]
    return key


def same_timers(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Runs of entries, one each but for those of equal timers, whose order is open."""

    def cause(numbered: tuple[int, Entry]) -> tuple[Any, ...]:
        number, entry = numbered
        return (entry["at"], *entry["timer"][:2]) if "timer" in entry else (number,)

    for _, run in groupby(enumerate(entries), key=cause):
        yield [entry for _, entry in run]


def compare(wanted: list[Entry], found: list[Any]) -> None:
    at = 0
    for run in same_timers(wanted):
        here = found[at : at + len(run)]
        expected = [[entry["value"], entry["ts"]] for entry in run]
        assert sorted(map(json.dumps, here)) == sorted(map(json.dumps, expected))
        at += len(run)
    assert found[at:] == []


def comparable(item: dict[str, Any], values: Iterator[tuple[Any, int]]) -> list[Any]:
    """Results as they are compared: elements of sessions have no order."""
    entries = [{"at": 0, "type": "record", "value": value, "ts": ts} for value, ts in values]
    return [[entry["value"], entry["ts"]] for entry in canonical_entries("window", item, entries)]


def check(path: Path_, run: SparkRun, scenario: dict[str, Any], parallelism: int) -> None:
    item, output = scenario["input"], scenario["output"]
    partitions = run.of(path, scenario, parallelism)
    if scenario["name"] in OVERFLOWING or any(entry["type"] == "error" for entry in output["entries"]):
        assert any(partition.error for partition in partitions)
        return
    assert [partition.error for partition in partitions] == [None] * parallelism
    wanted = canonical_entries("window", item, path.wanted(item, output["entries"]))
    group_of = JavaKeys(MAX_PARALLELISM)
    late = 0
    for number, partition in enumerate(partitions):
        own = [
            entry
            for entry in wanted
            if entry["type"] in ("record", "side")
            and group_of(key_of(item, entry)) * parallelism // MAX_PARALLELISM == number
        ]
        compare(
            [entry for entry in own if entry["type"] == "record"],
            comparable(item, path.values(item, partition.rows[None])),
        )
        side = [entry["value"] for entry in own if entry["type"] == "side"]
        assert [list(row.values()) for row in partition.rows[LATE.tag_id]] == side
        late += partition.counts["counts"]["late"] - len(side)
    assert late == output["late_dropped"]


def check_both(path: Path_, run: SparkRun, scenario: dict[str, Any], why_not: str | None) -> None:
    if why_not is not None:
        pytest.skip(why_not)
    for parallelism in PARALLELISMS:
        check(path, run, scenario, parallelism)


def test_every_window_of_functions_fires_on_spark_as_in_flink(
    spark_run: SparkRun, window_scenario: dict[str, Any]
) -> None:
    check_both(RowPath, spark_run, window_scenario, why_not_row(window_scenario))


def test_windows_of_functions_follow_the_seed_trace_on_spark(
    spark_run: SparkRun, seed_trace_scenario: dict[str, Any]
) -> None:
    check_both(RowPath, spark_run, seed_trace_scenario, why_not_row(seed_trace_scenario))


def test_columnar_windows_fire_on_spark_as_in_flink(
    spark_run: SparkRun, window_scenario: dict[str, Any]
) -> None:
    check_both(ColumnarPath, spark_run, window_scenario, why_not_columns(window_scenario))


def test_columnar_windows_follow_the_seed_trace_on_spark(
    spark_run: SparkRun, seed_trace_scenario: dict[str, Any]
) -> None:
    check_both(ColumnarPath, spark_run, seed_trace_scenario, why_not_columns(seed_trace_scenario))
