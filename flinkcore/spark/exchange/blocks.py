"""Blocks: ordered rows of one sender for one partition, packed into one row of a shuffle.

The row, sorted within its partition by partition and place, whose parts are packed so that they sort as bytes::

    slot       | partition | place                                                    | payload
               |           | arrival            kind               input  sender  no. |
    -----------+-----------+----------------------------------------------------------+--------
    where the  | 3         | least              0 state manifest   0      5       1   | JSON
    shuffle    | 3         | least              1 state            0      5       0   | Arrow
    puts it    | 3         | least              2 manifest         0      17      4   | JSON
               | 3         | 1,700,000,123      3 events           0      17      0   | Arrow
               | 3         | 1,700,000,124      5 results          1      52      9   | Arrow
               | 3         | greatest           6 side rows        0      17      1   | Arrow

The sender is a chunk of a log, the first one of a task, or a partition of an operator; senders are counted over all
that send to an operator. A manifest lists the senders of a task and how many rows they have sent to the partition.
Results of another operator come with their places (`PlacedEvents`). Partitions are counted over all operators
(`OperatorLevels`). State comes from a savepoint of Flink; its senders are ranges of key groups (`DealStateTask`).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.errors import DataError
from flinkcore.spark.exchange.narrow import as_columns, wide_columns
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.time_plane.total_order import LogEvents

BLOCKS: Final = RowFormat("slot int, partition int, place binary, payload binary")
BLOCKS_ORDER: Final = ("partition", "place")

_PLACE: Final = struct.Struct(">QBBII")
_TAG: Final = b"tag"
_STATE: Final = b"state"

_WRITTEN: Final = ipc.IpcWriteOptions()
"""The default, which pyarrow would look up in the environment for each block."""

BLOCK_BYTES = 16 << 20
"""Most bytes in memory of the events of a block, unless it has only one; packed they have fewer."""

BATCH_BYTES = 16 << 20
"""Blocks are given to Spark when they have so many bytes together."""

BEFORE_ALL: Final = -(2**63)
AFTER_ALL: Final = 2**63 - 1
"""In place of the first arrival of state and manifests, and of side rows, which come before and after all others."""

MOST_BLOCK_BYTES = 2**31 - 1
"""Most bytes of a column of a batch, and so of a block."""


class BlockKind(IntEnum):
    """Kind of a block's payload."""

    STATE_MANIFEST = 0
    STATE = 1
    MANIFEST = 2
    EVENTS = 3
    PARTIALS = 4
    RESULTS = 5
    SIDE_ROWS = 6


class BlockPlace(NamedTuple):
    """Place of a block among those of its partition.

    Attributes
    ----------
    first_arrival : int
        Arrival of its first row, ms since the epoch; `BEFORE_ALL` for state and manifests, `AFTER_ALL` for side rows.
    kind : BlockKind
    input_number : int
        Input of the operator, 0 or 1, that the sender sends to.
    sender : int
        Number of the sender among those that send to the operator.
    number : int
        Number of the block among those of its sender.
    """

    first_arrival: int
    kind: BlockKind
    input_number: int
    sender: int
    number: int

    def packed(self) -> bytes:
        """Return bytes that sort as the numbers do."""
        # Unsigned and with the most significant byte first, as bytes are compared.
        return _PLACE.pack(self.first_arrival - BEFORE_ALL, *self[1:])

    @classmethod
    def unpacked(cls, place: bytes) -> BlockPlace:
        """Return the place that was packed."""
        arrival, kind, *numbers = _PLACE.unpack(place)
        return cls(arrival + BEFORE_ALL, BlockKind(kind), *numbers)


@dataclass(frozen=True)
class Block:
    """A row of the shuffle.

    Attributes
    ----------
    partition : int
        Number of the partition that it is for.
    place : BlockPlace
    payload : pyarrow.Buffer
        A manifest as JSON; rows as an Arrow stream.
    """

    partition: int
    place: BlockPlace
    payload: pa.Buffer


