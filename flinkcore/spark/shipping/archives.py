"""Zip archives that are sent to executors: the same bytes for the same files, as a session knows them by these."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from flinkcore.datastream.python_files import ARCHIVES


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files by their names in it; without the times of files, which differ at each writing."""
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return packed.getvalue()


def zipped_modules(path: Path) -> bytes:
    """Return a zip archive of a module, or of what a folder holds but for hidden files; an archive as it is."""
    if not path.is_dir() and path.suffix in ARCHIVES:
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


@cache
def _folder() -> Path:
    folder = TemporaryDirectory(prefix="flinkcore-archives-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def stored(name: str, content: bytes) -> Path:
    """Return a file with a content, from which Spark may read for as long as this process lives."""
    path = _folder() / name
    path.write_bytes(content)
    return path
