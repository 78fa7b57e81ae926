"""Measurements of the suites: rounds after warm-ups, as many for all sides, of which the median run counts.

`FLINKCORE_BENCH_ROUNDS` sets the number of rounds (3). Functions run in this process (`measure`). Engines (`Engines`)
have a process each and report their own seconds, without loading an input, starting a JVM and passing an answer.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol, TypeVar

import pytest

from benchmarks.engine import Checksum, Sums
from benchmarks.engine_process import EngineProcess, Run
from benchmarks.nexmark import Bids
from benchmarks.nexmark_log import Query
from benchmarks.peers import flink

ROUNDS = int(os.environ.get("FLINKCORE_BENCH_ROUNDS", 3))
WARMUPS = 2
"""Runs before the rounds, which are not counted."""

SPARK_WARMUPS = 6
"""As many on Spark, whose JVM has compiled by then what reads and writes rows: later runs take no less time."""


class TimesItself(Protocol):
    """Result of a run that measures itself."""

    @property
    def seconds(self) -> float: ...


R = TypeVar("R")
Timed = TypeVar("Timed", bound=TimesItself)

_reported_seconds = 0.0


def reported_clock() -> float:
    """Return the seconds that runs have reported so far: pytest-benchmark's timer where they measure themselves."""
    return _reported_seconds


def reported_rounds(benchmark: Any, run: Callable[[], Timed], *, warmups: int = WARMUPS) -> list[Timed]:
    """Run what measures itself, under a benchmark with `reported_clock`; return what its rounds gave."""
    runs: list[Timed] = []

    def reporting() -> None:
        global _reported_seconds
        runs.append(run())
        _reported_seconds += runs[-1].seconds

    benchmark.pedantic(reporting, rounds=ROUNDS, warmup_rounds=warmups)
    return runs[warmups:] or runs  # with --benchmark-disable there is one run


def median_run(runs: list[Timed]) -> Timed:
    """Return the run in the middle by its seconds; the quicker one of two."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def measure(
    benchmark: Any,
    count: int,
    unit: str,
    run: Callable[..., R],
    set_up: Callable[[], Any] | None = None,
    cpu_clock: Callable[[], float] = time.process_time,
) -> R:
    """Run a function under a benchmark, and note wall and CPU time per unit, of which it handles so many.

    Parameters
    ----------
    unit
        A noun: `extra_info` has ``{unit}s``, ``ns_per_{unit}`` and ``cpu_ns_per_{unit}``.
    set_up
        Makes what `run` is called with, before each run; not measured.
    cpu_clock
        Gives CPU seconds: of this process, unless others do the work.

    Returns
    -------
    Result of the last run.
    """
    cpu: list[float] = []

    def timed(*prepared: Any) -> R:
        begin = cpu_clock()
        result = run(*prepared)
        cpu.append(cpu_clock() - begin)
        return result

    setup = None if set_up is None else lambda: ((set_up(),), {})
    result: R = benchmark.pedantic(timed, setup=setup, rounds=ROUNDS, warmup_rounds=WARMUPS)
    cpu_seconds = statistics.median(cpu[WARMUPS:] or cpu)
    benchmark.extra_info |= {f"{unit}s": count, f"cpu_ns_per_{unit}": cpu_seconds / count * 1e9}
    if benchmark.stats:  # not with --benchmark-disable
        benchmark.extra_info[f"ns_per_{unit}"] = benchmark.stats.stats.median / count * 1e9
    return result


class _Job(NamedTuple):
    log: Bids | Query
    engine: str
    threads: int


class Engines:
    """The engines of a suite: measured alike, their answers compared, and their times with those of baselines."""

    def __init__(self) -> None:
        self._medians: dict[_Job, float] = {}
        self._answers: dict[tuple[Bids | Query, Hashable], Checksum | Sums] = {}

    def measure(
        self,
        benchmark: Any,
        engine: str,
        log: Bids | Query,
        threads: int,
        *,
        baselines: tuple[str, ...] = (),
        answer: Hashable = None,
    ) -> list[Run]:
        """Run an engine under a benchmark with `reported_clock`; note in `extra_info` what its time does not say.

        The benchmark is skipped, and says why, where the engine is not installed.

        Parameters
        ----------
        baselines
            Engines measured before with as many threads, with whose times its time is compared.
        answer
            Which of the questions about the log the engine answers: all engines must give the same answer to one.
        """
        _require(engine)
        log.parquet()

        def run() -> Run:
            found = process.run()
            assert found.checksum == self._answers.setdefault((log, answer), found.checksum)
            return found

        with EngineProcess(engine, log, threads) as process:
            runs = reported_rounds(benchmark, run, warmups=_warmups(engine))
        median = median_run(runs)
        self._medians[_Job(log, engine, threads)] = median.seconds
        benchmark.extra_info |= {
            "engine": engine,
            "threads": threads,
            "events": log.events,
            "ns_per_event": median.seconds / log.events * 1e9,
            "result_rows": median.checksum.rows,
        }
        if median.cpu_seconds is not None:
            benchmark.extra_info["cpu_ns_per_event"] = median.cpu_seconds / log.events * 1e9
            benchmark.extra_info["peak_mib"] = runs[-1].peak_bytes / 2**20
        for baseline in baselines:
            theirs = self._medians.get(_Job(log, baseline, threads))
            if theirs is not None:
                benchmark.extra_info[f"times_faster_than_{baseline}"] = theirs / median.seconds
        return runs


def _warmups(engine: str) -> int:
    products = engine.split("-")
    if products[0] == "flink":
        return 0  # its JVM is new in each run, as in its users' jobs
    return SPARK_WARMUPS if "spark" in products else WARMUPS


def _require(engine: str) -> None:
    products = engine.split("-")
    if products[0] == "flink" or "sql" in products:
        try:
            flink.jdk_tool("javac")
            flink.class_path()
        except flink.FlinkUnavailable as reason:
            pytest.skip(str(reason))
    for product, module in (("duckdb", "duckdb"), ("polars", "polars"), ("spark", "pyspark")):
        if product in products and importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
