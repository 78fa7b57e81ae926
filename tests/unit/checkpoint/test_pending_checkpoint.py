"""A checkpoint in the making: parallel tasks, tries that do not count, errors and crashes."""

import errno
import pickle
from pathlib import Path
from typing import Any

import pytest
from equipment.checkpoints import KEY_GROUPS, keyed_state, timers, two_subtasks, write_checkpoint
from equipment.killed_programs import steps_of_killed
from equipment.sanitizers import no_forks

from flinkcore.checkpoint import Checkpoint, CheckpointDirectory, OperatorSnapshot, PendingCheckpoint
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError


def values(path: Path) -> dict[Any, Any]:
    return {
        key: value
        for snapshot in Checkpoint.open(path).restore("op", (0, 7), KEY_GROUPS)
        for key, _, value in snapshot.keyed_state["v"].entries()
    }


def files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_tasks_write_with_what_they_get_by_pickle(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    shipped = pickle.dumps(pending)
    parts = []
    for subtask, snapshot in enumerate(two_subtasks({1: "a"}, {5: "b"})):
        part = pickle.loads(shipped).writer().write("op", subtask, snapshot)
        parts.append(pickle.loads(pickle.dumps(part)))
    pending.commit(reversed(parts))
    assert values(tmp_path) == {1: "a", 5: "b"}


def test_nobody_sees_a_checkpoint_before_it_is_committed(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    part = pending.writer().write("op", 0, OperatorSnapshot((0, 7)))
    with pytest.raises(SourceError, match="never completed"):
        Checkpoint.open(tmp_path)
    pending.commit([part])
    assert Checkpoint.open(tmp_path).uids == ["op"]


def test_a_new_checkpoint_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"op": two_subtasks({0: 1}, {})})
    before = files(tmp_path)
    write_checkpoint(tmp_path, {"op": two_subtasks({0: 2}, {})})
    assert values(tmp_path) == {0: 2}
    assert len(files(tmp_path)) == len(before)
    assert not set(files(tmp_path)) & set(before)


def test_parts_of_tries_that_do_not_count_are_removed(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    first, second = two_subtasks({0: 1}, {4: 2})
    lost = pending.writer().write("op", 0, two_subtasks({0: "lost"}, {})[0])
    parts = [pending.writer().write("op", 0, first), pending.writer().write("op", 1, second)]
    pending.commit(parts)
    assert values(tmp_path) == {0: 1, 4: 2}
    assert not any(table.file in files(tmp_path) for table in lost.tables)


def test_a_try_that_writes_after_the_end_changes_nothing(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    first, second = two_subtasks({0: 1}, {})
    pending.commit([pending.writer().write("op", 0, first), pending.writer().write("op", 1, second)])
    pending.writer().write("op", 0, two_subtasks({0: "late"}, {})[0])
    assert values(tmp_path) == {0: 1}
    write_checkpoint(tmp_path, {"op": two_subtasks({0: 2}, {})})
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], "without a part"),
        ([0], "key groups 0 to 3, but there are 8"),
        ([1], r"subtasks \[1\]"),
        ([0, 0, 1], r"subtasks \[0, 0, 1\]"),
    ],
)
def test_parts_that_are_not_all_are_no_checkpoint(tmp_path: Path, chosen: list[int], message: str) -> None:
    write_checkpoint(tmp_path, {"op": two_subtasks({0: "old"}, {})})
    before = files(tmp_path)
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    parts = [pending.writer().write("op", i, s) for i, s in enumerate(two_subtasks({0: "new"}, {}))]
    with pytest.raises(DataError, match=message), pending:
        pending.commit([parts[i] for i in chosen])
    assert values(tmp_path) == {0: "old"}
    assert files(tmp_path) == before


def test_a_part_whose_file_is_gone_is_noticed(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    part = pending.writer().write("op", 0, OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({1: 1})}))
    (tmp_path / part.tables[0].file).unlink()
    with pytest.raises(DataError, match="has no bytes"):
        pending.commit([part])


