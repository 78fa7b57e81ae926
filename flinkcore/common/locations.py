"""Paths as all processes of a job find them."""

import os


def absolute_location(path: str | os.PathLike[str]) -> str:
    """Return a URI as it is, and a local path from the root: another process may have another working directory."""
    name = os.fspath(path)
    return name if "://" in name else os.path.abspath(os.path.expanduser(name))
