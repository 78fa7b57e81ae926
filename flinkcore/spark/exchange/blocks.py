"""Blocks: ordered events of one map task for one partition, packed into one row of a shuffle.

The row, sorted within its partition by partition and place, whose parts are packed so that they sort as bytes::

    slot       | partition | place                                                          | payload
               |           | kind               first_arrival  first_split  first_position  |
    -----------+-----------+----------------------------------------------------------------+--------
    where the  | 3         | 0 manifest         0              0            chunk           | JSON
    shuffle    | 3         | 1 rejected rows    0              log          chunk           | Arrow
    puts it    | 3         | 2 events           1,700,000,123  5            8,112           | Arrow
               | 3         | 3 side rows        0              0            partition       | Arrow

A manifest says how much a map task has sent to the partition, so that the reduce task notices what is missing.

Between two operators of a job, the events are results of the first with their places (`PlacedEvents`), and
`first_split` is -1 or -2 for the first or second input of the next. Manifests and side rows are then of
a partition of the first operator, not of a map task. Partitions are counted over all operators (`OperatorLevels`).
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.errors import DataError
from flinkcore.spark.exchange.narrow import NarrowIntegers
from flinkcore.spark.exchange.ordered_events import NARROWED, OrderedEvents
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.time_plane.total_order import LogEvents

BLOCKS: Final = RowFormat("slot int, partition int, place binary, payload binary")
BLOCKS_ORDER: Final = ("partition", "place")

_PLACE: Final = struct.Struct(">BQIQ")
_LEAST_INT64, _LEAST_INT32 = -(2**63), -(2**31)
_TAG: Final = b"tag"

BLOCK_BYTES = 16 << 20
"""Most bytes in memory of the events of a block, unless it has only one; packed they have fewer."""

BATCH_BYTES = 16 << 20
"""Blocks are given to Spark when they have so many bytes together."""

PARTIAL_RESULTS: Final = -3
"""In place of the first split of a block that holds partial results."""

MOST_BLOCK_BYTES = 2**31 - 1
"""Most bytes of a column of a batch, and so of a block."""


class BlockKind(IntEnum):
    """Kind of a block's payload."""

    MANIFEST = 0
    REJECTED = 1
    EVENTS = 2
    SIDE_ROWS = 3


@dataclass(frozen=True)
class Block:
    """A row of the shuffle.

    Attributes
    ----------
    partition : int
        Number of the partition that it is for.
    kind : BlockKind
    first_arrival : int
        Arrival of its first event, ms since the epoch; 0 if it has no events.
    first_split : int
        Split of its first event, or below 0 for results of operators and partial results; the number of the log if it
        has no events.
    first_position : int
        Position of its first event; of results, and where there are no events, the number of what has sent it.
    payload : pyarrow.Buffer
        A manifest as JSON; rows or events as an Arrow stream.
    """

    partition: int
    kind: BlockKind
    first_arrival: int
    first_split: int
    first_position: int
    payload: pa.Buffer

    @property
    def input_of_results(self) -> int | None:
        """The input of the operator, 0 or 1, that results are for; None for events of a log."""
        return -1 - self.first_split if self.first_split in (-1, -2) else None

    @property
    def holds_partials(self) -> bool:
        """Whether its events are partial results."""
        return self.first_split == PARTIAL_RESULTS


