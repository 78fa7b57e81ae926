"""Timelines for tasks of Spark: a short one in each task, a long one once for each executor.

A long timeline is a broadcast of Spark. The first worker of an executor that needs it writes it to a file in the
executor's local directory, which Spark removes with the executor, and all workers map that file. It stays packed, so a
worker has the pages in memory that it has read, and shares them with the others.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Final

from flinkcore._native.packed_steps import PackedSteps
from flinkcore.errors import SourceError
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import Timeline

if TYPE_CHECKING:
    from pyspark.broadcast import Broadcast

INLINE_BYTES: Final = 64 << 10
"""A timeline of up to so many bytes travels within each task."""

_PREFIX: Final = "flinkcore-timeline-"
_UNUSED_SECONDS: Final = 3600.0
"""Files that no task has opened for so long are removed when another one is written; a task may write them again."""


@dataclass(frozen=True)
class SentTimeline:
    """A timeline as a task receives it; picklable.

    Attributes
    ----------
    content : PackedSteps or pyspark.Broadcast of PackedSteps
        The steps. A broadcast must also be among the `broadcasts` of `portable`.
    name : str or None
        Name of the file that workers map, which depends on the content; None without a broadcast.
    """

    content: PackedSteps | Broadcast[Any]
    name: str | None = None

    @classmethod
    def of(cls, timeline: Timeline, context: Any, inline_bytes: int = INLINE_BYTES) -> SentTimeline:
        """Send a timeline.

        Parameters
        ----------
        timeline
        context : pyspark.SparkContext or None
            None if the session has none that Python may use: then each task holds the timeline.
        inline_bytes
            Most bytes of a timeline that travels within each task.
        """
        packed = timeline.steps.buffer
        if context is None or packed.nbytes <= inline_bytes:
            return cls(timeline.steps)
        digest = blake2b(packed, digest_size=16).hexdigest()
        return cls(context.broadcast(_MappedWhereUnpickled(timeline.steps, digest)), digest)

    @property
    def broadcasts(self) -> tuple[Any, ...]:
        """The broadcast that the timeline needs, if it needs one."""
        return () if self.name is None else (self.content,)

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline, in a task.

        Raises
        ------
        SourceError
            If the file cannot be written.
        """
        if isinstance(self.content, PackedSteps):
            return Timeline(self.content)
        assert self.name is not None
        with suppress(FileNotFoundError):
            return Timeline(_mapped(_local_directory() / f"{_PREFIX}{self.name}"))
        return Timeline(self.content.value)


@dataclass(frozen=True)
class _MappedWhereUnpickled:
    """Steps that are written to a file and mapped where they are unpickled: there, a broadcast does not hold them."""

    steps: PackedSteps
    digest: str

    def __reduce__(self) -> tuple[Any, ...]:
        return mapped_copy, (PickleBuffer(self.steps.buffer), self.digest)


def mapped_copy(packed: bytes | bytearray, name: str, directory: Path | None = None) -> PackedSteps:
    """Write packed steps to a file that all workers of an executor map, and map it.

    Parameters
    ----------
    packed
        The steps.
    name
        Name for these steps, and no others.
    directory
        Directory of the file, or None for the executor's own.

    Raises
    ------
    SourceError
        If the file cannot be written.
    """
    directory = _local_directory() if directory is None else directory
    path = directory / f"{_PREFIX}{name}"
    _remove_unused(directory)
    try:
        # Workers that write it at the same time write the same.
        with tempfile.NamedTemporaryFile(dir=directory, prefix=f".{_PREFIX}", delete=False) as file:
            try:
                file.write(packed)
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise SourceError(
            f"the timeline of the log, {len(packed):,} bytes, cannot be written to {directory} on the executor: "
            f"{error}. Free space there, or let spark.local.dir name directories with more",
            file=str(path),
        ) from error
    return _mapped(path)


def _mapped(path: Path) -> PackedSteps:
    with path.open("rb") as file:
        steps = PackedSteps(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    with suppress(OSError):
        os.utime(path)
    return steps


def _local_directory() -> Path:
    """Return the first of the directories that Spark gives its workers for their files, or the one for all programs."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir())


def _remove_unused(directory: Path) -> None:
    # Workers that have mapped a file keep its content; one that died has left a part of it.
    for path in chain(directory.glob(f"{_PREFIX}*"), directory.glob(f".{_PREFIX}*")):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                path.unlink()


@dataclass(frozen=True)
class SentTime:
    """The time of a replay as a task receives it; picklable.

    Attributes
    ----------
    timeline : SentTimeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Last arrival of all logs; None if there are no events.
    second_from : int
        Splits from this number on belong to the second input of the operator, if it has one.
    """

    timeline: SentTimeline
    last_arrival_ms: int | None
    second_from: int = 0

    def replay_time(self) -> ReplayTime:
        """Return the time without the first split of each log, which reduce tasks do not need."""
        return ReplayTime(self.timeline.timeline, self.last_arrival_ms, [], self.second_from)
