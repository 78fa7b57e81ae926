"""The first pass of a replay on Spark: time columns to timeline, against reading these columns and nothing else.

Both read the same Parquet files with the same settings of pyarrow in the same warm session, a task per file.
The additional time of the pass is the cost of watermarks; reading is the bound. CPU time is that of Spark's Python
workers, its JVM, and the driver. `FLINKCORE_BENCH_EVENTS` sets the number of events (100 M),
`FLINKCORE_BENCH_SPLITS` that of the splits (64).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.job_plans import planned
from benchmarks.measuring import measure
from benchmarks.processes import cpu_seconds
from benchmarks.sizes import size
from benchmarks.timed_log import SCHEMA, TimedLog

EVENTS = size(100_000_000)
SPLITS = int(os.environ.get("FLINKCORE_BENCH_SPLITS", 64))
THREADS = 2
BATCH_ROWS = 1 << 17

pytestmark = [
    pytest.mark.benchmark(group=f"time columns to timeline, Spark local[{THREADS}]"),
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed"),
]

_ns: dict[str, float] = {}


def measure_pass(benchmark: Any, name: str, run: Callable[[], int]) -> None:
    assert measure(benchmark, EVENTS, "event", run, cpu_clock=cpu_seconds) == EVENTS
    if benchmark.stats:  # not with --benchmark-disable
        _ns[name] = benchmark.extra_info["ns_per_event"]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from benchmarks.flinkcore_bids import spark_session

    session = spark_session(THREADS)
    yield session
    session.stop()


def rows_of(paths: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A nested function travels by value: workers need not import this module.
    options = {"batch_size": BATCH_ROWS, "columns": SCHEMA.names, "use_threads": False}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with pq.ParquetFile(paths[number], pre_buffer=False) as opened:
                    rows = sum(part.num_rows for part in opened.iter_batches(**options))
                yield pa.record_batch({"rows": [rows]})

    return read


def test_reading_the_columns(benchmark: Any, spark: Any) -> None:
    paths = [str(path) for path in sorted(TimedLog(EVENTS, SPLITS).parquet().iterdir())]

    def run() -> int:
        tasks = spark.range(0, len(paths), 1, len(paths))
        return sum(row.rows for row in tasks.mapInArrow(rows_of(paths), "rows long").collect())

    measure_pass(benchmark, "reading", run)


def plan_of(log: TimedLog) -> Any:
    from flinkcore.columnar.plans.job_plan import make_plan
    from flinkcore.common import Duration, Time, WatermarkStrategy
    from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
    from flinkcore.datastream.aggregates import count
    from flinkcore.datastream.graph.transformations import StreamGraph

    out_of_orderness = Duration.of_millis(log.disorder_ms)
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = (
        env.from_event_log(log.parquet(), timestamp="timestamp", arrival="arrival", split="split")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(out_of_orderness).with_idleness(
                Duration.of_seconds(5)
            )
        )
        .key_by("split")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(n=count())
    )
    plan = f"event log {log.parquet()}:", f"by at most {log.disorder_ms} ms", "idle"
    job = planned(lambda: stream, *plan)
    return make_plan(StreamGraph(job()._transformation), env.get_config()).logs[0]


def test_timeline(benchmark: Any, spark: Any) -> None:
    from flinkcore.spark.columnar.time_pass import run_time_passes
    from flinkcore.spark.logs.log_input import FileInput
    from flinkcore.spark.logs.spark_log import SparkLog
    from flinkcore.spark.logs.task_packing import TaskPacking

    plan = plan_of(TimedLog(EVENTS, SPLITS))

    def run() -> int:
        files = FileInput.of(plan.log, TaskPacking.of(spark, THREADS))
        ((time_plane, _),) = run_time_passes(spark, [SparkLog(plan, files)])
        return time_plane.events

    measure_pass(benchmark, "timeline", run)
    if {"reading", "timeline"} <= _ns.keys():
        benchmark.extra_info["times_faster_than_reading"] = _ns["reading"] / _ns["timeline"]