class BlockWriter:
    """Packs blocks into record batches for the shuffle; payloads are not copied.

    Call `take_full` after each block that was added: the offsets of a batch have 32 bits.

    Parameters
    ----------
    slots : sequence of int
        For each partition, the value of the column `slot` (`partition_slots`).
    first_partition : int
        Number of the first of these partitions among those of the job.
    """

    def __init__(self, slots: Any, first_partition: int = 0) -> None:
        self._slots = slots
        self._first_partition = first_partition
        self._begin()

    def _begin(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._offsets = [0]
        self._headers: list[tuple[int, int, bytes]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads packed so far."""
        return self._offsets[-1]

    def add_events(
        self, partition: int, events: OrderedEvents, start: int, stop: int, are_partial: bool = False
    ) -> None:
        """Pack a range of at least one event, or partial result, in total order."""
        batch = events.narrowed(start, stop)
        with ipc.new_stream(self._sink, batch.schema) as stream:
            stream.write_batch(batch)
        arrival, split, position = events.key(start)
        key = arrival, PARTIAL_RESULTS if are_partial else split, position
        self._add_header(partition, BlockKind.EVENTS, key)

    def add_rows(self, partition: int, chunk: int, rows: pa.RecordBatch, log: int = 0) -> None:
        """Pack rejected rows of a chunk."""
        with ipc.new_stream(self._sink, rows.schema) as stream:
            stream.write_batch(rows)
        self._add_header(partition, BlockKind.REJECTED, (0, log, chunk))

    def add_manifest(self, partition: int, chunk: int, manifest: dict[str, Any]) -> None:
        """Pack a manifest."""
        self._sink.write(json.dumps(manifest).encode())
        self._add_header(partition, BlockKind.MANIFEST, (0, 0, chunk))

    def add_placed(self, partition: int, events: PlacedEvents, input_number: int, sender: int) -> None:
        """Pack at least one result, in total order, for an input (0 or 1) of the next operator."""
        batch = events.packed()
        with ipc.new_stream(self._sink, batch.schema) as stream:
            stream.write_batch(batch)
        self._add_header(partition, BlockKind.EVENTS, (int(events.arrivals[0]), -1 - input_number, sender))

    def add_side_rows(self, partition: int, source: int, tag_id: str, rows: pa.RecordBatch) -> None:
        """Pack rows of a side output of the operator before."""
        rows = rows.replace_schema_metadata({_TAG: tag_id.encode()})
        with ipc.new_stream(self._sink, rows.schema) as stream:
            stream.write_batch(rows)
        self._add_header(partition, BlockKind.SIDE_ROWS, (0, 0, source))

    def add_block(self, block: Block) -> None:
        """Pack a block of another writer, which passes through a task to its partition."""
        self._sink.write(block.payload)
        self._add_header(
            block.partition, block.kind, (block.first_arrival, block.first_split, block.first_position)
        )

    def _add_header(self, partition: int, kind: BlockKind, key: tuple[int, int, int]) -> None:
        end = self._sink.tell()
        n_bytes = end - self._offsets[-1]
        if n_bytes > MOST_BLOCK_BYTES:
            raise DataError(
                f"an event or result for partition {partition} has {n_bytes:,} bytes, and a row of Spark's shuffle "
                f"has at most {MOST_BLOCK_BYTES:,}: make its values smaller, or leave them out by select() or filter()"
            )
        place = packed_place(kind, *key)
        self._headers.append((self._slots[partition], self._first_partition + partition, place))
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


def packed_place(kind: BlockKind, first_arrival: int, first_split: int, first_position: int) -> bytes:
    """Pack where a block stands among those of its partition: bytes that sort as these numbers do."""
    # Unsigned and with the most significant byte first, as bytes are compared.
    return _PLACE.pack(
        kind, first_arrival - _LEAST_INT64, first_split - _LEAST_INT32, first_position - _LEAST_INT64
    )


def _unpacked_place(place: bytes) -> tuple[BlockKind, int, int, int]:
    kind, arrival, split, position = _PLACE.unpack(place)
    return BlockKind(kind), arrival + _LEAST_INT64, split + _LEAST_INT32, position + _LEAST_INT64


def pieces(start: int, stop: int, too_large: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    """Halve a range of rows until no part is too large; a single row is never too large."""
    if stop - start > 1 and too_large(start, stop):
        middle = (start + stop) // 2
        yield from pieces(start, middle, too_large)
        yield from pieces(middle, stop, too_large)
    elif start < stop:
        yield start, stop


def pieces_of(batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Divide a batch into ranges of rows that take at most so many bytes of memory, or are a single row."""

    def too_large(start: int, stop: int) -> bool:
        return bool(batch.slice(start, stop - start).nbytes > most_bytes)

    return pieces(0, batch.num_rows, too_large)


def read_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    """Yield the blocks in a reduce task's input; payloads are borrowed from the batches."""
    for batch in batches:
        partitions = batch.column("partition").to_pylist()
        places = batch.column("place").to_pylist()
        payloads = batch.column("payload")
        for row, (partition, place) in enumerate(zip(partitions, places, strict=True)):
            yield Block(partition, *_unpacked_place(place), payloads[row].as_buffer())


def read_manifest(block: Block) -> dict[str, Any]:
    """Return the manifest in a block."""
    manifest: dict[str, Any] = json.loads(block.payload.to_pybytes())
    return manifest


def read_rows(block: Block) -> list[pa.RecordBatch]:
    """Return the rejected rows in a block."""
    return list(ipc.open_stream(block.payload))


def read_events(block: Block, schema: pa.Schema) -> LogEvents:
    """Return the events in a block; the schema is that of the user's columns, or of the columns of partial results."""
    batch = ipc.open_stream(block.payload).read_next_batch()
    narrowed = json.loads(batch.schema.metadata[NARROWED])
    columns = [_widened(column, *how) for column, how in zip(batch.columns, narrowed, strict=True)]
    user_columns = [
        column if isinstance(column, pa.Array) else pa.array(column).view(field.type)
        for column, field in zip(columns, schema, strict=False)
    ]
    timestamps, arrivals, splits, positions = columns[len(schema) :]
    return LogEvents(
        pa.RecordBatch.from_arrays(user_columns, schema=schema),
        timestamps,
        arrivals,
        splits.astype(np.int32),
        positions,
    )


def read_placed(block: Block, schema: pa.Schema) -> PlacedEvents:
    """Return the results in a block; the schema is that of their columns."""
    return PlacedEvents.unpacked(ipc.open_stream(block.payload).read_next_batch(), schema)


def read_side_rows(block: Block) -> tuple[str, list[pa.RecordBatch]]:
    """Return the name of a side output, and the rows in a block of it."""
    stream = ipc.open_stream(block.payload)
    tag_id = stream.schema.metadata[_TAG].decode()
    return tag_id, [batch.replace_schema_metadata(None) for batch in stream]


def _widened(column: pa.Array, base: int | None = None, running: bool = False) -> Any:
    """Return the values of a narrowed column as an int64 array, and another column as it is."""
    if base is None:
        return column
    steps = None if pa.types.is_null(column.type) else column.to_numpy()
    return NarrowIntegers(base, running, steps).values(len(column))
