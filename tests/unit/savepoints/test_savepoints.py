"""Savepoints of Flink are opened from their metadata: operators by uid, files where they are, known versions."""

import shutil
import struct
from pathlib import Path

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from equipment.written_savepoints import LONG, STRING, i32, i64, state, string, write_savepoint

from flinkcore import savepoints
from flinkcore.errors import ConfigurationError, SavepointError, UnsupportedSavepointError
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.operator_ids import operator_id

CASES = Path(__file__).parents[2] / "golden" / "savepoints" / "cases"
COUNTS = [state("count", "VALUE", LONG)]
GROUPS = {3: [(0, b"\x03" + string("a") + b"\0", i64(7))], 9: [(0, b"\x09" + string("b") + b"\0", i64(-1))]}


def rows(folder: Path, uid: str = "op", name: str = "count") -> list[dict[str, object]]:
    found: list[dict[str, object]] = savepoints.open(folder).operator(uid).state(name).to_arrow().to_pylist()
    return found


ROWS = [{"key_group": 3, "key": "a", "value": 7}, {"key_group": 9, "key": "b", "value": -1}]


def test_an_operator_is_found_by_its_uid_and_by_its_id(tmp_path: Path) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS, uid="counter")
    assert savepoints.open(folder).operators[0].uid is None  # version 3 has ids alone
    assert rows(folder, "counter") == rows(folder, operator_id("counter")) == ROWS


def test_ids_are_those_of_flink() -> None:
    savepoint = savepoints.open(CASES / "chain-heap1" / "savepoint")
    named = [each for each in savepoint.operators if each.uid is not None]
    assert named
    for operator in named:
        assert operator.operator_id == operator_id(operator.uid or "")


@pytest.mark.parametrize("case", ["values-heap1", "ttl-heap3", "count_timers-heap3", "sliding_reduce-heap3"])
def test_rows_of_some_keys_are_those_of_all_rows(case: str) -> None:
    def chosen(keys: pa.Array) -> npt.NDArray[np.int64]:
        return np.arange(1, len(keys), 2)

    n_rows = 0
    for operator in savepoints.open(CASES / case / "savepoint", exact=True).operators:
        for state_ in operator.states.values():
            if isinstance(state_, KeyedState):
                of_keys = pa.Table.from_batches(state_.batches_of_keys(chosen), state_.schema)
                rows_of_all = [batch.take(pa.array(chosen(batch["key"]))) for batch in state_.batches()]
                expected = pa.Table.from_batches(rows_of_all, state_.schema)
                assert repr(of_keys.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself
                n_rows += of_keys.num_rows
    assert n_rows > 5


@pytest.mark.parametrize("is_compressed", [False, True])
def test_states_in_a_file_are_found_where_the_metadata_says(tmp_path: Path, is_compressed: bool) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS, file="f", is_compressed=is_compressed)
    assert rows(folder) == ROWS


def test_states_of_a_savepoint_that_was_moved_are_found_beside_its_metadata(tmp_path: Path) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS, file="f")
    moved = folder.rename(tmp_path / "elsewhere")
    assert rows(moved) == ROWS


def test_a_savepoint_may_be_named_by_its_metadata(tmp_path: Path) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS)
    assert rows(folder / "_metadata") == ROWS


def test_a_savepoint_is_read_from_a_file_system() -> None:
    files = fsspec.filesystem("memory")
    case = CASES / "count_timers-heap3" / "savepoint"
    files.put(str(case), "/savepoints/a", recursive=True)
    try:
        operator = savepoints.open("/savepoints/a", filesystem=files).operator("counter")
        found = operator.state("count").to_arrow()
    finally:
        files.rm("/savepoints", recursive=True)
    assert found.equals(savepoints.open(case).operator("counter").state("count").to_arrow())


