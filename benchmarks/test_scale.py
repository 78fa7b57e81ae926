"""Logs that are large in one dimension: many small files, a long time, many open windows, splits, tasks or keys.

A process for each run, once: a first run is what a nightly job is. CPU time and peak memory count, and ratios are
between the rows of a group. `FLINKCORE_BENCH_EVENTS` sets the number of events of the largest logs (20 M); all other
sizes shrink with it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.processes import found_by
from benchmarks.scale_logs import DAY_MS, ScaleLog
from benchmarks.scale_process import ScaleJob, content
from benchmarks.sizes import size

MOST_EVENTS = 20_000_000
DIVISOR = max(1, MOST_EVENTS // size(MOST_EVENTS))
YEAR_MS = 365 * DAY_MS

EMBEDDED, ON_SPARK, BOTH = ("flinkcore",), ("flinkcore-spark",), ("flinkcore", "flinkcore-spark")
BASELINES = {"flinkcore": "duckdb", "flinkcore-spark": "spark"}


def _sized(number: int) -> int:
    return max(1, number // DIVISOR)


def _split_files(splits: int, *, file_per_split: bool) -> ScaleJob:
    events = _sized(20_000_000) // splits * splits
    files = splits if file_per_split else 4
    return ScaleJob(ScaleLog(events, DAY_MS, splits=splits, files=files, file_per_split=file_per_split))


def _small_files(files: int) -> ScaleJob:
    return ScaleJob(ScaleLog(200 * _sized(files), _sized(files) * 200_000, files=_sized(files)))


JOBS: dict[str, tuple[ScaleJob, Sequence[str]]] = {
    "1,000 files of 200 rows": (_small_files(1_000), BOTH),
    "10,000 files of 200 rows": (_small_files(10_000), BOTH),
    "500,000 open windows of one key": (
        ScaleJob(
            ScaleLog(_sized(500_000), _sized(500_000) * 10_000, keys=1),
            out_of_orderness_ms=20 * YEAR_MS,
        ),
        BOTH,
    ),
    "2 M events over a year": (ScaleJob(ScaleLog(_sized(2_000_000), YEAR_MS)), BOTH),
    "20 M events over five years, not merged": (
        ScaleJob(ScaleLog(_sized(20_000_000), 5 * YEAR_MS), sums_integers=False),
        BOTH,
    ),
    "20 M events, 256 splits, interleaved": (
        _split_files(256, file_per_split=False),
        EMBEDDED,
    ),
    "20 M events, 256 splits, a file each": (
        _split_files(256, file_per_split=True),
        EMBEDDED,
    ),
    "1,024 reduce tasks of 2 M events": (
        ScaleJob(ScaleLog(_sized(2_000_000), DAY_MS), partitions=_sized(1_024)),
        ON_SPARK,
    ),
    "100,000 splits": (ScaleJob(ScaleLog(_sized(1_000_000), DAY_MS, splits=_sized(100_000))), EMBEDDED),
    "20 M open keys": (
        ScaleJob(ScaleLog(_sized(20_000_000), DAY_MS, keys=_sized(20_000_000)), window_ms=DAY_MS),
        EMBEDDED,
    ),
    "20 M open keys, 300 MB for state": (
        ScaleJob(
            ScaleLog(_sized(20_000_000), DAY_MS, keys=_sized(20_000_000)), window_ms=DAY_MS, memory="300m"
        ),
        EMBEDDED,
    ),
}

_found: dict[tuple[ScaleJob, str], dict[str, Any]] = {}


def _run(engine: str, job: ScaleJob) -> dict[str, Any]:
    found: dict[str, Any] = found_by("benchmarks.scale_process", engine, content(job))
    _found[job, engine] = found
    return found


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, id=f"{engine}: {name}", marks=pytest.mark.benchmark(group=name))
        for name, (_, engines) in JOBS.items()
        for flinkcore in engines
        for engine in (BASELINES[flinkcore], flinkcore)
    ],
)
def test_scale(benchmark: Any, name: str, engine: str) -> None:
    package = {"duckdb": "duckdb"}.get(engine, "pyspark" if "spark" in engine else None)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    job = JOBS[name][0]
    job.log.parquet()
    found = benchmark.pedantic(_run, (engine, job), rounds=1)
    peak = max(filter(None, (found["driver_bytes"], found["worker_bytes"])))
    benchmark.extra_info |= {
        "engine": engine,
        "cpu_seconds": found["cpu_seconds"],
        "warm_cpu_seconds": found.get("warm_cpu_seconds"),
        "cpu_ns_per_event": found["cpu_seconds"] / job.log.events * 1e9,
        "driver_mib": found["driver_bytes"] / 2**20,
        "worker_mib": None if found["worker_bytes"] is None else found["worker_bytes"] / 2**20,
        "peak_mib": peak / 2**20,
    }
    for against, baseline in _baselines(job, engine):
        assert found["answer"] == baseline["answer"]
        ratio = baseline["cpu_seconds"] / found["cpu_seconds"]
        benchmark.extra_info[f"times_faster_than_{against}_in_cpu_time"] = ratio


def _baselines(job: ScaleJob, engine: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs of the same job before: of the other engine, and without a limit of memory."""
    pairs = {BASELINES.get(engine, ""): (job, BASELINES.get(engine, ""))}
    if job.memory is not None:
        pairs["no_limit"] = (replace(job, memory=None), engine)
    for against, run in pairs.items():
        if run in _found:
            yield against, _found[run]
