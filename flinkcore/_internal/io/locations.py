"""Paths as all processes of a job find them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from flinkcore.errors import DataError, SourceError

_ELSEWHERE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://|dbfs:/")
_FILE: Final = re.compile(r"file:(//(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_SECRETS: Final = re.compile(r"(?<=://)[^/@]*:[^/@]*@|\?[a-z_]+=.*", re.DOTALL)


@contextmanager
def naming_file(file: str | None) -> Iterator[None]:
    """Set the file that errors about data and sources concern, unless they name one themselves."""
    try:
        yield
    except (DataError, SourceError) as error:
        error.file = error.file or file
        raise


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
    """Return a URI of a store as it is, and a local path from the root: another process may work in another directory.

    ``file:`` URIs are local paths, and ``~`` is the home directory.

    Raises
    ------
    SourceError
        If it is not UTF-8, or a ``file:`` URI of another machine.
    """
    name = os.fspath(path)
    with utf_8_paths():
        name.encode()
    uri = _FILE.fullmatch(name)
    if uri is not None:
        if uri["host"] not in (None, "", "localhost"):
            raise SourceError(
                f"{name} is on the machine {uri['host']!r}. Write file:///PATH for a path of this machine"
            )
        from urllib.parse import unquote  # slow to load, and few locations are such URIs

        name = unquote(uri["path"])
    elif _ELSEWHERE.match(name):
        return name
    return os.path.abspath(os.path.expanduser(name))


def is_local(path: str | os.PathLike[str]) -> bool:
    """Return whether a location is a path of this machine, and not a URI of a store."""
    return _ELSEWHERE.match(absolute_location(path)) is None


def shown_location(location: str) -> str:
    """Return a location as messages show it: without a password and without the settings in a URI's query."""
    return _SECRETS.sub("", location) if _ELSEWHERE.match(location) else location


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
