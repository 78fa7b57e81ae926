"""What every bound of out-of-orderness loses, of a log of Parquet files: `lateness()`, embedded.

The log has events of one split, or of interleaved ones, out of order by up to four seconds; late are events for their
watermark, and for windows of ten seconds. CPU time is that of this process. `FLINKCORE_BENCH_LATENESS` sets the number
of events (20 M), `FLINKCORE_BENCH_SPLITS` that of the splits (64), `FLINKCORE_BENCH_ROUNDS` the measured runs (3).
"""

from __future__ import annotations

import os
from time import process_time
from typing import Any

import pytest

from benchmarks.timed_log import TimedLog
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows

EVENTS = int(os.environ.get("FLINKCORE_BENCH_LATENESS", 20_000_000))
SPLITS = int(os.environ.get("FLINKCORE_BENCH_SPLITS", 64))
ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", 3))
THREADS = 2

pytestmark = pytest.mark.benchmark(group=f"lateness under every bound, from Parquet, {THREADS} threads")


@pytest.mark.parametrize("split", [None, "split"], ids=["one split", f"{SPLITS} splits"])
def test_lateness(benchmark: Any, split: str | None) -> None:
    log = TimedLog(EVENTS, SPLITS)
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(THREADS)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    cpu: list[float] = []

    def run() -> None:
        begin = process_time()
        events = environment.from_event_log(
            log.parquet(), timestamp="timestamp", arrival="arrival", split=split
        ).assign_timestamps_and_watermarks(strategy)
        frontier = events.lateness([TumblingEventTimeWindows.of(Time.seconds(10))])
        cpu.append(process_time() - begin)
        assert frontier.events == EVENTS  # type: ignore[attr-defined]
        assert 0 < frontier.bound_that_loses(0).to_millis() <= log.disorder_ms

    benchmark.pedantic(run, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info |= {"events": EVENTS, "cpu_ns_per_event": min(cpu) / EVENTS * 1e9}
    if benchmark.stats:  # not with --benchmark-disable
        benchmark.extra_info["events_per_second"] = EVENTS / benchmark.stats.stats.min
