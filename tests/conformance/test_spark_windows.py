"""Windows in tasks of Spark against the traces of Flink's: both paths, order for order, at two parallelisms.

Every scenario is a replay by the tasks that Spark would run: a map task, and one for each partition that stops with a
checkpoint.
"""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest
from equipment.canonical import (
    canonical_entries,
    canonical_values,
    number_firings_in_order,
    runs_of_equal_timers,
)
from equipment.memory_disk import MEMORY
from equipment.sampling import ALL
from jobs.columnar_scenarios import accumulators_of, event_timers_of, tells_timers, why_not_columnar
from jobs.replayed_scenarios import LATE, ColumnarPath, RowPath, why_not_replayed
from jobs.window_scenarios import wanted_output

pytest.importorskip("pyspark")
from equipment.merged_events import merging_lots_of
from equipment.spark_tasks import PartitionOutput, outputs_by_tasks
from equipment.timelines import without_end

from flinkcore._native.aggregates import are_shareable
from flinkcore.checkpoint import Checkpoint, OperatorSnapshot, PendingCheckpoint
from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.time_plane.time_pass import time_planes_of

PARALLELISMS = (1, 2)
MAX_PARALLELISM = 128
Path_ = type[RowPath] | type[ColumnarPath]
Entry = dict[str, Any]


class MergedPath(ColumnarPath):
    """Windows over columns whose events the map task merges."""


class Refused(Enum):
    """When a job was refused."""

    PLANNED = "as it was planned"
    READ = "as its log was read for the first time, before anything was given"


def plan_of(path: Path_, item: dict[str, Any]) -> JobPlan:
    stream = path.job(StreamExecutionEnvironment(), item)
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


@dataclass
class Replayed:
    """What the partitions of a replay gave, and what each held as it stopped, unless one ended with an error."""

    partitions: list[PartitionOutput]
    snapshots: list[OperatorSnapshot]


def replayed(path: Path_, item: dict[str, Any], parallelism: int) -> Replayed | Refused:
    """The replay of a scenario, or when it is refused."""
    try:
        plan = plan_of(path, item)
    except ConfigurationError:
        return Refused.PLANNED
    log = FileInput(tuple(plan.logs[0].log.chunks(1)))
    try:
        (time_plane,) = time_planes_of(plan.logs, [log.all_chunks], 1)
    except DataError:
        return Refused.READ
    is_merged = path is MergedPath
    with (
        TemporaryDirectory(dir=MEMORY) as directory,
        PendingCheckpoint.begin(directory, plan.max_parallelism) as pending,
        merging_lots_of(3) if is_merged else nullcontext(),
    ):
        timeline = without_end(time_plane.timeline)
        partitions = outputs_by_tasks(
            plan, log, time_plane, parallelism, merges=is_merged, timeline=timeline, pending=pending
        )
        parts = [each.part for each in partitions if each.part is not None]
        if len(parts) < len(partitions):
            return Replayed(partitions, [])
        pending.commit(parts)
        key_groups = plan.max_parallelism
        checkpoint = Checkpoint.open(directory)
        return Replayed(partitions, checkpoint.restore(plan.stages[0].uid, (0, key_groups - 1), key_groups))


def why_not_row(scenario: dict[str, Any]) -> str | None:
    return why_not_replayed(scenario)


def why_not_columns(scenario: dict[str, Any]) -> str | None:
    return why_not_columnar(scenario["input"]) or why_not_replayed(scenario)


def why_not_merged(scenario: dict[str, Any]) -> str | None:
    reason = why_not_columns(scenario)
    if reason is not None:
        return reason
    try:
        windows = plan_of(MergedPath, scenario["input"]).partial_windows()
    except ConfigurationError:
        return "the job is refused"
    return windows if isinstance(windows, str) else None


def key_of(item: dict[str, Any], entry: Entry) -> str:
    key: str = entry["timer"][2] if "timer" in entry else item["events"][entry["at"]][2]
    return key


def told(entry: Entry) -> Entry:
    """What results tell of an entry: not which event caused it, nor which timer."""
    return {name: entry[name] for name in entry if name not in ("at", "timer")}


as_text = partial(json.dumps, sort_keys=True)


