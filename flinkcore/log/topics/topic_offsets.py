"""The records of a topic that are read, by their offsets, and when they arrive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.datastream.connectors.kafka.kafka_offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from flinkcore.datastream.graph.topic_records import TopicRecords
from flinkcore.errors import SourceError
from flinkcore.log.topics.topic_places import PlacedRows


class KeptRecords(NamedTuple):
    """Rows that are read.

    Attributes
    ----------
    is_kept : numpy.ndarray of bool, shape (n_rows,)
    arrival_ms : numpy.ndarray of int64, shape (n_rows,)
        0 where a row is not read.
    """

    is_kept: npt.NDArray[np.bool_]
    arrival_ms: Int64s


def kept_records(topic: str, rows: PlacedRows, has_timestamps: bool, records: TopicRecords) -> KeptRecords:
    """Return which rows of a topic are read, and when their records arrive.

    A record that is there more than once is read once, with a warning.

    Parameters
    ----------
    topic : str
    rows : PlacedRows
    has_timestamps : bool
    records : TopicRecords
        Where the reading starts and stops.

    Raises
    ------
    SourceError
        If an offset is asked for that the dump does not have, or a time, and records have no timestamps.
    """
    is_kept = np.zeros(len(rows.offset), np.bool_)
    arrival_ms = np.zeros(len(rows.offset), np.int64)
    order = np.lexsort((rows.offset, rows.partition))
    partitions = rows.partition[order]
    repeated = 0
    for partition in np.unique(partitions).tolist():
        first, last = np.searchsorted(partitions, [partition, partition + 1]).tolist()
        mine = order[first:last]
        is_new = np.append(True, np.diff(rows.offset[mine]) > 0)
        repeated += len(mine) - int(is_new.sum())
        mine = mine[is_new]
        bounds = _Bounds(
            KafkaTopicPartition(topic, partition),
            rows.offset[mine],
            rows.timestamp_ms[mine] if has_timestamps else None,
        )
        start, stop = bounds.start(records.starting), bounds.stop(records.stopping)
        mine = mine[start:stop]
        is_kept[mine] = True
        if has_timestamps:
            arrival_ms[mine] = np.maximum.accumulate(rows.timestamp_ms[mine])
        else:
            arrival_ms[mine] = np.floor((np.arange(len(mine)) + 1) * (1000 / records.rate))
    if repeated:
        warn_user(
            f"{repeated:,} records of topic {topic!r} are in the dump more than once, by their partitions and offsets: "
            "each is read once"
        )
    return KeptRecords(is_kept, arrival_ms)


class _Bounds:
    """Finds where the reading of a partition starts and stops.

    Parameters
    ----------
    partition : KafkaTopicPartition
    offsets : numpy.ndarray of int64, shape (n_records,)
        Ascending; not empty.
    times_ms : numpy.ndarray of int64, shape (n_records,), or None
    """

    def __init__(self, partition: KafkaTopicPartition, offsets: Int64s, times_ms: Int64s | None) -> None:
        self._partition = partition
        self._offsets = offsets
        self._times_ms = times_ms

    def start(self, initializer: KafkaOffsetsInitializer) -> int:
        """Return the number of the first record."""
        if initializer.kind in ("earliest", "latest"):
            return 0  # a dump is what arrives after the start
        if initializer.kind == "committed":
            self._refuse_unset(initializer, "committed offset")
            return 0
        if initializer.kind == "timestamp":
            return self._at_time(initializer.timestamp_ms)
        offset = initializer.of_partitions.get(self._partition)
        if offset is None:
            self._refuse_unset(initializer, "offset")
            return 0
        if offset < self._offsets[0]:
            self._refuse_unset(initializer, f"record at the offset {offset}")
        return self._at_offset(offset)

    def stop(self, initializer: KafkaOffsetsInitializer) -> int:
        """Return the number of the first record that is not read any more."""
        if initializer.kind == "timestamp":
            return self._at_time(initializer.timestamp_ms)
        if initializer.kind == "offsets":
            offset = initializer.of_partitions.get(self._partition)
            if offset is not None:
                return int(np.searchsorted(self._offsets, offset))
        if initializer.kind in ("offsets", "committed"):
            self._refuse_unset(initializer, "stopping offset")
        at_start = initializer.kind == "earliest" or (
            initializer.kind != "latest" and initializer.reset_strategy is KafkaOffsetResetStrategy.EARLIEST
        )
        return 0 if at_start else len(self._offsets)

    def _at_time(self, time_ms: int) -> int:
        if self._times_ms is None:
            raise SourceError(
                f"the records of topic {self._partition.topic!r} have no timestamps in the dump, by which the "
                "KafkaSource is to find an offset: give offsets, or a dump with timestamps, such as Parquet with the "
                "columns value, partition, offset and timestamp"
            )
        later = self._times_ms >= time_ms
        return int(np.argmax(later)) if later.any() else len(later)

    def _at_offset(self, offset: int) -> int:
        end = int(self._offsets[-1]) + 1
        if offset > end:
            raise SourceError(
                f"the KafkaSource is to start at the offset {offset} of {self._partition}, and the dump has the "
                f"offsets {self._offsets[0]} to {end - 1}: start at one of these, or give a dump that has it"
            )
        return int(np.searchsorted(self._offsets, offset))

    def _refuse_unset(self, initializer: KafkaOffsetsInitializer, what: str) -> None:
        if initializer.reset_strategy is KafkaOffsetResetStrategy.NONE:
            raise SourceError(
                f"there is no {what} of {self._partition} in the dump, which the KafkaSource asks for: give it "
                "KafkaOffsetResetStrategy.EARLIEST"
            )
