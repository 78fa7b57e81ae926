"""Files of states in the canonical format: keyed states and timers of a range of key groups, and operator states."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from flinkcore._internal.io.spill_file import SpillFile
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.checksums import masked_crc32c
from flinkcore._native.state_columns import EntryError
from flinkcore.errors import DataError
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers.basic import LONG
from flinkcore.savepoints.serializers.composite import (
    ListSerializer,
    MapSerializer,
    TimerSerializer,
    TtlSerializer,
)
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.serializers.snapshots import BROADCAST, KEYED, OPERATOR, TIMERS, StateDescription
from flinkcore.savepoints.serializers.written_snapshots import write_proxied, write_state_description
from flinkcore.savepoints.state import batch_of

_VERSION: Final = 6
_END_OF_GROUP: Final = struct.pack(">h", -1)
HELD_BYTES: Final = 64 << 20
"""Blocks of states in memory have at most so many bytes, but for those of the last state."""
_FRAME_BYTES: Final = 65_536
_FRAMES: Final = b"\xff\x06\x00\x00sNaPpY"
_LEAST_SAVING: Final = 0.85
"""A frame stays as it is if compression leaves more than this share of it, as in snappy-java."""

Batches = Callable[[range], Iterator[pa.RecordBatch]]
"""Rows of a state whose key groups are in a range, in the columns that reading the state returns."""


class StateOutput(Protocol):
    """A file that is being written."""

    def write(self, data: bytes, /) -> Any:
        """Append bytes."""


@dataclass(frozen=True)
class KeyedStateContent:
    """A keyed state, or timers, to be written.

    Attributes
    ----------
    name : str
    types : KeyedTypes
    batches : callable
        Takes a range of key groups, and yields the rows.
    """

    name: str
    types: KeyedTypes
    batches: Batches

    def description(self) -> StateDescription:
        """Return what the header of a file says of the state."""
        types, value = self.types, self.types.value
        if types.kind == "TIMERS":
            timer = TimerSerializer((types.key, types.namespace))
            return StateDescription(self.name, TIMERS, {}, {"VALUE_SERIALIZER": timer})
        assert value is not None
        if types.has_ttl:
            value = TtlSerializer((LONG, value))
        if types.kind == "LIST":
            value = ListSerializer((value,))
        elif types.kind == "MAP":
            assert types.map_key is not None
            value = MapSerializer((types.map_key, value))
        serializers: dict[str, StateSerializer] = {
            "VALUE_SERIALIZER": value,
            "NAMESPACE_SERIALIZER": types.namespace,
        }
        return StateDescription(self.name, KEYED, {"KEYED_STATE_TYPE": types.kind}, serializers)


@dataclass(frozen=True)
class OperatorStateContent:
    """An operator state of a subtask to be written.

    Attributes
    ----------
    name : str
    mode : str
        ``SPLIT_DISTRIBUTE``, ``UNION`` or ``BROADCAST``.
    key : StateSerializer or None
        Serializer of the keys of a broadcast state.
    value : StateSerializer
    rows : pyarrow.RecordBatch
        ``value``, and ``key`` for a broadcast state.
    """

    name: str
    mode: str
    key: StateSerializer | None
    value: StateSerializer
    rows: pa.RecordBatch

    def description(self) -> StateDescription:
        """Return what the header of a file says of the state."""
        options = {"OPERATOR_STATE_DISTRIBUTION_MODE": self.mode}
        if self.key is None:
            return StateDescription(self.name, OPERATOR, options, {"VALUE_SERIALIZER": self.value})
        serializers = {"VALUE_SERIALIZER": self.value, "KEY_SERIALIZER": self.key}
        return StateDescription(self.name, BROADCAST, options, serializers)


def write_keyed_states(
    output: StateOutput,
    key: StateSerializer,
    states: Sequence[KeyedStateContent],
    key_groups: range,
    max_parallelism: int,
    *,
    is_compressed: bool = False,
    exact: bool = False,
) -> tuple[list[int], int]:
    """Write the states and timers of a range of key groups.

    One state is in memory at a time. What is written of those before waits in a temporary file if it has more than 64
    MiB, as a file has all states of a key group together.

    Parameters
    ----------
    output : file
    key : StateSerializer
    states : sequence of KeyedStateContent
    key_groups : range
    max_parallelism : int
    is_compressed : bool
        Whether each key group is compressed with Snappy.
    exact : bool
        Whether rows are as `flinkcore.savepoints.open` returns them with ``exact=True``.

    Returns
    -------
    (list of int, int)
        Position of each key group in the file, 0 if it is empty, and the size of the file.

    Raises
    ------
    DataError
        If a value is one that its serializer cannot write; the message names the state and the key.
    UnsupportedSavepointError
        If a serializer cannot be written.
    SourceError
        If the temporary file cannot be written or read.

    Notes
    -----
    Flink's ``FullSnapshotAsyncWriter`` and ``KeyedBackendSerializationProxy``.
    """
    header = ByteWriter().integer(_VERSION).flag(is_compressed)
    write_proxied(header, key)
    header.integer(len(states), 2)
    for state in states:
        write_state_description(header, state.description())
    output.write(header.data())
    at = header.size
    offsets = []
    with closing(SpillFile("the states of a savepoint")) as waiting:
        of_states: list[Sequence[bytes | range]] = []
        held_bytes = 0
        for number, state in enumerate(states):
            blocks = _blocks(state, number, key_groups, max_parallelism, exact)
            n_bytes = sum(map(len, blocks))
            is_last = number + 1 == len(states)
            of_states.append(
                blocks if is_last or held_bytes + n_bytes <= HELD_BYTES else _written(blocks, waiting)
            )
            held_bytes += n_bytes if of_states[-1] is blocks else 0
            del blocks
        for of_group in zip(*of_states, strict=True) if states else [()] * len(key_groups):
            is_there = any(of_group)
            offsets.append(at if is_there else 0)
            if is_there:
                data = b"".join([*(_read(block, waiting) for block in of_group), _END_OF_GROUP])
                if is_compressed:
                    data = framed(data)
                output.write(data)
                at += len(data)
    return offsets, at


def _written(blocks: Sequence[bytes], waiting: SpillFile) -> list[range]:
    """Write blocks to a temporary file, and return their places in it."""
    places = []
    for block in blocks:
        first = waiting.append(block)
        places.append(range(first, first + len(block)))
    return places


def _read(block: bytes | range, waiting: SpillFile) -> bytes | bytearray:
    """Return a block, which may be a place in a temporary file."""
    if isinstance(block, bytes):
        return block
    data = bytearray(len(block))
    waiting.read(block.start, data)
    return data


def _blocks(
    state: KeyedStateContent, number: int, key_groups: range, max_parallelism: int, exact: bool
) -> list[bytes]:
    """Return the blocks of the rows of a state by key group, empty without rows."""
    table = state.types.table(max_parallelism, exact, 1 << 30)
    schema = batch_of(table.take()).schema
    batches = [_cast(batch, schema, state.name) for batch in state.batches(key_groups)]
    rows = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    if not rows:
        return [b""] * len(key_groups)
    if len(rows) > 1:
        raise DataError(
            f"state {state.name!r} has more than 2 GiB of texts in the key groups {key_groups.start} to "
            f"{key_groups.stop - 1}. Write it with a higher parallelism"
        )
    (batch,) = rows
    groups = batch.column("key_group").to_numpy()
    if len(groups) and not key_groups.start <= groups.min() <= groups.max() < key_groups.stop:
        raise DataError(
            f"state {state.name!r} has rows of the key groups {groups.min()} to {groups.max()} among those of "
            f"{key_groups.start} to {key_groups.stop - 1}"
        )
    try:
        table.bind(RecordBatch(batch, any_type=True))
        return table.write_blocks(number, groups, key_groups.start, len(key_groups))
    except EntryError as failure:
        key = batch.column("key")[failure.at].as_py()
        raise DataError(f"state {state.name!r} of the key {key!r} cannot be written: {failure}") from None
    except ValueError as failure:
        raise DataError(f"state {state.name!r} cannot be written: {failure}") from None


def _cast(batch: pa.RecordBatch, schema: pa.Schema, name: str) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    try:
        return batch.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, ValueError) as failure:
        raise DataError(
            f"the rows of state {name!r} are {batch.schema.to_string(show_schema_metadata=False)!r}, and its types "
            f"need {schema.to_string()!r}: {failure}"
        ) from None


def write_operator_states(
    output: StateOutput,
    states: Sequence[OperatorStateContent],
    *,
    is_compressed: bool = False,
    exact: bool = False,
) -> tuple[dict[str, tuple[str, list[int]]], int]:
    """Write the operator states of a subtask.

    Parameters
    ----------
    output : file
    states : sequence of OperatorStateContent
    is_compressed, exact : bool
        As of `write_keyed_states`.

    Returns
    -------
    (dict of str to (str, list of int), int)
        Distribution mode and positions of the elements of each state, and the size of the file.

    Raises
    ------
    DataError
        If a value is one that its serializer cannot write; the message names the state.
    UnsupportedSavepointError
        If a serializer cannot be written.

    Notes
    -----
    Flink's ``DefaultOperatorStateBackendSnapshotStrategy`` and ``OperatorBackendSerializationProxy``.
    """
    lists = [state for state in states if state.key is None]
    shared = [state for state in states if state.key is not None]
    header = ByteWriter().integer(_VERSION).flag(is_compressed)
    for some in (lists, shared):
        header.integer(len(some), 2)
        for state in some:
            write_state_description(header, state.description())
    output.write(header.data())
    at = header.size
    if is_compressed and states:
        output.write(_FRAMES)
        at += len(_FRAMES)
    found: dict[str, tuple[str, list[int]]] = {}
    for state in (*lists, *shared):
        offsets = []
        for element in _elements(state, exact):
            data = b"".join(_frames(element)) if is_compressed else element
            offsets.append(at)
            output.write(data)
            at += len(data)
        found[state.name] = state.mode, offsets
    return found, at


def _elements(state: OperatorStateContent, exact: bool) -> Iterator[bytes]:
    """Yield the bytes of the elements; those of a broadcast state are one."""
    parts = {"value": state.value} if state.key is None else {"key": state.key, "value": state.value}
    columns = {name: each.column(exact) for name, each in parts.items()}
    schema = pa.schema([(name, pa.array(column.array()).type) for name, column in columns.items()])
    batch = _cast(state.rows, schema, state.name)
    bound = RecordBatch(batch, any_type=True)
    try:
        for number, column in enumerate(columns.values()):
            column.bind_batch(bound, number)
        rows = (
            b"".join(column.write_value(row) for column in columns.values()) for row in range(batch.num_rows)
        )
        if state.key is None:
            yield from rows
        else:
            yield struct.pack(">i", batch.num_rows) + b"".join(rows)
    except ValueError as failure:
        raise DataError(f"operator state {state.name!r} cannot be written: {failure}") from None


def framed(data: bytes) -> bytes:
    """Return bytes as a framed stream of Snappy.

    Notes
    -----
    Flink's ``SnappyStreamCompressionDecorator``; https://github.com/google/snappy/blob/main/framing_format.txt.
    """
    return b"".join([_FRAMES, *_frames(data)])


def _frames(data: bytes) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    for begin in range(0, len(data), _FRAME_BYTES):
        plain = data[begin : begin + _FRAME_BYTES]
        body, kind = codec.compress(plain, asbytes=True), b"\0"
        if len(body) > _LEAST_SAVING * len(plain):
            body, kind = plain, b"\1"
        yield kind + (len(body) + 4).to_bytes(3, "little") + struct.pack("<I", masked_crc32c(plain)) + body
