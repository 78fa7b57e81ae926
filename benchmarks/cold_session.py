"""A process that runs the windowed bids job in a new Spark session, and prints seconds and CPU seconds of each part."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """A part of the run; CPU seconds are those of the driver, the JVM and the Python workers together."""

    name: str
    seconds: float
    cpu_seconds: float


class Stopwatch:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._seconds, self._cpu = time.perf_counter(), cpu_of_all_processes()

    def note(self, name: str) -> None:
        """Note what has passed since the part before."""
        seconds, cpu = time.perf_counter(), cpu_of_all_processes()
        self.parts.append(Part(name, seconds - self._seconds, cpu - self._cpu))
        self._seconds, self._cpu = seconds, cpu


def cpu_of_all_processes() -> float:
    """CPU seconds of this process and of all that descend from it, from Linux's /proc."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        seconds[int(process)] = sum(map(int, fields[11:15])) / tick
        children.setdefault(int(fields[1]), []).append(int(process))

    def of_tree(process: int) -> float:
        return seconds.get(process, 0.0) + sum(map(of_tree, children.get(process, ())))

    return of_tree(os.getpid())


def main() -> None:
    from benchmarks.flinkcore_bids import spark_session, windowed_bids
    from benchmarks.nexmark import Bids
    from flinkcore.spark import SparkExecutionEnvironment

    events, threads = map(int, sys.argv[1:])
    bids = Bids(events=events)
    path = bids.parquet()
    watch = Stopwatch()
    spark = spark_session(threads)
    watch.note("session")
    for run in ("cold", "warm", "warm again"):
        with tempfile.TemporaryDirectory(prefix="bids-out-") as parent:
            result = windowed_bids(SparkExecutionEnvironment(spark), path, bids).execute()
            watch.note(f"{run}: plan")
            assert len(result._replay.time_planes) == 1
            watch.note(f"{run}: executors looked at, pass 1" if run == "cold" else f"{run}: pass 1")
            result.write_parquet(f"{parent}/result")
            watch.note(f"{run}: pass 2")
    print(json.dumps([asdict(part) for part in watch.parts]))


if __name__ == "__main__":
    main()
