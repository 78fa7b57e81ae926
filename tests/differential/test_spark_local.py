"""Replays on Spark in one JVM give the rows that they give embedded."""

import gc
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.rows_by_key import rows_by_key
from equipment.standalone_cluster import bare_interpreter
from equipment.timelines import steps_of
from equipment.unordered_rows import UnorderedRows

pytest.importorskip("pyspark")


from flinkcore.analysis.log_summary import Firings, summarised_log
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.columnar.results.progress import Progress
from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import (
    collect,
    count,
    count_distinct,
    last,
    max_,
    max_by,
    mean,
    stddev,
    sum_,
)
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError, DataError, SchemaError
from flinkcore.examples.flights import LATE, LOG, hourly_flights
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar import progress
from flinkcore.spark.columnar.progress import ProgressAddress, ProgressReceiver
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.columnar.time_pass import run_time_passes
from flinkcore.spark.exchange import collecting
from flinkcore.spark.logs import spark_log
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.spark.logs.spark_log import SparkLog
from flinkcore.spark.sessions.launch_settings import read_properties
from flinkcore.spark.sessions.spark_settings import OWN_SHUFFLE_SETTINGS, SHORT_JOB_SETTINGS
from flinkcore.spark.shipping import sent_files
from flinkcore.time_plane.record_blocks import RecordLimits
from flinkcore.time_plane.time_pass import time_planes_of

REJECTED = OutputTag("rejected")


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def by_origin(table: pa.Table) -> list[str]:
    return rows_by_key(table, ["origin"])


@pytest.fixture(scope="module")
def embedded() -> Any:
    return hourly_flights(StreamExecutionEnvironment().set_parallelism(1)).execute()


def flights_plan() -> JobPlan:
    stream = hourly_flights(StreamExecutionEnvironment())
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_rows_are_those_of_an_embedded_replay(spark: Any, embedded: Any, parallelism: int) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(parallelism)).execute()
    assert result.to_arrow().schema == embedded.to_arrow().schema
    assert by_origin(result.to_arrow()) == by_origin(embedded.to_arrow())
    late = result.get_side_output(LATE).to_arrow()
    assert late.schema == embedded.get_side_output(LATE).to_arrow().schema
    assert by_origin(late) == by_origin(embedded.get_side_output(LATE).to_arrow())
    assert result.report == embedded.report


@pytest.mark.parametrize(("chunks", "block_rows"), [(1, 1 << 16), (3, 500), (5, 7000)])
def test_rows_do_not_depend_on_chunks_and_blocks(
    spark: Any, embedded: Any, chunks: int, block_rows: int
) -> None:
    plan = flights_plan()
    files = FileInput(tuple(plan.logs[0].log.chunks(chunks)))
    replay = SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 3, block_rows=block_rows)
    assert by_origin(SparkResult(replay).to_arrow()) == by_origin(embedded.to_arrow())


def test_a_timeline_that_is_mapped_gives_the_same_rows_however_late_a_dataframe_is_evaluated(
    spark: Any, embedded: Any
) -> None:
    plan = flights_plan()
    files = FileInput(tuple(plan.logs[0].log.chunks(3)))
    logs = [SparkLog(plan.logs[0], files)]
    result = SparkResult(SparkReplay(spark, plan, logs, 3, inline_bytes=0))
    dataframe = result.to_dataframe()
    assert by_origin(dataframe.toArrow()) == by_origin(embedded.to_arrow())
    del result
    gc.collect()
    spark._jvm.System.gc()
    assert by_origin(dataframe.toArrow()) == by_origin(embedded.to_arrow())


def test_progress_comes_from_spark_where_no_datagram_reaches_the_driver(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[Progress] = []
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0)
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    # An address of no machine, as behind a firewall.
    monkeypatch.setattr(
        ProgressReceiver, "address", lambda self, host: ProgressAddress("192.0.2.1", 9, bytes(16))
    )
    environment = SparkExecutionEnvironment(spark).set_parallelism(8)
    result = hourly_flights(environment).execute(progress=states.append)
    result.to_arrow()
    done = [state.events_done for state in states]
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] == result.report.events_read
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_replays_of_small_logs_compile_no_code_and_leave_the_settings_of_the_session(spark: Any) -> None:
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    names = [*SHORT_JOB_SETTINGS, *OWN_SHUFFLE_SETTINGS]
    before, settings = compiled.getCount(), [spark.conf.get(name, None) for name in names]
    hourly_flights(SparkExecutionEnvironment(spark)).to_arrow()
    assert compiled.getCount() == before
    assert [spark.conf.get(name, None) for name in names] == settings
    spark.range(3).selectExpr("sum(id * 17)").collect()
    assert compiled.getCount() > before


