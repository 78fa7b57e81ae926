"""Memory of Spark's Python workers where one key has nine tenths of all events: no more for a longer log.

`FLINKCORE_BENCH_EVENTS` sets the number of bids of the longer log (20 M).
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.processes import found_by
from benchmarks.sizes import size

pytest.importorskip("pyspark")

EVENTS = size(20_000_000)

_peaks: dict[str, int] = {}


@pytest.mark.benchmark(group="one key with nine tenths of all bids, Spark local[2]")
@pytest.mark.parametrize("events", [EVENTS // 4, EVENTS])
@pytest.mark.parametrize("form", ["windows", "function", "join", "over", "rank"])
def test_hot_key(benchmark: Any, events: int, form: str) -> None:
    if form == "function":
        events //= 4  # rows take ten times as long
    found = benchmark.pedantic(found_by, ("benchmarks.hot_key", events, form), rounds=1)
    peak = found["peak_bytes"]
    benchmark.extra_info |= {"events": events, "peak_mib": peak / 2**20}
    assert peak <= 1.25 * _peaks.setdefault(form, peak)
