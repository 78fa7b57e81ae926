"""Integers of many chunks: in memory as long as they are few, else in a temporary file."""

from __future__ import annotations

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.io.spill_file import SpillFile


class RecordStore:
    """Stores arrays until it is closed.

    Parameters
    ----------
    memory_bytes : int
        Size that is kept in memory; with the array that exceeds it all arrays go to the file.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._places: list[Int64s | int] = []
        self._bytes = self._spilled = 0
        self._file: SpillFile | None = None

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
            self._spill()
        return len(self._places) - 1

    def _spill(self) -> None:
        if self._file is None:
            self._file = SpillFile("watermark steps of the log")
        for number in range(self._spilled, len(self._places)):
            records = self._places[number]
            assert not isinstance(records, int)
            self._places[number] = self._file.append(records.view(np.uint8))
        self._spilled = len(self._places)

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
        self._file.read(place + start * found.itemsize, found.view(np.uint8))
        return found

    def close(self) -> None:
        """Release memory and file."""
        self._places = []
        if self._file is not None:
            self._file.close()
