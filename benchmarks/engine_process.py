"""Runs each engine in a process of its own: its memory, thread pools and JVM are no other engine's.

`threads` is the number that the engine is set to use. Engines without a JVM are also pinned to so many processors, so
that one thread means one; a JVM needs others for its compiler and collector, and is not pinned.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict
from typing import IO, Any, NamedTuple

from benchmarks.cached_log import CACHE
from benchmarks.engine import Checksum, Engine, Sums, Timed
from benchmarks.nexmark import Bids
from benchmarks.nexmark_log import Query
from benchmarks.processes import program

ENGINES = {
    "duckdb-arrow": "benchmarks.peers.duckdb_bids:open_arrow",
    "duckdb-parquet": "benchmarks.peers.duckdb_bids:open_parquet",
    "polars-arrow": "benchmarks.peers.polars_bids:open_arrow",
    "polars-parquet": "benchmarks.peers.polars_bids:open_parquet",
    "spark-counted": "benchmarks.peers.spark_bids:open_counted",
    "spark-evaluated-mapped": "benchmarks.peers.spark_bids:open_mapped",
    "spark-written": "benchmarks.peers.spark_bids:open_written",
    "flink-generated": "benchmarks.peers.flink_bids:open_tumbling",
    "flink-sliding": "benchmarks.peers.flink_bids:open_sliding",
    "flink-session": "benchmarks.peers.flink_bids:open_session",
    "flinkcore-arrow": "benchmarks.flinkcore_bids:open_arrow",
    "flinkcore-sliding": "benchmarks.flinkcore_bids:open_sliding",
    "flinkcore-session": "benchmarks.flinkcore_bids:open_session",
    "flinkcore-parquet": "benchmarks.flinkcore_bids:open_parquet",
    "flinkcore-streamed": "benchmarks.flinkcore_bids:open_streamed",
    "flinkcore-spark-counted": "benchmarks.flinkcore_bids:open_spark_counted",
    "flinkcore-spark-arrivals": "benchmarks.flinkcore_bids:open_spark_arrivals",
    "flinkcore-spark-dataframe": "benchmarks.flinkcore_bids:open_spark_dataframe",
    "flinkcore-spark-computed": "benchmarks.flinkcore_bids:open_spark_computed",
    "flinkcore-spark-evaluated": "benchmarks.flinkcore_bids:open_spark_evaluated",
    "flinkcore-spark-written": "benchmarks.flinkcore_bids:open_spark_written",
    "duckdb-query": "benchmarks.peers.duckdb_query:open_query",
    "spark-query": "benchmarks.peers.spark_query:open_query",
    "spark-query-written": "benchmarks.peers.spark_query:open_written",
    "flink-query": "benchmarks.peers.flink_query:open_query",
    "flink-sql": "benchmarks.peers.flink_sql:open_query",
    "flinkcore-query": "benchmarks.flinkcore_query:open_arrow",
    "flinkcore-sql": "benchmarks.flinkcore_query:open_sql",
    "flinkcore-spark-query": "benchmarks.flinkcore_query:open_spark",
    "flinkcore-spark-query-written": "benchmarks.flinkcore_query:open_spark_written",
}
LOGS: dict[str, type[Bids] | type[Query]] = {kind.__name__: kind for kind in (Bids, Query)}
ON_A_JVM = ("spark-", "flink-", "flinkcore-spark-")


class Run(NamedTuple):
    """One run of the job; CPU time and peak memory of the process are unknown where a JVM does the work."""

    seconds: float
    cpu_seconds: float | None
    peak_bytes: int | None
    checksum: Checksum | Sums


class EngineProcess:
    def __init__(self, name: str, log: Bids | Query, threads: int) -> None:
        self._log = log
        job = json.dumps({"name": name, "kind": type(log).__name__, "log": asdict(log), "threads": threads})
        read_end, write_end = os.pipe()
        CACHE.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            program("benchmarks.engine_process", job, write_end),
            stdin=subprocess.PIPE,
            stdout=sys.__stderr__,
            pass_fds=[write_end],
            cwd=CACHE,
            text=True,
        )
        os.close(write_end)
        self._answers = os.fdopen(read_end, encoding="utf-8")
        self._name = name
        self._answer()

    def run(self) -> Run:
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        *measured, checksum = self._answer()
        return Run(*measured, self._log.checksum_type(*checksum))

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with status {self._process.wait()}; its stderr says why")
        return json.loads(line)

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()


def serve(name: str, log: Bids | Query, threads: int, answers: IO[str]) -> None:
    """Open the engine, say so, then run it once for each line of standard input."""
    on_a_jvm = name.startswith(ON_A_JVM)
    if not on_a_jvm and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module, _, function = ENGINES[name].partition(":")
    engine: Engine = getattr(importlib.import_module(module), function)(log, threads)
    print("null", file=answers, flush=True)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        answer = engine()
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if isinstance(answer, Timed):
            seconds, answer = answer
        checksum = answer if isinstance(answer, Checksum | Sums) else log.checksum(answer)
        del answer
        own = (None, None) if on_a_jvm else (cpu_seconds, peak_bytes)
        print(json.dumps([seconds, *own, checksum]), file=answers, flush=True)


def main() -> None:
    job = json.loads(sys.argv[1])
    with open(int(sys.argv[2]), "w", encoding="utf-8") as answers:
        serve(job["name"], LOGS[job["kind"]](**job["log"]), job["threads"], answers)


if __name__ == "__main__":
    main()