@pytest.mark.parametrize(("small_bytes", "collected_bytes"), [(0, 1), (0, 1 << 30), (1 << 30, 1)])
def test_summaries_of_chunks_may_come_some_at_a_time(
    spark: Any, embedded: Any, monkeypatch: pytest.MonkeyPatch, small_bytes: int, collected_bytes: int
) -> None:
    monkeypatch.setattr(spark_log, "SHORT_LOG_BYTES", 0)
    monkeypatch.setattr(spark_log, "SMALL_LOG_BYTES", 0)
    monkeypatch.setattr(collecting, "SMALL_PAYLOAD_BYTES", small_bytes)
    monkeypatch.setattr(collecting, "COLLECTED_BYTES", collected_bytes)
    plan = flights_plan()
    files = FileInput(tuple(plan.logs[0].log.chunks(5)))
    replay = SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 2)
    assert SparkResult(replay).report == embedded.report
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


@pytest.mark.parametrize("idleness_ms", [None, 3_600_000])
@pytest.mark.parametrize(("ranges", "inline_bytes"), [(2, 1 << 20), (7, 0)])
def test_many_records_of_the_first_pass_are_merged_by_ranges_of_time(
    spark: Any, monkeypatch: pytest.MonkeyPatch, ranges: int, inline_bytes: int, idleness_ms: int | None
) -> None:
    monkeypatch.setattr(spark_log, "SHORT_LOG_BYTES", 0)
    monkeypatch.setattr(spark_log, "SMALL_LOG_BYTES", 0)
    plan = flights_plan()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
    if idleness_ms is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness_ms))
    log = replace(plan.logs[0], strategy=strategy, log=replace(plan.logs[0].log, split="origin"))
    (expected,) = time_planes_of([log], [log.log.chunks(5)], 1)
    n_bytes = 8 * expected.events // ranges  # of packed records, about
    limits = RecordLimits(collected_bytes=0, packed_range_bytes=n_bytes, inline_bytes=inline_bytes)
    few = replace(log, record_limits=limits)
    files = FileInput(tuple(log.log.chunks(5)))
    ((found, _),) = run_time_passes(spark, [SparkLog(few, files)])
    assert [column.tolist() for column in steps_of(found.timeline)] == [
        column.tolist() for column in steps_of(expected.timeline)
    ]
    for part in ("splits", "starts", "floors", "holders", "statuses"):
        of_found, of_expected = vars(getattr(found, part)), vars(getattr(expected, part))
        assert {name: list(column) for name, column in of_found.items()} == {
            name: list(column) for name, column in of_expected.items()
        }, part
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_rows_of_one_partition_are_in_the_order_of_an_embedded_replay(spark: Any, embedded: Any) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(1)).execute()
    assert result.to_arrow().equals(embedded.to_arrow())


def test_dataframes_have_the_rows_in_sparks_types(spark: Any, embedded: Any) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
    dataframe = result.to_dataframe()
    assert [(field.name, field.dataType.simpleString()) for field in dataframe.schema] == [
        ("origin", "string"),
        ("window_start", "timestamp_ntz"),
        ("window_end", "timestamp_ntz"),
        ("flights", "bigint"),
        ("mean_delay", "double"),
        ("longest_delay", "smallint"),
        ("late_firing", "boolean"),
        ("watermark", "bigint"),
    ]
    assert sorted(repr(row.asDict()) for row in dataframe.collect()) == rows(embedded.to_arrow())
    late = result.get_side_output(LATE).to_dataframe()
    assert sorted(repr(row.asDict()) for row in late.collect()) == rows(
        embedded.get_side_output(LATE).to_arrow()
    )


