"""Real Flink goes on from the savepoints of replays of plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from equipment.flink_sql_jobs import FlinkSqlJobs, can_run
from jobs.sql_savepoint_jobs import GOLDEN, IN_ONE_TASK, ONLY_READ, QUERIES, changes, replay

pytestmark = [
    pytest.mark.skipif(not can_run(), reason="needs javac, and the libraries of Flink: see .ci/with_flink"),
    pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning"),
]


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkSqlJobs]:
    jobs = FlinkSqlJobs(tmp_path_factory.mktemp("flink"))
    yield jobs
    jobs.close()


@pytest.mark.parametrize("job", [job for job in QUERIES if job not in ONLY_READ])
def test_flink_goes_on_from_the_savepoint_of_a_replay(job: str, flink: FlinkSqlJobs, tmp_path: Path) -> None:
    replay(job, "first").execute(stop_with_savepoint=tmp_path / "savepoint").report  # noqa: B018 - runs it
    plan = json.loads((GOLDEN / job / "plan.json").read_text())
    rest = (GOLDEN / job / "rest.jsonl").read_text().splitlines()
    expected = changes(job, list(map(json.loads, rest)))
    for backend in ("hashmap", "rocksdb"):
        for parallelism in (1,) if job in IN_ONE_TASK else (1, 2):
            answer = flink.ask(
                plan=plan,
                tables={"clicks": str(GOLDEN / "rest.jsonl")},
                backend=backend,
                parallelism=parallelism,
                **{"from": str(tmp_path / "savepoint")},
            )
            assert changes(job, answer["rows"]) == expected, (backend, parallelism)
