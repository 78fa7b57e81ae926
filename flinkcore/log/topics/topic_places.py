"""The files with the records of a topic, and where in it each of their rows belongs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.milliseconds import check_time_type, no_time, to_milliseconds
from flinkcore._internal.arrow.time_units import UNIT_NAMES, looks_dated
from flinkcore._internal.io.stores import stores_of
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.datastream.connectors.kafka.kafka_offsets import KafkaTopicPartition
from flinkcore.datastream.graph.topic_records import OFFSET, PARTITION, TIMESTAMP, VALUE
from flinkcore.errors import DataError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile, PathOfTable, discover_files
from flinkcore.log.files.topic_paths import TOPIC, PlaceInTopic, place_in_topic
from flinkcore.log.formats.known_formats import file_format, is_columnar, kind_by_name
from flinkcore.log.formats.line_format import LineFormat
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.log.tables.lake_files import table_at, table_files
from flinkcore.log.topics.counted_offsets import CountedOffsets, refuse_turns

_MOST_OFFSET: Final = 2**59 - 1
_BATCH_ROWS: Final = 1 << 16
_NAMES: Final = re.compile(rb"""["']?[A-Za-z_][\w ]*["']?([,;\t|]["']?[A-Za-z_][\w ]*["']?)*""")
"""A line of CSV that may be a header."""


@dataclass(frozen=True)
class TopicDump:
    """The files with the records of a topic.

    Attributes
    ----------
    topic : str
    files : LogFiles
    places : tuple of PlaceInTopic
        Places that the paths of the files name.
    """

    topic: str
    files: LogFiles
    places: tuple[PlaceInTopic, ...]

    @classmethod
    def of(cls, topic: str, paths: Sequence[str], stores: Any) -> TopicDump:
        """Find the files, or those of a Delta or Iceberg table.

        Raises
        ------
        SourceError
            If no file is found, some are of another topic, or of several formats, or some name a partition and others
            do not.
        SchemaError
            If they have columns, and none with values.
        """
        try:
            found = discover_files(list(paths), stores_of(stores))
        except PathOfTable as of_table:
            table = table_files(table_at(of_table, stores_of(stores)))
            dump = cls(topic, table, tuple(PlaceInTopic() for _ in table.files))
            dump._require_columns()
            return dump
        files = _of_topic(topic, found)
        places = tuple(place_in_topic(file.path) for file in files)
        lines = [not is_columnar(file) for file in files]
        if len(set(lines)) > 1:
            raise SourceError(
                f"the dump of topic {topic!r} has files of lines and others: {files[lines.index(True)].name} and "
                f"{files[lines.index(False)].name}. Give a path with files of one format",
                file=files[lines.index(True)].name,
            )
        if lines[0]:
            # Directories name the partition, and add no columns to lines.
            dump = cls(
                topic, LogFiles(tuple(replace(file, partition=()) for file in files), LineFormat()), places
            )
        else:
            # Directories of topics choose the files, and as columns they would be numbers where all topics are.
            named = tuple(replace(file, partition=_without_topic(file.partition)) for file in files)
            dump = cls(topic, LogFiles(named, file_format(named)), places)
            dump._require_columns()
        if not dump.has(PARTITION):
            _refuse_some_without_partition(topic, files, places)
        return dump

    def has(self, column: str) -> bool:
        """Return whether the files have a column of this name."""
        return column in self.files.schema.names

    @property
    def has_timestamps(self) -> bool:
        """Return whether records have timestamps."""
        return self.has(TIMESTAMP)

    def _require_columns(self) -> None:
        schema = self.files.schema
        if VALUE not in schema.names:
            raise SchemaError(
                f"the dump of topic {self.topic!r} has no column {VALUE!r} with the records' values; it has "
                f"{', '.join(schema.names)}. Take a dump with the columns of Spark's Kafka source (key, value, topic, "
                "partition, offset, timestamp), or files with a value in each line; a log whose columns are fields of "
                "values is read by env.from_event_log(...)"
            )
        kind = schema.field(VALUE).type
        if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
            raise SchemaError(
                f"column {VALUE!r} of the dump of topic {self.topic!r} is {kind}, and a value is binary or text"
            )
        for name in (PARTITION, OFFSET):
            if name in schema.names and not pa.types.is_integer(schema.field(name).type):
                raise SchemaError(
                    f"column {name!r} of the dump of topic {self.topic!r} is {schema.field(name).type}, not integers"
                )
        if self.has(TOPIC):
            kind = schema.field(TOPIC).type
            if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
                raise SchemaError(
                    f"column {TOPIC!r} of the dump of topic {self.topic!r} is {kind}, not text. Leave it out of the "
                    "dump if it has one topic, or write the names of topics"
                )
        if self.has_timestamps:
            check_time_type(schema.field(TIMESTAMP).type, TIMESTAMP, None, "timestamp_unit")


