"""Temporary files for what does not fit into memory."""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any

from flinkcore._internal.io.free_room import directory_remedy
from flinkcore.errors import SourceError


class SpillFile:
    """A temporary file without a name: nothing of it remains, however the process ends.

    Parameters
    ----------
    what : str
        Name of its content in errors.

    Raises
    ------
    SourceError
        If it cannot be made, written or read.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._file: IO[bytes] | None = None
        self._size = 0

    def append(self, data: Any) -> int:
        """Write a buffer of bytes after all others, and return where it begins."""
        offset, unwritten = self._size, memoryview(data)
        self._size += len(unwritten)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="flinkcore-", buffering=0)  # noqa: SIM115
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            raise SourceError(
                f"{self._what}, {self._size:,} bytes so far, do not fit into {tempfile.gettempdir()}: {error}. Let "
                f"TMPDIR name {directory_remedy(tempfile.gettempdir(), error)}"
            ) from error
        return offset

    def read(self, offset: int, target: Any) -> None:
        """Fill a buffer of bytes with those from a place on."""
        unread = memoryview(target)
        while unread:
            try:
                n_bytes = os.preadv(self.fileno(), [unread], offset)
            except OSError as error:
                raise SourceError(f"the temporary file of {self._what} cannot be read: {error}") from error
            if n_bytes == 0:
                raise SourceError(f"the temporary file of {self._what} cannot be read: it has been cut short")
            unread, offset = unread[n_bytes:], offset + n_bytes

    def fileno(self) -> int:
        """Return the descriptor of the file, to which something has been written."""
        assert self._file is not None
        return self._file.fileno()

    def close(self) -> None:
        """Release the room on the disk; may be called again."""
        if self._file is not None:
            self._file.close()
