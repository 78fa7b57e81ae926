"""State of a savepoint of Flink, dealt out to the partitions of an operator whose keys have other key groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s
from flinkcore._internal.arrow.batch_bytes import pieces_of
from flinkcore._native.exchange import partition_rows
from flinkcore.checkpoint.state_origin import DealtState
from flinkcore.spark.exchange.block_sender import LEAST_BLOCK_ROWS
from flinkcore.spark.exchange.blocks import (
    BEFORE_ALL,
    BLOCK_BYTES,
    BlockKind,
    BlockPlace,
    BlockWriter,
    state_entries,
)
from flinkcore.spark.exchange.manifests import Senders, packed_manifest

_HELD_BYTES: Final = 4 * BLOCK_BYTES
"""Entries are sent when they take so much memory, so that a task needs little, however large the savepoint is."""


@dataclass(frozen=True)
class DealStateTask:
    """Reads key groups of a savepoint, and deals their entries out to the partitions of an operator; picklable.

    Attributes
    ----------
    state
        State of the operator.
    max_parallelism
        Number of key groups of the operator.
    first_partition
        Number of its first partition among those of the job.
    partitions
        Number of its partitions.
    slots
        For each partition of the job, its slot in the shuffle.
    """

    state: DealtState
    max_parallelism: int
    first_partition: int
    partitions: int
    slots: tuple[int, ...]

    @property
    def n_ranges(self) -> int:
        """Number of ranges of key groups: a Spark task and a sender for each."""
        return len(ranges_of(self.state, self.partitions))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blocks of the ranges whose numbers are in the column ``id``."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from _RangeSender(self, number).send()


def ranges_of(state: DealtState, partitions: int) -> list[range]:
    """Return the ranges of key groups of a savepoint whose entries are dealt out to so many partitions."""
    groups = state.n_key_groups
    n = min(groups, partitions)
    return [range(number * groups // n, (number + 1) * groups // n) for number in range(n)]


class _RangeSender:
    """Sends the entries of a range of key groups of the savepoint, and a manifest to each partition."""

    def __init__(self, task: DealStateTask, number: int) -> None:
        self._task = task
        self._number = number
        self._key_groups = ranges_of(task.state, task.partitions)[number]
        self._writer = BlockWriter(task.slots)
        self._blocks = 0
        self._sent = [0] * task.partitions
        self._held: dict[str, list[tuple[pa.RecordBatch, Int32s]]] = {}
        self._held_rows = self._held_bytes = 0

    def send(self) -> Iterator[pa.RecordBatch]:
        task = self._task
        for state, batch, groups in task.state.deal(self._key_groups):
            if groups is None:
                for partition in range(task.partitions):
                    yield from self._send(partition, state, batch)
                continue
            self._held.setdefault(state, []).append((batch, groups))
            self._held_rows += batch.num_rows
            self._held_bytes += batch.nbytes
            if self._held_rows >= LEAST_BLOCK_ROWS * task.partitions or self._held_bytes >= _HELD_BYTES:
                yield from self._send_held()
        yield from self._send_held()
        senders = Senders()
        senders.add(self._number)
        for partition, n_rows in enumerate(self._sent):
            manifest = packed_manifest(senders, n_rows, {})
            self._writer.add_payload(
                task.first_partition + partition, self._place(BlockKind.STATE_MANIFEST), manifest
            )
        yield from self._writer.take()

    def _send_held(self) -> Iterator[pa.RecordBatch]:
        task, held = self._task, self._held
        self._held, self._held_rows, self._held_bytes = {}, 0, 0
        for state, parts in held.items():
            batch = pa.concat_batches([each for each, _ in parts])
            groups = np.concatenate([each for _, each in parts])
            order, bounds = partition_rows(groups, task.max_parallelism, task.partitions)
            for partition, (first, end) in enumerate(pairwise(bounds.tolist())):
                if first < end:
                    yield from self._send(partition, state, batch.take(pa.array(order[first:end])))

    def _send(self, partition: int, state: str, entries: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._sent[partition] += entries.num_rows
        at = self._task.first_partition + partition
        for start, stop in pieces_of(entries, BLOCK_BYTES):
            own = state_entries(state, entries.slice(start, stop - start))
            self._writer.add_rows(at, self._place(BlockKind.STATE), own)
            yield from self._writer.take_full()

    def _place(self, kind: BlockKind) -> BlockPlace:
        self._blocks += 1
        return BlockPlace(BEFORE_ALL, kind, 0, self._number, self._blocks)
