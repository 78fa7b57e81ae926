"""The description of an event log: where its rows are, and which columns are time, arrival and split."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from flinkcore._internal.arrow.expressions import Expression, is_expression
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore._internal.arrow.time_units import TimeUnit, check_time_unit
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE, PARTITION, SplitOrigin
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.lake_tables import LakeTable, refuse_files_as_splits
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.formats.text_formats import CsvFormat, JsonFormat
from flinkcore.log.order.row_order import POSITION, RowOrder, check_position_type, ranked_chunks
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.log_sources import LogFiles, TableSource
from flinkcore.log.tables.lake_files import log_of_paths, table_files

_DELIMITERS: Final = (";", "\t", "|")
_SPARK_FILE: Final = re.compile(r"part-\d{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"[-+]?\d+(\.\d*)?")


@dataclass(frozen=True)
class EventLog:
    """A recorded stream: splits of events, each with a timestamp and an arrival.

    Parameters
    ----------
    source : LogFiles or TableSource
        Where the rows are; :meth:`of` builds it from paths or data.
    timestamp : str
        Column with the source timestamp: an Arrow timestamp (any unit; without a zone it is UTC) or date, an
        integer in milliseconds since the epoch, ISO 8601 text, or a number in ``timestamp_unit``. Fractions of a
        millisecond are floored.
    arrival : str or pyarrow.compute.Expression, optional
        Column with the processing time at which the event reached the system, of the same types, or an
        expression over the log's columns that gives it. Without it the position in the split gives it: ``rate``
        events per second from ``arrival_start_ms``.
    split : str, SplitOrigin or None
        Column (integer, string, binary, bool, date) whose value names the split; ``FILE``: each file is one;
        ``PARTITION``: each partition that the paths of all files name; None if the whole log is one.
    rate : float
        Events per second and split, if there is no arrival column.
    arrival_start_ms : int
        Arrival of the first event of each split, in ms since the epoch, if there is no arrival column.
    has_positions : bool
        Whether it counts where a row lies, as in a file. If not, arrival orders the rows of a split, and ties go by
        their content; without arrival the order is the one in which they come.
    position : str, optional
        Column of integers, from 0 to 2**59 - 1, by which ties go instead of the content.
    ordered_by : tuple of SortKey
        Sort keys of the rows of a split after their arrival, if they have no order: then `has_positions` is False,
        and `position` the hidden column that `chunks` gives them.
    timestamp_unit, arrival_unit : {"s", "ms", "us", "ns"} or None
        Unit of the numbers in ``timestamp`` and ``arrival``; with None integers are ms if they look like it.
    integer_times : bool
        Whether the times of results are integers in ms, not Arrow timestamps.
    checked_units : tuple of str
        Settings for whose columns it is an error if integers without a unit cannot be milliseconds.
    on_bad_row : "fail", "drop" or OutputTag
        Treatment of a row whose timestamp, arrival or split is null, whose timestamp or arrival is text that is
        not a time, whose window would not fit into 64 bits of milliseconds, or whose arrival is further than 2**61 ms
        from the epoch: an error that names it, a count per reason, or the side output with this tag.

    Raises
    ------
    ConfigurationError
        If a setting has no meaning.
    """

    source: LogFiles | TableSource
    timestamp: str
    arrival: str | Expression | None = None
    split: str | SplitOrigin | None = None
    rate: float = 1000.0
    arrival_start_ms: int = 0
    on_bad_row: Literal["fail", "drop"] | OutputTag = "fail"
    has_positions: bool = True
    position: str | None = None
    ordered_by: tuple[SortKey, ...] = ()
    timestamp_unit: TimeUnit | None = None
    arrival_unit: TimeUnit | None = None
    integer_times: bool = False
    checked_units: tuple[str, ...] = ("timestamp", "arrival")

    def __post_init__(self) -> None:
        if not isinstance(self.timestamp, str) or not self.timestamp:
            raise ConfigurationError(f"timestamp= is the name of a column, not {self.timestamp!r}")
        named = isinstance(self.arrival, str) and self.arrival != ""
        if self.arrival is not None and not named and not is_expression(self.arrival):
            raise ConfigurationError(
                f"arrival= is the name of a column, a pyarrow expression or None, not {self.arrival!r}"
            )
        check_time_unit(self.timestamp_unit, "timestamp_unit")
        check_time_unit(self.arrival_unit, "arrival_unit")
        named = isinstance(self.split, str) and self.split != ""
        if self.split is not None and not isinstance(self.split, SplitOrigin) and not named:
            raise ConfigurationError(
                f"split= is the name of a column, FILE, PARTITION or None, not {self.split!r}"
            )
        if self.split is FILE and not isinstance(self.source, LogFiles):
            raise ConfigurationError("split=FILE needs a log of files; this one is an in-memory table")
        if not isinstance(self.rate, int | float) or not math.isfinite(self.rate) or self.rate <= 0:
            raise ConfigurationError(f"rate= is a number of events per second above 0, not {self.rate!r}")
        if not isinstance(self.arrival_start_ms, int) or not -(2**63) < self.arrival_start_ms < 2**63 - 1:
            raise ConfigurationError(
                "arrival_start_ms= is an integer number of milliseconds since the epoch, not "
                f"{self.arrival_start_ms!r}"
            )
        is_policy = isinstance(self.on_bad_row, str) and self.on_bad_row in ("fail", "drop")
        if not is_policy and not isinstance(self.on_bad_row, OutputTag):
            raise ConfigurationError(
                f'on_bad_row= is "fail", "drop" or an OutputTag, not {self.on_bad_row!r}'
            )

    @classmethod
    def of(
        cls,
        data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any,
        *,
        timestamp: str,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = None,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        has_positions: bool = True,
        position: str | None = None,
        ordered_by: tuple[SortKey, ...] = (),
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
        checked_units: tuple[str, ...] = ("timestamp", "arrival"),
        format: str | None = None,
        filesystem: Any = None,
        format_options: Mapping[str, Any] | None = None,
    ) -> "EventLog":
        """Describe the log at a path, glob, directory, URI or list of these, or in memory.

        Parameters
        ----------
        data : str, path, sequence of these, LakeTable, LogFiles, ArrowData, or Arrow data
            Paths as :func:`~flinkcore.log.files.log_files.discover_files` takes them, of which a directory may be a
            table; a table, or its files; otherwise anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, as
            ``TableSource.of`` takes it, or `ArrowData` of that.
        timestamp, arrival, split, rate, arrival_start_ms, on_bad_row, has_positions, position, ordered_by
            See :class:`EventLog`. A log whose paths name no partition is one split also with ``PARTITION``.
        timestamp_unit, arrival_unit, integer_times, checked_units
            See :class:`EventLog`.
        format : str, optional
            "parquet", "arrow", "avro", "csv" or "json"; by default as the extension says.
        filesystem : pyarrow.fs.FileSystem or fsspec filesystem, optional
            The paths are within it.
        format_options : mapping, optional
            Options of ``CsvFormat``, ``JsonFormat`` or ``ParquetFormat``.

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
        source: LogFiles | TableSource
        if not isinstance(data, ArrowData) and (
            hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
        ):
            data = ArrowData(data)
        if isinstance(data, ArrowData):
            if format is not None or filesystem is not None or format_options:
                raise ConfigurationError(
                    "format=, filesystem= and format_options= have no meaning for in-memory data"
                )
            source = data.imported(TableSource.of)
        elif isinstance(data, LakeTable | LogFiles):
            source = _table_or_files(data, split)
        elif isinstance(data, str | os.PathLike | Iterable):
            source = _table_or_files(log_of_paths(data, format, filesystem, format_options), split)
        else:
            raise ConfigurationError(
                "an event log is read from paths or from Arrow data (__arrow_c_stream__), not from "
                f"{type(data).__name__}"
            )
        if split is PARTITION:
            partitioned = source.by_partition() if isinstance(source, LogFiles) else None
            source, split = (source, None) if partitioned is None else (partitioned, split)
        is_table = source.table_name is not None
        log = cls(
            source,
            timestamp,
            arrival,
            split,
            rate,
            arrival_start_ms,
            on_bad_row,
            has_positions and not ordered_by and not is_table,
            POSITION if ordered_by else position,
            ordered_by,
            timestamp_unit,
            arrival_unit,
            integer_times,
            checked_units,
        )
        for setting, column in (("arrival", arrival), ("split", split)):
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
        schema = self.source.schema
        return schema.append(pa.field(POSITION, pa.int64())) if self.ordered_by else schema

    @property
    def table_name(self) -> str | None:
        """Name of the table of a lake that it is, with the version or snapshot that is read; None if it is none."""
        return self.source.table_name

    @property
    def row_order(self) -> RowOrder:
        """Return what orders the rows; there are columns that do."""
        return RowOrder(self.ordered_by, self.split, self.source.schema)

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
    def split_origin(self) -> str | None:
        """Return how the paths of its files split it, in words; None if they do not."""
        if self.split is not PARTITION or not isinstance(self.source, LogFiles):
            return None
        partitions = {file.split for file in self.source.files}
        each = "the partition" if len(partitions) == 1 else f"each of the {len(partitions):,} partitions"
        return f"{each} in the paths of its files is a split (split=None: the log is one split)"

    @property
    def order(self) -> str:
        """Return what orders the events of a split, in words."""
        position = ", then ".join(map(str, self.ordered_by)) or "position="
        if self.position is not None and self.arrival is None:
            return f"that of {position}, then of the content of the rows, for there is no arrival"
        if self.by_arrival:
            then = "" if self.position is None else f"{position}, then "
            return f"arrival, then {then}the content of the rows"
        if not self.has_positions:
            is_table = isinstance(self.source, LogFiles)
            rows = "of the table's files" if is_table else "in which Spark gave the rows"
            return f"that {rows}, for there is no arrival"
        lie = (
            f"that of the {'files, and of the rows in them' if isinstance(self.source, LogFiles) else 'rows'}"
        )
        if self.arrival is None and self.is_written_by_spark:
            lie += " (which Spark has written in no order: name position=, a column that orders them, or arrival=)"
        return f"{lie}, for there is no arrival" if self.arrival is None else lie

    @property
    def size_bytes(self) -> int:
        """The size of its files, as far as it is known, or of the table in memory."""
        return self.source.size_bytes

    def require(self, column: str, wanted_by: str) -> pa.DataType:
        """Return a column's plain type, or raise a SchemaError that says who wants it and what there is."""
        schema = self.schema
        if column not in schema.names:
            raise SchemaError(
                f"{wanted_by} names column {column!r}, which the log does not have: "
                f"{', '.join(self.source.schema.names) or 'it has none'}{self._doubt_of_header()}"
            )
        return schema.field(column).type

    def is_text(self, column: str) -> bool:
        """Return whether a column comes from text files, and only its text says of which type it is."""
        form = self.source.format if isinstance(self.source, LogFiles) else None
        return isinstance(form, CsvFormat | JsonFormat) and column not in form.declared

    def _doubt_of_header(self) -> str:
        """Return what may be wrong with the first line of a CSV file, to go on with."""
        if not isinstance(self.source, LogFiles) or self.source.format.name != CsvFormat.name:
            return ""
        names = self.source.schema.names
        marks = [mark for mark in _DELIMITERS if len(names) == 1 and mark in names[0]]
        if marks:
            return (
                f". If {marks[0]!r} stands between columns, give format_options={{'delimiter': {marks[0]!r}}}"
            )
        if any(_NUMBER.fullmatch(name) for name in names):
            return ". If the first line of the file is no header, put one before it, with the names of the columns"
        return ""

    def chunks(self, target: int) -> list[Chunk]:
        """Cut the log into about ``target`` chunks in log order: at least one per file, big Parquet and Arrow
        files cut. Where columns order the rows, they give them positions: see :class:`LogRanks`.

        Parameters
        ----------
        target : int
            At least 1.
        """
        if target < 1:
            raise ConfigurationError(f"the number of chunks is at least 1, not {target}")
        chunks = self.source.chunks(target)
        return ranked_chunks(self.row_order, chunks) if self.ordered_by else chunks


def _table_or_files(data: LakeTable | LogFiles, split: object) -> LogFiles:
    if isinstance(data, LogFiles):
        return data
    refuse_files_as_splits(split)
    return table_files(data)
