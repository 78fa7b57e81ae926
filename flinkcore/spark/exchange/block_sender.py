"""The exchange on Spark: rows are dealt out to partitions in blocks, which a shuffle brings there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import pieces, pieces_of
from flinkcore.columnar.replay.exchange import DealtRows, Exchange
from flinkcore.columnar.stages.partial_results import KEY, PartialResults
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.spark.exchange.blocks import (
    AFTER_ALL,
    BEFORE_ALL,
    BLOCK_BYTES,
    BlockKind,
    BlockPlace,
    BlockWriter,
    side_rows,
)
from flinkcore.spark.exchange.manifests import Senders, packed_manifest
from flinkcore.spark.exchange.ordered_events import OrderedEvents, OrderedResults, OrderedRows
from flinkcore.time_plane.total_order import LogEvents

BLOCK_ROWS: Final = 1 << 17
LEAST_BLOCK_ROWS = 1 << 12


@dataclass(frozen=True)
class BlockRoute:
    """Route of rows to an input of an operator; picklable.

    Attributes
    ----------
    exchange
        The exchange in front of the input.
    operator
        Number of the operator, from 0 on.
    input_number
        Input of the operator, 0 or 1.
    first_partition
        Number of its first partition among those of the job.
    slots
        For each partition of the job, its slot in the shuffle.
    arrival_span_ms
        Arrival time from one row to the next, on average; infinite where it is not known.
    block_rows
        Most rows of a block.
    """

    exchange: Exchange
    operator: int
    input_number: int
    first_partition: int
    slots: tuple[int, ...]
    arrival_span_ms: float = inf
    block_rows: int = BLOCK_ROWS


class BlockSender:
    """Sends the rows of some chunks or of a partition to an operator, and a manifest to each of its partitions.

    Parameters
    ----------
    route
        Where the rows go.
    number
        Number of the first sender, chunk or partition, among those that send to the operator.
    own_partition
        Partition of the operator that gets what has no key, and what the sender reports.

    Attributes
    ----------
    senders
        Numbers of all senders whose rows it sends.
    """

    def __init__(self, route: BlockRoute, number: int, own_partition: int) -> None:
        self.number = number
        self.senders = Senders()
        self._route = route
        self._own_partition = own_partition
        self._writer = BlockWriter(route.slots)
        self._blocks = 0
        self._sent = np.zeros(route.exchange.partitions, np.int64)

    @property
    def enough_rows(self) -> int:
        """Number of rows that make blocks of a good size."""
        return 2 * LEAST_BLOCK_ROWS * self._route.exchange.partitions

    def send_events(self, events: LogEvents) -> Iterator[pa.RecordBatch]:
        """Send events of a log or partial results; yield rows of the shuffle when there are enough."""
        _, rows = events.in_order()
        exchange = self._route.exchange
        if isinstance(events, PartialResults):
            dealt = exchange.deal(events.batch, rows, self._own_partition, KEY)
            n_events = events.events if dealt.order is None else events.events[dealt.order]
            yield from self._send(BlockKind.PARTIALS, OrderedEvents(events, dealt.order), dealt, n_events)
        else:
            dealt = exchange.deal(events.batch, rows, self._own_partition)
            yield from self._send(BlockKind.EVENTS, OrderedEvents(events, dealt.order), dealt)

    def send_results(self, results: PlacedEvents) -> Iterator[pa.RecordBatch]:
        """Send results of an operator, in total order, as `send_events` does."""
        dealt = self._route.exchange.deal(results.batch, None, self._own_partition)
        yield from self._send(BlockKind.RESULTS, OrderedResults(results, dealt.order), dealt)

    def send_side_rows(self, tag_id: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Send rows of a side output; yield rows of the shuffle when there are enough."""
        for start, stop in pieces_of(batch, BLOCK_BYTES):
            partition, place = self._at(self._own_partition), self._place(AFTER_ALL, BlockKind.SIDE_ROWS)
            self._writer.add_rows(partition, place, side_rows(tag_id, batch.slice(start, stop - start)))
            yield from self._writer.take_full()

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield what has been packed as rows of the shuffle."""
        yield from self._writer.take()

    def finish(self, reported: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Send the manifests; that of the sender's own partition has what the sender reports, too."""
        for partition, n_rows in enumerate(self._sent.tolist()):
            manifest = packed_manifest(
                self.senders, n_rows, reported if partition == self._own_partition else {}
            )
            place = self._place(BEFORE_ALL, BlockKind.MANIFEST)
            self._writer.add_payload(self._at(partition), place, manifest)
        yield from self._writer.take()

    def _at(self, partition: int) -> int:
        return self._route.first_partition + partition

    def _place(self, first_arrival: int, kind: BlockKind) -> BlockPlace:
        self._blocks += 1
        return BlockPlace(first_arrival, kind, self._route.input_number, self.number, self._blocks)

    def _send(
        self, kind: BlockKind, rows: OrderedRows, dealt: DealtRows, n_events: Int64s | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Pack rows into blocks, and count the events of each partition: as many as rows, or as `n_events` says."""
        for partition, (first, last) in enumerate(dealt.ranges):
            for start, stop in self._cuts(rows, first, last):
                place = self._place(rows.arrival(start), kind)
                self._writer.add_rows(self._at(partition), place, rows.packed(start, stop))
                yield from self._writer.take_full()
            self._sent[partition] += last - first if n_events is None else n_events[first:last].sum()

    def _cuts(self, rows: OrderedRows, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows for blocks.

        A block is held back by the reduce task from its first arrival to its last: blocks of events that lie
        far apart, as in a log that is sorted by split, are smaller.
        """
        route = self._route

        def too_large(start: int, stop: int) -> bool:
            n_rows = stop - start
            span = rows.arrival(stop - 1) - rows.arrival(start)
            spread = (
                n_rows > 2 * LEAST_BLOCK_ROWS
                and span > 4 * n_rows * route.exchange.partitions * route.arrival_span_ms
            )
            return n_rows > route.block_rows or spread or rows.column_bytes(start, stop) > BLOCK_BYTES

        return pieces(start, stop, too_large)
