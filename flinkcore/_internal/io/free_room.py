"""What to do where something could not be written: how much room is left, or a better directory."""

import errno
import os
import shutil
from pathlib import Path

from flinkcore._internal.io.locations import is_local

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def directory_remedy(path: str | os.PathLike[str], failure: BaseException) -> str:
    """Return the end of a sentence that begins with "give".

    Parameters
    ----------
    path
        Path of a file or directory, which may not exist.
    failure
        Error of the file system.
    """
    if getattr(failure, "errno", None) in _FULL:
        room = free_room(path)
        return f"a directory on a disk with more room{f' ({room})' if room else ''}"
    return "a directory that can be made and written"


def free_room(path: str | os.PathLike[str]) -> str:
    """Return how many bytes are free at a path, in words.

    The text is empty where that is unknown: for a URI, or a folder that may not be looked into.
    """
    if not is_local(path):
        return ""
    folder = Path(path)
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return f"{shutil.disk_usage(folder).free:,} bytes are free in {folder}"
    except OSError:
        return ""
