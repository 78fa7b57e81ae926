"""What errors say of the room that is left."""

import re
from pathlib import Path

import pytest

from flinkcore.common.free_room import free_room


def test_the_room_is_that_of_the_nearest_folder_that_there_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "not" / "there"):
        assert re.fullmatch(r" [\d,]+ bytes are free there\.", free_room(path))


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
