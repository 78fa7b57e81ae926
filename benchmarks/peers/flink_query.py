"""Flink's DataStream jobs of NexmarkQueries.java, over columns in files, in a JVM started for each run."""

from __future__ import annotations

import json

from benchmarks.engine import Engine, Sums, Timed
from benchmarks.nexmark_log import Query
from benchmarks.peers import flink
from benchmarks.peers.flink_bids import JVM_OPTIONS

WITHOUT = ("q10", "q12", "q13", "q21")
"""Queries that are not written in Java: q10 needs a sink of files, q12 the clock of the machine."""


def open_query(query: Query, parallelism: int) -> Engine:
    if parallelism != 1:
        raise ValueError("the jobs run in one task: their sources read the log in its order")
    folder, events = query.columns()

    def run() -> Timed:
        arguments = (str(folder), query.query, *map(str, events))
        output = flink.run_java("NexmarkQueries", *arguments, options=JVM_OPTIONS)
        answer = json.loads(output.splitlines()[-1])
        return Timed(answer["job_seconds"], Sums(answer["rows"], answer["sums"]))

    return run
