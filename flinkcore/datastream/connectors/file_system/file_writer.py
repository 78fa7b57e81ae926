"""Writes the elements of a subtask into files that appear when the job has come to its end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from flinkcore.common.free_room import free_room
from flinkcore.common.serialization import BulkWriter
from flinkcore.datastream.connectors.base import SinkWriter
from flinkcore.datastream.connectors.file_system.bucket_assigner import BucketAssigner
from flinkcore.datastream.connectors.file_system.output_file_config import OutputFileConfig
from flinkcore.datastream.connectors.file_system.rolling_policy import RollingPolicy
from flinkcore.errors import SourceError


@dataclass(frozen=True)
class PendingFile:
    """A file that is complete, and not yet visible.

    Attributes
    ----------
    hidden, visible : str
        Its path now, and later.
    """

    hidden: str
    visible: str


class _OpenFile:
    def __init__(
        self, pending: PendingFile, open_writer: Callable[[BinaryIO], BulkWriter], now_ms: int
    ) -> None:
        self.pending = pending
        self.file = open(pending.hidden, "wb")  # noqa: SIM115 - closed by the writer
        self.writer = open_writer(self.file)
        self.begun_ms = self.written_ms = now_ms


class FileWriter(SinkWriter):
    """Writes elements into a file of their bucket.

    Parameters
    ----------
    folder : str
    open_writer : callable
        From an open file to what writes elements into it.
    buckets : BucketAssigner
    policy : RollingPolicy
    names : OutputFileConfig
    now_ms : callable
        Returns the time of the job's clock.

    Notes
    -----
    Flink's ``FileWriter``: files are ``bucket/prefix-uuid-number suffix``, and hidden until they are committed.
    """

    def __init__(
        self,
        folder: str,
        open_writer: Callable[[BinaryIO], BulkWriter],
        buckets: BucketAssigner,
        policy: RollingPolicy,
        names: OutputFileConfig,
        now_ms: Callable[[], int],
    ) -> None:
        self._folder = Path(folder)
        self._open_writer = open_writer
        self._buckets = buckets
        self._policy = policy
        self._names = names
        self._now_ms = now_ms
        self._id = uuid.uuid4()
        self._begun = 0
        self._open: dict[str, _OpenFile] = {}
        self._complete: list[PendingFile] = []

    def write(self, element: Any) -> None:
        """Write an element into the file of its bucket.

        Raises
        ------
        SourceError
            If the file cannot be written.
        """
        now_ms = self._now_ms()
        bucket = self._buckets.bucket_at(now_ms)
        try:
            file = self._open.get(bucket)
            if file is not None and self._policy.ends(
                file.file.tell(), file.begun_ms, file.written_ms, now_ms
            ):
                self._end(bucket)
                file = None
            if file is None:
                file = self._open[bucket] = self._begin(bucket, now_ms)
            file.writer.add_element(element)
            file.written_ms = now_ms
        except OSError as failure:
            raise _unwritten(self._folder / bucket, failure) from failure

    def _begin(self, bucket: str, now_ms: int) -> _OpenFile:
        folder = self._folder / bucket
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._names.part_prefix}-{self._id}-{self._begun}{self._names.part_suffix}"
        self._begun += 1
        pending = PendingFile(str(folder / f".{name}.inprogress"), str(folder / name))
        return _OpenFile(pending, self._open_writer, now_ms)

    def _end(self, bucket: str) -> None:
        file = self._open.pop(bucket)
        self._complete.append(file.pending)
        with file.file:
            file.writer.finish()

    def prepare_commit(self) -> list[PendingFile]:
        """Return all files, complete."""
        try:
            for bucket in list(self._open):
                self._end(bucket)
        except OSError as failure:
            raise _unwritten(self._folder, failure) from failure
        complete, self._complete = self._complete, []
        return complete

    def close(self) -> None:
        """Remove the files that nobody has asked for."""
        for file in self._open.values():
            with suppress(Exception), file.file:
                file.writer.finish()  # a writer of Parquet writes its end at the latest when it is forgotten
        left = [*(file.pending for file in self._open.values()), *self._complete]
        self._open, self._complete = {}, []
        for pending in left:
            with suppress(OSError):
                os.remove(pending.hidden)


def _unwritten(folder: Path, failure: OSError) -> SourceError:
    return SourceError(
        f"a file in {folder} cannot be written: {failure}.{free_room(folder)} No file of the job appears; give "
        "the sink a directory that can be made and written, on a disk with room"
    )
