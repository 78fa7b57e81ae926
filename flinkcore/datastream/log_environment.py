"""The methods of an environment that make streams of event logs: of files, Arrow data and tables of a lake."""

from __future__ import annotations

import os
import reprlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.instants import instant_ms
from flinkcore._internal.arrow.sort_keys import Position, sort_keys
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore._internal.io.locations import absolute_location
from flinkcore._internal.python.extras import library
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import PARTITION, SplitOrigin
from flinkcore.datastream.environment_settings import EnvironmentSettings
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.transformations import EventLogSource, LogData
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.graph.lake_tables import LakeTable
    from flinkcore.datastream.logs.log_stream import LogStream


class LogEnvironment(EnvironmentSettings):
    """Environment that makes streams of event logs."""

    _until: str | None = None
    """Time of arrival at which logs and topics are cut that the program does not cut itself."""

    _has_cut = False
    """True once a log or a topic of the program is cut there."""

    def _until_ms(self, unit: TimeUnit | None = None) -> int | None:
        """Return where a log or a topic is cut that the program does not cut itself."""
        self._has_cut = True
        return None if self._until is None else instant_ms(self._until, "--until", unit)

    def _require_cut(self) -> None:
        if self._until is not None and not self._has_cut:
            raise ConfigurationError(
                "--until cuts event logs without an until= of their own, and topics with a dump in their place; the "
                "program has no such source. Leave it out, or give a dump: --replace-source KafkaSource TOPIC=DUMP"
            )

    @abstractmethod
    def _log_stream(self, source: EventLogSource) -> LogStream:
        """Return the stream of a log, which belongs to this environment."""

    def from_event_log(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        schema: Any = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
        decode: Mapping[str, Any] | Literal["debezium"] | None = None,
        until: datetime | str | int | None = None,
    ) -> LogStream:
        """Return the stream of events of a log.

        Nothing is read before the job runs. In its results, ``window_start`` and ``window_end`` are timestamps in ms.
        They are instants, in UTC, if the source's timestamp is a number or text (also in CSV and JSON, whatever its
        form). They have its time zone if it is an Arrow timestamp, and no zone if it has none or is a date.
        ``watermark`` is an integer in ms, and 2**63 - 1 for what fires at the end of the log. Columns of an extension
        type have the values of its storage: a uuid is 16 bytes.

        Parameters
        ----------
        path_or_table : str, os.PathLike, sequence of these, or Arrow data
            A file, directory, glob or URI of a store, or several, of which a file that is named twice is read once
            (the files of a directory or glob by path, ``2.json`` before ``10.json``). The directory of a Delta table,
            or a local one of an Iceberg table, is read as that table at its current version, as by :meth:`from_delta`
            and :meth:`from_iceberg`. Other paths to files of a table are refused, because these still hold rows that
            were removed; a list of single files with a `format` reads them as they are.
            Or anything with ``__arrow_c_stream__``
            or ``__arrow_c_array__`` (a table of pyarrow, Polars, DuckDB, ...), which the first job reads for all jobs
            over the stream. On Spark also a DataFrame.
        timestamp : str or pyarrow.compute.Expression, optional
            Column with the source's timestamp. It can be left out if the log has the columns of Kafka's records, as
            Spark's DataFrames of Kafka, Iceberg topics of Redpanda and Confluent's Tableflow have them. These columns
            are then also the default of `split` (topic and partition) and `position` (offset).
            The column has no nulls: integer milliseconds since the epoch, or numbers in
            `timestamp_unit`; an Arrow timestamp of any unit (UTC if it has no zone) or date; or ISO 8601 text such as
            ``2001-01-31T12:00:00.250Z`` (UTC if it has no offset). Fractions of a millisecond are floored. Or an
            expression over the log's columns with one of these types. If :meth:`LogStream.with_columns` replaces the
            column before timestamps are assigned, the new values are used.
        arrival : str or pyarrow.compute.Expression, optional
            The processing time at which the event reached the system, of the same types; always of the log as it was
            recorded. By default it is derived from the position in the split, `rate` and `arrival_start_ms`.
        split : str, PARTITION, FILE or None
            Column with the split (Kafka partition, device, ...) of each event. ``PARTITION``: each partition that the
            paths of all files name is a split, such as directories ``partition=3`` or files of Kafka Connect
            (``clicks+3+0000000042.avro``, which are read in the order of their offsets); a log whose paths name none is
            one split. ``FILE``: each file is a split.
            With None the whole log is one split, with several files in the order given. Within a split, events are in
            order of arrival.
        rate : float
            Records per second of each split without an arrival column: by default, 1,000, so that with watermarks every
            200 ms the watermark advances every 200 rows.
        arrival_start_ms : int
            Arrival of the first record of each split without an arrival column, in ms since the epoch.
        format : str, optional
            ``parquet``, ``arrow``, ``orc``, ``avro``, ``csv``, ``tsv`` or ``json`` (lines); by default by its name.
        format_options : mapping, optional
            Options of the format's reader.
        schema : pyarrow.Schema, pyspark.sql.types.StructType, str or mapping, optional
            Types of columns of files. A schema, also as a DDL string such as ``"user STRING, price DECIMAL(10, 2)"``,
            has all columns that are read. A mapping such as ``{"zip": "string"}`` has the types of some columns
            alone, or of nested fields by their dotted names.
            By default the columns of all files, by name, with types that hold the values of all of them. A column that
            a file lacks is null there; the report lists the differences.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the paths; by default that of the URI, or the local one.
        on_bad_row : {"fail", "drop"} or OutputTag
            Fate of rows that cannot be processed, such as those with a null or invalid timestamp, and of lines of CSV
            and JSON that cannot be read: "fail" raises an error, "drop" drops and counts them, and a tag sends them to
            a side output. A log that several branches of a job use is read for each of them, with its bad rows: use a
            log and a tag of its own for each branch.
        position : str or sequence of str and (str, "descending"), optional
            Column, or several, that order the rows of each split, such as the offset in a Kafka partition, where they
            lie in no order. Events of a split are then ordered by `arrival`, if it is given; where that is the same ms,
            by these columns, the first of which counts most, with nulls first (descending: last); and then by the
            content of their rows, arbitrarily and always alike. Without `arrival`, it follows from the position in this
            order. The columns are read once more for that, before all else; embedded, this takes some 60 bytes of
            memory for each row of the log while they are sorted, 4 from then on, and rows are held until all that come
            before them have been read. On Spark, a task sorts the columns of a split, as far as need be on disk.
        timestamp_unit : {"s", "ms", "us", "ns"}, optional
            Unit of the numbers in `timestamp` since the epoch: integers, decimals, floats (rounded to microseconds
            first) or these as text. By default integers are milliseconds, and the job fails if all of them lie where no
            log has times in milliseconds, but in another unit; ``"ms"`` also says that they are milliseconds in any
            case.
        arrival_unit : {"s", "ms", "us", "ns"}, optional
            The same for `arrival`.
        integer_times : bool
            Whether ``window_start``, ``window_end`` and other event times of results are integers in milliseconds since
        decode : mapping of str to decoder, or "debezium", optional
            Columns whose values are messages, such as the `value` of a Kafka record, each with its decoder:
            :func:`flinkcore.json_values`, :func:`flinkcore.avro_values`, :func:`flinkcore.protobuf_values` or
            :func:`flinkcore.debezium_values`. They become columns of structs, which times, splits, positions and all
            steps may read. `on_bad_row` covers messages that cannot be decoded. ``"debezium"``: the columns of the log
            are Debezium's envelope (``op``, ``before``, ``after``, or these within ``payload``), and become those of
            the rows, which take the place of others with their names, and ``row_kind``, as of `debezium_values`.
            the epoch, and not timestamps.
        until : datetime, str or int, optional
            A time of arrival at which the log is cut: events that arrive before it are taken, and later ones wait for
            the next run. A checkpoint with which the job stops remembers it, and a run from there begins with what
            arrives at or after it, over any files that hold that. A datetime or ISO 8601 text without an offset is UTC,
            as timestamps in columns are; an integer is in `arrival_unit`, by default ms. It needs `arrival`, which must
            not go back over the cut within a split: with `position` it never does. A row whose arrival cannot be read
            goes with the row before it in its file, or at its start with the next one; without positions, each run
            rejects it.

        Raises
        ------
        ConfigurationError
            If a setting is invalid.

        Notes
        -----
        A job reports the version or snapshot of a table that it has read: ``result.report.tables``. Wherever a
        setting or step names a column, a dotted name such as ``payload.after.user_id`` names a field of a struct
        column, unless there is a column of that very name. Results have columns of the dotted names.
        """
        is_table = isinstance(path_or_table, LogData)
        settings = LogSettings(
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            has_positions=not is_table,
            position=path_or_table.position if is_table else None,
            ordered_by=() if position is None else sort_keys(position),
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
        )
        until_ms = (
            self._until_ms(arrival_unit) if until is None else instant_ms(until, "until=", arrival_unit)
        )
        settings = replace(settings, until_ms=until_ms)
        data = path_or_table if is_table else _data(path_or_table)
        if filesystem is None and isinstance(data, str | list):
            filesystem = self._stores
        return self._log_stream(
            EventLogSource(data, settings, format, format_options, filesystem, schema, decode)
        )

    def from_delta(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression | None = None,
        version: int | str | datetime | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
        until: datetime | str | int | None = None,
    ) -> LogStream:
        """Return the stream of events of a Delta table, through the library `deltalake` (``flinkcore[delta]``).

        The log has the rows that the table has at one version; the data files are read by the workers themselves.
        Files are found when the job is planned: without a version, those that the table has then. Rows of a table have
        no positions: those of a split are ordered by `arrival`, where that is the same by `position`, and then by their
        content, so that compacting the table changes no result. A :meth:`LogStream.filter` with a pyarrow expression,
        as a first step, belongs to the log: files and row groups that cannot meet it are not read, and rows that do not
        are not counted.

        Parameters
        ----------
        path_or_table : str, os.PathLike or deltalake.DeltaTable
            Path or URI; or a table, at the version that it has loaded.
        timestamp, arrival, split, rate, arrival_start_ms, on_bad_row, position
            As of :meth:`from_event_log`. With neither `arrival` nor `position`, the order is that of the table's files.
        timestamp_unit, arrival_unit, integer_times, until
            As of :meth:`from_event_log`.
        version : int, str or datetime, optional
            Number of the version, or the time as of which the table is read (ISO 8601, UTC without an offset); with a
            path only.
        storage_options : mapping of str to str, optional
            Options of deltalake, for the table's log.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the data files; by default that of the table's URI.

        Raises
        ------
        ConfigurationError
            If a setting is invalid, or deltalake is not installed.
        """
        from flinkcore.datastream.graph.lake_tables import DeltaTable

        library("deltalake", "delta", "from_delta")
        table: Any = path_or_table
        if isinstance(table, str | PathLike) and os.fspath(table):
            table = absolute_location(table)
        elif not hasattr(table, "get_add_actions"):
            raise ArgumentTypeError(
                f"from_delta takes the path of a table, or a deltalake.DeltaTable, not {reprlib.repr(table)}"
            )
        elif version is not None or storage_options is not None:
            raise ConfigurationError(
                "version= and storage_options= are for a path: give deltalake.DeltaTable(path, version=...) with them"
            )
        if isinstance(version, bool) or not isinstance(version, int | str | datetime | None):
            raise ArgumentTypeError(f"version= is a number, or a time as text or datetime, not {version!r}")
        return self._from_lake_table(
            DeltaTable(
                table, self._stores if filesystem is None else filesystem, (), version, storage_options
            ),
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            position=position,
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
            until=until,
        )

    def from_iceberg(
        self,
        table: Any,
        *,
        timestamp: str | Expression | None = None,
        snapshot: int | str | datetime | None = None,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = PARTITION,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
        position: Position | None = None,
        timestamp_unit: TimeUnit | None = None,
        arrival_unit: TimeUnit | None = None,
        integer_times: bool = False,
        until: datetime | str | int | None = None,
    ) -> LogStream:
        """Return the stream of events of an Iceberg table, through the library `pyiceberg` (``flinkcore[iceberg]``).

        The log has the rows, and the columns, that the table has in one snapshot. Otherwise as :meth:`from_delta`.

        Parameters
        ----------
        table : pyiceberg.table.Table, str or os.PathLike
            ``catalog.load_table("logs.clicks")``; or the name of a table in the default catalog; or path or URI of a
            metadata file; or path of the local directory of a table, whose newest metadata file is read if their names
            or ``version-hint.text`` determine it.
        timestamp, arrival, split, rate, arrival_start_ms, filesystem, on_bad_row, position
            As of :meth:`from_delta`.
        timestamp_unit, arrival_unit, integer_times, until
            As of :meth:`from_event_log`.
        snapshot : int, str or datetime, optional
            Id of a snapshot, name of a branch or tag, or the time (UTC without a zone) as of which the table is read;
            by default the current one.

        Raises
        ------
        ConfigurationError
            If a setting is invalid, or pyiceberg is not installed.
        """
        from flinkcore.datastream.graph.lake_tables import IcebergTable

        library("pyiceberg", "iceberg", "from_iceberg")
        if isinstance(table, PathLike):
            table = absolute_location(table)
        if not (isinstance(table, str) and table) and not hasattr(table, "snapshot_by_id"):
            raise ConfigurationError(
                "from_iceberg takes a pyiceberg.table.Table, the name of a table, or the path of its directory or of a "
                "metadata file, not "
                f"{reprlib.repr(table)}"
            )
        if isinstance(snapshot, bool) or not isinstance(snapshot, int | str | datetime | None):
            raise ArgumentTypeError(
                f"snapshot= is the id of a snapshot, the name of a branch or tag, or a datetime, not {snapshot!r}"
            )
        return self._from_lake_table(
            IcebergTable(table, self._stores if filesystem is None else filesystem, (), snapshot),
            timestamp=timestamp,
            arrival=arrival,
            split=split,
            rate=rate,
            arrival_start_ms=arrival_start_ms,
            on_bad_row=on_bad_row,
            position=position,
            timestamp_unit=timestamp_unit,
            arrival_unit=arrival_unit,
            integer_times=integer_times,
            until=until,
        )

    def _from_lake_table(
        self, table: LakeTable, *, split: str | SplitOrigin | None, **settings: Any
    ) -> LogStream:
        from flinkcore.datastream.graph.lake_tables import refuse_files_as_splits

        refuse_files_as_splits(split)
        return self.from_event_log(table, split=split, **settings)


