"""Directories of the local file system with symbolic links in them: whatever they lead to, each file is found once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from flinkcore.errors import SourceError


class TreeEntry(NamedTuple):
    """A file or directory below another.

    Attributes
    ----------
    path : str
        From that directory on, by the names of links.
    is_directory : bool
    """

    path: str
    is_directory: bool


def local_tree(directory: str, is_hidden: Callable[[str], bool]) -> list[TreeEntry]:
    """Return the files and directories below a directory, each of them once.

    Links are followed, except to a directory that contains the link, or the given directory. What lies below the
    directory itself keeps that path; what only links lead to has the path of the first of them.

    Parameters
    ----------
    directory : str
    is_hidden : callable
        Whether a name is passed over, with everything below it.

    Raises
    ------
    SourceError
        If a link leads to nothing.
    OSError
        If a directory cannot be listed.
    """
    return _Tree(directory, is_hidden).entries


class _Tree:
    def __init__(self, directory: str, is_hidden: Callable[[str], bool]) -> None:
        self.entries: list[TreeEntry] = []
        self._is_hidden = is_hidden
        self._directories: set[tuple[int, int]] = set()
        self._files: set[str] = set()
        self._links: list[tuple[str, str]] = []
        root = os.path.realpath(directory)
        self._walk("", root)
        while self._links:
            links, self._links = sorted(self._links), []
            for path, link in links:
                self._follow(path, link, root)

    def _walk(self, path: str, directory: str) -> None:
        """Take what is below a directory, without following links; its path is without any."""
        left = [(path, directory)]
        while left:
            path, directory = left.pop()
            status = os.stat(directory)
            if (status.st_dev, status.st_ino) in self._directories:
                continue
            self._directories.add((status.st_dev, status.st_ino))
            if path:
                self.entries.append(TreeEntry(path, True))
            with os.scandir(directory) as entries:
                for entry in entries:
                    if self._is_hidden(entry.name):
                        continue
                    place = (os.path.join(path, entry.name), os.path.join(directory, entry.name))
                    if entry.is_symlink():
                        self._links.append(place)
                    elif entry.is_dir():
                        left.append(place)
                    else:
                        self._take(*place)

    def _take(self, path: str, file: str) -> None:
        if file not in self._files:
            self._files.add(file)
            self.entries.append(TreeEntry(path, False))

    def _follow(self, path: str, link: str, root: str) -> None:
        target = target_of(link)
        if not os.path.isdir(target):
            self._take(path, target)
        elif not (_is_within(link, target) or _is_within(root, target)):
            self._walk(path, target)


def target_of(link: str) -> str:
    """Return the path without links of what a link leads to.

    Raises
    ------
    SourceError
        If that does not exist, or is the link itself.
    """
    try:
        return os.path.realpath(link, strict=True)
    except OSError as failure:
        raise SourceError(
            f"{link} is a link to {os.readlink(link)}, which cannot be reached ({failure.strerror}). Repair or remove "
            "the link",
            file=str(link),
        ) from failure


def leads_back(path: str) -> bool:
    """Return whether a path is a link to a directory that contains it."""
    return os.path.islink(path) and _is_within(os.path.realpath(os.path.dirname(path)), target_of(path))


def _is_within(path: str, directory: str) -> bool:
    return PurePath(path).is_relative_to(directory)
