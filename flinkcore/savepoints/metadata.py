"""The file `_metadata` of a savepoint, with its operators and the places of their states: read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.handles import (
    KeyGroupsHandle,
    OperatorStateHandle,
    StreamHandle,
    read_keyed_handle,
    read_operator_handle,
    read_stream_handle,
    write_keyed_handle,
    write_operator_handle,
    write_stream_handle,
)

MAGIC: Final = 0x4960672D
OLDEST_VERSION, NEWEST_VERSION = 3, 6
_NAMES_SINCE: Final = 5
_MASTER_STATE_MAGIC: Final = -915728746
_MOST_KEY_GROUPS: Final = 32768

_Handle = TypeVar("_Handle")


@dataclass(frozen=True)
class SubtaskState:
    """Handles of one subtask.

    Attributes
    ----------
    index : int
    operator_states : list of OperatorStateHandle
    keyed_states : list of KeyGroupsHandle
    raw_states : int
        Number of raw states, which only their operator can read.
    """

    index: int
    operator_states: list[OperatorStateHandle]
    keyed_states: list[KeyGroupsHandle]
    raw_states: int


@dataclass(frozen=True)
class OperatorMetadata:
    """An operator with its state.

    Attributes
    ----------
    name, uid : str or None
        None in metadata before version 5, or if the operator has none.
    operator_id : str
        32 hexadecimal digits.
    parallelism, max_parallelism : int
    coordinator : StreamHandle or None
        State of the operator's coordinator, such as that of a source.
    is_finished : bool
        Whether all its subtasks had finished.
    subtasks : list of SubtaskState
    """

    name: str | None
    uid: str | None
    operator_id: str
    parallelism: int
    max_parallelism: int
    coordinator: StreamHandle | None
    is_finished: bool
    subtasks: list[SubtaskState]


@dataclass(frozen=True)
class Metadata:
    """The content of `_metadata`.

    Attributes
    ----------
    version : int
    checkpoint_id : int
    operators : list of OperatorMetadata
    """

    version: int
    checkpoint_id: int
    operators: list[OperatorMetadata]


def read_metadata(reader: ByteReader) -> Metadata:
    """Read the content of `_metadata`.

    The properties of the checkpoint, which follow the operators, are an object of Java, and are not read.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If it has a version or a state that is not read.

    Notes
    -----
    Flink's ``MetadataV2V3SerializerBase`` and its subclasses ``MetadataV3Serializer`` to ``MetadataV6Serializer``.
    """
    magic = reader.integer(4)
    if magic != MAGIC:
        reader.at -= 4
        reader.fail("it is not the metadata of a savepoint, which begins with 49 60 67 2D")
    version = reader.integer(4)
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise UnsupportedSavepointError(
            f"{reader.file} has version {version}, and {OLDEST_VERSION} to {NEWEST_VERSION} are read (Flink 1.11 to "
            "2.3). Restore the job with one of these releases, and take a savepoint with it",
            file=reader.file,
            offset=reader.offset - 4,
        )
    checkpoint_id = reader.integer(8)
    for _ in range(reader.count(8)):
        if reader.integer(4) != _MASTER_STATE_MAGIC:
            reader.at -= 4
            reader.fail("the state of a master hook does not begin as it should")
        reader.take(reader.count())
    operators = [_read_operator(reader, version) for _ in range(reader.count(33))]
    return Metadata(version, checkpoint_id, operators)


def _read_operator(reader: ByteReader, version: int) -> OperatorMetadata:
    name = uid = None
    if version >= _NAMES_SINCE:
        name, uid = reader.utf() or None, reader.utf() or None
    operator_id = reader.take(16).hex()
    parallelism, max_parallelism = reader.integer(4), reader.integer(4)
    if not 1 <= max_parallelism <= _MOST_KEY_GROUPS:
        reader.at -= 4
        reader.fail(f"the max parallelism of an operator is {max_parallelism:,}")
    coordinator = read_stream_handle(reader)
    n_subtasks = reader.integer(4)
    # A negative number stands for an operator all of whose subtasks had finished.
    if n_subtasks > reader.left:
        reader.at -= 4
        reader.fail(f"an operator has {n_subtasks:,} subtasks")
    subtasks = [_read_subtask(reader, uid or operator_id) for _ in range(max(n_subtasks, 0))]
    return OperatorMetadata(
        name, uid, operator_id, parallelism, max_parallelism, coordinator, n_subtasks < 0, subtasks
    )


def _read_subtask(reader: ByteReader, operator: str) -> SubtaskState:
    index = reader.integer(4)
    if index < 0:
        # A finished subtask has no state.
        return SubtaskState(-index - 1, [], [], 0)
    operator_states = _several(reader, read_operator_handle)
    raw_operator_states = _several(reader, read_operator_handle)
    keyed_states = _present(read_keyed_handle(reader))
    raw_keyed_states = _present(read_keyed_handle(reader))
    if reader.integer(4) or reader.integer(4):
        raise UnsupportedSavepointError(
            f"{reader.file} cannot be read: it is an unaligned checkpoint with records in flight (operator "
            f"{operator}). Take a savepoint, or a checkpoint without execution.checkpointing.unaligned",
            file=reader.file,
            offset=reader.offset,
        )
    return SubtaskState(
        index, operator_states, keyed_states, len(raw_operator_states) + len(raw_keyed_states)
    )


def _several(reader: ByteReader, read: Callable[[ByteReader], _Handle | None]) -> list[_Handle]:
    return [handle for _ in range(reader.count()) for handle in _present(read(reader))]


def _present(handle: _Handle | None) -> list[_Handle]:
    return [] if handle is None else [handle]


def written_metadata(metadata: Metadata) -> bytes:
    """Return the content of `_metadata` in version 3, which all releases of Flink since 1.11 restore.

    Later versions end with an object of Java. This one has no names and uids of operators: Flink finds operators by
    the ids, which are hashes of the uids.

    Notes
    -----
    Flink's ``MetadataV3Serializer``.
    """
    writer = ByteWriter().integer(MAGIC).integer(OLDEST_VERSION).integer(metadata.checkpoint_id, 8)
    writer.integer(0).integer(len(metadata.operators))
    for operator in metadata.operators:
        writer.add(bytes.fromhex(operator.operator_id))
        writer.integer(operator.parallelism).integer(operator.max_parallelism)
        write_stream_handle(writer, operator.coordinator)
        writer.integer(len(operator.subtasks))
        for subtask in operator.subtasks:
            writer.integer(subtask.index).integer(len(subtask.operator_states))
            for handle in subtask.operator_states:
                write_operator_handle(writer, handle)
            writer.integer(0)
            write_keyed_handle(writer, subtask.keyed_states[0] if subtask.keyed_states else None)
            write_keyed_handle(writer, None)
            # Neither input nor output channels have records in flight.
            writer.integer(0).integer(0)
    return writer.data()
