"""The first replay of a Spark session against later ones, and where its time goes.

The parts are in the extra information of the results: seconds, and CPU seconds of driver, JVM and Python workers
together. On a busy machine compare CPU seconds. `FLINKCORE_BENCH_EVENTS` sets the number of bids of the larger log
(20 M).
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.nexmark import Bids
from benchmarks.processes import found_by
from benchmarks.sizes import size

pytest.importorskip("pyspark")

EVENTS = size(20_000_000)
THREADS = 2


@pytest.mark.benchmark(group=f"the first replays of a session, local[{THREADS}]")
@pytest.mark.parametrize("events", [200_000, EVENTS])
def test_cold_session(benchmark: Any, events: int) -> None:
    Bids(events=events).parquet()
    parts: list[dict[str, Any]] = []

    def run() -> None:
        parts[:] = found_by("benchmarks.cold_session", events, THREADS)

    benchmark.pedantic(run, rounds=1)
    for kind in ("cold", "warm again"):
        of_kind = [part for part in parts if part["name"].startswith(f"{kind}:")]
        assert len(of_kind) == 3
        benchmark.extra_info[kind] = sum(part["seconds"] for part in of_kind)
        benchmark.extra_info[f"{kind}, CPU"] = sum(part["cpu_seconds"] for part in of_kind)
    benchmark.extra_info["parts"] = parts
    for part in parts:
        print(f"{part['name']:32} {part['seconds']:7.2f} s {part['cpu_seconds']:7.2f} s of CPU time")
