"""A replay that begins with a savepoint gives the results that Flink gives of the rest.

The savepoints are those of real Flink, and those with which replays of the first part stop.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs.savepoint_jobs import JOBS, results_of_rest, run_first

from flinkcore import savepoints
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


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("job", JOBS)
def test_a_replay_goes_on_from_the_savepoint_of_a_replay(job: str, tmp_path: Path) -> None:
    operators = run_first(job, GOLDEN / "inputs", tmp_path / "checkpoint")
    savepoints.write(tmp_path / "checkpoint", tmp_path / "savepoint", operators, max_parallelism=60)
    found = results_of_rest(job, GOLDEN / "inputs", SavepointSource(tmp_path / "savepoint"), 2)
    assert found == results_of_flink(job)
