"""Dependencies of a job's functions beside the program: modules, archives of files, requirements, an interpreter."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from os import PathLike
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from zipfile import BadZipFile, ZipFile, is_zipfile
from zlib import error as ZlibError

from flinkcore.errors import ArgumentTypeError, ConfigurationError, SourceError

MODULE_ARCHIVES: Final = (".zip", ".egg", ".whl")
"""Suffixes of archives with modules and packages."""

ZIP_ARCHIVES: Final = (*MODULE_ARCHIVES, ".jar")
TAR_ARCHIVES: Final = (".tar.gz", ".tgz", ".tar")


class PythonArchive(NamedTuple):
    """An archive of files for functions.

    Attributes
    ----------
    path : pathlib.Path
        Absolute.
    target_dir : str
        Where functions find its content, relative to their working directory.
    """

    path: Path
    target_dir: str


def temporary_folder(purpose: str) -> Path:
    """Return a new folder that is there until this process ends."""
    folder = TemporaryDirectory(prefix=f"flinkcore-{purpose}-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def python_file(file_path: str | PathLike[str]) -> Path:
    """Return the absolute path of a module, a folder of modules, or an archive of them.

    Raises
    ------
    ConfigurationError
        If it is not a path.
    SourceError
        If the file does not exist, is of another kind, or is damaged.
    """
    path = _existing(file_path, "Python file")
    if not path.is_dir() and path.suffix not in (".py", *MODULE_ARCHIVES):
        raise SourceError(
            f"{path} brings no Python modules. Take a .py file, a folder, or an archive ({', '.join(MODULE_ARCHIVES)})",
            file=str(path),
        )
    if path.is_file() and path.suffix in MODULE_ARCHIVES and not is_zipfile(path):
        raise SourceError(
            f"{path} is not a zip archive, or is damaged. Build it, or copy it, once more", file=str(path)
        )
    return path


def python_archive(archive_path: str | PathLike[str], target_dir: str | None) -> PythonArchive:
    """Return an archive, whose target directory is by default the name of its file.

    Raises
    ------
    ConfigurationError
        If it is not a path, or the target directory leads out of the working directory.
    SourceError
        If there is no such file, or it is neither a zip nor a tar archive, or damaged.
    """
    path = _existing(archive_path, "archive")
    if not path.name.endswith((*ZIP_ARCHIVES, *TAR_ARCHIVES)):
        raise SourceError(
            f"{path} is not named as an archive. Pack a zip file ({', '.join(ZIP_ARCHIVES)}) or a tar file "
            f"({', '.join(TAR_ARCHIVES)})",
            file=str(path),
        )
    is_archive = is_zipfile if path.name.endswith(ZIP_ARCHIVES) else tarfile.is_tarfile
    if path.is_dir() or not is_archive(path):
        raise SourceError(
            f"{path} is not an archive, or is damaged. Pack it, or copy it, once more", file=str(path)
        )
    target = path.name if target_dir is None else target_dir
    if not isinstance(target, str) or not _is_within(target):
        raise ConfigurationError(
            f"the target directory of an archive is a path within the working directory, not {target_dir!r}"
        )
    return PythonArchive(path, PurePosixPath(target).as_posix())


def _is_within(target: str) -> bool:
    path = PurePosixPath(target)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "#" not in target


def check_target(target_dir: str, others: Iterable[str]) -> None:
    """Raise ConfigurationError if a target directory is within that of another archive, or that within it."""
    own = PurePosixPath(target_dir)
    for taken in others:
        there = PurePosixPath(taken)
        if there in own.parents or own in there.parents:
            raise ConfigurationError(
                f"an archive has {taken}, so that another one cannot have {target_dir}. Choose another target_dir"
            )


def _existing(given: object, what: str) -> Path:
    if not isinstance(given, str | PathLike) or isinstance(os.fspath(given), bytes):
        raise ArgumentTypeError(
            f"{'an' if what[0] in 'aeiou' else 'a'} {what} is given by its path, not {given!r}"
        )
    path = Path(given).absolute()
    if not path.exists():
        raise SourceError(f"there is no {what} {path}", file=str(path))
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive into a folder, with the permissions of its files.

    Raises
    ------
    SourceError
        If the archive is damaged.
    """
    try:
        if archive.name.endswith(ZIP_ARCHIVES):
            with ZipFile(archive) as packed:
                for entry in packed.infolist():
                    written = packed.extract(entry, folder)
                    mode = entry.external_attr >> 16 & 0o777
                    if mode and not entry.is_dir():
                        os.chmod(written, mode)
        else:
            with tarfile.open(archive) as packed_tar:
                # Environments have links to where their interpreter is installed.
                packed_tar.extraction_filter = getattr(tarfile, "tar_filter", None)
                packed_tar.extractall(folder)
    except (OSError, EOFError, ValueError, BadZipFile, tarfile.TarError, ZlibError) as failure:
        raise SourceError(
            f"{archive} cannot be unpacked: {failure}. Pack it, or copy it, once more", file=str(archive)
        ) from failure


def installed_requirements(
    requirements_file_path: str | PathLike[str], requirements_cache_dir: str | PathLike[str] | None
) -> Path:
    """Install requirements by pip, for this interpreter and platform, into a new folder, and return it.

    Parameters
    ----------
    requirements_file_path : path
        A requirements file of pip.
    requirements_cache_dir : path, optional
        A folder with all packages, as ``pip download`` makes it; by default they come from pip's index.

    Raises
    ------
    ConfigurationError
        If a path is none, or pip cannot install them.
    SourceError
        If there is no such file or folder.
    """
    requirements = _existing(requirements_file_path, "requirements file")
    source: list[str] = []
    if requirements_cache_dir is not None:
        source = ["--no-index", "--find-links", str(_existing(requirements_cache_dir, "folder of packages"))]
    folder = temporary_folder("requirements")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    done = subprocess.run(
        [*pip, *source, "--target", str(folder), "--requirement", str(requirements)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise ConfigurationError(
            f"pip cannot install {requirements} for {sys.executable}: {said[-1] if said else 'it failed'}. Mend that, "
            "or install the packages where functions run, and leave set_python_requirements out"
        )
    return folder


def is_this_interpreter(python_exec: str) -> bool:
    """Return whether a path, or the name of a program on the PATH, is that of the interpreter of this process."""
    return os.path.abspath(shutil.which(python_exec) or python_exec) == os.path.abspath(sys.executable)
