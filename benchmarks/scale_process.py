"""A process that runs one windowed job over a log of `scale_logs`, and prints its answer, CPU time and peak memory.

The job: five aggregates per key and window. `spark` and `duckdb` group by key and number of the window, without
watermarks. CPU time is that of all processes, without the modules that a job loads, the start of Spark's session and a
first task of Python. On Spark the job runs twice: the first run of a session also compiles what the second, the warm
one, finds.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.job_plans import planned
from benchmarks.processes import cpu_seconds, peak_bytes_of_workers
from benchmarks.scale_logs import DISORDER_MS, ScaleLog

THREADS = 2
SUMS = "n", "total", "low", "top"


@dataclass(frozen=True)
class ScaleJob:
    """A job over a log.

    Attributes
    ----------
    log
        The log.
    window_ms
        Length of a window.
    out_of_orderness_ms
        Bound of the watermarks.
    sums_integers
        Whether the sum is of integers. On Spark events go through the shuffle one by one also then, for a mean
        depends on their order.
    partitions
        Number of partitions on Spark.
    memory
        Memory for open state, as `taskmanager.memory.managed.size` has it; None for the default.
    """

    log: ScaleLog
    window_ms: int = 10_000
    out_of_orderness_ms: int = DISORDER_MS
    sums_integers: bool = True
    partitions: int = 8
    memory: str | None = None

    @property
    def summed(self) -> str:
        """The column that is summed."""
        return "value" if self.sums_integers else "amount"


def _flinkcore(env: Any, job: ScaleJob) -> Any:
    from flinkcore.common import Duration, Time, WatermarkStrategy
    from flinkcore.datastream import TumblingEventTimeWindows
    from flinkcore.datastream.aggregates import count, max_, mean, min_, sum_

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(job.out_of_orderness_ms))
    split = "split" if job.log.splits > 1 else None
    log = env.from_event_log(
        job.log.parquet(), timestamp="timestamp", arrival="arrival", split=split, integer_times=True
    )
    windows = TumblingEventTimeWindows.of(Time.milliseconds(job.window_ms))
    return (
        log.assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(windows)
        .aggregate(
            n=count(), total=sum_(job.summed), low=min_("value"), top=max_("value"), middle=mean(job.summed)
        )
    )


def _embedded(job: ScaleJob) -> Any:
    from flinkcore.common import Configuration
    from flinkcore.datastream import StreamExecutionEnvironment

    config = Configuration()
    if job.memory is not None:
        config.set_string("taskmanager.memory.managed.size", job.memory)
    return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(THREADS)


def _on_spark(job: ScaleJob) -> Any:
    from benchmarks.flinkcore_bids import spark_session
    from flinkcore.spark import SparkExecutionEnvironment

    return SparkExecutionEnvironment(spark_session(THREADS)).set_parallelism(job.partitions)


ENVIRONMENTS: dict[str, tuple[Callable[[ScaleJob], Any], str]] = {
    "flinkcore": (_embedded, f"embedded replay, parallelism {THREADS},"),
    "flinkcore-spark": (_on_spark, "spark replay"),
}
"""The environment of each engine of flinkcore, and the part of a plan that names it."""


def check_plan(engine: str, job: ScaleJob) -> None:
    """Assert that one of flinkcore's engines runs the job that its row names."""
    environment, where = ENVIRONMENTS[engine]
    parts = [where, f"event log {job.log.parquet()}:", f"tumbling windows of {job.window_ms} ms"]
    if engine == "flinkcore-spark":
        parts.append("events go through the shuffle one by one")
    planned(lambda: _flinkcore(environment(job), job), *parts)


def run_flinkcore(job: ScaleJob) -> Callable[[], list[int]]:
    """Embedded; each batch of results is dropped once it is summed."""
    import flinkcore.columnar.local.embedded_replay  # noqa: F401, loaded by a first job, as DuckDB is below

    def run() -> list[int]:
        sums = [0] * (1 + len(SUMS))
        for batch in _flinkcore(_embedded(job), job).to_batches():
            found = [batch.num_rows, *(int(pc.sum(batch[name]).as_py() or 0) for name in SUMS)]
            sums = [a + b for a, b in zip(sums, found, strict=True)]
        return sums

    return run


def run_flinkcore_spark(job: ScaleJob) -> Callable[[], list[int]]:
    """On Spark, the results summed there."""
    from benchmarks.flinkcore_bids import spark_session

    _first_task(spark_session(THREADS))
    env = _on_spark(job)
    return lambda: _summed(_flinkcore(env, job).to_dataframe())


def run_spark(job: ScaleJob) -> Callable[[], list[int]]:
    """Spark's own `groupBy`."""
    from pyspark.sql import functions as F

    from benchmarks.flinkcore_bids import spark_session

    spark = spark_session(THREADS)
    spark.conf.set("spark.sql.shuffle.partitions", str(job.partitions))
    _first_task(spark)

    def run() -> list[int]:
        window = F.expr(f"timestamp div {job.window_ms}")
        rows = spark.read.parquet(str(job.log.parquet())).groupBy("key", window.alias("window"))
        return _summed(
            rows.agg(
                F.count("*").alias("n"),
                F.sum(job.summed).alias("total"),
                F.min("value").alias("low"),
                F.max("value").alias("top"),
                F.avg(job.summed).alias("middle"),
            )
        )

    return run


def _first_task(spark: Any) -> None:
    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    spark.range(0, THREADS, 1, THREADS).mapInArrow(nothing, "id long").collect()


def _summed(results: Any) -> list[int]:
    from pyspark.sql import functions as F

    found = results.agg(F.count("*"), *map(F.sum, SUMS), F.max("middle")).first()
    return [int(value or 0) for value in found[: 1 + len(SUMS)]]


def run_duckdb(job: ScaleJob) -> Callable[[], list[int]]:
    """DuckDB's hash aggregation."""
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS, "preserve_insertion_order": False})

    def run() -> list[int]:
        (found,) = connection.sql(
            f"SELECT count(*), sum(n), sum(total), sum(low), sum(top), max(middle) FROM ("
            f"SELECT count(*) AS n, sum({job.summed}) AS total, min(value) AS low, max(value) AS top, "
            f"avg({job.summed}) AS middle FROM read_parquet('{job.log.parquet()}/*.parquet') "
            f"GROUP BY key, timestamp // {job.window_ms})"
        ).fetchall()
        return [int(value) for value in found[: 1 + len(SUMS)]]

    return run


ENGINES: dict[str, Callable[[ScaleJob], Callable[[], list[int]]]] = {
    "flinkcore": run_flinkcore,
    "flinkcore-spark": run_flinkcore_spark,
    "spark": run_spark,
    "duckdb": run_duckdb,
}


def content(job: ScaleJob) -> str:
    """The argument of a process that runs the job."""
    return json.dumps(asdict(job))


def main() -> None:
    engine, given = sys.argv[1], json.loads(sys.argv[2])
    job = ScaleJob(**{**given, "log": ScaleLog(**given["log"])})
    run = ENGINES[engine](job)
    if hasattr(os, "sched_setaffinity") and "spark" not in engine:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    before = cpu_seconds()
    answer = run()
    after = cpu_seconds()
    found = {
        "answer": answer,
        "cpu_seconds": after - before,
        "driver_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "worker_bytes": peak_bytes_of_workers() if engine == "flinkcore-spark" else None,
    }
    if "spark" in engine:
        before = cpu_seconds()
        assert run() == answer
        found["warm_cpu_seconds"] = cpu_seconds() - before
    if engine in ENVIRONMENTS:  # not before: explain() would warm the process
        check_plan(engine, job)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
