"""The directory of a checkpoint, on a local disk, in a store or in memory."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs

from flinkcore._internal.io.free_room import directory_remedy
from flinkcore._internal.io.locations import utf_8_paths
from flinkcore._internal.io.store_errors import reason_of, store_remedy
from flinkcore._internal.io.stores import ENVIRONMENT, Place, Stores
from flinkcore.errors import CheckpointError, ConfigurationError, FlinkcoreError


@dataclass(frozen=True)
class CheckpointDirectory:
    """A directory with a checkpoint; it can be pickled, to be sent to tasks.

    Parameters
    ----------
    place : Place
    """

    place: Place

    @classmethod
    def at(cls, path: str | os.PathLike[str], stores: Stores = ENVIRONMENT) -> "CheckpointDirectory":
        """Return the directory at a path that is relative to the working directory of this process.

        Parameters
        ----------
        path : path
            Local, or a URI of a store.
        stores : Stores
            Settings of stores.

        Raises
        ------
        ConfigurationError
            If the path is empty.
        SourceError
            If no library reaches it.
        """
        if not os.fspath(path):
            raise ConfigurationError("the path of a checkpoint is empty; give a directory")
        return cls(stores.locate(path))

    @property
    def path(self) -> str:
        """Its name in messages: a local path or a URI."""
        return self.place.name

    def publish(self, name: str, content: bytes, by: str, *, replaces: bool = True) -> bool:
        """Write a file that is there whole or not at all, whenever the process ends.

        A store lists a file once it is complete. Elsewhere it is written under another name, flushed and renamed.

        Parameters
        ----------
        name : str
        content : bytes
        by : str
            The other name, in a folder of the checkpoint.
        replaces : bool
            Whether a file of that name is replaced; a store, and a disk without links, replaces it in any case.

        Returns
        -------
        bool
            Whether it is certain that no file was replaced.

        Raises
        ------
        FileExistsError
            If there is a file of that name on a local disk with links, and it is not replaced; the other file is there
            then.
        """
        written = by if self.place.renames else name
        with self.open_output(written) as stream:
            stream.write(content)
        if not self.place.renames:
            return False
        self.sync(by, by.rpartition("/")[0])
        is_new = not replaces and self._links(by, name)
        if is_new:
            self.delete_file(by)
        else:
            self.move(by, name)
        self.sync("")
        return is_new

    def _links(self, by: str, name: str) -> bool:
        """Link a local file under a second name in one step, unlike a look before a renaming; return whether it did."""
        if not isinstance(self.place.filesystem, fs.LocalFileSystem):
            return False
        try:
            os.link(f"{self.place.path}/{by}", f"{self.place.path}/{name}")
        except FileExistsError:
            raise
        except OSError:  # such as mounted stores
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of files and folders, folders with a slash at their end; empty if it does not exist.

        Raises
        ------
        ConfigurationError
            If it is a file.
        CheckpointError
            If it cannot be listed.
        """
        with self._reading(""):
            filesystem, directory = self.place.filesystem, self.place.path
            info = filesystem.get_file_info(directory)
            if info.type not in (fs.FileType.Directory, fs.FileType.NotFound):
                raise ConfigurationError(f"{self.path} is a file; a checkpoint is a directory")
            found = filesystem.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        return [entry.base_name + "/" * (entry.type == fs.FileType.Directory) for entry in found]

    def create_folder(self, name: str) -> None:
        """Create a folder, and the directory itself if it is missing."""
        filesystem, directory = self.place.filesystem, self.place.path
        filesystem.create_dir(f"{directory}/{name}", recursive=True)

    def delete_folder(self, name: str) -> None:
        """Delete a folder and its files, if it exists."""
        filesystem, directory = self.place.filesystem, self.place.path
        if filesystem.get_file_info(f"{directory}/{name}").type == fs.FileType.Directory:
            filesystem.delete_dir(f"{directory}/{name}")

    def delete_file(self, name: str) -> None:
        """Delete a file, if it exists."""
        filesystem, directory = self.place.filesystem, self.place.path
        if filesystem.get_file_info(f"{directory}/{name}").type == fs.FileType.File:
            filesystem.delete_file(f"{directory}/{name}")

    def open_output(self, name: str) -> pa.NativeFile:
        """Open a new file for writing."""
        filesystem, directory = self.place.filesystem, self.place.path
        return filesystem.open_output_stream(f"{directory}/{name}", compression=None)

    def read(self, name: str, most_bytes: int) -> pa.Buffer:
        """Return the content of a file.

        Parameters
        ----------
        name : str
        most_bytes : int
            The greatest valid size of the file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        CheckpointError
            If it is not a regular file (opening a pipe would block), is longer, or cannot be read.
        """
        with self._reading(name):
            filesystem, directory = self.place.filesystem, self.place.path
            info = filesystem.get_file_info(f"{directory}/{name}")
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(f"{self.path}/{name}")
            if info.type != fs.FileType.File:
                raise CheckpointError(
                    f"{self.path}/{name} is damaged: it is not a regular file", file=f"{self.path}/{name}"
                )
            if info.size > most_bytes:
                raise CheckpointError(
                    f"{self.path}/{name} is damaged: it has {info.size:,} bytes, and {most_bytes:,} at most are right",
                    file=f"{self.path}/{name}",
                )
            with filesystem.open_input_file(f"{directory}/{name}") as file:
                return file.read_buffer(info.size)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the files of a folder, by name with that of the folder."""
        with self._reading(folder):
            filesystem, directory = self.place.filesystem, self.place.path
            found = filesystem.get_file_info(fs.FileSelector(f"{directory}/{folder}", allow_not_found=True))
        return {f"{folder}/{entry.base_name}": entry.size for entry in found if entry.is_file}

    def move(self, name: str, to: str) -> None:
        """Rename a file."""
        filesystem, directory = self.place.filesystem, self.place.path
        filesystem.move(f"{directory}/{name}", f"{directory}/{to}")

    def sync(self, *names: str) -> None:
        """Flush closed files and folders to a local disk; "" is the directory itself."""
        filesystem, directory = self.place.filesystem, self.place.path
        if isinstance(filesystem, fs.LocalFileSystem):
            for name in names:
                descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Raise errors of the block that name the file being written, the room left on the disk, and what is kept.

        Parameters
        ----------
        name : str
            Name of the file or folder; "" is the directory itself.

        Raises
        ------
        CheckpointError
            If the file system fails.
        """
        try:
            yield
        except FlinkcoreError:
            raise
        except (OSError, pa.ArrowException) as failure:
            where = f"{self.path}/{name}".rstrip("/")
            raise CheckpointError(
                f"a checkpoint cannot be written to {where}: {str(failure).rstrip('. ')}. A checkpoint that was "
                "in the directory before stays, and this one is not begun, or removed. "
                f"{store_remedy(failure) or f'Give stop_with_checkpoint {directory_remedy(self.path, failure)}'}",
                file=where,
            ) from failure

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            with utf_8_paths():
                yield
        except (FlinkcoreError, FileNotFoundError):
            raise
        except (OSError, pa.ArrowException) as failure:
            where = f"{self.path}/{name}".rstrip("/")
            raise CheckpointError(f"{where} cannot be read: {reason_of(failure)}", file=where) from failure