def _data(path_or_table: Any) -> Any:
    if hasattr(path_or_table, "mapInArrow"):
        raise ConfigurationError(
            "this environment runs in one process, and reads files and Arrow data; a Spark DataFrame is read by "
            "SparkExecutionEnvironment(spark).from_event_log(dataframe, ...)"
        )
    if hasattr(path_or_table, "__arrow_c_stream__") or hasattr(path_or_table, "__arrow_c_array__"):
        return ArrowData(path_or_table)
    if isinstance(path_or_table, str | PathLike) and os.fspath(path_or_table):
        return os.fspath(path_or_table)
    if isinstance(path_or_table, Sequence) and not isinstance(path_or_table, bytes):
        paths = [os.fspath(path) for path in path_or_table if isinstance(path, str | PathLike)]
        if paths and all(paths) and len(paths) == len(path_or_table):
            return paths
    shown, hint = " ".join(reprlib.repr(path_or_table).split()), _table_of(path_or_table)
    raise ArgumentTypeError(
        "an event log is a path, a list of paths, or Arrow data (anything with __arrow_c_stream__ or "
        f"__arrow_c_array__), not {shown}{f': {hint}' if hint else ''}"
    )


def _table_of(data: Any) -> str | None:
    """Return what to do for a log from data that is none."""
    for method, instead in _INSTEAD.items():
        if hasattr(data, method):
            return instead
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        if any(isinstance(each, Mapping) for each in data[:1]):
            return "give pyarrow.Table.from_pylist(data)"
        if any(hasattr(each, "__arrow_c_stream__") for each in data[:1]):
            return "give one table, pyarrow.concat_tables([pyarrow.table(each) for each in data])"
    return None


_INSTEAD: Final = {
    "get_add_actions": "give it to from_delta",
    "snapshot_by_id": "give it to from_iceberg",
    "collect_schema": "give data.collect()",
    "to_frame": "give data.to_frame()",
    "keys": "give pyarrow.table(data)",
    "readline": "give its path",
    "__array_interface__": "give pyarrow.table with each of its columns by name",
    "__next__": "give pyarrow.Table.from_pylist(list(data)) if its items are dictionaries",
}
"""What to do for a log, by a method that only this kind of data has."""
