"""State handles of a savepoint's metadata, which say where the bytes of a state are: read and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.byte_writer import ByteWriter

_NONE, _BYTES, _FILE, _OPERATOR, _RELATIVE, _SAVEPOINT_KEY_GROUPS = 0, 1, 2, 4, 6, 7
_HEAP_KEY_GROUPS: Final = {3: False, 12: True}
"""Handles of the heap backend's own format; true if the handle's id follows."""

_CANONICAL: Final = "take a savepoint in the canonical format: `flink savepoint --type canonical JOB_ID DIR`"
_REFUSED: Final = {
    5: f"it holds RocksDB's own files (native format); {_CANONICAL}",
    11: f"it holds RocksDB's own files (native format); {_CANONICAL}",
    **dict.fromkeys((8, 9, 10, 13, 14), f"it holds a changelog of the state backend; {_CANONICAL}"),
    **dict.fromkeys(
        (15, 16, 17), f"its files are merged (execution.checkpointing.file-merging); {_CANONICAL}"
    ),
}

DISTRIBUTION_MODES: Final = ("SPLIT_DISTRIBUTE", "UNION", "BROADCAST")


@dataclass(frozen=True)
class StreamHandle:
    """Place of a stream of bytes: in the metadata itself, or in a file.

    Attributes
    ----------
    content : bytes or None
        The bytes themselves.
    offset : int
        Position of the content in the metadata; 0 for a file.
    location : str or None
        Path or URI of the file.
    is_relative : bool
        Whether the location is relative to the savepoint's directory.
    size : int
        Number of bytes.
    """

    content: bytes | None
    offset: int
    location: str | None
    is_relative: bool
    size: int


@dataclass(frozen=True)
class KeyGroupsHandle:
    """Places of the key groups of a subtask in a stream.

    Attributes
    ----------
    first_group : int
    offsets : tuple of int
        Position of each key group; 0 if it is absent.
    stream : StreamHandle
    is_canonical : bool
        Whether it has the canonical format; otherwise that of the heap backend.
    """

    first_group: int
    offsets: tuple[int, ...]
    stream: StreamHandle
    is_canonical: bool

    @property
    def first_offset(self) -> int:
        """Position of the first key group, before which the header ends."""
        return min((offset for offset in self.offsets if offset), default=self.stream.size)


@dataclass(frozen=True)
class OperatorStateHandle:
    """Places of the operator states of a subtask in a stream.

    Attributes
    ----------
    offsets : dict of str to (str, tuple of int)
        Distribution mode and positions of the elements, by the name of the state.
    stream : StreamHandle
    """

    offsets: dict[str, tuple[str, tuple[int, ...]]]
    stream: StreamHandle


def read_stream_handle(reader: ByteReader) -> StreamHandle | None:
    """Read the handle of a stream, or None if there is no state.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If the stream is of a kind that is not read.
    """
    kind = reader.integer(1)
    if kind == _NONE:
        return None
    if kind == _BYTES:
        reader.utf()
        size = reader.count()
        offset = reader.offset
        return StreamHandle(reader.take(size), offset, None, False, size)
    if kind == _FILE:
        size = reader.integer(8)
        return StreamHandle(None, 0, reader.utf(), False, size)
    if kind != _RELATIVE:
        _refuse(reader, kind)
    location = reader.utf()
    return StreamHandle(None, 0, location, True, reader.integer(8))


def read_keyed_handle(reader: ByteReader) -> KeyGroupsHandle | None:
    """Read the handle of keyed state, or None if there is no state.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If the format is not read, such as RocksDB's own.
    """
    kind = reader.integer(1)
    if kind == _NONE:
        return None
    if kind != _SAVEPOINT_KEY_GROUPS and kind not in _HEAP_KEY_GROUPS:
        _refuse(reader, kind)
    first = reader.integer(4)
    if not 0 <= first < 32768:
        reader.fail(f"a key group does not have the number {first}")
    offsets = tuple(reader.integer(8) for _ in range(reader.count(8)))
    if first + len(offsets) > 32768:
        reader.fail(f"there are no {len(offsets):,} key groups after {first}")
    stream = read_stream_handle(reader)
    if stream is None:
        reader.fail("key groups are in no stream")
    _check_offsets(reader, offsets, stream)
    if _HEAP_KEY_GROUPS.get(kind):
        reader.utf()
    return KeyGroupsHandle(first, offsets, stream, kind == _SAVEPOINT_KEY_GROUPS)


def read_operator_handle(reader: ByteReader) -> OperatorStateHandle | None:
    """Read the handle of operator state, or None if there is no state.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If the stream is of a kind that is not read.
    """
    kind = reader.integer(1)
    if kind == _NONE:
        return None
    if kind != _OPERATOR:
        _refuse(reader, kind)
    offsets = {}
    for _ in range(reader.count(7)):
        name, mode = reader.utf(), reader.integer(1)
        if not 0 <= mode < len(DISTRIBUTION_MODES):
            reader.fail(f"operator state {name!r} has the unknown distribution mode {mode}")
        offsets[name] = DISTRIBUTION_MODES[mode], tuple(reader.integer(8) for _ in range(reader.count(8)))
    stream = read_stream_handle(reader)
    if stream is None:
        reader.fail("operator states are in no stream")
    for _, of_state in offsets.values():
        _check_offsets(reader, of_state, stream)
    return OperatorStateHandle(offsets, stream)


def write_stream_handle(writer: ByteWriter, stream: StreamHandle | None) -> None:
    """Append the handle of a stream in a file of the savepoint's directory, with its bytes, or of no state."""
    if stream is None:
        writer.integer(_NONE, 1)
        return
    if stream.content is not None:
        writer.integer(_BYTES, 1).utf("").integer(stream.size).add(stream.content)
        return
    assert stream.is_relative
    assert stream.location is not None
    writer.integer(_RELATIVE, 1).utf(stream.location).integer(stream.size, 8)


def write_keyed_handle(writer: ByteWriter, handle: KeyGroupsHandle | None) -> None:
    """Append the handle of keyed state in the canonical format, or that there is no state."""
    if handle is None:
        writer.integer(_NONE, 1)
        return
    writer.integer(_SAVEPOINT_KEY_GROUPS, 1).integer(handle.first_group).integer(len(handle.offsets))
    for offset in handle.offsets:
        writer.integer(offset, 8)
    write_stream_handle(writer, handle.stream)


def write_operator_handle(writer: ByteWriter, handle: OperatorStateHandle) -> None:
    """Append the handle of operator state."""
    writer.integer(_OPERATOR, 1).integer(len(handle.offsets))
    for name, (mode, offsets) in handle.offsets.items():
        writer.utf(name).integer(DISTRIBUTION_MODES.index(mode), 1).integer(len(offsets))
        for offset in offsets:
            writer.integer(offset, 8)
    write_stream_handle(writer, handle.stream)


def _check_offsets(reader: ByteReader, offsets: tuple[int, ...], stream: StreamHandle) -> None:
    wrong = next((offset for offset in offsets if not 0 <= offset <= stream.size), None)
    if wrong is not None:
        reader.fail(f"a state begins at byte {wrong:,} of a stream that has {stream.size:,}")


def _refuse(reader: ByteReader, kind: int) -> NoReturn:
    if kind not in _REFUSED:
        reader.at -= 1
        reader.fail(f"there is no state handle of the kind {kind}")
    raise UnsupportedSavepointError(
        f"{reader.file} cannot be read: {_REFUSED[kind]}", file=reader.file, offset=reader.offset - 1
    )
