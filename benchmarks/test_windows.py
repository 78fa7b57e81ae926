"""The bids in sliding windows (10 s every 2 s) and in sessions (gap 10 s), beside tumbling ones and beside Flink.

Arrow table in, Arrow table out, one thread. All results are made: with few keys, what counts is how rows are added up;
with many, nearly every row is a key of its own in each of its five sliding windows, and results are most of the work.
`FLINKCORE_BENCH_EVENTS` and `FLINKCORE_BENCH_ROUNDS` are as in `test_replay.py`.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from benchmarks.engine import Checksum
from benchmarks.engine_process import EngineProcess, Run
from benchmarks.nexmark import Bids
from benchmarks.peers import flink

EVENTS = int(os.environ.get("FLINKCORE_BENCH_EVENTS", 20_000_000))
ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", 3))
PEOPLE = (258_000, 20_000, 1_000)

_seconds = 0.0
_best: dict[tuple[int, str], float] = {}
_checksums: dict[tuple[int, str], Checksum] = {}


def engine_clock() -> float:
    """Seconds that engines reported so far: pytest-benchmark's timer here."""
    return _seconds


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize(
    "engine", ["flinkcore-arrow", "flink-sliding", "flinkcore-sliding", "flink-session", "flinkcore-session"]
)
@pytest.mark.benchmark(group="windows of bids", timer=engine_clock)
def test_windows_of_bids(benchmark: Any, engine: str, people: int) -> None:
    product, _, windows = engine.partition("-")
    if product == "flink":
        try:
            flink.jdk_tool("javac")
            flink.class_path()
        except flink.FlinkUnavailable as reason:
            pytest.skip(str(reason))
    bids = Bids(EVENTS, active_people=people)
    bids.parquet()
    runs: list[Run] = []

    def run() -> None:
        global _seconds
        runs.append(process.run())
        _seconds += runs[-1].seconds

    with EngineProcess(engine, bids, 1) as process:
        benchmark.pedantic(
            run, rounds=ROUNDS if product == "flinkcore" else 1, warmup_rounds=product == "flinkcore"
        )
    fastest = min(runs)
    for each in runs:
        assert each.checksum == _checksums.setdefault((people, windows), each.checksum)
    _best[people, engine] = fastest.seconds
    benchmark.extra_info |= {
        "engine": engine,
        "people": people,
        "events": bids.events,
        "ns_per_event": fastest.seconds / bids.events * 1e9,
        "result_rows": fastest.checksum.rows,
    }
    if product == "flinkcore":
        for baseline in ("flinkcore-arrow", f"flink-{windows}"):
            if baseline != engine and (people, baseline) in _best:
                benchmark.extra_info[f"times_{baseline}"] = fastest.seconds / _best[people, baseline]
