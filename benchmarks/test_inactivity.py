"""One process function with a value and a timer per key, in Python, over batches and in Cython, against a bare loop.

Caveats: the loop is what one writes without a library. It leaves deleted timers in its heap,
knows neither key groups nor failures, and could not be restored. Its elements are there already; the operator gets
each as a record that is made for it. The Cython form reads Arrow columns: nobody makes a Python object for an element.
As "process-function" the operator is driven directly; as "replay" the figure has all that a replay does before and
after it, too: the first pass over the times, rows made of columns, and columns of results; so has "batches", the
function over batches, of which a batch spans many watermarks. "times_faster_than_rows" compares these two.
`FLINKCORE_BENCH_EVENTS` sets the number of clicks (1 M), `FLINKCORE_BENCH_KEYS` that of their keys (10,000).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.inactivity import (
    Clicks,
    bare_loop,
    native_batches,
    native_example,
    process_function,
    replay,
    replay_of_batches,
)
from benchmarks.measuring import measure
from benchmarks.sizes import size

CLICKS = Clicks(
    events=size(1_000_000),
    keys=int(os.environ.get("FLINKCORE_BENCH_KEYS", 10_000)),
)

Form = Callable[[], list[tuple[int, int]]]

_cpu_ns: dict[str, float] = {}


@pytest.fixture(scope="module")
def forms() -> dict[str, Form]:
    elements = CLICKS.elements()
    batches = CLICKS.batches()
    last_ms = [batch["timestamp_ms"][-1].as_py() for batch in batches]
    example = native_example()
    return {
        "loop": lambda: bare_loop(elements),
        "process-function": lambda: process_function(elements),
        "replay": replay(CLICKS),
        "batches": replay_of_batches(CLICKS),
        "cython": lambda: native_batches(example, batches, last_ms),
    }


@pytest.mark.benchmark(
    group=f"a timer per key, anew at each of {CLICKS.events:,} elements, {CLICKS.keys:,} keys"
)
@pytest.mark.parametrize("form", ["loop", "process-function", "replay", "batches", "cython"])
def test_inactivity(benchmark: Any, forms: dict[str, Form], form: str) -> None:
    rows = measure(benchmark, CLICKS.events, "event", forms[form])
    assert sorted(rows) == sorted(forms["loop"]())
    benchmark.extra_info["keys"] = CLICKS.keys
    _cpu_ns[form] = benchmark.extra_info["cpu_ns_per_event"]
    if form == "batches" and "replay" in _cpu_ns:
        benchmark.extra_info["times_faster_than_rows"] = _cpu_ns["replay"] / _cpu_ns[form]
    if form != "loop" and "loop" in _cpu_ns:
        benchmark.extra_info["times_faster_than_loop"] = _cpu_ns["loop"] / _cpu_ns[form]
