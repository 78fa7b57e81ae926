"""Loss under every bound of out-of-orderness for a log of Parquet files: `lateness()`, embedded and on Spark.

The log has events of one split, or of interleaved ones, out of order by up to four seconds; late are events for their
watermark, and for windows of ten seconds. CPU time is that of this process, on Spark with its JVM and Python workers,
in a warm session. `FLINKCORE_BENCH_EVENTS` sets the number of events (20 M), `FLINKCORE_BENCH_SPLITS` that of the
splits (64).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.job_plans import planned
from benchmarks.measuring import measure
from benchmarks.processes import cpu_seconds
from benchmarks.sizes import size
from benchmarks.timed_log import TimedLog
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows

EVENTS = size(20_000_000)
SPLITS = int(os.environ.get("FLINKCORE_BENCH_SPLITS", 64))
THREADS = 2

pytestmark = [
    pytest.mark.benchmark(group=f"lateness under every bound, from Parquet, {THREADS} threads"),
    pytest.mark.parametrize("split", [None, "split"], ids=["one split", f"{SPLITS} splits"]),
]


def measure_lateness(
    benchmark: Any, environment: Any, split: str | None, engine: str, **clock: Callable[[], float]
) -> None:
    log = TimedLog(EVENTS, SPLITS)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))

    def timed() -> Any:
        events = environment.from_event_log(
            log.parquet(), timestamp="timestamp", arrival="arrival", split=split
        )
        return events.assign_timestamps_and_watermarks(strategy)

    stream = planned(timed, f"{engine} replay", f"event log {log.parquet()}:", "by at most 1000 ms")

    def run() -> Any:
        return stream().lateness([TumblingEventTimeWindows.of(Time.seconds(10))])

    frontier = measure(benchmark, EVENTS, "event", run, **clock)
    assert frontier.events == EVENTS
    assert 0 < frontier.bound_that_loses(0).to_millis() <= log.disorder_ms


def test_lateness(benchmark: Any, split: str | None) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(THREADS)
    measure_lateness(benchmark, environment, split, "embedded")


def test_lateness_on_spark(benchmark: Any, split: str | None) -> None:
    pytest.importorskip("pyspark")
    from benchmarks.flinkcore_bids import spark_session
    from flinkcore.spark import SparkExecutionEnvironment

    session = spark_session(THREADS)
    try:
        measure_lateness(benchmark, SparkExecutionEnvironment(session), split, "spark", cpu_clock=cpu_seconds)
    finally:
        session.stop()
