"""The description of an event log: where its rows are, and which columns are time, arrival and split."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import expression_columns, shown_names
from flinkcore._internal.arrow.expressions import is_expression
from flinkcore._internal.arrow.milliseconds import to_milliseconds
from flinkcore._internal.arrow.nested_fields import column_of, nested_field, unknown_name, with_nested_fields
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore._internal.io.stores import stores_of
from flinkcore.common.split_origin import FILE, PARTITION
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.declared_messages import DeclaredMessages
from flinkcore.datastream.graph.lake_tables import LakeTable, refuse_files_as_splits
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.topic_records import TopicRecords
from flinkcore.datastream.graph.transformations import LogData
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.arrival_cut import ArrivalCut
from flinkcore.log.decoding.debezium import steps_of
from flinkcore.log.decoding.declared_steps import declared_steps
from flinkcore.log.decoding.decoded_chunk import Decoding, decoded_chunk, decoded_schema, source_columns
from flinkcore.log.decoding.decoded_fields import DecodedFields
from flinkcore.log.decoding.known_shapes import SHAPES, SPLIT, RecordColumns, TopicAndPartition, known_shape
from flinkcore.log.formats.bad_records import BAD_RECORD
from flinkcore.log.formats.csv_format import CsvFormat
from flinkcore.log.order.row_order import POSITION, RowOrder, check_position_type, ranked_chunks
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.log_sources import LogFiles, TableSource
from flinkcore.log.sources.packed_files import FirstReading, Packing, packed
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.log.tables.lake_files import log_of_paths, table_files
from flinkcore.log.topics.topic_log import TopicLog

_DELIMITERS: Final = (";", "\t", "|")
_CUT_CHUNK_BYTES: Final = 4 << 20
"""Chunks of a log with a cut are about so large at most: those that lie outside it are not read."""
_SPARK_FILE: Final = re.compile(r"part-\d{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"[-+]?\d+(\.\d*)?")


@dataclass(frozen=True, kw_only=True)
class EventLog(LogSettings):
    """A recorded stream: splits of events, each with a timestamp and an arrival.

    Parameters
    ----------
    source : LogFiles, TableSource or TopicLog
        Where the rows are; :meth:`of` builds it from paths or data.
    timestamp : str
        Column with the source timestamp: a plan computes that of an expression before.
    since_ms : int or None
        Arrival in ms since the epoch before which an earlier run has taken all events, as its checkpoint says.
    fields : tuple of str
        Nested fields that the log gives as columns, by their dotted names.
    decoding : tuple of DecodingStep
        Steps from the columns of the source to those of the log.
    shape : RecordColumns or None
        Columns of Kafka's records that the log has, which give what settings do not.
    position : str, optional
        Hidden column of the positions that `chunks` gives to rows that sort keys order, or a step of decoding to rows
        that it makes of one; `has_positions` is then False.
    **settings
        All others of :class:`LogSettings`.

    Raises
    ------
    ConfigurationError
        If a setting has no meaning.
    """

    source: LogFiles | TableSource | TopicLog
    timestamp: str
    since_ms: int | None = None
    fields: tuple[str, ...] = ()
    decoding: Decoding = ()
    shape: RecordColumns | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split is FILE and not isinstance(self.source, LogFiles):
            raise ConfigurationError("split=FILE needs a log of files; this one is an in-memory table")

    @classmethod
    def of(
        cls,
        data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any,
        settings: LogSettings,
        *,
        format: str | None = None,
        filesystem: Any = None,
        format_options: Mapping[str, Any] | None = None,
        schema: Any = None,
        decode: Any = None,
    ) -> "EventLog":
        """Describe the log at a path, glob, directory, URI or list of these, or in memory.

        Parameters
        ----------
        data : str, path, sequence of these, LakeTable, TopicRecords, LogFiles, ArrowData, or Arrow data
            Paths as :func:`~flinkcore.log.files.log_files.discover_files` takes them, of which a directory may be a
            table; a table, or its files; records of topics; otherwise anything with ``__arrow_c_stream__`` or
            ``__arrow_c_array__``, as ``TableSource.of`` takes it, or `ArrowData` of that.
        settings : LogSettings
            A log whose paths name no partition is one split also with ``PARTITION``.
        format : str, optional
            "parquet", "arrow", "orc", "avro", "csv" or "json"; by default as the extension says.
        filesystem : pyarrow.fs.FileSystem, fsspec filesystem or Stores, optional
            File system of the paths, or the settings with which it is opened.
        format_options : mapping, optional
            Options of ``CsvFormat`` or ``ParquetFormat``.
        schema : pyarrow.Schema, pyspark.sql.types.StructType, str or mapping, optional
            Types of columns in files, which else are found there; see `GivenSchema.of`.
        decode : mapping of str to ValueDecoder, "debezium" or None
            Decoders of columns of messages; or the columns are Debezium's envelope.

        Returns
        -------
        EventLog

        Raises
        ------
        SourceError
            If there is no file, its format is not clear, or paths name files of a table.
        SchemaError
            If a column of arrivals, splits or positions is missing, or has values that have no order.
        """
        split = settings.split
        source = _source_of(data, settings, format, filesystem, format_options, schema)
        shape: RecordColumns | None = None
        decoding: Decoding = ()
        ordered_by = settings.ordered_by
        is_evaluated_elsewhere = isinstance(data, LogData) and not isinstance(data, LakeTable)
        if not is_evaluated_elsewhere and (settings.timestamp is None or settings.split is PARTITION):
            shape = known_shape(source.schema)
        if split is PARTITION:
            # A column tells topics apart, and directories that name only partitions do not.
            has_topic = shape is not None and shape.topic is not None
            partitioned = source.by_partition() if isinstance(source, LogFiles) and not has_topic else None
            source, split = (source, None) if partitioned is None else (partitioned, split)
        if shape is not None:
            decoding = () if shape.topic is None else (TopicAndPartition(shape.topic, shape.partition),)
            if settings.split is PARTITION:
                ordered_by = ordered_by or (SortKey(shape.offset),)
                if split is None:
                    split = SPLIT if decoding else shape.partition
        is_table = source.table_name is not None
        position = settings.position
        if decode is not None:
            is_unordered = position is None and not ordered_by and (is_table or not settings.has_positions)
            gives_positions = is_unordered and settings.arrival is not None
            make_steps = declared_steps if isinstance(decode, DeclaredMessages) else steps_of
            before = decoded_schema(decoding, source.schema)
            decoding = (*decoding, *make_steps(before, decode, gives_positions))
            if ordered_by and any(not step.keeps_rows and step.makes(ROW_KIND) for step in decoding):
                # The row before an update is ahead of the one after it, and +U less than -U.
                ordered_by = (*ordered_by, SortKey(ROW_KIND, is_descending=True))
        if ordered_by or _gives_positions(decoding):
            position = POSITION
        given = {each.name: getattr(settings, each.name) for each in fields(settings)}
        timestamp = settings.timestamp
        if timestamp is None:
            if shape is None:
                known = "; ".join(map(str, SHAPES))
                raise ConfigurationError(
                    f"timestamp= is missing. Name the column with the time of the event: {shown_names(source.schema)}. "
                    f"Only logs with the columns of one of these need none: {known}"
                )
            timestamp = shape.timestamp
        log = cls(
            **given
            | {
                "source": source,
                "split": split,
                "decoding": decoding,
                "shape": shape,
                "timestamp": timestamp,
                "ordered_by": ordered_by,
                "has_positions": settings.has_positions and not ordered_by and not is_table,
                "position": position,
            }
        )
        log = log.with_fields(log.settings_columns)
        for setting, column in (("arrival", log.arrival), ("split", split)):
            if isinstance(column, str):
                log.require(column, f"{setting}=")
        for key in ordered_by:
            check_position_type(log.require(key.column, "position="), key.column)
        return log

    @property
    def schema(self) -> pa.Schema:
        """Columns of the log, read once, from the first file.

        With plain types: dictionaries, views, large, run-end-encoded and extension columns count as their values.
        """
        schema = with_nested_fields(self.columns, self.fields)
        has_hidden = self.ordered_by or _gives_positions(self.decoding)
        return schema.append(pa.field(POSITION, pa.int64())) if has_hidden else schema

    @property
    def columns(self) -> pa.Schema:
        """Columns of the log without nested fields and hidden positions."""
        return decoded_schema(self.decoding, self.source.schema)

    def source_columns(self, names: Iterable[str]) -> list[str]:
        """Return the columns of the source that are read for columns of the log."""
        return source_columns(self.decoding, list(dict.fromkeys(names)))

    @property
    def finds_bad_records(self) -> bool:
        """Return whether records that cannot be read, or decoded, are rejected and not an error."""
        return self.on_bad_row != "fail" and (isinstance(self.source, LogFiles) or bool(self.decoding))

    @property
    def settings_columns(self) -> frozenset[str]:
        """The columns that arrivals, splits and positions are read from."""
        read = expression_columns(self.arrival) if is_expression(self.arrival) else frozenset()
        named = [self.arrival, self.split, *(key.column for key in self.ordered_by)]
        return (read or frozenset()).union(name for name in named if isinstance(name, str))

    def with_fields(self, names: Iterable[str]) -> "EventLog":
        """Return the log with those of the names that mean nested fields as further columns."""
        columns = self.columns
        dotted = sorted({name for name in names if "." in name and name not in self.fields})
        found = {name: field for name in dotted if (field := nested_field(columns, name)) is not None}
        if not found:
            return self
        made = {
            name: field
            for name, field in found.items()
            if any(step.makes(field.column) for step in self.decoding)
        }
        decoding = (*self.decoding, DecodedFields(made)) if made else self.decoding
        return replace(self, fields=(*self.fields, *found), decoding=decoding)

    @property
    def table_name(self) -> str | None:
        """Name of the table of a lake that it is, with the version or snapshot that is read; None if it is none."""
        return self.source.table_name

    @property
    def cut(self) -> ArrivalCut | None:
        """Return the arrivals that a run takes, or None if it takes all."""
        return ArrivalCut.of(self.since_ms, self.until_ms, not self.by_arrival)

    @property
    def row_order(self) -> RowOrder:
        """Return what orders the rows; there are columns that do."""
        return RowOrder(self.ordered_by, self.split, self.columns, is_lenient=self.finds_bad_records)

    @property
    def by_arrival(self) -> bool:
        """Return whether arrival alone orders the rows of a split, and not where they lie."""
        return not self.has_positions and (self.arrival is not None or bool(self.ordered_by))

    @property
    def is_written_by_spark(self) -> bool:
        """Return whether its files have names as Spark gives them, which writes rows in no order."""
        return isinstance(self.source, LogFiles) and any(
            _SPARK_FILE.match(file.path.rsplit("/", 1)[-1]) for file in self.source.files
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return facts from its files about its splits and columns: pairs of the subject and a phrase."""
        shape: list[tuple[str, str]] = []
        if self.shape is not None:
            shape = [("columns", f"those of {self.shape}, if no setting says otherwise")]
        if not isinstance(self.source, LogFiles):
            return shape
        changes = [*shape, *(("columns", change) for change in self.source.log_schema.changes)]
        if self.split is not PARTITION:
            return changes
        partitions = {file.split for file in self.source.files}
        each = "the partition" if len(partitions) == 1 else f"each of the {len(partitions):,} partitions"
        split = f"{each} in the paths of its files is a split (split=None: the log is one split)"
        if all(file.offsets is not None for file in self.source.files):
            split += "; files are in the order of the offsets in their names"
        return [("splits", split), *changes]

    @property
    def order(self) -> str:
        """Return what orders the events of a split, in words."""
        position = ", then ".join(map(str, self.ordered_by)) or "positions"
        if self.position is not None and self.arrival is None:
            return f"that of {position}, then of the content of the rows{self._derived}"
        if self.by_arrival:
            if _gives_positions(self.decoding):
                return "arrival, then the content of the changes, with the row before an update ahead of that after it"
            then = "" if self.position is None else f"{position}, then "
            return f"arrival, then {then}the content of the rows"
        if not self.has_positions:
            is_table = isinstance(self.source, LogFiles)
            rows = "of the table's files" if is_table else "in which Spark gave the rows"
            return f"that {rows}{self._derived}"
        lie = (
            f"that of the {'files, and of the rows in them' if isinstance(self.source, LogFiles) else 'rows'}"
        )
        if self.arrival is None and self.is_written_by_spark:
            lie += " (which Spark has written in no order: name position=, a column that orders them, or arrival=)"
        return f"{lie}{self._derived}" if self.arrival is None else lie

    @property
    def _derived(self) -> str:
        """Return the note on a log without arrivals."""
        return (
            f", for there is no arrival: arrivals are derived at {self.rate:,g} events/s, and lateness is not that of "
            "production"
        )

    @property
    def size_bytes(self) -> int:
        """The size of its files, as far as it is known, or of the table in memory."""
        return self.source.size_bytes

    def doubtful(self, columns: Callable[[], Iterable[str]]) -> list[str]:
        """Return those of the log's columns in which a record may turn out not to be an event, which rejects it.

        Parameters
        ----------
        columns : callable
            Returns the columns that the job reads; not called if no record is rejected so.
        """
        if not self.finds_bad_records:
            return []
        converted: frozenset[str] | None = frozenset()
        if isinstance(self.source, LogFiles):
            converted = self.source.log_schema.converted if self.source.format.has_schema else None
        schema = self.source.schema
        return [
            name
            for name in columns()
            if converted is None
            or column_of(schema, name) in converted
            or any(step.makes(name) for step in self.decoding)
        ]

    def require(self, column: str, wanted_by: str) -> pa.DataType:
        """Return a column's plain type, or raise a SchemaError that says who wants it and what there is."""
        schema = with_nested_fields(self.schema, [column])
        if column not in schema.names:
            raise SchemaError(
                f"{wanted_by} names column {column!r}, which the log does not have: "
                f"{shown_names(self.columns) or 'it has none'}{self._doubt_of_header(column)}",
                unknown=column,
            )
        return schema.field(column).type

    def is_text(self, column: str) -> bool:
        """Return whether a column comes from text files, and only its text says of which type it is."""
        source = self.source
        return (
            isinstance(source, LogFiles)
            and not source.format.has_schema
            and not {column, column_of(source.schema, column)}.intersection(source.given.types)
            and not any(step.makes(column) for step in self.decoding)
        )

    def _doubt_of_header(self, column: str) -> str:
        """Return what is like a name that is unknown, or may be wrong with the first line of a CSV file."""
        similar = unknown_name(self.columns, column)
        if similar or not isinstance(self.source, LogFiles) or self.source.format.name != CsvFormat.name:
            return f".{similar}" if similar else ""
        names = self.source.schema.names
        marks = [mark for mark in _DELIMITERS if len(names) == 1 and mark in names[0]]
        if marks:
            return (
                f". If {marks[0]!r} stands between columns, give format_options={{'delimiter': {marks[0]!r}}}"
            )
        if any(_NUMBER.fullmatch(name) for name in names):
            return ". If the first line of the file is no header, put one before it, with the names of the columns"
        return ""

    def chunks(self, target: int, packing: Packing | None = None) -> list[Chunk]:
        """Cut the log into about ``target`` chunks in log order: at least one per file, big Parquet and Arrow
        files cut. Where columns order the rows, they give them positions: see :class:`LogRanks`.

        Parameters
        ----------
        target : int
            At least 1.
        packing : Packing, optional
            Sizes up to which small files share a chunk; by default none do.
        """
        if target < 1:
            raise ConfigurationError(f"the number of chunks is at least 1, not {target}")
        chunks = self.unranked_chunks(target, packing)
        return ranked_chunks(self.row_order, chunks) if self.ordered_by else chunks

    def unranked_chunks(self, target: int, packing: Packing | None = None) -> list[Chunk]:
        """Cut the log as `chunks` does, without the positions that columns give."""
        if self.cut is not None:
            target = max(target, self.size_bytes // _CUT_CHUNK_BYTES)
        is_lenient = self.finds_bad_records
        chunks = self.source.chunks(target)
        if packing is not None and self._joins_files:
            chunks = packed(chunks, target, packing)
        if self.cut is not None and self.cut.has_positions and isinstance(self.source, TableSource):
            chunks = [self._with_rows_around(chunk, self.source.table) for chunk in chunks]
        return [decoded_chunk(self.decoding, chunk, is_lenient) for chunk in chunks]

    def first_reading(self, columns: Iterable[str], most_bytes: int) -> FirstReading:
        """Return memory for the rows of small files, of which all readings together take these columns of the log."""
        names = self.source_columns(name for name in columns if name != POSITION)
        return FirstReading([*names, *([BAD_RECORD] if self.finds_bad_records else [])], most_bytes)

    @property
    def _joins_files(self) -> bool:
        """Return whether rows of several files may come in one batch.

        Each file may be a split; a cut takes a row without an arrival by those around it in its file; and rows that are
        made of others have no place but their file.
        """
        is_split = self.split is FILE
        return not is_split and self.cut is None and all(step.keeps_rows for step in self.decoding)

    def _with_rows_around(self, chunk: Chunk, table: pa.Table) -> Chunk:
        """Return a chunk of a table that knows the rows around it, if those at its start may go with them at a cut."""
        assert isinstance(chunk, TableChunk)
        if isinstance(self.arrival, str) and not self.decoding:
            for row in replace(chunk, table=chunk.table.slice(0, 1)).read([self.arrival], 1):
                _, unreadable = to_milliseconds(row.column(0), self.arrival_unit)
                if row.column(0).null_count == 0 and unreadable is None:
                    return chunk
        return replace(chunk, whole=table)


def _gives_positions(decoding: Decoding) -> bool:
    return any(step.makes(POSITION) for step in decoding)


def _source_of(
    data: Any,
    settings: LogSettings,
    format: str | None,
    filesystem: Any,
    format_options: Mapping[str, Any] | None,
    schema: Any,
) -> LogFiles | TableSource | TopicLog:
    """Find the rows of a log; parameters as of :meth:`EventLog.of`."""
    if not isinstance(data, ArrowData) and (
        hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    ):
        data = ArrowData(data)
    if isinstance(data, ArrowData):
        if format is not None or filesystem is not None or format_options or schema is not None:
            raise ConfigurationError(
                "format=, filesystem=, format_options= and schema= have no meaning for in-memory data"
            )
        return data.imported(TableSource.of)
    if isinstance(data, TopicRecords):
        return TopicLog.of(data)
    if isinstance(data, LakeTable | LogFiles):
        return _table_or_files(data, settings.split)
    if isinstance(data, str | os.PathLike | Iterable):
        is_lenient = settings.on_bad_row != "fail"
        files = log_of_paths(data, format, stores_of(filesystem), format_options, schema, is_lenient)
        return _table_or_files(files, settings.split)
    raise ConfigurationError(
        "an event log is read from paths or from Arrow data (__arrow_c_stream__), not from "
        f"{type(data).__name__}"
    )


def _table_or_files(data: LakeTable | LogFiles, split: object) -> LogFiles:
    if isinstance(data, LogFiles):
        return data
    refuse_files_as_splits(split)
    return table_files(data)
