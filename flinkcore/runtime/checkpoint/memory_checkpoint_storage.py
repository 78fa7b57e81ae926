"""A checkpoint's files in memory."""

import io
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage


@dataclass(frozen=True)
class MemoryCheckpointStorage(CheckpointStorage):
    """Holds the same bytes that would be on disk, for tests of snapshots that need no directory.

    Parameters
    ----------
    path : str
        Names it in messages.
    files : dict of str to bytes
        By name with that of the folder.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage``.
    """

    path: str = "memory"
    files: dict[str, bytes] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names of what is in it, folders with a slash at their end."""
        return sorted({name.partition("/")[0] + "/" * ("/" in name) for name in self.files})

    def create_folder(self, name: str) -> None:
        """Do nothing: a folder is there while it has a file."""

    def delete_folder(self, name: str) -> None:
        """Delete all files of a folder."""
        for file in self.sizes(name):
            del self.files[file]

    def delete_file(self, name: str) -> None:
        """Delete a file; one that is missing is no error."""
        self.files.pop(name, None)

    def open_output(self, name: str) -> Any:
        """Open a new file for writing, which is there once it is closed."""
        return _MemoryFile(self.files, name)

    def read(self, name: str, most_bytes: int) -> pa.Buffer:
        """Return what is in a file, which this process has written; a missing one is a FileNotFoundError."""
        try:
            return pa.py_buffer(self.files[name])
        except KeyError as failure:
            raise FileNotFoundError(name) from failure

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of all files of a folder, by their names with that of the folder."""
        return {name: len(data) for name, data in self.files.items() if name.startswith(f"{folder}/")}

    def move(self, name: str, to: str) -> None:
        """Rename a file."""
        self.files[to] = self.files.pop(name)

    def sync(self, *names: str) -> None:
        """Do nothing."""


class _MemoryFile(io.BytesIO):
    def __init__(self, files: dict[str, bytes], name: str) -> None:
        super().__init__()
        self._files = files
        self._name = name

    def close(self) -> None:
        if not self.closed:
            self._files[self._name] = self.getvalue()
        super().close()
