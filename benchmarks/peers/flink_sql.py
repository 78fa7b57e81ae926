"""Flink SQL over columns in files by NexmarkSql.java, in a JVM started for each run."""

from __future__ import annotations

import json
from tempfile import TemporaryDirectory

from benchmarks import nexmark_sql
from benchmarks.engine import Engine, Sums, Timed
from benchmarks.nexmark_log import Query
from benchmarks.peers import flink
from benchmarks.peers.flink_bids import JVM_OPTIONS

WITHOUT = ("q12",)
"""Queries whose result depends on the clock of the machine."""


def open_query(query: Query, parallelism: int) -> Engine:
    if parallelism != 1:
        raise ValueError("the jobs run in one task: their sources read the log in its order")
    folder, events = query.columns()
    expected = nexmark_sql.nodes(nexmark_sql.plan(query.query))
    statements = "\n;\n".join(nexmark_sql.script(query.query))
    summed, key = ",".join(query.summed), nexmark_sql.LAST_ROWS.get(query.query, "")

    def run() -> Timed:
        with TemporaryDirectory() as directory:
            script = f"{directory}/query.sql"
            with open(script, "w", encoding="utf-8") as file:
                file.write(statements)
            arguments = (script, str(folder), *map(str, events), summed, key)
            output = flink.run_java("NexmarkSql", *arguments, options=JVM_OPTIONS)
        answer = json.loads(output.splitlines()[-1])
        found = nexmark_sql.nodes(answer["plan"])
        if found != expected:
            raise AssertionError(
                f"The benchmark measures something else: flinkcore runs {expected}, Flink {found}"
            )
        return Timed(answer["job_seconds"], Sums(answer["rows"], answer["sums"]))

    return run
