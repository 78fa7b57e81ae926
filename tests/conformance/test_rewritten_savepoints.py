"""Savepoints of real Flink that flinkcore writes again hold the same, to the byte where Flink defines the order."""

import json
from pathlib import Path

import pytest
from equipment.golden_savepoints import facts_of
from equipment.rewritten_savepoints import rewrite, state_files

from flinkcore import savepoints

GOLDEN = Path(__file__).parents[1] / "golden" / "savepoints"
OTHER_ZERO = "keys_big_dec"
"""Java has several objects for the number 0, of which BigIntSerializer writes one in another way."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = Path(metafunc.config.getoption("--golden-savepoints") or GOLDEN) / "cases"
    cases = [path for path in sorted(folder.iterdir()) if "refuse" not in expected_of(path)]
    if "sorted_case" in metafunc.fixturenames:
        found = [
            path
            for path in cases
            if "rocks" in path.name and not compressed(path) and not path.name.startswith(OTHER_ZERO)
        ]
        metafunc.parametrize("sorted_case", found, ids=[path.name for path in found])
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases, ids=[path.name for path in cases])


def expected_of(case: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    return found


def compressed(case: Path) -> bool:
    return bool(expected_of(case).get("compressed"))


@pytest.mark.parametrize(("is_compressed", "parallelism"), [(False, 0), (True, 1), (True, 5)])
def test_a_written_savepoint_holds_what_was_read(
    case: Path, tmp_path: Path, is_compressed: bool, parallelism: int
) -> None:
    first = savepoints.open(case / "savepoint", exact=True)
    rewrite(first, tmp_path / "again", is_compressed=is_compressed, parallelism=parallelism)
    again = savepoints.open(tmp_path / "again", exact=True)
    assert [line for line in facts_of(again) if line.startswith("[")] == [
        line for line in facts_of(first) if line.startswith("[")
    ]


def test_states_of_rocksdb_are_written_byte_for_byte(sorted_case: Path, tmp_path: Path) -> None:
    first = savepoints.open(sorted_case / "savepoint", exact=True)
    rewrite(first, tmp_path / "again")
    assert dict(state_files(savepoints.open(tmp_path / "again"))) == dict(state_files(first))