def test_key_groups_can_be_read_by_themselves() -> None:
    operator = savepoints.open(CASES / "count_timers-heap3" / "savepoint").operator("counter")
    for each in operator.states.values():
        parts = [each.batches(range(i, i + 250)) for i in range(0, 1000, 250)]  # type: ignore[call-arg]
        groups = [[group for batch in part for group in batch["key_group"].to_pylist()] for part in parts]
        assert sorted(group for part in groups for group in part) == sorted(
            each.to_arrow()["key_group"].to_pylist()
        )
        assert all(group // 250 == i for i, part in enumerate(groups) for group in part)


def test_batches_have_no_more_rows_than_asked_for() -> None:
    settings = savepoints.ReadSettings(batch_rows=7)
    savepoint = savepoints.open(CASES / "count_timers-heap1" / "savepoint", settings=settings)
    for each in savepoint.operator("counter").states.values():
        sizes = [batch.num_rows for batch in each.batches()]
        assert max(sizes) == 7
        assert sum(sizes) == each.count()


@pytest.mark.parametrize("version", [2, 7, -1])
def test_another_version_is_refused_with_what_to_do(tmp_path: Path, version: int) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS)
    data = bytearray((folder / "_metadata").read_bytes())
    data[4:8] = i32(version)
    (folder / "_metadata").write_bytes(data)
    with pytest.raises(
        UnsupportedSavepointError, match=rf"version {version}, and 3 to 6 are read.*take a savepoint"
    ):
        savepoints.open(folder)


def test_a_folder_without_metadata_is_not_a_savepoint(tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match=r"it has no file _metadata.*flinkcore checkpoint show"):
        savepoints.open(tmp_path)
    with pytest.raises(ConfigurationError, match="is empty"):
        savepoints.open("")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    case = shutil.copytree(CASES / "count_timers-heap3" / "savepoint", tmp_path / "s")
    file = next(path for path in case.iterdir() if path.name != "_metadata")
    file.unlink()
    with pytest.raises(SavepointError, match="does not exist, which the savepoint") as raised:
        [each.states for each in savepoints.open(case).operators]
    assert raised.value.file == str(file)


def test_a_file_of_another_size_is_damaged(tmp_path: Path) -> None:
    folder = write_savepoint(tmp_path / "s", COUNTS, GROUPS, file="f")
    (folder / "f").write_bytes((folder / "f").read_bytes()[:-3])
    with pytest.raises(SavepointError, match="bytes instead of") as raised:
        rows(folder)
    assert raised.value.offset == (folder / "f").stat().st_size


def test_a_file_outside_of_the_savepoint_is_refused(tmp_path: Path) -> None:
    case = CASES / "count_timers-heap3" / "savepoint"
    name = next(path.name for path in case.iterdir() if path.name != "_metadata")
    data = (case / "_metadata").read_bytes()
    for forged in ("../" + name[3:], "/" + name[1:]):
        folder = tmp_path / forged.strip("./")
        folder.mkdir()
        (folder / "_metadata").write_bytes(data.replace(name.encode(), forged.encode()))
        with pytest.raises(SavepointError, match="is not in it"):
            [each.states for each in savepoints.open(folder).operators]


def test_a_state_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    savepoint = savepoints.open(write_savepoint(tmp_path / "s", COUNTS, GROUPS))
    with pytest.raises(ConfigurationError, match=r"has no state 'other'; it has \['count'\]"):
        savepoint.operator("op").state("other")
    with pytest.raises(ConfigurationError, match="has no operator 'other'"):
        savepoint.operator("other")


def test_states_after_an_unknown_serializer_are_reported(tmp_path: Path) -> None:
    unknown = struct.pack(">H", 11) + b"com.acme.Ser"[:11] + i32(1)
    states = [*COUNTS, state("own", "VALUE", unknown), state("more", "VALUE", LONG)]
    operator = savepoints.open(write_savepoint(tmp_path / "s", states, GROUPS)).operator("op")
    assert list(operator.states) == ["count"]
    assert operator.state("count").to_arrow().num_rows == 2
    (reason,) = operator.unread
    assert "state 'own' and those after it cannot be read" in reason
    assert "com.acme.Se" in reason
    with pytest.raises(ConfigurationError, match=r"com\.acme\.Se"):
        operator.state("more")


def test_a_key_in_two_key_groups_is_two_rows(tmp_path: Path) -> None:
    groups = {
        1: [(0, b"\x01" + string("k") + b"\0", i64(1))],
        2: [(0, b"\x02" + string("k") + b"\0", i64(2))],
    }
    found = rows(write_savepoint(tmp_path / "s", COUNTS, groups, STRING))
    assert [row["key_group"] for row in found] == [1, 2]
