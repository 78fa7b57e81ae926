"""The free space of a disk, for messages about what could not be written."""

import os
import shutil
from pathlib import Path


def free_room(path: str | os.PathLike[str]) -> str:
    """Return how many bytes are free at a path, as a sentence after a space for the end of a message.

    The path, of a file or directory, need not exist. The sentence is empty for URIs, or if the space is unknown.
    """
    name = os.fspath(path)
    if "://" in name:
        return ""
    folder = Path(name)
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return f" {shutil.disk_usage(folder).free:,} bytes are free there."
    except OSError:
        return ""
