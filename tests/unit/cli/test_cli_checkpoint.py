"""`flinkcore checkpoint show`: what people see of a checkpoint."""

import re
from pathlib import Path

import pytest
from equipment.checkpoints import keyed_state, timers, write_checkpoint

from flinkcore.checkpoint import OperatorSnapshot, SplitPosition
from flinkcore.cli import main
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.operators.state import DistributionMode, OperatorStateSnapshot, SerializedValue

DAY = 86_400_000
PROCESSING_TIME = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rules = OperatorStateSnapshot(DistributionMode.BROADCAST, [("a", 1), ("b", 2)])
    buffered = OperatorStateSnapshot(DistributionMode.SPLIT_DISTRIBUTE, [7])
    first = OperatorSnapshot(
        (0, 3),
        DAY,
        {"user-timers": timers([(DAY, 1), (2 * DAY, 2)], [(MAX_TIMESTAMP, 0)]), "windows": timers()},
        {
            "count": keyed_state({0: 5, 1: 6}),
            "seen": keyed_state({2: ("x", DAY)}, ttl_time=PROCESSING_TIME),
            "names": keyed_state({2: [("x", 0)]}, StateDescriptor.Type.LIST, PROCESSING_TIME, ("w", 1)),
            "last": keyed_state({3: {"k": None, "l": (b"v", 0)}}, StateDescriptor.Type.MAP, PROCESSING_TIME),
            "own": keyed_state({1: SerializedValue("pickle", b"abc")}),
        },
        {"rules": rules, "buffered": buffered},
    )
    second = OperatorSnapshot(
        (4, 7),
        2 * DAY,
        {"user-timers": timers([(5 * DAY, 7)])},
        {"count": keyed_state({4: "many"})},
        {"rules": rules},
    )
    source = OperatorSnapshot(
        watermark_ms=MIN_TIMESTAMP,
        splits=[SplitPosition(f"part-{i}", 100 + i, {"max": i} if i else None) for i in range(3)],
    )
    write_checkpoint(tmp_path / "c", {"op": [first, second], "source": [source]})
    return tmp_path / "c"


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["checkpoint", "show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_overview_tells_all_there_is(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, path, "--limit", 2)
    text = re.sub(r"written \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "written NOW", text)
    assert text == (
        f"""\
checkpoint {path}
written NOW, format version 2, 8 key groups

operator 'op': 2 subtasks, watermark 1970-01-02 00:00:00.000Z to 1970-01-03 00:00:00.000Z
  value state 'count': int | str by int, 3 entries
    key groups 0-3: 2
    key groups 4-7: 1
  value state 'seen': str by int, time to live in processing time, 1 entry
  list state 'names': list[str] by int, time to live in processing time, 1 entry
  map state 'last': dict[str, None | bytes] by int, time to live in processing time, 1 entry
  value state 'own': serialized by pickle by int, 1 entry
  timers 'user-timers': by int
    event time: 3, from 1970-01-02 00:00:00.000Z to 1970-01-06 00:00:00.000Z
      key groups 0-3: 2
      key groups 4-7: 1
    processing time: 1, at the end of time
      key groups 0-3: 1
      key groups 4-7: 0
  timers 'windows': none
  broadcast state 'rules': tuple[str, int], 2 entries
  operator state 'buffered' (split): int, 1 element

operator 'source': 1 subtask, watermark none yet
  3 splits
    'part-0': position 100
    'part-1': position 101, state {{'max': 1}}
    … 1 more
"""
    )


def test_one_operator_can_be_chosen(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, path, "--operator", "source")
    assert "'part-2'" in text
    assert "'op'" not in text


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["count"], ["0: 5", "1: 6", "4: 'many'"]),
        (["count", "--limit", "1"], ["0: 5", "… 2 more"]),
        (["count", "--key", "4"], ["4: 'many'"]),
        (["count", "--key", "5"], []),
        (["seen"], ["2: 'x' (last access 1970-01-02 00:00:00.000Z)"]),
        (["names"], ["2 in ('w', 1): ['x' (last access 1970-01-01 00:00:00.000Z)]"]),
        (["last"], ["3: {'k': None, 'l': b'v' (last access 1970-01-01 00:00:00.000Z)}"]),
        (["own"], ["1: <3 bytes by 'pickle'>"]),
        (["rules"], ["'a': 1", "'b': 2"]),
        (["rules", "--key", "b"], ["'b': 2"]),
        (["buffered"], ["7"]),
    ],
    ids=lambda case: " ".join(case),
)
def test_the_entries_of_a_state_are_shown(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], lines: list[str]
) -> None:
    assert shown(capsys, path, "--state", *arguments).splitlines() == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--state", "counts"], "there is no state 'counts'"),
        (["--operator", "sink"], "there is no operator 'sink'; there are ['op', 'source']"),
        (["--key", "1"], "--key needs --state"),
        (["--state", "buffered", "--key", "1"], "this one is a list"),
        (["--limit", "-1"], "--limit is -1"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["checkpoint", "show", str(path), *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("flinkcore: ")
    assert error.count("\n") == 1


def test_a_state_that_several_operators_have_needs_the_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = [OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({1: "a"})})]
    two = [OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({1: "b"})})]
    write_checkpoint(tmp_path, {"one": one, "two": two})
    assert main(["checkpoint", "show", str(tmp_path), "--state", "v"]) == 1
    assert "['one', 'two']; choose one with --operator" in capsys.readouterr().err
    assert shown(capsys, tmp_path, "--state", "v", "--operator", "two") == "1: 'b'\n"


def test_a_directory_without_a_checkpoint_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        assert main(["checkpoint", "show", str(directory)]) == 1
        reason = "it does not exist, or is empty. Give the directory that a job has written"
        assert capsys.readouterr().err == f"flinkcore: {directory} is not a checkpoint: {reason}\n"
    (tmp_path / "results.parquet").touch()
    assert main(["checkpoint", "show", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(
        f"flinkcore: {tmp_path} is not a checkpoint: there is no manifest"
    )