def test_dataframes_can_be_queried_in_part(spark: Any, embedded: Any) -> None:
    dataframe = hourly_flights(SparkExecutionEnvironment(spark)).execute().to_dataframe()
    assert len(dataframe.limit(3).collect()) == 3
    per_origin = {row["origin"]: row["count"] for row in dataframe.groupBy("origin").count().collect()}
    expected = embedded.to_arrow().group_by("origin").aggregate([([], "count_all")])
    assert per_origin == dict(zip(*(column.to_pylist() for column in expected.columns), strict=True))
    late_firings = dataframe.filter("late_firing AND flights > 10").select("watermark").count()
    firing = pc.field("late_firing") & (pc.field("flights") > 10)
    assert late_firings == embedded.to_arrow().filter(firing).num_rows


@pytest.mark.parametrize("kept", [False, True])
def test_batches_come_partition_by_partition(spark: Any, embedded: Any, kept: bool) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(3)).execute()
    if kept:
        result.to_arrow()
    assert rows(pa.Table.from_batches(result.to_batches())) == rows(embedded.to_arrow())
    assert result.report == embedded.report
    late = pa.Table.from_batches(result.get_side_output(LATE).to_batches())
    assert rows(late) == rows(embedded.get_side_output(LATE).to_arrow())


def test_workers_write_parquet(spark: Any, embedded: Any, tmp_path: Path) -> None:
    stream = hourly_flights(SparkExecutionEnvironment(spark).set_parallelism(3))
    report = stream.write_parquet(tmp_path / "out", {LATE: tmp_path / "late"})
    assert report == embedded.report
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"part-{number:05d}.parquet" for number in range(3)
    ]
    written = pq.read_table(tmp_path / "out")
    assert written.schema.remove_metadata() == embedded.to_arrow().schema
    assert rows(written) == rows(embedded.to_arrow())
    read_by_spark = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(repr(row.asDict()) for row in read_by_spark) == rows(embedded.to_arrow())
    assert rows(pq.read_table(tmp_path / "late")) == rows(embedded.get_side_output(LATE).to_arrow())


def test_report_can_be_had_without_rows(spark: Any, embedded: Any) -> None:
    assert hourly_flights(SparkExecutionEnvironment(spark)).execute().report == embedded.report


