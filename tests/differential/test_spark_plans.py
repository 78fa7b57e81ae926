"""Compiled plans on Spark against the same in this process: expressions, watermarks after events, windows."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.sampling import sampled
from equipment.spark_sessions import evaluated
from jobs.sql_scenarios import golden
from jobs.sql_scripts import CLICKS, Recorded

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.spark import SparkExecutionEnvironment

PLANS = ["edges-hop_late_two", "edges-fire_one_phase", "edges-zero_scalars"]
OF_RELATIONS = [
    *("edges-dedup_last", "edges-top_2_rowtime", "edges-window_topn_ties_desc", "edges-over_range_2s"),
    *("edges-group_of_group", "edges-interval_join_full", "edges-window_join_full"),
    *(
        "edges-temporal_version_gone",
        "edges-match_skip_next",
        "nodes-over_mix",
        "nodes-sortlimit_0",
        "sort-2",
    ),
    *("ttl-group-1", "ttl-dedup_row_last-1", "ttl-join_left-1"),
    *("zone-agg_h_berlin_0_0_24", "zone-hrank_berlin_0_0_24", "zone-stvf_berlin_0_0_24"),
]


def rows_of(plan: dict[str, Any], environment: StreamExecutionEnvironment, log: Any) -> list[str]:
    environment.get_config().set_auto_watermark_interval(0)
    table = environment.from_event_log(log, timestamp="arrival", arrival="arrival", split="split")
    stream = environment.from_plan(plan, dict.fromkeys("fgor", table), emitted_at="seen")
    return sorted(map(repr, stream.to_arrow().to_pylist()))


@pytest.fixture
def columns() -> dict[str, pa.Array]:
    draw = random.Random(41)
    n = 3_000
    return {
        "k": pa.array([draw.choice("abc") for _ in range(n)]),
        "v": pa.array([draw.randint(-(2**31), 2**31 - 1) for _ in range(n)], pa.int32()),
        "ts": pa.array([1000 * second + draw.randint(-40_000, 0) for second in range(n)], pa.timestamp("ms")),
        "arrival": pa.array(range(n), pa.int64()),
        "split": pa.array([draw.randint(0, 2) for _ in range(n)], pa.int64()),
        "x": pa.array([draw.choice([None, 1.5, -2.0]) for _ in range(n)], pa.float64()),
        "w": pa.array([draw.randint(-128, 127) for _ in range(n)], pa.int8()),
    }


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("name", PLANS)
def test_spark_returns_the_rows_of_this_process(
    name: str, columns: dict[str, pa.Array], spark: Any, tmp_path: Path
) -> None:
    if name == "edges-zero_scalars":
        columns["k"] = pa.array([[0.0, -0.0, float("nan"), 1.5][number % 4] for number in range(3_000)])
        columns["d"] = columns["w"].cast(pa.decimal128(10, 2))
    table = pa.table(columns)
    for part in range(3):
        pq.write_table(table.slice(1_000 * part, 1_000), tmp_path / f"{part}.parquet")
    plan = golden(name)["plan"]
    here = rows_of(plan, StreamExecutionEnvironment.get_execution_environment(), tmp_path)
    files = rows_of(plan, SparkExecutionEnvironment(spark), tmp_path)
    frame = evaluated(spark.read.parquet(str(tmp_path)))
    assert len(here) > 100
    assert files == here
    assert rows_of(plan, SparkExecutionEnvironment(spark), frame) == here


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("name", sampled(OF_RELATIONS, 3))
def test_spark_returns_the_rows_and_changes_of_operators_of_relations(
    name: str, columns: dict[str, pa.Array], spark: Any, tmp_path: Path
) -> None:
    table = pa.table(columns).slice(0, 600)
    for part in range(3):
        pq.write_table(table.slice(200 * part, 200), tmp_path / f"{part}.parquet")
    plan = golden(name)["plan"]
    for node in plan["nodes"]:  # rows come each millisecond
        for state in node.get("state", ()):
            state["ttl"] = {"1 s": "4 ms"}.get(state["ttl"], state["ttl"])
    here = rows_of(plan, StreamExecutionEnvironment.get_execution_environment(), tmp_path)
    assert len(here) > 10
    assert rows_of(plan, SparkExecutionEnvironment(spark), tmp_path) == here


@pytest.mark.parametrize("sink", ["select", "select_2"])
def test_a_script_over_records_of_kafka_has_the_same_rows_on_spark(
    spark: Any, sink: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Recorded("kafka")
    script.stand_for_flink(monkeypatch, tmp_path)
    (tmp_path / "dump").mkdir()
    for number in range(4):
        pq.write_table(CLICKS.slice(number, 1), tmp_path / "dump" / f"{number}.parquet")
    found = [
        sorted(
            map(
                repr,
                environment.from_sql(script.text, {"clicks": str(tmp_path / "dump")}, sink=sink)
                .to_arrow()
                .to_pylist(),
            )
        )
        for environment in (StreamExecutionEnvironment(), SparkExecutionEnvironment(spark))
    ]
    assert found[0] == found[1]
    assert len(found[0]) == (4 if sink == "select" else 3)
