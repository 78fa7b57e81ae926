"""A replay leaves the state that Flink has after the same records, and real Flink goes on from its savepoint.

The second part needs a JDK and the tool that restores savepoints: FLINKCORE_SAVEPOINT_ORACLE names its directory, or
several, one for each version of Flink. Savepoints have the key groups of two subtasks, so that every restore rescales.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from equipment.golden_savepoints import canonical, rows_of
from jobs.savepoint_jobs import JOBS, name_in_flink, run_first

from flinkcore import savepoints
from flinkcore.savepoints import SavepointOperator
from flinkcore.savepoints.keyed_state import KeyedState

GOLDEN = Path(__file__).parents[1] / "golden" / "savepoints"
ORACLES = list(filter(None, os.environ.get("FLINKCORE_SAVEPOINT_ORACLE", "").split(os.pathsep)))


def first_case(job: str) -> Path:
    return next(path for path in sorted((GOLDEN / "cases").iterdir()) if path.name.startswith(f"{job}-"))


def entries(operator: SavepointOperator) -> dict[str, Counter[str]]:
    """Return the entries of each state that has any, without what Flink leaves open.

    State windows of sessions are replaced by the sessions themselves, and so are times of last access by 0: Flink's are
    those of the machine's clock.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for name, state in operator.states.items():
        if isinstance(state, KeyedState):
            found[name] = rows_of(state)
    sessions = {}
    for row in found.pop("merging-window-set", []):
        for pair in row["value"]:
            window, state_window = pair["tuple"]
            sessions[json.dumps([row["key"], state_window])] = window
    for row in found.get("window-contents", []) if sessions else []:
        row["namespace"] = sessions[json.dumps([row["key"], row["namespace"]])]
    lines = {
        name: Counter(json.dumps(canonical(_without_access(row)), sort_keys=True) for row in rows)
        for name, rows in found.items()
        if rows
    }
    return lines | {
        name: Counter(json.dumps(canonical(row), sort_keys=True) for row in rows_of(state))
        for name, state in operator.states.items()
        if not isinstance(state, KeyedState)
    }


def _without_access(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: 0 if name == "ttl" else _without_access(each) for name, each in value.items()}
    return [_without_access(each) for each in value] if isinstance(value, list) else value


def stopped(job: str, folder: Path) -> Path:
    """Run a job over the first part of the records, and return its savepoint."""
    operators = run_first(job, GOLDEN / "inputs", folder / "checkpoint")
    savepoints.write(folder / "checkpoint", folder / "savepoint", operators)
    return folder / "savepoint"


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("job", JOBS)
def test_a_replay_has_the_state_that_flink_has(job: str, tmp_path: Path) -> None:
    flinks = savepoints.open(first_case(job) / "savepoint", exact=True)
    written = savepoints.open(stopped(job, tmp_path), exact=True)
    (operator,) = written.operators
    expected = flinks.operator(operator.operator_id)
    assert entries(operator).keys() == entries(expected).keys()
    if operator.max_parallelism == expected.max_parallelism:
        assert entries(operator) == entries(expected)


@pytest.mark.skipif(not ORACLES, reason="FLINKCORE_SAVEPOINT_ORACLE does not name the tool that runs Flink")
@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize(
    ("backend", "parallelism"), [("hashmap", 1), ("hashmap", 3), ("rocksdb", 1), ("rocksdb", 3)]
)
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("oracle", ORACLES or [""], ids=lambda path: Path(path).name or "none")
def test_flink_goes_on_from_the_savepoint_of_a_replay(
    oracle: str, job: str, backend: str, parallelism: int, tmp_path: Path
) -> None:
    if job == "keys_big_dec" and backend == "rocksdb":
        pytest.skip(
            "the job makes 0 in a way that BigIntSerializer writes in other bytes, and RocksDB compares bytes"
        )
    command = [
        f"{oracle}/restore",
        name_in_flink(job),
        str(stopped(job, tmp_path)),
        "--inputs",
        str(GOLDEN / "inputs"),
    ]
    command += ["--backend", backend, "--parallelism", str(parallelism)]
    results = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    expected = GOLDEN / "results" / f"{job}.further.jsonl"
    if not expected.exists():  # nothing comes before the end
        expected = GOLDEN / "results" / f"{job}.whole.jsonl"
    assert results.decode().splitlines() == expected.read_text(encoding="utf-8").splitlines()
