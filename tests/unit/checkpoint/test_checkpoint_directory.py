"""Checkpoints in memory behave as on disk."""

from pathlib import Path

import pytest
from equipment.checkpoints import KEY_GROUPS, keyed_state

from flinkcore.checkpoint import Checkpoint, CheckpointDirectory, OperatorSnapshot, PendingCheckpoint
from flinkcore.checkpoint.checkpoint_directory import MemoryCheckpointDirectory
from flinkcore.checkpoint.checkpoint_manifest import CheckpointManifest, newest_manifest
from flinkcore.errors import SourceError


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointDirectory:
    return MemoryCheckpointDirectory() if request.param == "memory" else CheckpointDirectory.at(tmp_path)


def complete(storage: CheckpointDirectory, number: int, value: str) -> Checkpoint:
    folder = f"data-{number:032x}"
    storage.create_folder(folder)
    with PendingCheckpoint(storage, folder, number, KEY_GROUPS) as pending:
        snapshot = OperatorSnapshot((0, KEY_GROUPS - 1), 5, keyed_state={"v": keyed_state({3: value})})
        pending.commit([pending.writer().write("count", 0, snapshot)])
    newest = newest_manifest(storage.names())
    assert newest is not None
    return Checkpoint(
        storage, CheckpointManifest.of_json(storage.read(newest[1], 10_000).to_pybytes(), newest[1])
    )


def value_in(checkpoint: Checkpoint) -> list[str]:
    (snapshot,) = checkpoint.restore("count", (0, KEY_GROUPS - 1), KEY_GROUPS)
    return list(snapshot.keyed_state["v"].values)


def test_a_checkpoint_is_completed_and_read(storage: CheckpointDirectory) -> None:
    assert value_in(complete(storage, 1, "a")) == ["a"]


def test_the_next_checkpoint_replaces_it(storage: CheckpointDirectory) -> None:
    first = complete(storage, 1, "a")
    assert value_in(complete(storage, 2, "b")) == ["b"]
    assert sorted(storage.names()) == [f"data-{2:032x}/", "manifest-000002.json"]
    with pytest.raises(SourceError, match="is missing"):
        value_in(first)


def test_a_checkpoint_that_fails_leaves_nothing(storage: CheckpointDirectory) -> None:
    folder = f"data-{1:032x}"
    storage.create_folder(folder)
    pending = PendingCheckpoint(storage, folder, 1, KEY_GROUPS)
    pending.writer().write("count", 0, OperatorSnapshot((0, 7), keyed_state={"v": keyed_state({3: "a"})}))
    assert len(storage.sizes(folder)) == 1
    pending.abort()
    assert storage.names() == []
    storage.delete_file("none of this name")
