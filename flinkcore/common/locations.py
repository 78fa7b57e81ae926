"""Paths as all processes of a job find them."""

import os


def absolute_location(path: str | os.PathLike[str]) -> str:
    """Return a URI as it is, and a local path from the root: another process may have another working directory."""
    name = os.fspath(path)
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
