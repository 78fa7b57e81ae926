"""Spark's tasks, run in this process, give the rows of an embedded replay, whatever the log looks like."""

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from equipment.spark_tasks import results_by_tasks

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import FILE, DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count
from flinkcore.datastream.graph.transformations import StreamGraph

LATE, BAD = OutputTag("late"), OutputTag("bad")


def windows_over(log: Any, **settings: Any) -> DataStream:
    """Windows over the log's columns ts and user, of which some are late and some fire again."""
    return (
        StreamExecutionEnvironment()
        .set_parallelism(1)
        .from_event_log(log, timestamp="ts", **settings)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20)).with_idleness(
                Duration.of_millis(900)
            )
        )
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .allowed_lateness(30)
        .side_output_late_data(LATE)
        .aggregate(n=count(), times=collect("ts"))
    )


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def check_tasks_give_what_a_replay_gives(log: Any, chunks: int = 3, **settings: Any) -> list[dict[str, Any]]:
    """The results, which are those of an embedded replay, as are the side outputs."""
    stream = windows_over(log, **settings)
    result = stream.execute()
    plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
    found = results_by_tasks(plan, chunks, partitions=2)
    results: list[dict[str, Any]] = result.to_arrow().to_pylist()
    assert shown(found.pop(None, [])) == shown(results)
    for tag in plan.side_outputs():
        expected = result.get_side_output(tag).to_arrow().to_pylist()
        assert shown(found.pop(tag.tag_id, [])) == shown(expected)
    assert not found
    return results


def events(splits: list[Any], split_type: pa.DataType, n: int = 400) -> pa.Table:
    """Events out of order, dealt to the splits in turn at first, then at random."""
    dealt = random.Random(7)
    return pa.table(
        {
            "ts": pa.array([20 * i + dealt.randint(-90, 0) for i in range(n)], pa.int64()),
            "arrival": pa.array([20 * i for i in range(n)], pa.int64()),
            "user": pa.array([dealt.randint(0, 5) for _ in range(n)], pa.int64()),
            "split": pa.array(
                [splits[i] if i < len(splits) else dealt.choice(splits) for i in range(n)], split_type
            ),
        }
    )


@pytest.mark.parametrize("recorded", [True, False], ids=["arrivals", "rate"])
@pytest.mark.parametrize(
    ("splits", "kind"),
    [
        ([-(2**7), 0, 2**7 - 1], pa.int8()),
        ([-(2**15), 0, 2**15 - 1], pa.int16()),
        ([-(2**31), 0, 2**31 - 1], pa.int32()),
        ([-(2**63), 0, 2**63 - 1], pa.int64()),
        ([0, 2**8 - 1], pa.uint8()),
        ([0, 2**16 - 1], pa.uint16()),
        ([0, 2**32 - 1], pa.uint32()),
        ([0, 2**64 - 1], pa.uint64()),
        ([2**63], pa.uint64()),
        ([True, False], pa.bool_()),
        (["a", "", "ü" * 30], pa.string()),
        (["a", "", "ü" * 30], pa.large_string()),
        (["a", "b"], pa.string_view()),
        ([b"a", b"", b"\xff\x00"], pa.binary()),
        ([b"a", b""], pa.large_binary()),
        ([b"a", b"b"], pa.binary_view()),
        ([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], pa.date32()),
        ([datetime.date(1969, 12, 31), datetime.date(2001, 1, 1)], pa.date64()),
        (["a", "b", "c"], pa.dictionary(pa.int8(), pa.string())),
        ([2**64 - 1, 1], pa.dictionary(pa.uint32(), pa.uint64())),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_splits_of_every_type_travel(splits: list[Any], kind: pa.DataType, recorded: bool) -> None:
    log = events(splits, kind)
    results = check_tasks_give_what_a_replay_gives(
        log, split="split", arrival="arrival" if recorded else None, rate=50.0
    )
    assert results


def test_a_log_without_rows_gives_no_results() -> None:
    assert check_tasks_give_what_a_replay_gives(events(["a"], pa.string(), 0), split="split") == []


def test_splits_of_one_row_each_hold_the_watermark_back_alike() -> None:
    log = events(list(range(300)), pa.int32(), 300)
    assert check_tasks_give_what_a_replay_gives(log, split="split", arrival="arrival")


@pytest.mark.parametrize("policy", ["drop", BAD], ids=str)
def test_rows_without_a_split_are_refused_alike(policy: Any) -> None:
    log = events(["a", None, "b", None], pa.string())
    assert log["split"].null_count > 100
    results = check_tasks_give_what_a_replay_gives(log, split="split", arrival="arrival", on_bad_row=policy)
    assert results


@pytest.mark.parametrize("policy", ["drop", BAD], ids=str)
def test_a_log_of_nothing_but_rows_without_a_split_gives_no_results(policy: Any) -> None:
    log = events([None], pa.string(), 20)
    assert check_tasks_give_what_a_replay_gives(log, split="split", on_bad_row=policy) == []


@pytest.mark.parametrize("split", [None, FILE, "split", "day"], ids=str)
@pytest.mark.parametrize("recorded", [True, False], ids=["arrivals", "rate"])
def test_files_of_which_some_have_no_rows_are_read_alike(tmp_path: Path, split: Any, recorded: bool) -> None:
    log = events(["a", "b", "c"], pa.string())
    for day, (start, rows) in enumerate([(0, 0), (0, 150), (150, 0), (150, 1), (151, 249), (400, 0)]):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pq.write_table(log.slice(start, rows), folder / "events.parquet", row_group_size=40)
    results = check_tasks_give_what_a_replay_gives(
        tmp_path, chunks=7, split=split, arrival="arrival" if recorded else None, rate=50.0
    )
    assert results
