"""A process that runs the windowed bids job in a new Spark session, and prints seconds and CPU seconds of each part."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

from benchmarks.processes import cpu_seconds


@dataclass(frozen=True)
class Part:
    """A part of the run; CPU seconds are those of the driver, the JVM and the Python workers together."""

    name: str
    seconds: float
    cpu_seconds: float


class Stopwatch:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._seconds, self._cpu = time.perf_counter(), cpu_seconds()

    def note(self, name: str) -> None:
        """Note what has passed since the part before."""
        seconds, cpu = time.perf_counter(), cpu_seconds()
        self.parts.append(Part(name, seconds - self._seconds, cpu - self._cpu))
        self._seconds, self._cpu = seconds, cpu


def main() -> None:
    from benchmarks.flinkcore_bids import MERGED_ON_SPARK, planned_bids, spark_session, windowed_bids
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
            watch.note(f"{run}: pass 1")
            result.write_parquet(f"{parent}/result")
            watch.note(f"{run}: executors looked at, pass 2" if run == "cold" else f"{run}: pass 2")
    # Not before: explain() would warm the session.
    planned_bids(lambda: SparkExecutionEnvironment(spark), path, bids, *MERGED_ON_SPARK)
    print(json.dumps([asdict(part) for part in watch.parts]))


if __name__ == "__main__":
    main()
