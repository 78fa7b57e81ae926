"""Headers of state files: whether they are compressed, and which states they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from flinkcore.errors import SavepointError, UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.serializers.snapshots import (
    BROADCAST,
    KEYED,
    OPERATOR,
    TIMERS,
    StateDescription,
    read_state_description,
    read_written_serializer,
)
from flinkcore.savepoints.state_streams import StateStream

_VERSION = 6
_FIRST_BYTES = 1 << 16
_Header = TypeVar("_Header")


@dataclass(frozen=True)
class KeyedHeader:
    """Header of the keyed states of a subtask.

    Attributes
    ----------
    is_compressed : bool
    key : StateSerializer
    states : list of StateDescription
        By the numbers that entries have.
    n_states : int
        Number of states, with those that cannot be read.
    stopped : str or None
        Why those after the last one of `states` cannot be read.
    end : int
        Position after what was read.
    """

    is_compressed: bool
    key: StateSerializer
    states: list[StateDescription]
    n_states: int
    stopped: str | None
    end: int


@dataclass(frozen=True)
class OperatorHeader:
    """Header of the operator states of a subtask.

    Attributes
    ----------
    is_compressed : bool
    states : list of StateDescription
        List states, then broadcast states.
    stopped : str or None
        Why those after the last one of `states` cannot be read.
    end : int
        Position after what was read.
    """

    is_compressed: bool
    states: list[StateDescription] = field(default_factory=list)
    stopped: str | None = None
    end: int = 0


def read_keyed_header(stream: StateStream, most_bytes: int) -> KeyedHeader:
    """Read the header of a stream of keyed states.

    Parameters
    ----------
    stream : StateStream
    most_bytes : int
        Where the first key group begins.

    Raises
    ------
    SavepointError
        If it is damaged.
    UnsupportedSavepointError
        If the serializer of the keys is not known.

    Notes
    -----
    Flink's ``KeyedBackendSerializationProxy``.
    """

    def read(reader: ByteReader) -> KeyedHeader:
        _check_version(reader, (_VERSION,))
        is_compressed, key = reader.flag(), read_written_serializer(reader)
        n_states = reader.integer(2)
        states, stopped = _read_states(reader, n_states, (KEYED, TIMERS))
        for state in states:
            _require(
                reader,
                state,
                *["VALUE_SERIALIZER", "NAMESPACE_SERIALIZER"][: 2 if state.kind == KEYED else 1],
            )
        return KeyedHeader(is_compressed, key, states, n_states, stopped, reader.at)

    return _grow(stream, most_bytes, read)


def read_operator_header(stream: StateStream, most_bytes: int) -> OperatorHeader:
    """Read the header of a stream of operator states.

    Raises
    ------
    SavepointError
        If it is damaged.

    Notes
    -----
    Flink's ``OperatorBackendSerializationProxy``.
    """

    def read(reader: ByteReader) -> OperatorHeader:
        version = _check_version(reader, (5, _VERSION))
        is_compressed = reader.flag() if version > 5 else False
        states, stopped = _read_states(reader, reader.integer(2), (OPERATOR,))
        if stopped is None:
            shared, stopped = _read_states(reader, reader.integer(2), (BROADCAST,))
            states += shared
        for state in states:
            _require(
                reader, state, *["VALUE_SERIALIZER", "KEY_SERIALIZER"][: 2 if state.kind == BROADCAST else 1]
            )
        return OperatorHeader(is_compressed, states, stopped, reader.at)

    return _grow(stream, most_bytes, read)


def _grow(stream: StateStream, most_bytes: int, read: Callable[[ByteReader], _Header]) -> _Header:
    """Read a header of unknown size from the first bytes, and from more of them if it does not end there."""
    size = min(_FIRST_BYTES, most_bytes)
    while True:
        try:
            return read(ByteReader(stream.read(0, size), stream.name, stream.base))
        except UnsupportedSavepointError:
            raise
        except SavepointError:
            if size >= most_bytes:
                raise
            size = min(size * 8, most_bytes)


def _check_version(reader: ByteReader, versions: tuple[int, ...]) -> int:
    version = reader.integer(4)
    if version not in versions:
        reader.at -= 4
        if not 0 < version < 100:
            reader.fail("the header of a state does not begin with a version")
        raise UnsupportedSavepointError(
            f"{reader.file} has states of version {version}, and {versions[-1]} is read. Restore the job with Flink "
            "1.20 or later, and take a savepoint with it",
            file=reader.file,
            offset=reader.offset,
        )
    return version


def _read_states(
    reader: ByteReader, number: int, kinds: tuple[int, ...]
) -> tuple[list[StateDescription], str | None]:
    if number < 0:
        reader.fail(f"there are {number} states")
    states: list[StateDescription] = []
    for _ in range(number):
        try:
            state = read_state_description(reader)
        except UnsupportedSavepointError as failure:
            return states, str(failure)
        if state.kind not in kinds:
            reader.fail(f"state {state.name!r} is of the wrong kind {state.kind}")
        states.append(state)
    return states, None


def _require(reader: ByteReader, state: StateDescription, *names: str) -> None:
    for name in names:
        if name not in state.serializers:
            reader.fail(f"state {state.name!r} has no {name}")
