"""Plans of scripts on disk, by text, settings and versions."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

FORMAT: Final = 1

MOST_ENTRIES: Final = 1000
"""So many answers are kept; those that were taken longest ago are forgotten."""


def cache_directory() -> Path:
    """Return the directory of the cache: ``flinkcore/plans`` in ``XDG_CACHE_HOME``, by default ``~/.cache``.

    Raises
    ------
    RuntimeError
        If the user has no home directory.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    return Path(root if root and os.path.isabs(root) else Path.home() / ".cache") / "flinkcore" / "plans"


def cached_answer(key: str, version: str | None) -> dict[str, Any] | None:
    """Return the planner's answer to a script, or None if it is not there or of another version of Flink.

    Parameters
    ----------
    key : str
        The `cache_key` of the script.
    version : str or None
        Version of Flink, or None if none is installed: then plans of every version are taken.
    """
    try:
        path = cache_directory() / f"{key}.json"
        entry = json.loads(path.read_text("utf-8"))
        if version is None or entry["version"] == version:
            answer: dict[str, Any] = entry["answer"]
            with suppress(OSError):  # of a cache that others own
                os.utime(path)
            return answer
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        pass  # not there, not readable, or without a home: planned again
    return None


def keep_answer(key: str, version: str, answer: Mapping[str, Any]) -> None:
    """Write an answer to the cache, as far as that is possible."""
    with suppress(OSError, RuntimeError):
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=directory, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"version": version, "answer": answer}, file)
            os.replace(path, directory / f"{key}.json")
        except BaseException:
            os.unlink(path)
            raise
        _forget_oldest(directory)


def _forget_oldest(directory: Path) -> None:
    """Remove the answers beyond `MOST_ENTRIES`; another process may remove them at the same time."""
    entries = list(directory.glob("*.json"))
    if len(entries) <= MOST_ENTRIES:
        return
    entries.sort(key=lambda entry: entry.stat().st_mtime)
    for entry in entries[: len(entries) - MOST_ENTRIES]:
        entry.unlink(missing_ok=True)


def cache_key(
    statements: Sequence[Any],
    settings: Mapping[str, str],
    functions: Sequence[Mapping[str, Any]],
    planner: bytes,
) -> str:
    """Return the name of a script in the cache.

    Parameters
    ----------
    statements : sequence of str
        Their texts at their places, which errors have.
    settings : mapping of str to str
    functions : sequence of mapping
        Names and types of functions in Python.
    planner : bytes
        Source of the class that asks Flink.
    """
    content = (
        json.dumps([FORMAT, list(statements), sorted(settings.items()), list(functions)]).encode() + planner
    )
    return hashlib.sha256(content).hexdigest()