@dataclass(frozen=True)
class MemoryCheckpointDirectory(CheckpointDirectory):
    """Holds the same bytes as on disk in memory, for snapshots in tests.

    Parameters
    ----------
    files : dict of str to bytes
        Content by name, with that of the folder.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage``.
    """

    place: Place = Place(fs.LocalFileSystem(), "memory")  # noqa: RUF009, it cannot be changed
    files: dict[str, bytes] = field(default_factory=dict)

    def names(self) -> list[str]:
        return sorted({name.partition("/")[0] + "/" * ("/" in name) for name in self.files})

    def create_folder(self, name: str) -> None:
        """Do nothing: a folder exists while it has a file."""

    def delete_folder(self, name: str) -> None:
        for file in self.sizes(name):
            del self.files[file]

    def delete_file(self, name: str) -> None:
        self.files.pop(name, None)

    def open_output(self, name: str) -> Any:
        """Open a new file for writing, which exists once it is closed."""
        return _MemoryFile(self.files, name)

    def read(self, name: str, most_bytes: int) -> pa.Buffer:
        try:
            return pa.py_buffer(self.files[name])
        except KeyError as failure:
            raise FileNotFoundError(name) from failure

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: len(data) for name, data in self.files.items() if name.startswith(f"{folder}/")}

    def move(self, name: str, to: str) -> None:
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
