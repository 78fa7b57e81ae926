"""What errors say of the room that is left."""

import errno
import re
from pathlib import Path

import pytest

from flinkcore._internal.io.free_room import directory_remedy, free_room


def test_the_room_is_that_of_the_nearest_folder_that_there_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "not" / "there"):
        assert re.fullmatch(rf"[\d,]+ bytes are free in {tmp_path}", free_room(path))


@pytest.mark.parametrize("path", ["s3://bucket/folder", "/" + 300 * "long"])
def test_of_a_path_that_cannot_be_looked_at_nothing_is_said(path: str) -> None:
    assert free_room(path) == ""


def test_a_folder_that_may_not_be_looked_into_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    assert free_room(tmp_path / "results") == ""


def test_only_a_full_disk_asks_for_more_room(tmp_path: Path) -> None:
    full = directory_remedy(tmp_path, OSError(errno.ENOSPC, "No space left on device"))
    assert re.fullmatch(
        rf"a directory on a disk with more room \([\d,]+ bytes are free in {tmp_path}\)", full
    )
    wrong = directory_remedy(tmp_path / "file" / "x", NotADirectoryError(errno.ENOTDIR, "Not a directory"))
    assert wrong == "a directory that can be made and written"
