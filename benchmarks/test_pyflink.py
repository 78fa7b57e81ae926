"""PyFlink's DataStream API, and Spark's `transformWithStateInPandas`, on jobs that flinkcore does too.

Each runs in a process of its own, on one task. The seconds of their rows are of that whole process, much of which is
the start of a JVM and of Python; so what an event costs (ns, CPU ns) is the slope between a job of a tenth of the
events and one of all of them, and of Spark the micro batches but for the first.

flinkcore runs the same file, peers/pyflink_jobs.py, unedited (`program_of_flinkcore`), which is measured alike; and
replays of a log with the same functions, whose rows count all that they do.

Caveats: PyFlink's watermarks come by the wall clock, so which of a quiet key's timers still fire
depends on speed; the work is nearly the same. Its source hands over tuples, and its assigner of timestamps is Python
too, as a user would write it; flinkcore reads columns. Process mode sends events to a Python process and back in
bundles. The CPU time of PyFlink has its JVM's compiler and collector in it. Spark's state is in RocksDB, written to
disk with every micro batch, and the function is called for each key and micro batch: larger ones cost less, but timers
fire only after a micro batch, so that those of a tenth of the events (ten seconds of event time) give another answer.

`FLINKCORE_BENCH_PYFLINK` names the Python of an environment with PyFlink (peers/pyflink.py says how to make one).
`FLINKCORE_BENCH_EVENTS` sets the number of events (1 M), `FLINKCORE_BENCH_KEYS` that of keys (10,000); process mode
gets a twentieth of the events, Spark three micro batches of a hundredth and of a tenth.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.inactivity import Clicks, keyed_log, replay
from benchmarks.job_plans import planned
from benchmarks.measuring import ROUNDS, measure
from benchmarks.peers import pyflink
from benchmarks.peers.flink import FlinkUnavailable, jdk_tool
from benchmarks.processes import found_by, program
from benchmarks.sizes import size
from flinkcore.common import Time
from flinkcore.datastream import AggregateFunction, TumblingEventTimeWindows

EVENTS = size(1_000_000)
KEYS = int(os.environ.get("FLINKCORE_BENCH_KEYS", 10_000))
EVENTS_OF = {"thread": EVENTS, "process": EVENTS // 20}

INACTIVITY = f"a timer per key, anew at each element, {KEYS:,} keys: PyFlink and Spark"
PROGRAM = f"map, filter, key_by and reduce in Python, {KEYS:,} keys: PyFlink"
WINDOWS = f"tumbling windows, an AggregateFunction in Python, {KEYS:,} keys: PyFlink"

_ns: dict[str, dict[str, float]] = {}
"""Cost of an event for each peer, by job."""


class CountSumMax(AggregateFunction[Any, tuple[int, int, int], tuple[int, int, int]]):
    """As in peers/pyflink_jobs.py, over rows instead of tuples."""

    def create_accumulator(self) -> tuple[int, int, int]:
        return 0, 0, -1

    def add(self, value: Any, accumulator: tuple[int, int, int]) -> tuple[int, int, int]:
        n, total, top = accumulator
        return n + 1, total + value[1], max(top, value[1])

    def get_result(self, accumulator: tuple[int, int, int]) -> tuple[int, int, int]:
        return accumulator

    def merge(self, acc_a: tuple[int, int, int], acc_b: tuple[int, int, int]) -> tuple[int, int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], max(acc_a[2], acc_b[2])


def _measure(benchmark: Any, job: str, mode: str) -> None:
    try:
        pyflink.python()
    except pyflink.PyFlinkUnavailable as error:
        pytest.skip(str(error))
    pair = benchmark.pedantic(pyflink.run, args=(job, mode, EVENTS_OF[mode], KEYS), rounds=1)
    assert isinstance(pair, pyflink.Pair)
    _note_pair(benchmark, pair)
    _ns.setdefault(job, {})[f"pyflink-{mode}"] = pair.seconds_per_event * 1e9


def _note_pair(benchmark: Any, pair: pyflink.Pair) -> None:
    benchmark.extra_info |= {
        "events": pair.whole.events,
        "job_seconds": pair.whole.seconds,
        "job_seconds_of_a_tenth": pair.tenth.seconds,
        "ns_per_event": pair.seconds_per_event * 1e9,
        "cpu_ns_per_event": pair.cpu_seconds_per_event * 1e9,
    }


def _compare(benchmark: Any, job: str, ns: float) -> None:
    for peer, ns_of_peer in _ns.get(job, {}).items():
        benchmark.extra_info[f"times_faster_than_{peer}"] = ns_of_peer / ns


def _measure_flinkcore(benchmark: Any, job: str, run: Callable[[], object]) -> None:
    measure(benchmark, EVENTS, "event", run)
    if benchmark.stats:  # not with --benchmark-disable
        _compare(benchmark, job, benchmark.extra_info["ns_per_event"])


@pytest.mark.benchmark(group=INACTIVITY)
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_inactivity_of_pyflink(benchmark: Any, mode: str) -> None:
    _measure(benchmark, "inactivity", mode)


@pytest.mark.benchmark(group=INACTIVITY)
@pytest.mark.parametrize("events_per_batch", [EVENTS // 100, EVENTS // 10])
def test_inactivity_of_spark(benchmark: Any, events_per_batch: int) -> None:
    for package in "pyspark", "google.protobuf":
        if not _installed(package):
            pytest.skip(f"Spark's side needs {package.rpartition('.')[2]}, which is not installed")
    try:
        jdk_tool("java")
    except FlinkUnavailable as error:
        pytest.skip(str(error))
    size = events_per_batch * 3, KEYS, events_per_batch
    found = benchmark.pedantic(found_by, ("benchmarks.peers.spark_inactivity", *size), rounds=1)
    ns = _ns.setdefault("inactivity", {})[f"spark-{events_per_batch}"] = (
        found["seconds"] / found["events"] * 1e9
    )
    benchmark.extra_info |= found | {"ns_per_event": ns}


@pytest.mark.benchmark(group=INACTIVITY)
def test_inactivity_of_flinkcore(benchmark: Any) -> None:
    _measure_flinkcore(benchmark, "inactivity", replay(Clicks(EVENTS, KEYS)))


@pytest.mark.benchmark(group=WINDOWS)
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_tumbling_windows_of_pyflink(benchmark: Any, mode: str) -> None:
    _measure(benchmark, "tumbling_windows", mode)


@pytest.mark.benchmark(group=WINDOWS)
def test_tumbling_windows_of_flinkcore(benchmark: Any) -> None:
    windows = keyed_log(Clicks(EVENTS, KEYS)).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    schema = pa.schema({"n": pa.int64(), "total": pa.int64(), "top": pa.int64()})
    sums = windows.aggregate(CountSumMax(), output_type=schema)
    plan = (
        "embedded replay, parallelism 1,",
        "tumbling windows of 10000 ms",
        "row by row, as CountSumMax in Python",
    )
    job = planned(lambda: sums, *plan, ways={"columnar", "rows"})
    _measure_flinkcore(benchmark, "tumbling_windows", lambda: job().to_arrow())
    assert pc.sum(job().to_arrow()["n"]).as_py() == EVENTS


@pytest.mark.benchmark(group=PROGRAM)
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_map_filter_reduce_of_pyflink(benchmark: Any, mode: str) -> None:
    _measure(benchmark, "map_filter_reduce", mode)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job, marks=pytest.mark.benchmark(group=group))
        for job, group in (
            ("inactivity", INACTIVITY),
            ("tumbling_windows", WINDOWS),
            ("map_filter_reduce", PROGRAM),
        )
    ],
)
def test_program_of_flinkcore(benchmark: Any, job: str) -> None:
    """The program in a process of its own."""
    command = program("benchmarks.flinkcore_programs", job, "thread", EVENTS, KEYS)
    pairs: list[pyflink.Pair] = []
    benchmark.pedantic(lambda: pairs.append(pyflink.pair_of(command)), rounds=ROUNDS)
    median = sorted(pairs, key=lambda pair: pair.seconds_per_event)[(len(pairs) - 1) // 2]
    _note_pair(benchmark, median)
    _compare(benchmark, job, median.seconds_per_event * 1e9)


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
