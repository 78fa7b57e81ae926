"""The bytes of a state: in a file, local or in a store, or in the metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as fs

from flinkcore._internal.io.store_errors import reason_of
from flinkcore._internal.io.stores import Locate, Place, Stores
from flinkcore._native.checksums import masked_crc32c
from flinkcore.errors import SavepointError
from flinkcore.savepoints.byte_reader import damage
from flinkcore.savepoints.handles import StreamHandle

_STREAM_HEADER = b"\xff\x06\x00\x00sNaPpY"


@dataclass(frozen=True)
class LocatedPlaces(Stores):
    """Stores of tasks, which cannot ask for the settings of the driver's session; picklable.

    Parameters
    ----------
    places : mapping of str to Place
        By location.
    """

    places: Mapping[str, Place]

    def locating(self) -> Locate:
        return self.places.__getitem__


@dataclass(frozen=True)
class SavepointDirectory:
    """The directory of a savepoint, and the stores in which its other files may lie; picklable if these are.

    Parameters
    ----------
    place : Place
    stores : Stores
    """

    place: Place
    stores: Stores

    def read(self, name: str, most_bytes: int) -> bytes:
        """Return the content of a file of the directory.

        Raises
        ------
        SavepointError
            If it does not exist, is longer than `most_bytes`, or cannot be read.
        """
        place = self.place.below(name)
        info = self._info(place)
        if info.type != fs.FileType.File:
            raise SavepointError(
                f"{self.place.name} is not a savepoint: it has no file {name}. Give the directory that has it; "
                "checkpoints of replays, which flinkcore checkpoint show prints, have none",
                file=place.name,
            )
        if info.size > most_bytes:
            raise SavepointError(f"{place.name} is damaged: it has {info.size:,} bytes", file=place.name)
        with self._open(place) as file:
            return _read_at(file, place.name, 0, info.size)

    def open(self, handle: StreamHandle, block_bytes: int, end: int | None = None) -> StateStream:
        """Open the stream of a handle.

        A file that is no longer where the metadata says is looked for in the directory: it may have been moved.

        Parameters
        ----------
        handle : StreamHandle
        block_bytes : int
            Bytes that are read at once.
        end : int or None
            Position after which nothing is read; None for the end of the stream.

        Raises
        ------
        SavepointError
            If the file does not exist, does not have the right size, or cannot be read.
        """
        size = handle.size if end is None else end
        if handle.content is not None:
            name = self.place.below("_metadata").name
            return StateStream(pa.BufferReader(handle.content), name, handle.offset, size, block_bytes)
        location = handle.location or ""
        last = location.rpartition("/")[2]
        if handle.is_relative:
            if not location or ".." in location.split("/") or location.startswith("/"):
                raise SavepointError(
                    f"{self.place.name} is damaged: its file {location!r} is not in it", file=self.place.name
                )
            place = self.place.below(location)
        else:
            place = self.stores.locate(location.removeprefix("file:"))
        info = self._info(place)
        if info.type == fs.FileType.NotFound and last and not handle.is_relative:
            beside = self.place.below(last)
            if (other := self._info(beside)).type == fs.FileType.File:
                place, info = beside, other
        if info.type != fs.FileType.File:
            raise SavepointError(
                f"{place.name} does not exist, which the savepoint {self.place.name} refers to. Copy the file there, "
                "or beside _metadata",
                file=place.name,
            )
        if info.size != handle.size:
            raise damage(
                place.name,
                min(info.size, handle.size),
                f"it has {info.size:,} bytes instead of {handle.size:,}",
            )
        return StateStream(self._open(place), place.name, 0, size, block_bytes)

    def for_tasks(self, handles: Iterable[StreamHandle]) -> SavepointDirectory:
        """Return the directory for tasks that read some handles; picklable."""
        locate = self.stores.locating()
        locations = [each.location for each in handles if each.content is None and not each.is_relative]
        places = {path: locate(path) for each in locations if each and (path := each.removeprefix("file:"))}
        return SavepointDirectory(self.place, LocatedPlaces(places))

    def _info(self, place: Place) -> fs.FileInfo:
        with _reading(place.name):
            return place.filesystem.get_file_info(place.path)

    def _open(self, place: Place) -> pa.NativeFile:
        with _reading(place.name):
            return place.filesystem.open_input_file(place.path)


class StateStream:
    """Bytes at positions, read block by block.

    Parameters
    ----------
    file : pyarrow.NativeFile
    name : str
        Name of the file in errors.
    base : int
        Position of the bytes in the file of that name.
    size : int
    block_bytes : int
    """

    def __init__(self, file: pa.NativeFile, name: str, base: int, size: int, block_bytes: int) -> None:
        self._file = file
        self.name = name
        self.base = base
        self.size = size
        self.block_bytes = block_bytes
        self._window = b""
        self._window_at = 0

    def __enter__(self) -> StateStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, at: int, size: int) -> bytes:
        """Return bytes at a position; fewer at the end of the stream."""
        size = min(size, self.size - at)
        begin = at - self._window_at
        if begin < 0 or begin + size > len(self._window):
            self._window = _read_at(
                self._file, self.name, at, min(max(size, self.block_bytes), self.size - at)
            )
            self._window_at, begin = at, 0
        return self._window[begin : begin + size]

    def blocks(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from a position to another."""
        while begin < end:
            block = self.read(begin, min(self.block_bytes, end - begin))
            begin += len(block)
            yield block

    def decompressed_blocks(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield the decompressed bytes of framed Snappy streams.

        Raises
        ------
        SavepointError
            If a frame is damaged, or its checksum is wrong.

        Notes
        -----
        Flink's ``SnappyStreamCompressionDecorator``; https://github.com/google/snappy/blob/main/framing_format.txt.
        """
        codec = pa.Codec("snappy")
        parts: list[bytes] = []
        size = 0
        while begin < end:
            header = self.read(begin, 4)
            length = int.from_bytes(header[1:4], "little")
            if len(header) < 4 or begin + 4 + length > end:
                raise damage(self.name, self.base + begin, "a frame of Snappy does not end")
            kind, body = header[0], self.read(begin + 4, length)
            if kind == 0xFF:
                if header + body != _STREAM_HEADER:
                    raise damage(
                        self.name, self.base + begin, "a stream of Snappy does not begin as it should"
                    )
            elif kind in (0x00, 0x01):
                plain = self._chunk(codec, kind, body, begin)
                parts.append(plain)
                size += len(plain)
            else:  # Flink writes no padding
                raise damage(self.name, self.base + begin, f"there is no frame of Snappy of the kind {kind}")
            begin += 4 + length
            if size >= self.block_bytes:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)

    def _chunk(self, codec: pa.Codec, kind: int, body: bytes, at: int) -> bytes:
        plain = body[4:]
        if kind == 0x00:
            size = _varint(plain)
            # No element of a compressed chunk stands for more than 64 bytes.
            if size is None or size > 32 * len(plain) + 64:
                raise damage(self.name, self.base + at, "a frame of Snappy has a wrong size")
            try:
                plain = codec.decompress(plain, size, asbytes=True)
            except (OSError, pa.ArrowException):
                raise damage(self.name, self.base + at, "a frame of Snappy cannot be decompressed") from None
        if masked_crc32c(plain) != int.from_bytes(body[:4], "little"):
            raise damage(self.name, self.base + at, "the checksum of a frame of Snappy is wrong")
        return plain


def _varint(data: bytes) -> int | None:
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return size
    return None


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except SavepointError:  # an OSError, too
        raise
    except (OSError, pa.ArrowException) as failure:
        raise SavepointError(f"{name} cannot be read: {reason_of(failure)}", file=name) from failure


def _read_at(file: pa.NativeFile, name: str, at: int, size: int) -> bytes:
    with _reading(name):
        try:
            data: bytes = file.read_at(size, at)
        except FileNotFoundError as failure:
            raise SavepointError(f"{name} does not exist any more", file=name) from failure
    if len(data) < size:
        raise damage(name, at + len(data), "it ends here")
    return data