@pytest.mark.parametrize(
    ("snapshot", "error", "message"),
    [
        (
            OperatorSnapshot((0, 3), keyed_state={"a": keyed_state({1: 1}), "v": keyed_state({2: {1}})}),
            SchemaError,
            "value of the state 'v'",
        ),
        (
            OperatorSnapshot((0, 3), keyed_state={"v": keyed_state({5: 1})}),
            DataError,
            "beyond the subtask's own 0 to 3",
        ),
        (OperatorSnapshot((0, 3), timers={"t": timers([(9, 4)])}), DataError, "timers 't'"),
        (OperatorSnapshot((0, 8), keyed_state={"v": keyed_state({1: 1})}), DataError, "not within the 8"),
        (OperatorSnapshot(keyed_state={"v": keyed_state({1: 1})}), DataError, "needs a key_group_range"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(
    tmp_path: Path, snapshot: OperatorSnapshot, error: type[Exception], message: str
) -> None:
    with PendingCheckpoint.begin(tmp_path, KEY_GROUPS) as pending:
        with pytest.raises(error, match=message):
            pending.writer().write("op", 0, snapshot)
        assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("operation", "times"),
    [*(("open_output", i) for i in (1, 2, 3)), *(("sync", i) for i in (1, 2, 3)), ("move", 1), ("sizes", 1)],
)
def test_an_error_while_writing_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, times: int
) -> None:
    write_checkpoint(tmp_path, {"op": two_subtasks({0: "old"}, {})})
    before = files(tmp_path)
    works = getattr(CheckpointDirectory, operation)
    calls = []

    def fails(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == times:
            raise OSError(errno.ENOSPC, "No space left on device")
        return works(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointDirectory, operation, fails)
        with pytest.raises(OSError, match="No space left"):
            write_checkpoint(tmp_path, {"op": two_subtasks({0: "new"}, {})})
    assert values(tmp_path) == {0: "old"}
    assert files(tmp_path) == before


def test_an_error_of_the_clean_up_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, {"op": two_subtasks({0: "old"}, {})})

    def fails(*arguments: Any) -> Any:
        raise PermissionError("may not delete")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointDirectory, "delete_folder", fails)
        with pytest.warns(RuntimeWarning, match="files of older checkpoints"):
            write_checkpoint(tmp_path, {"op": two_subtasks({0: "new"}, {})})
    assert values(tmp_path) == {0: "new"}
    write_checkpoint(tmp_path, {"op": two_subtasks({0: "newer"}, {})})
    assert len(files(tmp_path)) == 3


def test_a_directory_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"has 'data.parquet' in it"):
        PendingCheckpoint.begin(tmp_path, KEY_GROUPS)


@pytest.mark.parametrize("max_parallelism", [0, -1, 2**15 + 1])
def test_an_impossible_number_of_key_groups_is_refused(tmp_path: Path, max_parallelism: int) -> None:
    with pytest.raises(ConfigurationError, match="max_parallelism"):
        PendingCheckpoint.begin(tmp_path / "c", max_parallelism)
    assert not (tmp_path / "c").exists()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(
        SourceError, match=r"a checkpoint cannot be written to .*file/deeper.*: .* Give stop_with_checkp"
    ):
        PendingCheckpoint.begin(tmp_path / "file" / "deeper", KEY_GROUPS)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the path of a checkpoint is empty"):
        PendingCheckpoint.begin("", KEY_GROUPS)


def test_of_two_jobs_in_one_directory_the_second_fails(tmp_path: Path) -> None:
    slow = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    part = slow.writer().write("op", 0, OperatorSnapshot((0, 7)))
    write_checkpoint(tmp_path, {"quick": [OperatorSnapshot((0, 7))]})
    with pytest.raises((ConfigurationError, OSError)):
        slow.commit([part])
    slow.abort()
    assert Checkpoint.open(tmp_path).uids == ["quick"]


def test_to_abort_removes_what_was_written_but_not_what_was_committed(tmp_path: Path) -> None:
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    part = pending.writer().write("op", 0, OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({1: 1})}))
    pending.abort()
    assert files(tmp_path) == []
    pending = PendingCheckpoint.begin(tmp_path, KEY_GROUPS)
    part = pending.writer().write("op", 0, OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({1: 1})}))
    pending.commit([part])
    pending.abort()
    assert values(tmp_path) == {1: 1}


KILLED_AT_EVERY_STEP = """
    import faulthandler, os, signal, sys
    from pathlib import Path
    import pyarrow as pa
    from equipment.checkpoints import KEY_GROUPS, two_subtasks, write_checkpoint
    from flinkcore.checkpoint import Checkpoint, CheckpointDirectory

    path = Path(sys.argv[1], "c")
    pa.set_cpu_count(1)

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def kill_at(step: int) -> None:
        '''Let this process be killed before the storage does something for the step-th time, or half-way.'''
        steps = iter(range(step, -1, -1))
        def killing(works):
            def call(storage, *arguments):
                if next(steps) == 0:
                    kill()
                result = works(storage, *arguments)
                if works.__name__ == "open_output" and next(steps) == 0:
                    result.write(b"half a file")
                    result.flush()
                    kill()
                return result
            return call
        for name in ("create_folder", "open_output", "sync", "move", "delete_folder", "delete_file"):
            setattr(CheckpointDirectory, name, killing(getattr(CheckpointDirectory, name)))

    def value() -> int:
        (low, _) = Checkpoint.open(path).restore("op", (0, 7), KEY_GROUPS)
        return low.keyed_state["v"].values[0]

    write_checkpoint(path, {"op": two_subtasks({0: 0}, {})})
    held, step, seen = 0, 0, set()
    while True:
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(120, exit=True)  # a child that hangs says where
            kill_at(step)
            write_checkpoint(path, {"op": two_subtasks({0: held + 1}, {})})
            os._exit(0)
        _, status = os.waitpid(child, 0)
        now = value()
        assert now in (held, held + 1), (now, held, step)
        seen.add((status, now - held))
        held = now
        if status == 0:
            break
        step += 1
    assert held and seen == {(9, 0), (9, 1), (0, 1)}, seen
    assert len([file for file in path.rglob("*") if file.is_file()]) == 3
    print(step)
"""


@no_forks
def test_a_process_killed_at_any_step_leaves_the_checkpoint_before_or_the_new_one(tmp_path: Path) -> None:
    assert steps_of_killed(KILLED_AT_EVERY_STEP, tmp_path) > 10
