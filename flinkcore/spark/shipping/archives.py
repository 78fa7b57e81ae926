"""Archives for executors.

The same files always give the same bytes, by whose digest a session knows whether it has sent them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from flinkcore.datastream.graph.python_dependencies import MODULE_ARCHIVES, TAR_ARCHIVES, temporary_folder


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files, given by their names in it; it holds no times of files."""
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return packed.getvalue()


def zipped_modules(path: Path) -> bytes:
    """Return a zip archive of a module, or of all but the hidden files of a folder; an archive is returned as it is."""
    if not path.is_dir() and path.suffix in MODULE_ARCHIVES:
        return path.read_bytes()
    top = path if path.is_dir() else path.parent
    found = {
        file.relative_to(top): file
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file() and file.suffix != ".pyc"
    }
    return zipped(
        {
            name.as_posix(): file.read_bytes()
            for name, file in found.items()
            if not any(part.startswith(".") for part in name.parts)
        }
    )


def archive_suffix(archive: Path) -> str:
    """Return the suffix by which Spark knows how to unpack an archive."""
    return next((suffix for suffix in TAR_ARCHIVES if archive.name.endswith(suffix)), ".zip")


@cache
def _folder() -> Path:
    return temporary_folder("archives")


def stored(name: str, content: bytes) -> Path:
    """Write a file that Spark can read until this process ends, and return its path."""
    path = _folder() / name
    path.write_bytes(content)
    return path
