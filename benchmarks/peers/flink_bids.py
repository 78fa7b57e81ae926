"""Flink's DataStream job of WindowedBids.java, from its own generator, in a JVM started for each run."""

from __future__ import annotations

import json

from benchmarks.engine import Checksum, Engine, Timed
from benchmarks.nexmark import Bids
from benchmarks.peers import flink
from benchmarks.sizes import jvm_mib

# The parallel collector was the fastest of three here; the heap does not grow during the run.
HEAP = f"{jvm_mib(4 * 1024)}m"
JVM_OPTIONS = (
    f"-Xms{HEAP}",
    f"-Xmx{HEAP}",
    "-XX:+UseParallelGC",
    "-Dorg.apache.logging.log4j.level=OFF",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)


def _open(bids: Bids, parallelism: int, windows: str) -> Engine:
    parameters = (bids.seed, bids.events_per_second, bids.disorder_seconds, bids.active_people, bids.base_ms)

    def run() -> Timed:
        arguments = map(str, (bids.events, parallelism, windows, *parameters))
        output = flink.run_java("WindowedBids", *arguments, options=JVM_OPTIONS)
        answer = json.loads(output.splitlines()[-1])
        # The job's own run time: starting the JVM and Flink's services in it is left out.
        return Timed(answer["job_seconds"], Checksum(*(answer[name] for name in Checksum._fields)))

    return run


def open_tumbling(bids: Bids, threads: int) -> Engine:
    return _open(bids, threads, "tumbling")


def open_sliding(bids: Bids, threads: int) -> Engine:
    return _open(bids, threads, "sliding")


def open_session(bids: Bids, threads: int) -> Engine:
    return _open(bids, threads, "session")