def compare(item: dict[str, Any], wanted: list[Entry], found: list[Entry]) -> None:
    """Compare results in their order, but for that of equal timers, which is open."""
    found = canonical_values("window", item, found)
    at = 0
    for run in runs_of_equal_timers("window", wanted):
        here = found[at : at + len(run)]
        number_firings_in_order(here)
        assert sorted(here, key=as_text) == sorted(map(told, run), key=as_text)
        at += len(run)
    assert found[at:] == []


def timers_of(path: Path_, item: dict[str, Any], snapshot: OperatorSnapshot) -> dict[str, int]:
    """The numbers of timers with which a partition stopped."""
    if issubclass(path, ColumnarPath):
        windows = [row for table in snapshot.windows for row in table.batch.to_pylist()]
        rows = [{**row, "key": row["key.key"]} for row in windows]
        timers = event_timers_of(item, rows, snapshot.watermark_ms)
        return {"event_timers": timers, "processing_timers": 0}
    return {
        f"{domain}_timers": sum(
            len(getattr(timers, f"{domain}_time_timers").timestamps_ms) for timers in snapshot.timers.values()
        )
        for domain in ("event", "processing")
    }


def check(path: Path_, scenario: dict[str, Any], parallelism: int) -> None:
    item, output = scenario["input"], wanted_output(scenario)
    replay = replayed(path, item, parallelism)
    error = next((entry for entry in output["entries"] if entry["type"] == "error"), None)
    if isinstance(replay, Refused):
        assert error is not None, replay
        assert replay is (Refused.PLANNED if error["at"] == -1 else Refused.READ)
        return
    wanted = canonical_entries("window", item, path.wanted(item, output["entries"]))
    group_of = JavaKeys(MAX_PARALLELISM)

    def number_of(entry: Entry) -> int:
        return group_of(key_of(item, entry)) * parallelism // MAX_PARALLELISM

    partitions = replay.partitions
    failed = None if error is None else number_of(error)
    assert [n for n, partition in enumerate(partitions) if partition.error] == [failed] * (error is not None)
    for number, partition in enumerate(partitions):
        own = [
            entry for entry in wanted if entry["type"] in ("record", "side") and number_of(entry) == number
        ]
        records = [entry for entry in own if entry["type"] == "record"]
        side = [entry["value"] for entry in own if entry["type"] == "side"]
        results = [*path.results(item, partition.rows[None])]
        late = [list(row.values()) for row in partition.rows[LATE.tag_id]]
        if number == failed:  # what it made and had not given yet is gone
            records, side = records[: len(results)], side[: len(late)]
        elif error is not None:  # the others go on
            results, late = results[: len(records)], late[: len(side)]
        compare(item, records, results)
        assert late == side
    if error is not None:
        return
    late = sum(partition.counts["counts"]["late"] for partition in partitions)
    assert late == output["late_dropped"] + sum(entry["type"] == "side" for entry in wanted)
    if path is RowPath or tells_timers(item, are_shareable(accumulators_of(item))):
        timers = [timers_of(path, item, snapshot) for snapshot in replay.snapshots]
        for name in ("event_timers", "processing_timers"):
            assert sum(of_partition[name] for of_partition in timers) == output[name]


def check_both(path: Path_, scenario: dict[str, Any], why_not: str | None) -> None:
    if why_not is not None:
        pytest.skip(why_not)
    # By day a scenario runs at one of them, which depends on its name and the path.
    first = crc32(f"{path.__name__} {scenario['name']}".encode()) % 2
    for parallelism in PARALLELISMS if ALL else [PARALLELISMS[first]]:
        check(path, scenario, parallelism)


def test_every_window_of_functions_fires_on_spark_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check_both(RowPath, window_scenario, why_not_row(window_scenario))


def test_windows_of_functions_follow_the_seed_trace_on_spark(seed_trace_scenario: dict[str, Any]) -> None:
    check_both(RowPath, seed_trace_scenario, why_not_row(seed_trace_scenario))


def test_columnar_windows_fire_on_spark_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check_both(ColumnarPath, window_scenario, why_not_columns(window_scenario))


def test_windows_of_merged_events_fire_on_spark_as_in_flink(window_scenario: dict[str, Any]) -> None:
    check_both(MergedPath, window_scenario, why_not_merged(window_scenario))


def test_columnar_windows_follow_the_seed_trace_on_spark(seed_trace_scenario: dict[str, Any]) -> None:
    check_both(ColumnarPath, seed_trace_scenario, why_not_columns(seed_trace_scenario))
