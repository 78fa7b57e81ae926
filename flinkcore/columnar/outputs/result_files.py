"""Files to which a replay writes its outputs: those of all tasks count at once, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from flinkcore._internal.io.free_room import directory_remedy
from flinkcore._internal.io.store_errors import store_remedy
from flinkcore.errors import ConfigurationError, FlinkcoreError, SourceError

PartNames: TypeAlias = Mapping[str | None, Iterable[str]]
"""Files that count, as text, by side output; those of the results under None."""


class TaskFiles(Protocol):
    """The open files of one task."""

    @property
    def names(self) -> dict[str | None, list[str]]:
        """The files made so far, as text, by side output."""

    def open_all(self, schemas: Mapping[str | None, pa.Schema]) -> None:
        """Make the files that are there even without rows."""

    def write(self, tag_id: str | None, batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches of an output."""


class TaskOutputs(Protocol):
    """Outputs of tasks; can be pickled."""

    def open_parts(self, partition: int) -> AbstractContextManager[Any]:
        """The `TaskFiles` of one task, complete when the context is left."""


def close_all(closings: Iterable[Callable[[], None]], is_failed: bool) -> None:
    """Close all open files of a task, whichever fails.

    Parameters
    ----------
    closings : iterable of callable
        Close a file each.
    is_failed : bool
        Whether the task has failed already: a file that cannot be closed then raises nothing.

    Raises
    ------
    SourceError
        If a file cannot be closed, unless the task has failed.
    """
    try:
        with ExitStack() as all_of_them:
            for close in closings:
                all_of_them.callback(close)
    except SourceError:
        if not is_failed:
            raise


class ResultFiles(Protocol):
    """Files of a replay's results."""

    @property
    def for_tasks(self) -> TaskOutputs:
        """The outputs of its tasks."""

    @property
    def paths(self) -> list[str]:
        """All places, as a checkpoint names them."""

    def write(self, run: Callable[[], PartNames], commit: Callable[[], None] = lambda: None) -> None:
        """Run what writes files, let them all count, then complete what else the run leaves."""


def require_mode(mode: object, modes: Collection[str]) -> None:
    """Raise a ConfigurationError unless it is one of the modes."""
    if mode not in modes:
        raise ConfigurationError(f"mode= is {', '.join(map(repr, modes))}, not {mode!r}")


@contextmanager
def writing_results(place: str, directory: str, outcome: str) -> Iterator[None]:
    """Let an error of the block name where results are written, how much room is left there, and what to do.

    Parameters
    ----------
    place : str
        Name of the place in messages.
    directory : str
        Where the files are.
    outcome : str
        Outcome of the results, as a sentence.

    Raises
    ------
    SourceError
        If the file system fails.
    """
    try:
        yield
    except FlinkcoreError:
        raise
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split()).rstrip(". ")
        remedy = store_remedy(error) or f"Give {directory_remedy(directory, error)}"
        raise SourceError(
            f"results cannot be written to {place}: {reason}. {outcome}. {remedy}", file=directory
        ) from error
