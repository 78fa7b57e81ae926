"""Blocks: ordered events of one map task for one partition, packed into one row of a shuffle.

Row of the shuffle, and what it is sorted by within its partition::

    slot       | partition | kind               first_arrival  first_split  first_position | payload
    -----------+-----------------------------------------------------------------------------+--------
    where the  | 3         | 0 manifest         0              0            chunk           | JSON
    shuffle    | 3         | 1 rejected rows    0              log          chunk           | Arrow
    puts it    | 3         | 2 events           1,700,000,123  5            8,112           | Arrow
               | 3         | 3 side rows        0              0            partition       | Arrow

Between two operators of a job the events are results of the first, with their places (`PlacedEvents`), in place of a
split -1 or -2 tells to which input of the second they go, a manifest is that of a partition of the first, and side rows
are what it gave to side outputs.
A manifest says what a map task has sent to the partition, so that the reduce task can tell that nothing is
missing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from flinkcore.errors import DataError
from flinkcore.replay.stages.placed_events import PlacedEvents
from flinkcore.replay.time_plane.total_order import Events
from flinkcore.spark.exchange.narrow import NarrowIntegers
from flinkcore.spark.exchange.ordered_events import NARROWED, OrderedEvents

SHUFFLE_SCHEMA: Final = (
    "slot int, partition int, kind int, "
    "first_arrival long, first_split int, first_position long, payload binary"
)
SHUFFLE_ORDER: Final = ("partition", "kind", "first_arrival", "first_split", "first_position")

_ARROW_SCHEMA: Final = pa.schema(
    [
        ("slot", pa.int32()),
        ("partition", pa.int32()),
        ("kind", pa.int32()),
        ("first_arrival", pa.int64()),
        ("first_split", pa.int32()),
        ("first_position", pa.int64()),
        ("payload", pa.binary()),
    ]
)


_TAG: Final = b"tag"

BLOCK_BYTES = 16 << 20
"""Most bytes of a block, but that an event is never cut: so many in memory, fewer as they are packed."""

BATCH_BYTES = 16 << 20
"""Blocks go on when they have so many bytes together."""

MOST_BLOCK_BYTES = 2**31 - 1
"""Bytes that a column of a batch, and so a block, can have."""


class BlockKind(IntEnum):
    """What the payload of a row holds."""

    MANIFEST = 0
    REJECTED = 1
    EVENTS = 2
    SIDE_ROWS = 3


@dataclass(frozen=True)
class Block:
    """A row of the shuffle.

    Attributes
    ----------
    partition
        Where it belongs.
    kind
        What its payload holds.
    first_arrival
        Arrival of the first of its events, ms since the epoch; 0 where there are none.
    first_split
        Split of the first of its events, below 0 if they are results; where there are none, number of the log that it
        comes from.
    payload
        A manifest as JSON; rows or events as an Arrow stream.
    """

    partition: int
    kind: BlockKind
    first_arrival: int
    first_split: int
    payload: pa.Buffer

    @property
    def input_of_results(self) -> int | None:
        """To which input of the operator results come, 0 or 1; None: they are events of a log."""
        return -1 - self.first_split if self.first_split < 0 else None


class BlockWriter:
    """Packs blocks into record batches for the shuffle; payloads are not copied.

    Blocks are to be taken as they fill a batch (`take_full`, after each that was added), however many partitions there
    are: the offsets of a batch have 32 bits.

    Parameters
    ----------
    slots
        What stands for each partition in the column `slot`.
    """

    def __init__(self, slots: Any) -> None:
        self._slots = slots
        self._sink = pa.BufferOutputStream()
        self._offsets = [0]
        self._headers: list[tuple[int, int, int, int, int, int]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads packed so far."""
        return self._offsets[-1]

    def add_events(self, partition: int, events: OrderedEvents, start: int, stop: int) -> None:
        """Pack a range, not empty, of events that lie in total order."""
        batch = events.narrowed(start, stop)
        with ipc.new_stream(self._sink, batch.schema) as stream:
            stream.write_batch(batch)
        self._add_header(partition, BlockKind.EVENTS, events.key(start))

    def add_rows(self, partition: int, chunk: int, rows: pa.RecordBatch, log: int = 0) -> None:
        """Pack rows of a chunk of this log that a map task has rejected."""
        with ipc.new_stream(self._sink, rows.schema) as stream:
            stream.write_batch(rows)
        self._add_header(partition, BlockKind.REJECTED, (0, log, chunk))

    def add_manifest(self, partition: int, chunk: int, manifest: dict[str, Any]) -> None:
        """Pack what a map task says about itself."""
        self._sink.write(json.dumps(manifest).encode())
        self._add_header(partition, BlockKind.MANIFEST, (0, 0, chunk))

    def add_placed(self, partition: int, events: PlacedEvents, input_number: int, sender: int) -> None:
        """Pack results, at least one, that lie in total order, for an input of the next operator, 0 or 1."""
        columns = [*events.batch.columns, pa.array(events.timestamps), *map(pa.array, events.order)]
        names = [str(number) for number in range(len(columns))]
        batch = pa.RecordBatch.from_arrays(columns, names)
        with ipc.new_stream(self._sink, batch.schema) as stream:
            stream.write_batch(batch)
        self._add_header(partition, BlockKind.EVENTS, (int(events.arrivals[0]), -1 - input_number, sender))

    def add_side_rows(self, partition: int, source: int, tag_id: str, rows: pa.RecordBatch) -> None:
        """Pack rows that a partition of the operator before has given to a side output."""
        rows = rows.replace_schema_metadata({_TAG: tag_id.encode()})
        with ipc.new_stream(self._sink, rows.schema) as stream:
            stream.write_batch(rows)
        self._add_header(partition, BlockKind.SIDE_ROWS, (0, 0, source))

    def _add_header(self, partition: int, kind: BlockKind, key: tuple[int, int, int]) -> None:
        end = self._sink.tell()
        n_bytes = end - self._offsets[-1]
        if n_bytes > MOST_BLOCK_BYTES:
            raise DataError(
                f"a block for partition {partition} has {n_bytes:,} bytes, and a row of Spark's shuffle has at most "
                f"{MOST_BLOCK_BYTES:,}: it is of one event or result, which has very large values; make "
                "them smaller, or take them out by select() or filter()"
            )
        self._headers.append((self._slots[partition], partition, kind, *key))
        self._offsets.append(end)

    def take_full(self) -> Iterator[pa.RecordBatch]:
        """The packed blocks as rows, if they fill a batch; then begin anew."""
        if self.nbytes >= BATCH_BYTES:
            yield from self.take()

    def take(self) -> Iterator[pa.RecordBatch]:
        """The packed blocks as rows, and begin anew; as few batches as there can be."""
        headers, ends, payload = self._headers, self._offsets, self._sink.getvalue()
        self.__init__(self._slots)  # type: ignore[misc]
        start = 0
        while start < len(headers):
            stop = bisect_right(ends, ends[start] + MOST_BLOCK_BYTES) - 1
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*headers[start:stop], strict=True), _ARROW_SCHEMA, strict=False)
            ]
            offsets = np.array(ends[start : stop + 1]) - ends[start]
            blocks = payload.slice(ends[start], ends[stop] - ends[start])
            buffers = [None, pa.py_buffer(offsets.astype(np.int32)), blocks]
            columns.append(pa.Array.from_buffers(pa.binary(), stop - start, buffers))
            yield pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)
            start = stop