class BlockWriter:
    """Packs blocks into record batches for the shuffle; payloads are not copied.

    Call `take_full` after each block that was added: the offsets of a batch have 32 bits.

    Parameters
    ----------
    slots : sequence of int
        For each partition of the job, the value of the column `slot` (`partition_slots`).
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._begin()

    def _begin(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._offsets = [0]
        self._headers: list[tuple[int, int, bytes]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads packed so far."""
        return self._offsets[-1]

    def add_rows(self, partition: int, place: BlockPlace, rows: pa.RecordBatch) -> None:
        """Pack at least one row, in total order."""
        with ipc.new_stream(self._sink, rows.schema, options=_WRITTEN) as stream:
            stream.write_batch(rows)
        self._add_header(partition, place)

    def add_payload(self, partition: int, place: BlockPlace, payload: bytes | pa.Buffer) -> None:
        """Pack what is packed already: a manifest, or a block of another writer that passes through a task."""
        self._sink.write(payload)
        self._add_header(partition, place)

    def _add_header(self, partition: int, place: BlockPlace) -> None:
        end = self._sink.tell()
        n_bytes = end - self._offsets[-1]
        if n_bytes > MOST_BLOCK_BYTES:
            raise DataError(
                f"an event or result for partition {partition} has {n_bytes:,} bytes, and a row of Spark's shuffle "
                f"has at most {MOST_BLOCK_BYTES:,}: make its values smaller, or leave them out by select() or filter()"
            )
        self._headers.append((self._slots[partition], partition, place.packed()))
        self._offsets.append(end)

    def take_full(self) -> Iterator[pa.RecordBatch]:
        """Yield the packed blocks as rows of the shuffle, if they fill a batch."""
        if self.nbytes >= BATCH_BYTES:
            yield from self.take()

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the packed blocks as rows of the shuffle, in as few batches as possible."""
        headers, ends, payload = self._headers, self._offsets, self._sink.getvalue()
        self._begin()
        start = 0
        while start < len(headers):
            stop = bisect_right(ends, ends[start] + MOST_BLOCK_BYTES) - 1
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*headers[start:stop], strict=True), BLOCKS.schema, strict=False)
            ]
            offsets = np.array(ends[start : stop + 1]) - ends[start]
            blocks = payload.slice(ends[start], ends[stop] - ends[start])
            buffers = [None, pa.py_buffer(offsets.astype(np.int32)), blocks]
            columns.append(pa.Array.from_buffers(pa.binary(), stop - start, buffers))
            yield pa.RecordBatch.from_arrays(columns, schema=BLOCKS.schema)
            start = stop


def read_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    """Yield the blocks in a reduce task's input; payloads are borrowed from the batches."""
    for batch in batches:
        partitions = batch.column("partition").to_pylist()
        places = batch.column("place").to_pylist()
        payloads = batch.column("payload")
        for row, (partition, place) in enumerate(zip(partitions, places, strict=True)):
            yield Block(partition, BlockPlace.unpacked(place), payloads[row].as_buffer())


def read_events(block: Block, schema: pa.Schema) -> LogEvents:
    """Return the events in a block; the schema is that of the user's columns, or of the columns of partial results."""
    batch = ipc.open_stream(block.payload).read_next_batch()
    columns = wide_columns(batch)
    timestamps, arrivals, splits, positions = columns[len(schema) :]
    return LogEvents(
        pa.RecordBatch.from_arrays(as_columns(columns, schema), schema=schema),
        timestamps,
        arrivals,
        splits.astype(np.int32),
        positions,
    )


def read_results(block: Block, schema: pa.Schema) -> PlacedEvents:
    """Return the results in a block; the schema is that of their columns."""
    return PlacedEvents.unpacked(ipc.open_stream(block.payload).read_next_batch(), schema)


def side_rows(tag_id: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a side output as a block has them, with the name of the output."""
    return rows.replace_schema_metadata({_TAG: tag_id.encode()})


def read_side_rows(block: Block) -> tuple[str, list[pa.RecordBatch]]:
    """Return the name of a side output, and the rows in a block of it."""
    stream = ipc.open_stream(block.payload)
    tag_id = stream.schema.metadata[_TAG].decode()
    return tag_id, [batch.replace_schema_metadata(None) for batch in stream]


def state_entries(state: str, entries: pa.RecordBatch) -> pa.RecordBatch:
    """Return entries of a state as a block has them, with its name."""
    return entries.replace_schema_metadata({_STATE: state.encode()})


def read_state_entries(block: Block) -> tuple[str, pa.RecordBatch]:
    """Return the name of a state, and its entries in a block."""
    batch = ipc.open_stream(block.payload).read_next_batch()
    return batch.schema.metadata[_STATE].decode(), batch.replace_schema_metadata(None)
