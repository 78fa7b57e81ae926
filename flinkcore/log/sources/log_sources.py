"""Sources of the rows of an event log, cut into chunks: files, or an in-memory table."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from flinkcore._internal.arrow.batch_bytes import bytes_of
from flinkcore._internal.arrow.column_ops import Filter, expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.joined_batches import compacted, empty_table
from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.arrow.schemas import refuse_repeated_columns
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.stores import ENVIRONMENT, Stores
from flinkcore._native.arrow import CheckedStream, checked_batch
from flinkcore.errors import ConfigurationError, DataError, FlinkcoreError, SchemaError, SourceError
from flinkcore.log.files.connect_offsets import in_order_of_offsets
from flinkcore.log.files.log_files import LogFile, discover_files, files_now, partition_fields
from flinkcore.log.files.topic_paths import partition_of, partitions_of, splits_of, topic_of
from flinkcore.log.formats.columnar_formats import ParquetFormat
from flinkcore.log.formats.file_format import FileFormat
from flinkcore.log.formats.known_formats import file_format
from flinkcore.log.schemas.found_columns import FoundColumns
from flinkcore.log.schemas.given_schema import GivenSchema
from flinkcore.log.sources.chunks import Chunk, LogSchema
from flinkcore.log.sources.file_chunks import FileChunk
from flinkcore.log.sources.table_chunks import TableChunk

# Most files whose columns are looked at, by whether a file lists its columns.
_MOST_LOOKED_AT = {False: 16, True: 1000}
_LOOKING_THREADS = 16
_FILES_OF_THREAD = 16
# Tables of many tiny chunks (appended row by row) are copied together once: a batch has a fixed cost.
_LEAST_MEAN_ROWS = 8192


@dataclass(frozen=True)
class LogFiles:
    """The files of a log, found when it is defined, so that every pass reads the same files.

    Parameters
    ----------
    files : tuple of LogFile
        In log order.
    format : FileFormat
        Format of all the files.
    table : LogSchema or None
        The columns of the table whose files these are; None if they are found in the files.
    given : GivenSchema
        The columns whose types the user has given.
    where : tuple of pyarrow.compute.Expression
        Conditions over columns: the log has the rows for which all are true. A row that does not meet them has no
        position.
    table_name : str or None
        Name of the table of a lake in messages, with the version or snapshot that is read, or None for plain files.
    """

    files: tuple[LogFile, ...]
    format: FileFormat
    table: LogSchema | None = None
    given: GivenSchema = field(default_factory=GivenSchema)
    where: tuple[Expression, ...] = ()
    table_name: str | None = None

    @classmethod
    def discover(
        cls,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        format: str | None = None,
        stores: Stores = ENVIRONMENT,
        format_options: Mapping[str, Any] | None = None,
        schema: Any = None,
        of_tables: bool = False,
        is_lenient: bool = False,
    ) -> "LogFiles":
        """Find the files; see `discover_files`, ``file_format`` and ``GivenSchema``."""
        given = GivenSchema.of(schema)
        files = discover_files(paths, stores, of_tables)
        return cls(files, file_format(files, format, format_options, given.types, is_lenient), given=given)

    @classmethod
    def of_table(
        cls,
        files: Iterable[LogFile],
        schema: pa.Schema,
        *,
        columns: Sequence[str] | None = None,
        where: Iterable[Expression] = (),
        stored: StoredColumns = StoredColumns(),  # noqa: B008, it cannot be changed
        table_name: str | None = None,
    ) -> "LogFiles":
        """Take the Parquet files of a table, as its catalog lists them.

        Parameters
        ----------
        files : iterable of LogFile
            In log order, each with the values of its partition columns as Python values of their types. None at all
            are a log without rows.
        schema : pyarrow.Schema
            Columns of the table, those of partitions among them; a file may lack columns, which are null then, and
            have narrower types.
        columns : sequence of str, optional
            Columns of the log, by default all; only conditions read the others.
        where : iterable of pyarrow.compute.Expression
            Conditions over the table's columns, all of which are true of the rows of the log. Files are left out by the
            values of their partitions, and row groups by their statistics.
        stored : StoredColumns
            By what names the files have the columns.
        table_name : str, optional
            Name of the table of a lake, with its version.
        """
        plain = plain_schema(schema)
        conditions = tuple(where)
        kept = tuple(file for file in files if _may_meet(conditions, file, plain))
        names = plain.names if columns is None else list(columns)
        table = LogSchema(
            pa.schema([plain.field(name) for name in names]),
            dict.fromkeys(plain.names, "the table"),
            stored=stored,
            of_conditions=pa.schema([field for field in plain if field.name not in names]),
        )
        return cls(kept, ParquetFormat(), table, where=conditions, table_name=table_name)

    @cached_property
    def log_schema(self) -> LogSchema:
        """The columns of the log: those of the table, those that are given, or those that any file has.

        Files that say which columns they have are all looked at, up to 1,000 that are spread over the log; of others
        16. A column has a type that holds the values of all of them. Partition columns come last and take the place of
        a file's own column of that name.

        Raises
        ------
        SourceError
            If a file is damaged, or no file has a schema.
        SchemaError
            If partition directories differ between files, or a name occurs twice.
        ConfigurationError
            If types of columns are given that no file has.
        """
        if self.table is not None:
            return self.table
        partition = partition_fields(self.files)
        changes: tuple[str, ...] = ()
        converted: frozenset[str] = frozenset()
        if self.given.is_whole:
            types, origins = dict(self.given.types), dict.fromkeys(self.given.types, "schema=")
        else:
            found = self._found([column.name for column in partition])
            types, origins, changes = found.types, found.origins, tuple(found.changes())
            converted = found.converted
        for column in partition:
            given = self.given.types.get(column.name, column.type)
            if given != column.type:
                raise ConfigurationError(
                    f"schema= has {given} as the type of {column.name!r}, a column of directories, which is "
                    f"{column.type}. Leave it out, and cast the column in with_columns(...)"
                )
            types.pop(column.name, None)
            types[column.name] = column.type
            origins[column.name] = self.files[0].name
        schema = LogSchema(pa.schema(list(types.items())), origins, self.given, changes, converted)
        return replace(schema, converted=converted | schema.given_columns)

    def _found(self, elsewhere: Sequence[str]) -> FoundColumns:
        found = FoundColumns(self.format, self.given)
        for file, schema in self._looked_at():
            if schema is not None:
                found.add(schema, file.name)
            if found.files == _MOST_LOOKED_AT[self.format.has_schema]:
                break
        if not found.types:
            self._refuse_without_columns(found.files > 0)
        found.give(elsewhere, looked_at_all=found.files == len(self.files))
        return found

    def _looked_at(self) -> Iterator[tuple[LogFile, pa.Schema | None]]:
        """The files with their schemas, in the order in which they are looked at."""
        first, *others = _spread(self.files, _MOST_LOOKED_AT[self.format.has_schema])
        yield first, self.format.schema(first)
        most = _MOST_LOOKED_AT[True] - 1 if self.format.has_schema else 0
        # A thread takes several files: waiting for it costs as much as a look at a local file.
        looked_at = others[:most]
        groups = [looked_at[at : at + _FILES_OF_THREAD] for at in range(0, len(looked_at), _FILES_OF_THREAD)]
        with ThreadPoolExecutor(_LOOKING_THREADS, "flinkcore-schemas") as threads:
            found = threads.map(lambda group: [*map(self._at_a_glance, group)], groups)
            yield from zip(looked_at, chain.from_iterable(found), strict=True)
        yield from ((file, self._at_a_glance(file)) for file in others[most:])

    def _at_a_glance(self, file: LogFile) -> pa.Schema | None:
        try:
            return self.format.schema(file, at_a_glance=True)
        except (SchemaError, SourceError):  # which reading it raises, too, if the job comes to it
            return None

    def _refuse_without_columns(self, has_files: bool) -> NoReturn:
        number, name = len(self.files), self.files[0].name
        if has_files:
            raise SchemaError(
                f"the log has no columns: {name}{' and so on' if number > 1 else ''} may have rows, "
                "but a row without columns has no timestamp. Give a log with a column of timestamps"
            )
        raise SourceError(
            f"the log has no columns, for {'its file is' if number == 1 else f'all its {number} files are'} "
            f"empty: {name}{' and so on' if number > 1 else ''}. Skip the replay, or add a file that "
            "has the columns, such as Parquet without rows",
            file=name,
        )

    def by_partition(self) -> "LogFiles | None":
        """Return the log with the partition of each file as its split, or None if a file has none.

        Files of Kafka Connect come in the order of their offsets. Paths name topics and partitions (`partitions_of`);
        those of a table's files, its partition columns.

        Raises
        ------
        SourceError
            If directories and the name of a file contradict each other.
        """
        if self.table is None:
            partitions = partitions_of([file.path for file in self.files])
        else:
            columns = [file.partition for file in self.files]
            partitions = splits_of([*map(topic_of, columns)], [*map(partition_of, columns)])
        if partitions is None:
            return None
        files = zip(self.files, partitions, strict=True)
        split = [replace(file, split=partition) for file, partition in files]
        return replace(self, files=tuple(in_order_of_offsets(split) if self.table is None else split))

    def without_files(self) -> "LogFiles":
        """Return the same columns without the files, for tasks: these get chunks, and there may be 100,000 files."""
        return replace(self, files=(), table=self.log_schema)

    @property
    def schema(self) -> pa.Schema:
        """Columns with plain types."""
        return self.log_schema.schema

    @property
    def size_bytes(self) -> int:
        """The size of the files, as far as it is known."""
        return sum(file.size_bytes or 0 for file in self.files)

    def chunks(self, target: int) -> list[Chunk]:
        """Cut the log into about ``target`` chunks, at least one per file, in log order.

        Only files whose share of the bytes is one and a half chunks or more are opened and cut, by row groups
        (Parquet), record batches (Arrow IPC files) or stripes (ORC). A replay reads the chunks twice, unless they are
        small, and fails if a file that it reads has changed since they were cut.

        Raises
        ------
        SourceError
            If a file is no longer there.
        """
        schema = self.log_schema
        if not self.files:
            return TableSource(empty_table(schema.schema)).chunks(1)
        files = files_now(self.files)
        total = sum(file.size_bytes or 0 for file in files)
        chunks: list[Chunk] = []
        for file in files:
            size = file.size_bytes
            share = round((size or 0) * target / total) if total else 1
            pieces = self.format.pieces(file) if share > 1 else [None]
            rows = [count for count in pieces if count is not None]
            known = len(rows) == len(pieces)
            weights = rows if known and sum(rows) > 0 else [1 for _ in pieces]
            first_row = 0
            runs = even_runs(weights, share)
            for run in runs:
                count = sum(rows[run.start : run.stop]) if known else None
                whole = len(runs) == 1
                is_all = not self.where and file.deleted is None
                part = f"{file.name} ({self.format.pieces_name} {run.start}-{run.stop - 1})"
                chunks.append(
                    FileChunk(
                        index=len(chunks),
                        label=file.name if whole else part,
                        rows=count if is_all else None,
                        size_bytes=None if size is None else size // len(runs),
                        first_row=first_row if (whole or known) and is_all else None,
                        file=file,
                        format=self.format,
                        pieces=None if whole else run,
                        log_schema=schema,
                        where=self.where,
                    )
                )
                first_row += count or 0
        return chunks


def _spread(files: Sequence[LogFile], number: int) -> list[LogFile]:
    """Return all files of a log; those that come first lie far apart, and are the first and the last one among them."""
    first = {(len(files) - 1) * step // (number - 1) for step in range(number)}
    return [files[at] for at in [*sorted(first), *(at for at in range(len(files)) if at not in first)]]


@dataclass(frozen=True)
class TableSource:
    """An in-memory log.

    Parameters
    ----------
    table : pyarrow.Table
        Rows in log order.
    """

    table_name: ClassVar[None] = None

    table: pa.Table

    @classmethod
    def of(cls, data: Any) -> "TableSource":
        """Take anything that exports Arrow data: tables and batches of pyarrow, polars, pandas, nanoarrow, a
        DuckDB relation.

        Columns are not copied. What can be read only once (a ``RecordBatchReader``, a lazy relation) is read
        into memory here, because a replay reads its log twice: a log larger than memory is written to Parquet
        first.

        Raises
        ------
        ConfigurationError
            If the data exports neither ``__arrow_c_stream__`` nor ``__arrow_c_array__``.
        SchemaError
            If it is one column, and no table.
        DataError
            If it contradicts itself, or has rows that are null. Data that pyarrow has not made is checked value by
            value.
        SourceError
            If what gives it fails.
        """
        is_arrows_own = type(data).__module__ == pa.lib.__name__
        if isinstance(data, pa.Table):
            table = data
        elif hasattr(data, "__arrow_c_stream__"):
            if is_arrows_own:
                with _import_faults(data):
                    table = pa.RecordBatchReader.from_stream(data).read_all()
            else:
                with _conversion_faults(data):
                    stream = CheckedStream(data)
                table = pa.Table.from_batches(map(pa.record_batch, stream), pa.schema(stream))
        elif hasattr(data, "__arrow_c_array__"):
            with _import_faults(data):
                table = pa.Table.from_batches(
                    [pa.record_batch(data if is_arrows_own else checked_batch(data))]
                )
        else:
            raise ConfigurationError(
                "an event log is read from paths or from Arrow data (__arrow_c_stream__), not from "
                f"{type(data).__name__}"
            )
        try:  # the contents of Arrow's own tables are believed
            table.validate(full=not is_arrows_own)
        except pa.ArrowInvalid as failure:
            raise DataError(f"the Arrow data from {type(data).__name__} is broken: {failure}") from failure
        refuse_repeated_columns(table.column_names, "the table")
        pieces = max((column.num_chunks for column in table.columns), default=0)
        if pieces > 1 and table.num_rows < pieces * _LEAST_MEAN_ROWS:
            table = compacted(table)
        return cls(table)

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns with plain types."""
        return plain_schema(self.table.schema)

    @property
    def size_bytes(self) -> int:
        """The size of the table in memory."""
        return bytes_of(self.table)

    def chunks(self, target: int) -> list[Chunk]:
        """Cut the table into ``target`` slices of equal length (fewer if it has fewer rows), uncopied."""
        rows = self.table.num_rows
        count = max(1, min(target, rows))
        starts = [rows * i // count for i in range(count + 1)]
        size = self.size_bytes // count
        return [
            TableChunk(
                index=i,
                label=f"the table (rows {start}-{end - 1})" if rows else "the table (no rows)",
                rows=end - start,
                size_bytes=size,
                first_row=start,
                table=self.table.slice(start, end - start),
            )
            for i, (start, end) in enumerate(pairwise(starts))
        ]


@contextmanager
def _import_faults(data: Any) -> Iterator[None]:
    """Convert errors of pyarrow's import of data that is not a table, or whose reading failed."""
    kind = getattr(data, "type", None)
    if isinstance(kind, pa.DataType) and not pa.types.is_struct(kind):
        raise SchemaError(
            f"a log has columns, and the {type(data).__name__} that was given is one of type {kind}: give "
            "pyarrow.table({name: column, ...})"
        )
    try:
        yield
    except FlinkcoreError:
        raise
    except (pa.ArrowException, OSError) as failure:
        if isinstance(kind, pa.DataType) and data.null_count:
            raise DataError(
                f"a row of a log is not null, and {data.null_count} of the {type(data).__name__} that was given are: "
                "take them out with drop_null()"
            ) from failure
        reason = " ".join(str(failure).partition("Detail: Python exception")[0].split())
        raise SourceError(
            f"the Arrow data of the {type(data).__name__} cannot be read: {reason}"
        ) from failure


@contextmanager
def _conversion_faults(data: Any) -> Iterator[None]:
    """Let an error of a conversion to Arrow name the column, such as one of pandas with values of several types."""
    try:
        yield
    except pa.ArrowException as failure:
        reason = "; ".join(str(part).rstrip(".") for part in reversed(failure.args))
        raise SchemaError(
            f"the {type(data).__name__} has a column that Arrow does not take. {reason}. Give the column one type, "
            'such as by .astype({"column": "string"}), or leave it out'
        ) from failure


def _may_meet(conditions: Iterable[Expression], file: LogFile, schema: pa.Schema) -> bool:
    """Return whether conditions over partition columns are all true of a file; others are not looked at."""
    values = {name: pa.array([value], schema.field(name).type) for name, value in file.partition}
    batch = pa.RecordBatch.from_pydict(values) if values else None
    for condition in conditions if batch is not None else ():
        read = expression_columns(condition)
        if read is not None and read <= values.keys() and Filter(condition).apply(batch)[0].num_rows == 0:
            return False
    return True


def even_runs(weights: list[int], parts: int) -> list[range]:
    """Cut pieces into at most ``parts`` contiguous runs of about equal weight, none of them empty."""
    parts = max(1, min(parts, len(weights)))
    ends = list(accumulate(weights))
    cuts = [0]
    for part in range(1, parts):
        at = bisect_left(ends, ends[-1] * part / parts) + 1
        cuts.append(max(cuts[-1] + 1, min(at, len(weights) - parts + part)))
    cuts.append(len(weights))
    return [range(start, end) for start, end in pairwise(cuts)]
