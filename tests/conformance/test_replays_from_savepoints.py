"""A replay that begins with a savepoint of real Flink gives the results that Flink gives of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs.savepoint_jobs import JOBS, results_of_rest

from flinkcore.savepoints import SavepointSource

GOLDEN = Path(__file__).parents[1] / "golden" / "savepoints"
CASES = [
    path
    for path in sorted((GOLDEN / "cases").iterdir())
    if path.name.rpartition("-")[0] in JOBS and "metadata" not in path.name
]


def results_of_flink(job: str) -> list[str]:
    """Return the recorded results of the further records, in order."""
    expected = GOLDEN / "results" / f"{job}.further.jsonl"
    if not expected.exists():  # nothing comes before the end
        expected = GOLDEN / "results" / f"{job}.whole.jsonl"
    values = (json.loads(line)["value"] for line in expected.read_text(encoding="utf-8").splitlines())
    return sorted(json.dumps(value, separators=(",", ":")) for value in values)


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_replay_goes_on_from_the_savepoint_of_flink(case: Path) -> None:
    job = case.name.rpartition("-")[0]
    for parallelism in (1, 3):
        found = results_of_rest(job, GOLDEN / "inputs", SavepointSource(case / "savepoint"), parallelism)
        assert found == results_of_flink(job)
