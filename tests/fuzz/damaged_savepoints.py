"""Damaged savepoints of Flink, and what reading each gives; run as a program, it answers `fuzz.trials`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.damaged_files import Damage, damaged
from fuzz.trials import serve

from flinkcore import savepoints
from flinkcore.errors import SavepointError
from flinkcore.savepoints import ReadSettings

GOLDEN = Path(__file__).parents[1] / "golden" / "savepoints"
FOLDERS = {path.name: path / "savepoint" for path in sorted((GOLDEN / "cases").iterdir())} | {
    "avro": GOLDEN / "avro" / "savepoint",
    **{f"sql-{path.name}": path for path in sorted((GOLDEN / "sql").iterdir())},
    **{
        f"sql-plan-{job}": GOLDEN / "plans" / job / "savepoint"
        for job in ("count_distinct", "cumulate_of_distinct_in_two_phases", "sort", "right_join_of_counts")
    },
}
"""Undamaged savepoints by their names."""
SETTINGS = (ReadSettings(exact=True), ReadSettings(batch_rows=3, block_bytes=13))


def files_of(name: str) -> list[str]:
    """Return the names of the files of a savepoint; of RocksDB's own, the metadata alone is read."""
    return sorted(path.name for path in FOLDERS[name].iterdir() if path.is_file())


def request(name: str, file: int, damages: list[Damage], settings: int) -> Any:
    """Return what `fuzz.trials` asks this program."""
    names = files_of(name)
    return [name, names[file % len(names)], [astuple(damage) for damage in damages], settings]


def rows(folder: Path, settings: ReadSettings) -> dict[str, Any]:
    """Return the tables of all states of a savepoint, or the texts of their errors."""
    found: dict[str, Any] = {}
    for operator in savepoints.open(folder, settings=settings).operators:
        try:
            states = operator.states
        except SavepointError as failure:
            found[operator.operator_id] = failure
            continue
        for name, state in states.items():
            try:
                table = state.to_arrow()
                table.validate(full=True)
            except SavepointError as failure:
                found[f"{operator.operator_id} {name}"] = failure
                continue
            found[f"{operator.operator_id} {name}"] = table
    return found


@cache
def whole(name: str, settings: int) -> dict[str, Any] | str:
    """Return what an undamaged savepoint holds."""
    try:
        return rows(FOLDERS[name], SETTINGS[settings])
    except SavepointError as failure:
        return str(failure)


def outcome(name: str, file: str, damages: list[Damage], settings: int) -> dict[str, Any]:
    """Read a savepoint with a damaged file; say what became of it.

    Returns
    -------
    dict
        "outcome": "refused", "the same rows", "other rows"; or what must not be: "raw error", "nameless error".
        "detail": the message.
    """
    expected = whole(name, settings)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "savepoint"
        shutil.copytree(FOLDERS[name], folder)
        data = (folder / file).read_bytes()
        (folder / file).chmod(0o644)
        (folder / file).write_bytes(damaged(data, damages))
        try:
            found = rows(folder, SETTINGS[settings])
        except SavepointError as failure:
            named = failure.file is not None and str(folder) in str(failure)
            return {"outcome": "refused" if named else "nameless error", "detail": f"{failure}"}
        except Exception as failure:
            return {"outcome": "raw error", "detail": f"{type(failure).__name__}: {failure}"}
    failures = [each for each in found.values() if isinstance(each, SavepointError)]
    if any(each.file is None for each in failures):
        return {"outcome": "nameless error", "detail": str(failures)}
    if failures:
        return {"outcome": "refused", "detail": str(failures[0])}
    is_same = (
        isinstance(expected, dict)
        and found.keys() == expected.keys()
        and all(
            not isinstance(expected[key], SavepointError) and table.equals(expected[key])
            for key, table in found.items()
        )
    )
    return {"outcome": "the same rows" if is_same else "other rows", "detail": ""}


def _trial(asked: Any) -> dict[str, Any]:
    name, file, damages, settings = asked
    return outcome(name, file, [Damage(*damage) for damage in damages], settings)


if __name__ == "__main__":
    serve(_trial)
    sys.exit(0)