def pieces(start: int, stop: int, too_large: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    """Ranges of rows, halved until they are not too large; a row is never cut."""
    if stop - start > 1 and too_large(start, stop):
        middle = (start + stop) // 2
        yield from pieces(start, middle, too_large)
        yield from pieces(middle, stop, too_large)
    elif start < stop:
        yield start, stop


def pieces_of(batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of the rows of a batch that take at most so many bytes of memory, or are one row."""

    def too_large(start: int, stop: int) -> bool:
        return bool(batch.slice(start, stop - start).nbytes > most_bytes)

    return pieces(0, batch.num_rows, too_large)


def read_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[Block]:
    """Blocks of a reduce task's input, in its order; payloads are borrowed from the batches."""
    for batch in batches:
        partitions = batch.column("partition").to_pylist()
        kinds = batch.column("kind").to_pylist()
        arrivals = batch.column("first_arrival").to_pylist()
        splits = batch.column("first_split").to_pylist()
        payloads = batch.column("payload")
        for row, (partition, kind, arrival, split) in enumerate(
            zip(partitions, kinds, arrivals, splits, strict=True)
        ):
            yield Block(partition, BlockKind(kind), arrival, split, payloads[row].as_buffer())


def read_manifest(block: Block) -> dict[str, Any]:
    """The manifest in a block."""
    manifest: dict[str, Any] = json.loads(block.payload.to_pybytes())
    return manifest


def read_rows(block: Block) -> list[pa.RecordBatch]:
    """The rejected rows in a block."""
    return list(ipc.open_stream(block.payload))


def read_events(block: Block, schema: pa.Schema) -> Events:
    """The events in a block, whose user columns have this schema."""
    batch = ipc.open_stream(block.payload).read_next_batch()
    narrowed = json.loads(batch.schema.metadata[NARROWED])
    columns = [_widened(column, *how) for column, how in zip(batch.columns, narrowed, strict=True)]
    user_columns = [
        column if isinstance(column, pa.Array) else pa.array(column).view(field.type)
        for column, field in zip(columns, schema, strict=False)
    ]
    timestamps, arrivals, splits, positions = columns[len(schema) :]
    return Events(
        pa.RecordBatch.from_arrays(user_columns, schema=schema),
        timestamps,
        arrivals,
        splits.astype(np.int32),
        positions,
    )


def read_placed(block: Block, schema: pa.Schema) -> PlacedEvents:
    """The results in a block, whose columns have this schema."""
    batch = ipc.open_stream(block.payload).read_next_batch()
    timestamps, *order = (column.to_numpy() for column in batch.columns[len(schema) :])
    rows = pa.RecordBatch.from_arrays(batch.columns[: len(schema)], schema=schema)
    return PlacedEvents.of(rows, timestamps, tuple(order))


def read_side_rows(block: Block) -> tuple[str, list[pa.RecordBatch]]:
    """The name of a side output, and rows of it."""
    stream = ipc.open_stream(block.payload)
    tag_id = stream.schema.metadata[_TAG].decode()
    return tag_id, [batch.replace_schema_metadata(None) for batch in stream]


def _widened(column: pa.Array, base: int | None = None, running: bool = False) -> Any:
    """The values as an int64 array, or the column itself if it was not narrowed."""
    if base is None:
        return column
    steps = None if pa.types.is_null(column.type) else column.to_numpy()
    return NarrowIntegers(base, running, steps).values(len(column))
