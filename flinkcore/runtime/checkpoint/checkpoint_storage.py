"""The directory that a checkpoint is in, on any file system that pyarrow knows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as fs

from flinkcore.common.free_room import free_room
from flinkcore.errors import CheckpointError, ConfigurationError, FlinkcoreError


@dataclass(frozen=True)
class CheckpointStorage:
    """A directory; tasks get it by pickle.

    Parameters
    ----------
    path : str
        A URI, or a local path that is absolute.
    """

    path: str

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> "CheckpointStorage":
        """Return the directory at a path of this process: a task's working directory may be another.

        Raises
        ------
        ConfigurationError
            If the path is empty.
        """
        name = os.fspath(path)
        if not name:
            raise ConfigurationError("the path of a checkpoint is empty; give a directory")
        return cls(name if "://" in name else os.path.abspath(os.path.expanduser(name)))

    def names(self) -> list[str]:
        """Return the names of what is in it, folders with a slash at their end; nothing if it does not exist.

        Raises
        ------
        ConfigurationError
            If it is a file.
        CheckpointError
            If it cannot be listed.
        """
        with self._reading(""):
            filesystem, directory = self._locate()
            info = filesystem.get_file_info(directory)
            if info.type not in (fs.FileType.Directory, fs.FileType.NotFound):
                raise ConfigurationError(f"{self.path} is a file; a checkpoint is a directory")
            found = filesystem.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        return [entry.base_name + "/" * (entry.type == fs.FileType.Directory) for entry in found]

    def create_folder(self, name: str) -> None:
        """Create a folder in it, and the directory itself where it is missing."""
        filesystem, directory = self._locate()
        filesystem.create_dir(f"{directory}/{name}", recursive=True)

    def delete_folder(self, name: str) -> None:
        """Delete a folder in it, with all there is; one that is missing is no error."""
        filesystem, directory = self._locate()
        if filesystem.get_file_info(f"{directory}/{name}").type == fs.FileType.Directory:
            filesystem.delete_dir(f"{directory}/{name}")

    def delete_file(self, name: str) -> None:
        """Delete a file in it; one that is missing is no error."""
        filesystem, directory = self._locate()
        if filesystem.get_file_info(f"{directory}/{name}").type == fs.FileType.File:
            filesystem.delete_file(f"{directory}/{name}")

    def open_output(self, name: str) -> pa.NativeFile:
        """Open a new file for writing."""
        filesystem, directory = self._locate()
        return filesystem.open_output_stream(f"{directory}/{name}", compression=None)

    def read(self, name: str, most_bytes: int) -> pa.Buffer:
        """Return what is in a file.

        Parameters
        ----------
        name : str
        most_bytes : int
            How many bytes it may have.

        Raises
        ------
        FileNotFoundError
            If there is none.
        CheckpointError
            If it is no regular file (to open a pipe would wait for a writer), is longer, or cannot be read.
        """
        with self._reading(name):
            filesystem, directory = self._locate()
            info = filesystem.get_file_info(f"{directory}/{name}")
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(f"{self.path}/{name}")
            if info.type != fs.FileType.File:
                raise CheckpointError(f"{self.path}/{name} is damaged: it is no regular file")
            if info.size > most_bytes:
                raise CheckpointError(
                    f"{self.path}/{name} is damaged: it has {info.size:,} bytes, and {most_bytes:,} at most are right"
                )
            with filesystem.open_input_file(f"{directory}/{name}") as file:
                return file.read_buffer(info.size)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of all files of a folder, by their names with that of the folder."""
        with self._reading(folder):
            filesystem, directory = self._locate()
            found = filesystem.get_file_info(fs.FileSelector(f"{directory}/{folder}", allow_not_found=True))
        return {f"{folder}/{entry.base_name}": entry.size for entry in found if entry.is_file}

    def move(self, name: str, to: str) -> None:
        """Rename a file."""
        filesystem, directory = self._locate()
        filesystem.move(f"{directory}/{name}", f"{directory}/{to}")

    def sync(self, *names: str) -> None:
        """Have a local disk keep files and folders, by then closed, whatever happens; "" is the directory itself."""
        filesystem, directory = self._locate()
        if isinstance(filesystem, fs.LocalFileSystem):
            for name in names:
                descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Let an error of the block name what is being written, how much room is left, and what stays.

        Parameters
        ----------
        name : str
            In the directory; "" is the directory itself.

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
                f"a checkpoint cannot be written to {where}: {failure}.{free_room(self.path)} A checkpoint that was "
                "in the directory before stays, and this one is not begun, or removed. Give stop_with_checkpoint a "
                "directory that can be made and written, on a disk with room for it"
            ) from failure

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except (FlinkcoreError, FileNotFoundError):
            raise
        except (OSError, pa.ArrowException) as failure:
            where = f"{self.path}/{name}".rstrip("/")
            raise CheckpointError(f"{where} cannot be read: {failure}") from failure

    def _locate(self) -> tuple[fs.FileSystem, str]:
        if "://" in self.path:
            filesystem, directory = fs.FileSystem.from_uri(self.path)
            return filesystem, directory.rstrip("/")
        return fs.LocalFileSystem(), self.path.rstrip("/")
