"""Files with Python modules that the functions of jobs import."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final
from zipfile import is_zipfile

from flinkcore.errors import ConfigurationError, SourceError

ARCHIVES: Final = (".zip", ".egg", ".whl")
"""Suffixes of archives with modules and packages."""


def python_file(file_path: str | PathLike[str]) -> Path:
    """Return the absolute path of a module, a folder of modules, or an archive of them.

    Raises
    ------
    ConfigurationError
        If it is no path.
    SourceError
        If there is none, or it is none of these, or damaged.
    """
    if not isinstance(file_path, str | PathLike):
        raise ConfigurationError(f"a Python file is given by its path, not {file_path!r}")
    path = Path(file_path).absolute()
    if not path.exists():
        raise SourceError(f"there is no Python file {path}")
    if not path.is_dir() and path.suffix not in (".py", *ARCHIVES):
        raise SourceError(
            f"{path} brings no Python modules: take a .py file, a folder, or an archive ({', '.join(ARCHIVES)})"
        )
    if path.is_file() and path.suffix in ARCHIVES and not is_zipfile(path):
        raise SourceError(f"{path} is no zip archive, or is damaged: build it, or copy it, once more")
    return path
