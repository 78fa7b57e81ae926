"""The first job of a session, whose executors lack flinkcore, against executors that have it.

A standalone cluster with two workers runs sessions of both kinds by turns. The first job of each looks at the
executors; where flinkcore is missing, the driver makes a wheel of its package, and executors unpack it. Later jobs do
neither.
`FLINKCORE_BENCH_ROUNDS` sets how many sessions of each kind there are.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.job_plans import planned
from benchmarks.processes import cpu_seconds

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed"
)

ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", "5"))
JOBS = 3
FIRST_JOB_SECONDS = 2.0
"""So much later the first job may be where flinkcore is sent."""


def seconds_of_jobs(cluster: Any, interpreter: Path) -> list[tuple[float, float]]:
    """Time, and CPU time of driver, master, workers and executors, of each job of a new session."""
    from flinkcore.common import Duration, WatermarkStrategy
    from flinkcore.datastream.aggregates import count
    from flinkcore.datastream.window import TumblingEventTimeWindows
    from flinkcore.spark import SparkExecutionEnvironment

    log = pa.table({"key": [number % 7 for number in range(10_000)], "ts": range(10_000)})
    taken = []
    with cluster.session(interpreter) as spark:
        # Both executors are there, and have run Python.
        while spark.sparkContext.defaultParallelism < 2:
            time.sleep(0.1)
        spark.range(0, 64, 1, 8).mapInArrow(lambda batches: batches, "id long").count()
        for _ in range(JOBS):
            stream = SparkExecutionEnvironment(spark).from_event_log(log, timestamp="ts")
            strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
            keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("key")
            windows = keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(100)))
            counts = windows.aggregate(n=count())
            started, began = time.perf_counter(), cpu_seconds()
            assert counts.to_arrow().num_rows == 700
            taken.append((time.perf_counter() - started, cpu_seconds() - began))
        # Not before: explain() would warm the session.
        planned(lambda: counts, "spark replay", "tumbling windows of 100 ms")
    return taken


def test_the_first_job_of_executors_that_lack_flinkcore(benchmark: Any, tmp_path: Path) -> None:
    from equipment.standalone_cluster import StandaloneCluster, bare_interpreter, site_packages_of

    import flinkcore
    from flinkcore.spark.shipping.wheel import installed_wheel

    kinds = {kind: bare_interpreter(tmp_path / kind) for kind in ("has it", "lacks it")}
    package = Path(flinkcore.__file__).parents[1]
    (site_packages_of(kinds["has it"]) / "flinkcore.pth").write_text(str(package))
    seconds: dict[str, list[list[tuple[float, float]]]] = {kind: [] for kind in kinds}

    def one_of_each() -> None:
        for kind, interpreter in kinds.items():
            installed_wheel.cache_clear()
            seconds[kind].append(seconds_of_jobs(cluster, interpreter))

    with StandaloneCluster.started(tmp_path) as cluster:
        benchmark.pedantic(one_of_each, rounds=ROUNDS, warmup_rounds=0)
    medians = {
        f"job {number + 1}, {kind}: median {what}": statistics.median(each[number][column] for each in found)
        for number in range(JOBS)
        for kind, found in seconds.items()
        for column, what in enumerate(("s", "s of CPU"))
    }
    benchmark.extra_info |= {name: round(median, 2) for name, median in medians.items()}
    later = medians["job 1, lacks it: median s"] - medians["job 1, has it: median s"]
    assert later <= FIRST_JOB_SECONDS
