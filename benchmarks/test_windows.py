"""The bids in sliding windows (10 s every 2 s) and in sessions (gap 10 s), beside tumbling ones and beside Flink.

Arrow table in, Arrow table out, one thread. All results are made: with few keys, what counts is how rows are added up;
with many, nearly every row is a key of its own in each of its five sliding windows, and results are most of the work.
`FLINKCORE_BENCH_EVENTS` sets the number of bids (20 M); `measuring` says how they are measured.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.measuring import Engines, reported_clock
from benchmarks.nexmark import Bids
from benchmarks.sizes import size

EVENTS = size(20_000_000)
PEOPLE = (258_000, 20_000, 1_000)

ENGINES = Engines()


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize(
    "engine", ["flinkcore-arrow", "flink-sliding", "flinkcore-sliding", "flink-session", "flinkcore-session"]
)
@pytest.mark.benchmark(group="windows of bids", timer=reported_clock)
def test_windows_of_bids(benchmark: Any, engine: str, people: int) -> None:
    product, _, windows = engine.partition("-")
    baselines = (
        ("flinkcore-arrow", f"flink-{windows}") if product == "flinkcore" and windows != "arrow" else ()
    )
    ENGINES.measure(
        benchmark, engine, Bids(EVENTS, active_people=people), 1, baselines=baselines, answer=windows
    )
    benchmark.extra_info["people"] = people
