"""Savepoints that real Flink wrote hold what Flink itself read back from them: keys, namespaces, values, timers."""

import json
from pathlib import Path
from typing import Any

import pytest
from equipment.golden_savepoints import expected_facts, facts_of

from flinkcore import savepoints
from flinkcore.errors import SavepointError, UnsupportedSavepointError
from flinkcore.savepoints import ReadSettings

GOLDEN = Path(__file__).parents[1] / "golden" / "savepoints"
TINY = ReadSettings(exact=True, batch_rows=1, batch_bytes=1, block_bytes=7)
"""Sizes with which every entry is cut into blocks, and every row is a batch."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = Path(metafunc.config.getoption("--golden-savepoints") or GOLDEN) / "cases"
    if not folder.is_dir():
        raise pytest.UsageError(f"--golden-savepoints: {folder} is not a directory")
    found = {path: "refuse" in expected_of(path) for path in sorted(folder.iterdir())}
    for argument, is_refused in (("case", False), ("refused_case", True)):
        if argument in metafunc.fixturenames:
            cases = [path for path, refused in found.items() if refused is is_refused]
            metafunc.parametrize(argument, cases, ids=[path.name for path in cases])


def expected_of(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("settings", [ReadSettings(exact=True), TINY], ids=["usual", "tiny"])
def test_a_savepoint_holds_what_flink_reads_from_it(case: Path, settings: ReadSettings) -> None:
    assert facts_of(savepoints.open(case / "savepoint", settings=settings)) == expected_facts(
        expected_of(case)
    )


def test_states_are_counted_without_decoding_them(case: Path) -> None:
    for operator in savepoints.open(case / "savepoint", exact=True).operators:
        for state in operator.states.values():
            assert state.count() == state.to_arrow().num_rows


def test_what_cannot_be_read_is_refused(refused_case: Path) -> None:
    expected = expected_of(refused_case)
    if expected["refuse"] == "native format" and expected["backend"] == "rocksdb":
        with pytest.raises(UnsupportedSavepointError, match="flink savepoint --type canonical"):
            savepoints.open(refused_case / "savepoint")
        return
    savepoint = savepoints.open(refused_case / "savepoint", exact=True)
    states = [state for operator in savepoint.operators for state in operator.states.values()]
    if expected["refuse"] == "unregistered subclass of a POJO":
        with pytest.raises(SavepointError, match="has no serializer of the subclass"):
            states[0].to_arrow()
    elif expected["refuse"] == "serializer of Kryo":
        assert {state.undecodable for state in states} & {"Kryo<flinksp.Pojos$Opaque>"}
    else:
        assert [state.to_arrow().num_rows for state in states]