def _without_topic(columns: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((column, value) for column, value in columns if column.lower() != TOPIC)


def _of_topic(topic: str, files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """Return the files of a topic: all of them, unless their names say that some are of others."""
    named = [place_in_topic(file.path).topic for file in files]
    others = sorted({name for name in named if name is not None and name != topic})
    if topic in named or len(others) < 2:
        if others and topic in named:
            return tuple(file for file, name in zip(files, named, strict=True) if name in (topic, None))
        return tuple(files)
    raise SourceError(
        f"the dump of topic {topic!r} has files of the topics {', '.join(others)}, and none of {topic!r}: give the "
        "path of one of them",
        file=files[0].name,
    )


def _refuse_some_without_partition(
    topic: str, files: Sequence[LogFile], places: Sequence[PlaceInTopic]
) -> None:
    # Kafka's partitions are numbers, and shards of others may be texts.
    without = [
        file for file, place in zip(files, places, strict=True) if not isinstance(place.partition, int)
    ]
    if without and len(without) < len(files):
        raise SourceError(
            f"{without[0].name} names no partition, as other files of the dump of topic {topic!r} do: put it into a "
            "directory such as partition=0, or take it out of the dump",
            file=without[0].name,
        )


class PlacedRows(NamedTuple):
    """Rows of the files of a topic, as columns.

    Attributes
    ----------
    file : numpy.ndarray of int64, shape (n_rows,)
        Number of the file.
    row : numpy.ndarray of int64, shape (n_rows,)
        Number of the row in the file, from 0.
    partition, offset, timestamp_ms : numpy.ndarray of int64, shape (n_rows,)
        Timestamps are 0 if records have none.
    """

    file: Int64s
    row: Int64s
    partition: Int64s
    offset: Int64s
    timestamp_ms: Int64s

    @classmethod
    def of(cls, dump: TopicDump, files: Sequence[Chunk], wanted: Collection[int]) -> PlacedRows:
        """Read where the rows of a topic belong.

        Parameters
        ----------
        dump : TopicDump
        files : sequence of Chunk
            One for each file.
        wanted : collection of int
            The partitions whose rows are taken; none: all are.

        Raises
        ------
        SourceError
            If a file cannot be read, the rows have the names of other topics, or files of several directories have
            records in turn, whose offsets cannot be counted.
        DataError
            If a row has no partition, offset or timestamp.
        SchemaError
            If timestamps are numbers in another unit than milliseconds.
        """
        reader = _PlaceReader(dump, dump.topic)
        parts = reader.read_all(files)
        named = reader.other_topics - {None}
        if not parts and len(named) == 1:
            # The dump of one topic may stand for another one.
            parts = _PlaceReader(dump, *named).read_all(files)
        elif not parts and reader.other_topics:
            raise SourceError(
                f"column {TOPIC!r} of the dump of topic {dump.topic!r} has other topics: "
                f"{', '.join(sorted(map(repr, reader.other_topics)))}. Give the topic the dump that has its records"
            )
        empty = np.empty(0, np.int64)
        rows = cls(*(np.concatenate([empty, *(part[at] for part in parts)]) for at in range(5)))
        if dump.has_timestamps and len(rows.timestamp_ms):
            _refuse_other_units(dump, int(rows.timestamp_ms.min()), int(rows.timestamp_ms.max()))
        if wanted:
            mine = np.isin(rows.partition, list(wanted))
            rows = cls(*(column[mine] for column in rows))
        if not dump.has(OFFSET):
            _refuse_turns(dump, rows)
        return rows


def _refuse_other_units(dump: TopicDump, least: int, greatest: int) -> None:
    if not pa.types.is_integer(dump.files.schema.field(TIMESTAMP).type):
        return
    for unit, name in UNIT_NAMES.items():
        if unit != "ms" and looks_dated(least, unit) and looks_dated(greatest, unit):
            raise SchemaError(
                f"column {TIMESTAMP!r} of the dump of topic {dump.topic!r} has integers, which are milliseconds since "
                f"the epoch, but {least} to {greatest} look like {name}. Write milliseconds, or timestamps"
            )


def _refuse_turns(dump: TopicDump, rows: PlacedRows) -> None:
    """Raise if counted offsets of a partition are not sure; see `refuse_turns`."""
    order = np.lexsort((rows.file, rows.partition))
    partition, file, offset = rows.partition[order], rows.file[order], rows.offset[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(partition) != 0) | (np.diff(file) != 0)
    starts = np.flatnonzero(is_first)
    if not len(starts):
        return
    firsts, lasts = np.minimum.reduceat(offset, starts), np.maximum.reduceat(offset, starts)
    counted: dict[int, list[CountedOffsets]] = defaultdict(list)
    for start, first, last in zip(starts.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        number = int(file[start])
        path, name = dump.files.files[number].path, dump.files.files[number].name
        # A file without an offset in its name begins where the one before it ends, and follows none for certain.
        directory = path if dump.places[number].offset is None else path.rpartition("/")[0]
        counted[int(partition[start])].append(CountedOffsets(first, last + 1, directory, name))
    for each, of_partition in counted.items():
        refuse_turns(KafkaTopicPartition(dump.topic, each), of_partition)


def _warn_of_header(file: LogFile, line: bytes) -> None:
    if kind_by_name(file) in ("csv", "tsv") and _NAMES.fullmatch(line):
        warn_user(
            f"the first line of {file.name} is a record, as each line is: {line.decode()!r}. If it is a header, take "
            "it out of the file"
        )


class _PlaceReader:
    """Reads the places of rows, file after file: where nothing has offsets, they are counted.

    Parameters
    ----------
    dump : TopicDump
    topic : str
        Topic of the rows, where these have one.

    Attributes
    ----------
    other_topics : set of str or None
        Topics of rows that were passed over.
    """

    def __init__(self, dump: TopicDump, topic: str) -> None:
        self.other_topics: set[Any] = set()
        self._dump = dump
        self._topic = topic
        self._names = [name for name in (TOPIC, PARTITION, OFFSET, TIMESTAMP) if dump.has(name)]
        self._next_offsets: dict[int, int] = {}

    def read_all(self, files: Sequence[Chunk]) -> list[PlacedRows]:
        """Return the places of the rows of all files, in parts that are not empty."""
        return [part for number, file in enumerate(files) for part in self._read(number, file)]

    def _read(self, number: int, file: Chunk) -> Iterator[PlacedRows]:
        place, first = (*self._dump.places, PlaceInTopic())[number], 0  # a table without files has a chunk
        named = place.partition if isinstance(place.partition, int) else number
        if place.offset is not None:
            self._next_offsets[named] = place.offset
        for batch in file.read(self._names or [VALUE], _BATCH_ROWS):
            if first == 0 and isinstance(self._dump.files.format, LineFormat):
                _warn_of_header(self._dump.files.files[number], batch.column(VALUE)[0].as_py())
            rows = self._of_topic(batch)
            taken = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
            rows += first
            first += batch.num_rows
            if not len(rows):
                continue
            partition = (
                self._integers(taken, PARTITION, file, rows)
                if PARTITION in self._names
                else np.full(len(rows), named, np.int64)
            )
            offset = (
                self._integers(taken, OFFSET, file, rows)
                if OFFSET in self._names
                else self._counted(partition)
            )
            times = np.zeros(len(rows), np.int64)
            if TIMESTAMP in self._names:
                times = self._times(taken.column(TIMESTAMP), file, rows)
            yield PlacedRows(np.full(len(rows), number, np.int64), rows, partition, offset, times)

    def _of_topic(self, batch: pa.RecordBatch) -> Int64s:
        if TOPIC not in self._names:
            return np.arange(batch.num_rows, dtype=np.int64)
        column = batch.column(TOPIC).cast(pa.string())
        is_other = pc.fill_null(pc.not_equal(column, self._topic), True)
        self.other_topics.update(pc.unique(column.filter(is_other)).to_pylist())
        found: Int64s = np.flatnonzero(~is_other.to_numpy(zero_copy_only=False)).astype(np.int64)
        return found

    def _integers(self, batch: pa.RecordBatch, name: str, file: Chunk, rows: Int64s) -> Int64s:
        column = batch.column(name)
        self._refuse_nulls(column, name, file, rows)
        values: Int64s = column.cast(pa.int64()).to_numpy()
        wrong = np.flatnonzero((values < 0) | (values > _MOST_OFFSET))
        if len(wrong):
            row = int(rows[wrong[0]])
            raise DataError(
                f"{file.row_name(row)} has {values[wrong[0]]} in column {name!r}, which no record of topic "
                f"{self._dump.topic!r} has. Take the row out of the dump",
                column=name,
                **file.place(row),
            )
        return values

    def _times(self, column: pa.Array, file: Chunk, rows: Int64s) -> Int64s:
        self._refuse_nulls(column, TIMESTAMP, file, rows)
        times, unreadable = to_milliseconds(column)
        if unreadable is not None:
            at = int(np.flatnonzero(unreadable)[0])
            raise DataError(
                f"{file.row_name(int(rows[at]))}: {no_time(column[at], TIMESTAMP)}. Take the row out of the dump, or "
                "write the timestamp again",
                column=TIMESTAMP,
                **file.place(int(rows[at])),
            )
        return times

    def _refuse_nulls(self, column: pa.Array, name: str, file: Chunk, rows: Int64s) -> None:
        if column.null_count:
            row = int(rows[np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]])
            raise DataError(
                f"{file.row_name(row)} has null in column {name!r}, which records of Kafka have. Take the row out of "
                "the dump",
                column=name,
                **file.place(row),
            )

    def _counted(self, partition: Int64s) -> Int64s:
        """Return the next offsets of partitions, a row each."""
        offsets = np.empty(len(partition), np.int64)
        for each in np.unique(partition).tolist():
            mine: npt.NDArray[np.bool_] = partition == each
            first, count = self._next_offsets.get(each, 0), int(mine.sum())
            offsets[mine] = np.arange(first, first + count)
            self._next_offsets[each] = first + count
        return offsets
