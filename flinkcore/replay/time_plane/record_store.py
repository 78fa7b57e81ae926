"""Records of many chunks: in memory as long as they are few, else in a temporary file."""

from __future__ import annotations

import os
import tempfile
from typing import IO

import numpy as np

from flinkcore.common.free_room import directory_remedy
from flinkcore.errors import SourceError
from flinkcore.replay.log.arrays import Int64s


class RecordStore:
    """Stores arrays until it is closed, and returns the place of each.

    The file has no name, so that nothing remains of it however the process ends.

    Parameters
    ----------
    memory_bytes : int
        How much is kept in memory; with the array that exceeds it all go to the file.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._places: list[Int64s | int] = []
        self._bytes = self._spilled = 0
        self._file: IO[bytes] | None = None

    def add(self, records: Int64s) -> int:
        """Take in an array, which must not change; its number.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        self._places.append(records)
        self._bytes += records.nbytes
        if self._bytes > self._memory_bytes:
            try:
                self._spill()
            except OSError as error:
                raise SourceError(
                    f"the watermark steps of the log, {self._bytes:,} bytes so far, do not fit into "
                    f"{tempfile.gettempdir()}: {error}. Let TMPDIR name "
                    f"{directory_remedy(tempfile.gettempdir(), error)}"
                ) from error
        return len(self._places) - 1

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="flinkcore-", buffering=0)  # noqa: SIM115
        for number in range(self._spilled, len(self._places)):
            records = self._places[number]
            assert not isinstance(records, int)
            self._places[number] = self._file.tell()
            unwritten = records.view(np.uint8).data
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        self._spilled = len(self._places)

    @property
    def file(self) -> int | None:
        """Descriptor of the file; None if all is in memory."""
        return None if self._file is None else self._file.fileno()

    def place(self, number: int) -> Int64s | int:
        """The array with this number, or its offset in the file in bytes."""
        return self._places[number]

    def values(self, number: int, start: int, stop: int) -> Int64s:
        """Some integers of the array with this number.

        Raises
        ------
        SourceError
            If the temporary file cannot be read.
        """
        place = self._places[number]
        if not isinstance(place, int):
            return place[start:stop]
        assert self._file is not None
        found = np.empty(stop - start, np.int64)
        unread, offset = found.view(np.uint8).data, place + start * found.itemsize
        while unread:
            try:
                n_bytes = os.preadv(self._file.fileno(), [unread], offset)
            except OSError as error:
                raise SourceError(f"the temporary file of watermark steps cannot be read: {error}") from error
            if n_bytes == 0:
                raise SourceError(
                    "the temporary file of watermark steps cannot be read: it has been cut short"
                )
            unread, offset = unread[n_bytes:], offset + n_bytes
        return found

    def close(self) -> None:
        """Give back memory and file."""
        self._places = []
        if self._file is not None:
            self._file.close()
