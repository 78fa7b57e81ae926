"""The records of topics as an event log: each in the place that its partition and its offset give it.

Files lie in any order, and so may the rows in them. Where each row belongs is read ahead of all else: its partition,
its offset and its timestamp, of which 32 bytes a row are kept. A record arrives when the latest record before it in its
partition does or at its own timestamp, whichever is later, so that arrival and offset order a partition alike; without
timestamps the records of all partitions arrive in turn, at the rate of the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.datastream.connectors.kafka.kafka_offsets import KafkaTopicPartition
from flinkcore.datastream.graph.topic_records import (
    ARRIVAL,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
    TopicRecords,
)
from flinkcore.errors import SourceError
from flinkcore.log.files.topic_paths import split_names
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.topics.topic_offsets import kept_records
from flinkcore.log.topics.topic_places import PlacedRows, TopicDump


@dataclass(frozen=True)
class TopicLog:
    """The records of topics.

    Attributes
    ----------
    records : TopicRecords
        The topics, and from where to where they are read.
    dumps : tuple of TopicDump
    """

    table_name: ClassVar[None] = None

    records: TopicRecords
    dumps: tuple[TopicDump, ...]

    @classmethod
    def of(cls, records: TopicRecords) -> TopicLog:
        """Find the files of all topics; errors as of `TopicDump.of`."""
        dumps = [TopicDump.of(topic, paths, records.stores) for topic, paths in records.dumps.items()]
        # The stores have been asked, and may hold a Spark session, which is not sent to workers.
        return cls(replace(records, stores=None), tuple(dumps))

    @property
    def without_timestamps(self) -> str | None:
        """The first topic whose records have no timestamps, or None."""
        return next((dump.topic for dump in self.dumps if not dump.has_timestamps), None)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the log. Partitions of several topics are texts such as ``clicks/3``."""
        partition = pa.int64() if len(self.dumps) == 1 else pa.string()
        times = [(name, pa.int64()) for name in (OFFSET, TIMESTAMP, ARRIVAL)]
        return pa.schema([(VALUE, pa.binary()), (PARTITION, partition), *times])

    @property
    def size_bytes(self) -> int:
        """The size of the files, as far as it is known."""
        return sum(dump.files.size_bytes for dump in self.dumps)

    def chunks(self, target: int) -> list[Chunk]:
        """Return a chunk for each file, whatever the number asked for.

        Raises
        ------
        SourceError
            If a partition or an offset that is asked for is not in the dump.
        DataError
            If a record has no partition, offset or timestamp.
        """
        return list(self._chunks)

    @cached_property
    def _chunks(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        found: set[KafkaTopicPartition] = set()
        for dump in self.dumps:
            files = dump.files.chunks(1)
            wanted = {each.partition for each in self.records.partitions if each.topic == dump.topic}
            rows = PlacedRows.of(dump, files, wanted)
            partitions = {
                KafkaTopicPartition(dump.topic, each) for each in np.unique(rows.partition).tolist()
            }
            kept = kept_records(dump.topic, rows, dump.has_timestamps, self.records)
            split = pa.array(rows.partition)
            if len(self.dumps) > 1:
                split = split_names(dump.topic, split)
            places = pa.RecordBatch.from_arrays(
                [split, pa.array(rows.offset), pa.array(rows.timestamp_ms), pa.array(kept.arrival_ms)],
                [PARTITION, OFFSET, TIMESTAMP, ARRIVAL],
            )
            for number, file in enumerate(files):
                of_file = np.flatnonzero(kept.is_kept & (rows.file == number))
                chunks.append(
                    RecordChunk(
                        len(chunks),
                        file.label,
                        len(of_file),
                        file.size_bytes,
                        None,
                        file,
                        rows.row[of_file],
                        places.take(pa.array(of_file)),
                    )
                )
            found |= partitions
        lacking = sorted(map(str, self.records.partitions - found))
        if lacking:
            raise SourceError(
                f"the dumps have no records of the partitions {', '.join(lacking)}, which are asked for; they have "
                f"{', '.join(sorted(map(str, found))) or 'none of these topics'}"
            )
        return chunks


@dataclass(frozen=True, eq=False)
class RecordChunk(Chunk):
    """Records of a file that are read.

    Parameters
    ----------
    file : Chunk
        All rows of the file.
    file_rows : numpy.ndarray of int64, shape (rows,)
        Which rows of the file the records are, ascending.
    places : pyarrow.RecordBatch
        All columns but the value.
    """

    file: Chunk
    file_rows: Int64s
    places: pa.RecordBatch

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        names = [VALUE, *self.places.schema.names] if columns is None else list(columns)
        if VALUE not in names:
            for start in range(0, self.places.num_rows, batch_rows):
                yield self.places.slice(start, batch_rows).select(names)
            return
        first_row = at = 0
        for batch in self.file.read([VALUE], batch_rows, (), warnings, batch_bytes):
            end = int(np.searchsorted(self.file_rows, first_row + batch.num_rows))
            rows, places = self.file_rows[at:end] - first_row, self.places.slice(at, end - at)
            first_row, at = first_row + batch.num_rows, end
            if not len(rows):
                continue
            values = batch.column(0) if len(rows) == batch.num_rows else batch.column(0).take(pa.array(rows))
            read = pa.RecordBatch.from_arrays(
                [values.cast(pa.binary()), *places.columns], [VALUE, *places.schema.names]
            )
            yield read.select(names)

    @property
    def is_checked(self) -> bool:
        return self.file.is_checked

    @property
    def path(self) -> str | None:
        return self.file.path

    def row_name(self, row: int) -> str:
        return self.file.row_name(int(self.file_rows[row]))

    def place(self, row: int) -> dict[str, Any]:
        return self.file.place(int(self.file_rows[row]))

    def held(self, columns: Sequence[str]) -> Chunk:
        return self
