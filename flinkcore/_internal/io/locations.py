"""Paths as all processes of a job find them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from flinkcore.errors import SourceError


@contextmanager
def utf_8_paths() -> Iterator[None]:
    """Let a path that is not UTF-8, which Arrow does not open, be a SourceError that shows it."""
    try:
        yield
    except UnicodeError as failure:
        if not isinstance(failure, UnicodeEncodeError | UnicodeDecodeError):
            raise
        path = failure.object
        text = path if isinstance(path, str) else path.decode(errors="surrogateescape")
        shown = text.encode(errors="backslashreplace").decode()
        raise SourceError(
            f"the path {shown} is not UTF-8, and cannot be opened: rename the file or folder", file=shown
        ) from failure


def absolute_location(path: str | os.PathLike[str]) -> str:
    """Return a URI as it is, and a local path from the root: another process may have another working directory.

    Raises
    ------
    SourceError
        If it is not UTF-8.
    """
    name = os.fspath(path)
    with utf_8_paths():
        name.encode()
    return name if "://" in name else os.path.abspath(os.path.expanduser(name))


def path_text(path: str) -> str:
    """Return a path or URI as Flink's ``Path`` shows it: ``file:/data`` for ``file:///data/``."""
    scheme, found, rest = path.partition(":///")
    shown = f"{scheme}:/{rest}" if found else path
    return shown.rstrip("/") or "/" if not shown.endswith(":/") else shown


def path_in_file_system(path: str) -> str:
    """Return the path of a URI without its scheme and host, or a path as it is; without a slash at its end."""
    _, found, rest = path.partition("://")
    local = (
        f"/{rest.partition('/')[2]}"
        if found
        else path.partition(":")[2]
        if path.startswith("file:")
        else path
    )
    return local.rstrip("/") or "/"