def jobs_described(spark: Any) -> dict[int, str]:
    """Descriptions of all jobs of the session, by number."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = {jobs.apply(at).jobId(): jobs.apply(at).description() for at in range(jobs.size())}
    return {number: each.get() if each.isDefined() else "" for number, each in found.items()}


@pytest.mark.parametrize(
    ("small_bytes", "passes"),
    [
        (
            0,
            {
                "nightly: flinkcore: pass 1 of 2, times of the log",
                "nightly: flinkcore: pass 2 of 2, events by key",
            },
        ),
        (1 << 30, {"nightly: flinkcore: pass 2 of 2, events by key"}),
    ],
)
def test_sparks_ui_tells_what_jobs_are_for(
    spark: Any, embedded: Any, monkeypatch: pytest.MonkeyPatch, small_bytes: int, passes: set[str]
) -> None:
    monkeypatch.setattr(spark_log, "SHORT_LOG_BYTES", small_bytes)
    monkeypatch.setattr(spark_log, "SMALL_LOG_BYTES", small_bytes)
    hourly_flights(SparkExecutionEnvironment(spark)).to_arrow()  # the executors are looked at, if nobody did
    before = jobs_described(spark).keys()
    spark.sparkContext.setJobDescription("nightly")
    try:
        result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
        assert by_origin(result.to_arrow()) == by_origin(embedded.to_arrow())
        assert result.report == embedded.report
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "nightly"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    after = jobs_described(spark)
    assert {after[number] for number in after.keys() - before} == passes


def test_plans_of_spark_name_the_steps_of_a_replay(spark: Any) -> None:
    late = hourly_flights(SparkExecutionEnvironment(spark)).execute().get_side_output(LATE)
    plan = late.to_dataframe()._jdf.queryExecution().executedPlan().toString()
    mapped = [line.split("(")[0].split()[-1] for line in plan.splitlines() if "MapInArrow" in line]
    assert mapped == ["flinkcore.ReduceStage", "flinkcore.MapTask"]


def test_progress_ends_with_all_events(spark: Any) -> None:
    told: list[Progress] = []
    hourly_flights(SparkExecutionEnvironment(spark)).execute(progress=told.append).to_arrow()
    assert told[-1].events_done == told[-1].events_total == 33_798
    assert all(state.events_done <= state.events_total for state in told)


# ---- other jobs -----------------------------------------------------------------------------------------------


def table_of_events() -> pa.Table:
    """Two splits with gaps, out of order, negative times, and null values."""
    timestamps = [(i * 7919) % 3600 * 1000 - 600_000 for i in range(3000)]
    return pa.table(
        {
            "ts": pa.array(timestamps, pa.timestamp("ms", "UTC")),
            "at": pa.array([i * 1200 for i in range(3000)], pa.int64()),
            "part": pa.array([i % 2 for i in range(3000)], pa.int32()),
            "user": pa.array([f"u{i * i % 37}" for i in range(3000)]),
            "amount": pa.array([None if i % 11 == 0 else i / 8 for i in range(3000)], pa.float64()),
            "item": pa.array([i % 97 for i in range(3000)], pa.uint16()),
            "place": pa.array(
                [
                    None if i % 7 == 0 else {"row": i % 5 or None, "tags": ["ä"] * (i % 3)}
                    for i in range(3000)
                ],
                pa.struct([("row", pa.int16()), ("tags", pa.list_(pa.string()))]),
            ),
            "price": pa.array([None if i % 13 == 0 else i * i % 9973 for i in range(3000)]).cast(
                pa.decimal128(21, 2)
            ),
        }
    )


def strategy() -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(20)).with_idleness(
        Duration.of_seconds(30)
    )


AGGREGATES = {
    "n": count(),
    "total": sum_("amount"),
    "average": mean("amount"),
    "items": count_distinct("item"),
    "best": max_by("item", by="amount"),
    "all_items": collect("item"),
    "spent": sum_("price"),
    "mean_price": mean("price"),
    "dearest": max_("price"),
    "spread": stddev("amount"),
    "place": last("place"),
    "best_place": max_by("place", by="amount"),
    "places": collect("place"),
}


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(Time.minutes(5), Time.seconds(7)),
        SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(3)),
        EventTimeSessionWindows.with_gap(Time.seconds(20)),
    ],
    ids=["tumbling", "sliding", "session"],
)
@pytest.mark.parametrize("arrival", ["at", None])
def test_all_windows_give_the_rows_of_an_embedded_replay(
    spark: Any, assigner: Any, arrival: str | None
) -> None:
    def job(environment: StreamExecutionEnvironment) -> DataStream:
        return (
            environment.from_event_log(table_of_events(), timestamp="ts", arrival=arrival, split="part")
            .filter(pc.field("item") != 5)
            .assign_timestamps_and_watermarks(strategy())
            .with_columns(shard=pc.field("item") % 3 if hasattr(pc, "mod") else pc.field("part"))
            .filter(pc.field("amount").is_valid() | (pc.field("item") > 50))
            .key_by("user", "shard")
            .window(assigner)
            .allowed_lateness(Time.minutes(2))
            .side_output_late_data(LATE)
            .aggregate(**AGGREGATES)
        )

    expected = job(StreamExecutionEnvironment().set_parallelism(1)).execute()
    result = job(SparkExecutionEnvironment(spark).set_parallelism(4)).execute()
    assert result.to_arrow().schema == expected.to_arrow().schema
    assert rows(result.to_arrow()) == rows(expected.to_arrow())
    assert rows(result.get_side_output(LATE).to_arrow()) == rows(expected.get_side_output(LATE).to_arrow())
    assert result.report == expected.report
    assert result.report.filtered > 0
    fields = {field.name: field.dataType.simpleString() for field in result.to_dataframe().schema}
    assert fields["window_start"] == "timestamp"
    assert fields["best"] == "int"
    assert fields["all_items"] == "array<int>"
    assert fields["spent"] == "decimal(31,2)"
    assert fields["mean_price"] == "decimal(25,6)"
    assert result.to_dataframe().count() == expected.to_arrow().num_rows


def job_with_faults(environment: StreamExecutionEnvironment, policy: Any) -> DataStream:
    table = table_of_events()
    for column, every in (("ts", 100), ("at", 150), ("user", 70)):
        at = table.schema.get_field_index(column)
        mask = pa.array([i % every == 3 for i in range(len(table))])
        holes = pc.if_else(mask, pa.scalar(None, table.schema.types[at]), table.column(at))
        table = table.set_column(at, column, holes)
    far = pc.if_else(
        pa.array([i % 90 == 5 for i in range(len(table))]), 2**63 - 2, table["ts"].cast(pa.int64())
    )
    table = table.set_column(0, "ts", far)
    return (
        environment.from_event_log(table, timestamp="ts", arrival="at", split="part", on_bad_row=policy)
        .assign_timestamps_and_watermarks(strategy())
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(n=count(), largest=max_("amount"))
    )


@pytest.mark.parametrize("policy", ["drop", REJECTED], ids=["drop", "side output"])
def test_rejected_rows_are_counted_and_kept(spark: Any, policy: Any) -> None:
    expected = job_with_faults(StreamExecutionEnvironment().set_parallelism(1), policy).execute()
    result = job_with_faults(SparkExecutionEnvironment(spark).set_parallelism(3), policy).execute()
    assert rows(result.to_arrow()) == rows(expected.to_arrow())
    assert result.report == expected.report
    assert result.report.rejected.keys() == {
        "null timestamp",
        "timestamp out of range",
        "null arrival",
        "null key 'user'",
    }
    if policy is REJECTED:
        rejected = result.get_side_output(REJECTED)
        assert rows(rejected.to_arrow()) == rows(expected.get_side_output(REJECTED).to_arrow())
        assert rejected.to_dataframe().count() == result.report.rejected.total()


def test_fault_in_a_task_is_told_as_embedded(spark: Any, tmp_path: Path) -> None:
    # Tasks run at the same time: which of the faults is met first is not determined.
    message = r"^row \d+ \(from 0\) of the table: null \w+ \(column '\w+'\); repair the log, .* collect them$"
    with pytest.raises(DataError, match=message):
        job_with_faults(StreamExecutionEnvironment().set_parallelism(1), "fail").to_arrow()
    stream = job_with_faults(SparkExecutionEnvironment(spark), "fail")
    with pytest.raises(DataError, match=message) as caught:
        stream.write_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    error = caught.value
    assert str(error).startswith(f"row {error.row} (from 0) of the table: ")
    assert f"(column {error.column!r})" in str(error)
    assert error.file is None


def test_fault_after_files_were_begun_leaves_none(spark: Any, tmp_path: Path) -> None:
    table = table_of_events()
    users = pa.array([None if i == 2990 else "u" for i in range(len(table))])
    stream = (
        SparkExecutionEnvironment(spark)
        .from_event_log(table.set_column(3, "user", users), timestamp="ts", arrival="at", split="part")
        .assign_timestamps_and_watermarks(strategy())
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(n=count())
    )
    with pytest.raises(DataError, match="key column 'user' is null") as caught:
        stream.write_parquet(tmp_path / "out")
    assert caught.value.place == {"split": 0, "position": 1495, "column": "user"}
    assert not (tmp_path / "out").exists()


def test_log_without_rows_gives_none(spark: Any, tmp_path: Path) -> None:
    stream = (
        SparkExecutionEnvironment(spark)
        .from_event_log(table_of_events().slice(0, 0), timestamp="ts", split="part")
        .assign_timestamps_and_watermarks(strategy())
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(n=count())
    )
    assert stream.to_arrow().num_rows == 0
    assert stream.to_dataframe().count() == 0
    assert stream.write_parquet(tmp_path / "out").events_read == 0
    assert pq.read_table(tmp_path / "out").column_names[:2] == ["user", "window_start"]


def test_more_partitions_than_key_groups_are_not_made(spark: Any) -> None:
    assert spark.sparkContext.defaultParallelism > 1
    environment = SparkExecutionEnvironment(spark)
    environment.set_max_parallelism(1)
    result = hourly_flights(environment).execute()
    assert result.to_dataframe().rdd.getNumPartitions() == 1


# ---- logs that are DataFrames ---------------------------------------------------------------------------------


def job_over(stream: DataStream) -> DataStream:
    return (
        stream.assign_timestamps_and_watermarks(strategy())
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .allowed_lateness(Time.minutes(1))
        .aggregate(n=count(), total=sum_("amount"), last_item=max_("item"))
    )


@pytest.mark.parametrize("arrival", ["at", None])
def test_dataframe_as_log_gives_the_rows_of_an_embedded_replay(spark: Any, arrival: str | None) -> None:
    table = table_of_events().drop(["place", "price"])
    table = table.set_column(5, "item", table["item"].cast(pa.int32()))
    at = table.column_names.index("ts")
    table = table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", table["ts"].type.tz)))
    expected = job_over(
        StreamExecutionEnvironment().from_event_log(
            table if arrival is None else UnorderedRows(table), timestamp="ts", arrival=arrival, split="part"
        )
    ).execute()
    schema = "ts timestamp, at long, part int, user string, amount double, item int"
    dataframe = spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)
    environment = SparkExecutionEnvironment(spark).set_parallelism(3)
    result = job_over(
        environment.from_event_log(dataframe, timestamp="ts", arrival=arrival, split="part")
    ).execute()
    columns = ["user", "n", "total", "last_item", "late_firing", "watermark"]
    assert rows(result.to_arrow().select(columns)) == rows(expected.to_arrow().select(columns))
    assert result.report == expected.report


def test_older_spark_partitions_by_hash(spark: Any, embedded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flinkcore.spark.exchange.partitioning.chooses_partitions", lambda dataframe: False)
    monkeypatch.setattr("flinkcore.spark.columnar.replay.chooses_partitions", lambda dataframe: False)
    plan = flights_plan()
    (stage,) = plan.stages
    assert isinstance(stage.operator, WindowAggregation)
    plan = replace(plan, stages=(replace(stage, operator=replace(stage.operator, late_tag=None)),))
    files = FileInput(tuple(plan.logs[0].log.chunks(2)))
    result = SparkResult(SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 5))
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    parts = result.to_dataframe().selectExpr("spark_partition_id() AS part").distinct().count()
    assert parts == 5


def test_times_that_are_converted_or_unreadable_are_as_embedded(spark: Any, tmp_path: Path) -> None:
    ts = [f"2024-05-01T12:00:{i % 60:02}.5Z" if i % 50 else "soon" for i in range(300)]
    log = pa.table(
        {"ts": ts, "arrival": [1714564800.25 + i for i in range(300)], "key": ["a", "b", "c"] * 100}
    )
    pq.write_table(log, tmp_path / "log.parquet", row_group_size=100)

    def windows(stream: DataStream) -> Any:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(9))
        windowed = stream.assign_timestamps_and_watermarks(strategy).key_by("key")
        return windowed.window(TumblingEventTimeWindows.of(Time.seconds(7))).aggregate(n=count())

    arrival = pc.round(pc.field("arrival") * 1000).cast("int64")
    settings = {"timestamp": "ts", "arrival": arrival, "on_bad_row": REJECTED}
    expected = windows(StreamExecutionEnvironment().from_event_log(log, **settings)).execute()
    env = SparkExecutionEnvironment(spark)
    dataframe = spark.read.parquet(str(tmp_path / "log.parquet"))
    for stream in (env.from_event_log(tmp_path, **settings), env.from_event_log(dataframe, **settings)):
        result = windows(stream).execute()
        assert result.to_arrow().schema == expected.to_arrow().schema
        assert rows(result.to_arrow()) == rows(expected.to_arrow())
        assert result.report.rejected == expected.report.rejected == {"unreadable timestamp": 6}
    types = dict(result.to_dataframe().dtypes)
    assert (types["window_start"], types["watermark"]) == ("timestamp", "bigint")


def test_times_in_seconds_are_an_error_when_a_dataframe_is_made(spark: Any) -> None:
    log = pa.table({"ts": [1_700_000_000, 1_700_000_009], "key": ["a", "b"]})
    job = SparkExecutionEnvironment(spark).from_event_log(log, timestamp="ts")
    job = job.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("key")
    result = job.window(TumblingEventTimeWindows.of(Time.seconds(7))).aggregate(n=count())
    with pytest.raises(
        ConfigurationError, match=r"'ts' was read as milliseconds .* seconds\. Give timestamp_unit='s'"
    ):
        result.to_dataframe()


def test_a_key_of_lists_is_refused_before_anything_runs(spark: Any) -> None:
    log = pa.table({"ts": [1], "tags": [["x"]]})
    job = SparkExecutionEnvironment(spark).from_event_log(log, timestamp="ts")
    job = job.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("tags")
    with pytest.raises(SchemaError, match="key column 'tags' is list"):
        job.window(TumblingEventTimeWindows.of(Time.seconds(7))).aggregate(n=count()).execute()


@pytest.mark.parametrize(
    ("interpreter", "told"),
    [
        (
            "/nonexistent/python",
            r'executor driver at \S+ cannot run .*Cannot run program "/nonexistent/python".*PYSPARK_PYTHON',
        ),
        ("/bin/false", "an executor cannot run .*EOFException occurred while reading.*PYSPARK_PYTHON"),
    ],
)
def test_executors_without_an_interpreter_are_one_error_before_the_job(
    spark: Any, monkeypatch: pytest.MonkeyPatch, interpreter: str, told: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", interpreter)
    job = hourly_flights(SparkExecutionEnvironment(spark.newSession())).execute()
    with pytest.raises(ConfigurationError, match=told):
        job.to_arrow()


class RefusingSettings:
    """As on platforms on which users share a cluster."""

    def get(self, name: str, default: Any = None) -> Any:
        raise PermissionError(f"{name} is not for everybody")

    set = get


class RefusingSession:
    """A session that shows nobody its settings, and gives nobody its SparkContext."""

    conf = RefusingSettings()

    def __init__(self, session: Any) -> None:
        self._session = session

    @property
    def sparkContext(self) -> Any:
        raise PermissionError("the context is not for everybody")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def test_a_session_that_refuses_settings_and_its_context_runs_replays(spark: Any, embedded: Any) -> None:
    env = SparkExecutionEnvironment(RefusingSession(spark.newSession())).set_parallelism(2)
    result = hourly_flights(env).execute(progress=lambda progress: None)
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.report == embedded.report


def test_properties_files_are_read_as_java_reads_them(spark: Any) -> None:
    dealt = random.Random(11)
    pieces = [
        *"ab=:#! \t\f\n\r",
        "\r\n",
        "\\",
        "\\",
        "\\\n",
        "\\\r\n  ",
        "\\u0041",
        "\\t",
        "spark.x",
        "\u2028é",
    ]
    for _ in range(400):
        text = "".join(dealt.choices(pieces, k=dealt.randint(0, 14)))
        properties = spark._jvm.java.util.Properties()
        properties.load(spark._jvm.java.io.StringReader(text))
        properties.remove("")
        assert read_properties(text) == dict(properties), repr(text)


@pytest.mark.parametrize("kind", ["files", "DataFrame"])
def test_a_report_is_drawn_from_what_an_embedded_one_is_drawn_from(
    spark: Any, kind: str, tmp_path: Path
) -> None:
    def hours(env: StreamExecutionEnvironment) -> DataStream:
        log: Any = str(LOG)
        if kind == "DataFrame" and isinstance(env, SparkExecutionEnvironment):
            log = spark.read.parquet(log).repartition(3)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
        stream = env.from_event_log(log, timestamp="date", arrival="arrival", split="origin")
        keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("origin")
        return keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=count())

    report = hours(SparkExecutionEnvironment(spark)).write_parquet(tmp_path / "out")
    gc.collect()
    assert report._source is not None
    of_spark = summarised_log(report._source.planned(), 0)
    kept = hours(StreamExecutionEnvironment()).execute()
    assert kept.report._source is not None
    embedded = summarised_log(kept.report._source.planned(), 0)
    assert of_spark is not None
    assert embedded is not None
    assert of_spark.split_names == embedded.split_names
    for name in ("events", "late", "least_ms", "greatest_ms", "delays_ms", "behind", "ahead"):
        assert getattr(of_spark.summary, name).tolist() == getattr(embedded.summary, name).tolist()
    assert dict(of_spark.summary.keys.top(500)) == dict(embedded.summary.keys.top(500))
    assert of_spark.watermark_ms.tolist() == embedded.watermark_ms.tolist()
    fired = []
    for each, log in ((report, of_spark), (kept.report, embedded)):
        firings = Firings(log.grid, log.timeline, log.time_plane.splits.arrival_range[1])
        for batch in each._source.results(firings.columns):
            firings.add(batch)
        fired.append((firings.on_time.tolist(), firings.without_time, firings.at_end))
    assert fired[0] == fired[1]


def test_workers_that_run_another_interpreter_of_this_machine_are_the_cause_of_what_they_lack(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = bare_interpreter(tmp_path / "other")
    for path in (tmp_path / "other" / "packages").glob("pyarrow*"):
        path.unlink()
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(interpreter))
    monkeypatch.setattr(sent_files, "_SENT", {})
    job = hourly_flights(SparkExecutionEnvironment(spark.newSession())).execute()
    with pytest.raises(
        ConfigurationError,
        match=rf"pyarrow .* has none.* run {interpreter}, .*PYSPARK_PYTHON to {sys.executable}",
    ):
        job.to_arrow()
