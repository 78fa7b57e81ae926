"""Records tests/golden/savepoints/plans with Flink, by .ci/with_flink .venv/bin/python on this file; needs a JDK."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from equipment.flink_sql_jobs import FlinkSqlJobs
from jobs.sql_savepoint_jobs import (
    GOLDEN,
    QUERIES,
    REFUSED,
    TABLE,
    WITH_LATE_ROWS,
    changes,
    drawn_rows,
    phases,
)


def record(flink: FlinkSqlJobs, job: str, query: str) -> None:
    """Write the plan of a job, its savepoint after the first part, and its rows of the rest, also after late rows."""
    folder = GOLDEN / job
    shutil.rmtree(folder, ignore_errors=True)
    plan: dict[str, Any] = flink.ask(compile=TABLE, query=query, settings=phases(job))["plan"]
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan, separators=(",", ":")) + "\n")
    if job in REFUSED:
        return
    first = flink.ask(plan=plan, tables={"clicks": str(GOLDEN / "first.jsonl")}, to=str(folder / "savepoint"))
    rest = flink.ask(
        plan=plan, tables={"clicks": str(GOLDEN / "rest.jsonl")}, **{"from": str(folder / "savepoint")}
    )
    if job in WITH_LATE_ROWS:
        record_late(flink, job)
    whole = flink.ask(plan=plan, tables={"clicks": str(GOLDEN / "whole.jsonl")})
    lines = sorted(map(json.dumps, rest["rows"]))
    assert changes(job, [*first["rows"], *rest["rows"]]) == changes(job, whole["rows"]), job
    (folder / "rest.jsonl").write_text("".join(f"{line}\n" for line in lines))
    print(job, len(first["rows"]), len(lines))


def record_late(flink: FlinkSqlJobs, job: str) -> None:
    """Write the rows of a job that goes on from its savepoint with rows that are late for its watermark."""
    folder = GOLDEN / job
    plan = json.loads((folder / "plan.json").read_text())
    late = flink.ask(
        plan=plan, tables={"clicks": str(GOLDEN / "late.jsonl")}, **{"from": str(folder / "savepoint")}
    )
    lines = sorted(map(json.dumps, late["rows"]))
    assert lines != (folder / "rest.jsonl").read_text().splitlines(), job
    (folder / "late.jsonl").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    parts = {"first": drawn_rows(50, 1, 0), "rest": drawn_rows(40, 2, 54)}
    GOLDEN.mkdir(exist_ok=True)
    joined = {
        "late": [*drawn_rows(20, 3, 25), *parts["rest"]],
        "whole": [*parts["first"], *parts["rest"]],
    }
    for name, rows in {**parts, **joined}.items():
        (GOLDEN / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with tempfile.TemporaryDirectory() as scratch:
        flink = FlinkSqlJobs(Path(scratch))
        for job, query in {**QUERIES, **REFUSED}.items():
            if not sys.argv[1:] or job in sys.argv[1:]:
                record(flink, job, query)
        flink.close()
    (GOLDEN / "whole.jsonl").unlink()
