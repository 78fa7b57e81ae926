"""How much room is left where something could not be written."""

import os
import shutil
from pathlib import Path


def free_room(path: str | os.PathLike[str]) -> str:
    """Say how much room is left at a path.

    Parameters
    ----------
    path : str or path
        Of a file or directory that need not exist; a URI says nothing.

    Returns
    -------
    str
        A sentence after a space, for the end of a message; empty where nobody knows.
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
