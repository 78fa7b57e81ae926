"""Parquet and Arrow IPC: formats with metadata that can be cut into pieces."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs, ipc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import bytes_of
from flinkcore._internal.arrow.column_ops import expression_columns
from flinkcore._internal.arrow.nested_fields import named_field, paths_read
from flinkcore._internal.arrow.plain_columns import (
    fields_of,
    narrowest,
    plain_schema,
    plain_type,
    with_fields,
)
from flinkcore._internal.arrow.sound_columns import check_layout, check_values
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults

# Row groups of a remote file are fetched together up to about this size: fewer requests, still bounded
# memory.
_PREFETCH_BYTES = 64 << 20
_STREAM_BYTES = 1 << 20
_PAGE_BYTES = 1 << 16
# Else a reader holds whole columns of a row group, and several files may be read at once.
_BUFFER_BYTES = 1 << 18


class ParquetFormat:
    """Parquet: footers give the schema and the rows of each row group.

    Parameters
    ----------
    int96_unit : {"us", "ns"}
        Unit of timestamps in 96 bits, which are nanoseconds of any year. Microseconds are Spark's; nanoseconds are
        those of 1677 to 2262. One that the unit does not hold is a DataError, in files that Spark has not written.
    """

    name = "parquet"
    is_columnar = True
    has_columns = True
    counts_rows = True
    has_schema = True
    is_text = False
    pieces_name = "row groups"
    _advice = "The file is truncated, damaged or not Parquet: write it again, or take it out of the log"

    def __init__(self, int96_unit: str = "us") -> None:
        if int96_unit not in ("us", "ns"):
            raise ConfigurationError(f"int96_unit is 'us' or 'ns', not {int96_unit!r}")
        self._int96_unit = int96_unit

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with (
            source_faults(file.name, self._advice),
            self._open(file) as opened,
        ):
            return plain_schema(_with_instants(opened))

    def pieces(self, file: LogFile) -> list[int | None]:
        _, metadata = self.footer(file)
        return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]

    def footer(self, file: LogFile) -> tuple[pa.Schema, Any]:
        """Return the schema, with timestamps of 96 bits in UTC, and the metadata of Parquet."""
        with source_faults(file.name, self._advice), self._open(file) as opened:
            return _with_instants(opened), opened.metadata

    def extremes(self, file: LogFile, pieces: range | None, column: str) -> pa.Array | None:
        """Return the least and the greatest value of a column, or None if statistics do not have them.

        Parameters
        ----------
        file : LogFile
        pieces : range or None
            Row groups, or None for all.
        column : str
            A column of integers of 64 bits or of timestamps; others have no known extremes, nor has one with nulls.
        """
        with source_faults(file.name, self._advice), self._open(file) as opened:
            metadata, found = opened.metadata, opened.schema_arrow
            # A field and a column with a dot in its name may have one path.
            places = [n for n in range(metadata.num_columns) if metadata.schema.column(n).path == column]
            if len(places) != 1 or metadata.schema.column(places[0]).physical_type != "INT64":
                return None
            at, kind = places[0], named_field(found, column).type
            if kind != pa.int64() and not (pa.types.is_timestamp(kind) and kind.unit in ("ms", "us", "ns")):
                return None
            groups = list(pieces if pieces is not None else range(metadata.num_row_groups))
            _check_rows(metadata, {group: metadata.row_group(group).num_rows for group in groups})
            check_statistics(file, groups, [column])
            told = [metadata.row_group(group).column(at).statistics for group in groups]
            if not told or not all(
                each is not None and each.has_min_max and each.has_null_count and each.null_count == 0
                for each in told
            ):
                return None
            ends = [min(each.min_raw for each in told), max(each.max_raw for each in told)]
            return pa.array(ends, pa.int64()).cast(kind)

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        local = isinstance(file.filesystem, fs.LocalFileSystem)
        with ExitStack() as closing:
            closing.enter_context(source_faults(file.name, self._advice))
            in_table = columns.stored is not None
            opened = closing.enter_context(self._open(file, () if in_table else columns.dictionary_columns))
            metadata = opened.metadata
            layout = _Layout.of(file, opened, columns)
            if in_table and layout.encoded:
                opened = closing.enter_context(self._open(file, layout.encoded))
            numbers = list(pieces if pieces is not None else range(metadata.num_row_groups))
            if columns.where:
                numbers = _where_true(file, numbers, columns, layout.located, layout.found, self._int96_unit)
            groups = {number: metadata.row_group(number) for number in numbers}
            rows_of = {number: group.num_rows for number, group in groups.items()}
            _check_rows(metadata, rows_of)
            # Prefetching holds all the groups of a call in memory; plain local reads hold one.
            runs = [[number] for number in numbers] if local else _runs(groups)
            sizes = _SizesOfGroups(file, metadata, groups, layout.names, columns)
            if sizes.has_large_chunks:
                # Else Arrow holds the bytes of a whole column of a row group.
                opened = closing.enter_context(
                    self._open(file, layout.encoded or columns.dictionary_columns, streams=True)
                )
            # In a table, timestamps in 96 bits are read as Spark reads them.
            int96 = [] if in_table or (layout.int96 and _is_of_spark(metadata)) else layout.int96
            in_units = [
                closing.enter_context(self._open(file, int96_unit=unit, metadata=metadata))
                for unit in (("us", "ns") if int96 else ())
            ]
            growth = 1.0
            """How many times larger the rows of the last run were than in the file, with values of dictionaries."""
            for run in runs:
                if int96:
                    self._check_int96(file, in_units, run, int96)
                rows = sum(rows_of[number] for number in run)
                kept = None if file.deleted is None else _kept_rows(metadata, run, file.deleted)
                row_bytes = max(map(sizes.row_bytes, run))
                most_rows = max(1, int(columns.batch_bytes / (row_bytes * growth)))
                is_last = run is runs[-1]
                read_rows = read_bytes = 0
                for batch in opened.iter_batches(
                    batch_size=min(columns.batch_rows, most_rows),
                    row_groups=run,
                    columns=layout.names,
                    use_threads=False,
                ):
                    check_values(batch)
                    if not is_last:
                        read_rows, read_bytes = read_rows + batch.num_rows, read_bytes + bytes_of(batch)
                    rows -= batch.num_rows
                    if kept is not None:
                        batch, kept = batch.filter(kept[: batch.num_rows]), kept[batch.num_rows :]
                    yield _as_in_table(batch, layout.located) if in_table else batch
                if rows:
                    raise pa.ArrowInvalid(
                        f"its row groups do not have as many rows as its footer says ({rows} missing)"
                    )
                growth = max(1.0, read_bytes / max(1, read_rows) / row_bytes)
                _check_columns(metadata, {number: groups[number] for number in run}, layout.flat)

    def _check_int96(
        self, file: LogFile, in_units: Sequence[Any], run: Sequence[int], leaves: Sequence[str]
    ) -> None:
        """Check that the unit holds the timestamps of these leaves in 96 bits, of which Arrow cuts what it does not."""
        both = (opened.iter_batches(row_groups=run, columns=leaves, use_threads=False) for opened in in_units)
        before = 0
        for micros, nanos in zip(*both, strict=True):
            for name, *column in zip(micros.schema.names, micros.columns, nanos.columns, strict=True):
                if self._is_cut(*column):
                    rows = range(micros.num_rows)
                    cut = next(row for row in rows if self._is_cut(*(each.slice(row, 1) for each in column)))
                    row = _row_in_file(in_units[0].metadata, run, before + cut)
                    raise self._cut(file.name, name, row)
            before += micros.num_rows

    def _is_cut(self, micros: pa.Array, nanos: pa.Array) -> bool:
        return any(map(self._are_cut, _leaves(micros), _leaves(nanos)))

    def _are_cut(self, micros: pa.Array, nanos: pa.Array) -> bool:
        if self._int96_unit == "us":
            # Nanoseconds wrap around, both here and as Arrow reads them: they are equal in any year.
            return not micros.cast(nanos.type, safe=False).equals(nanos)
        try:
            micros.cast(nanos.type)
        except pa.ArrowInvalid:
            return True
        return False

    def _cut(self, file: str, column: str, row: int) -> DataError:
        found, other = (
            ("has nanoseconds, which microseconds leave out", "ns")
            if self._int96_unit == "us"
            else ("lies outside of 1677 to 2262, the years of nanoseconds", "us")
        )
        return DataError(
            f"the timestamp (INT96) in row {row} of column {column!r} of {file} {found}: give "
            f"format_options={{'int96_unit': {other!r}}}, or leave the column out by select(...)",
            file=file,
            column=column,
            row=row,
        )

    def _open(
        self,
        file: LogFile,
        encoded: Sequence[str] = (),
        int96_unit: str | None = None,
        metadata: Any = None,
        streams: bool = False,
    ) -> Any:
        local = isinstance(file.filesystem, fs.LocalFileSystem)
        return pq.ParquetFile(
            file.path,
            metadata=metadata,
            filesystem=file.filesystem,
            read_dictionary=list(encoded),
            pre_buffer=not (streams or local),
            buffer_size=_STREAM_BYTES if streams else _BUFFER_BYTES if local else 0,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=int96_unit or self._int96_unit,
        )


@dataclass(frozen=True)
class _Layout:
    """Meaning of the schema of a file for the columns to read; most files of a log have the same schema.

    Attributes
    ----------
    stored, leaves
        Schemas of Arrow and of Parquet.
    found : pyarrow.Schema
        The schema, with timestamps of 96 bits in UTC.
    located : mapping of str to str
        Names of the columns in the file, as of `ColumnsToRead.located`.
    encoded : list of str
        Names in the file of columns that are read as dictionaries.
    names : list of str
        Columns and fields that are read.
    flat : list of int
        Numbers of those leaves among them that have one value in each row.
    int96 : list of str
        Those leaves among them that have timestamps in 96 bits.
    """

    stored: pa.Schema
    leaves: Any
    found: pa.Schema
    located: Mapping[str, str]
    encoded: list[str]
    names: list[str]
    flat: list[int]
    int96: list[str]

    @classmethod
    def of(cls, file: LogFile, opened: Any, columns: ColumnsToRead) -> "_Layout":
        """Return the layout of an open file."""
        stored, leaves = opened.schema_arrow, opened.metadata.schema
        last = columns.memory.layout
        if isinstance(last, cls) and last.leaves.equals(leaves) and last.stored.equals(stored):
            columns.warn_of_others(last.found, file.name)
            return last
        found = _with_instants(opened)
        located = columns.located(found, file.name)
        # A file without any of the columns still has a number of rows: its narrowest column is read for that.
        in_file = list(dict.fromkeys(located.values())) or narrowest(plain_schema(found))
        names = _names_to_read(columns, located, found, in_file)
        layout = cls(
            stored,
            leaves,
            found,
            located,
            encoded=sorted({located[name] for name in columns.dictionary_columns if name in located}),
            names=names,
            flat=_flat_leaves(opened.metadata, names),
            int96=_int96_leaves(opened.metadata, found.names, in_file, names),
        )
        columns.memory.layout = layout
        return layout


def _names_to_read(
    columns: ColumnsToRead, located: Mapping[str, str], found: pa.Schema, in_file: Sequence[str]
) -> list[str]:
    """Names of columns in a file that are read, and dotted ones of fields where these alone are wanted."""
    in_part = {located[name]: kind for name, kind in columns.in_part.items() if name in located}
    return [
        path
        for name in in_file
        for path in (
            paths_read(name, in_part[name], plain_type(found.field(name).type)) if name in in_part else [name]
        )
    ]


def _is_in(path: str, names: Iterable[str]) -> bool:
    """Return whether a leaf is, or lies in, something of these names."""
    return any(f"{path}.".startswith(f"{name}.") for name in names)


def _int96_leaves(
    metadata: Any, columns: Collection[str], in_file: Collection[str], names: Collection[str]
) -> list[str]:
    """Leaves that are read and have timestamps in 96 bits."""
    leaves = map(metadata.schema.column, range(metadata.num_columns))
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [
        path
        for path in paths
        if _is_in(path, names) and max((name for name in columns if _is_in(path, [name])), key=len) in in_file
    ]


def _is_of_spark(metadata: Any) -> bool:
    """Return whether Spark has written a file, whose timestamps in 96 bits are microseconds."""
    of_spark = any(key.startswith(b"org.apache.spark.") for key in metadata.metadata or ())
    return of_spark and metadata.created_by.startswith("parquet-mr")


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(column.type):
        for field in column.flatten():
            yield from _leaves(field)
    elif pa.types.is_nested(column.type):
        yield from _leaves(column.flatten())
    else:
        yield column


def _row_in_file(metadata: Any, run: Sequence[int], row: int) -> int:
    """Return the number in the file of a row, which is counted within row groups."""
    rows: list[int] = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    for group in run:
        if row < rows[group]:
            break
        row -= rows[group]
    return row + sum(rows[:group])


def _with_instants(opened: Any) -> pa.Schema:
    """Return the schema of a file with timestamps in 96 bits as instants in UTC, which writers mean by them."""
    columns, stored = opened.metadata.schema, opened.schema_arrow
    leaves = [columns.column(number).physical_type for number in range(opened.metadata.num_columns)]
    if "INT96" not in leaves:
        return stored
    left = iter(leaves)
    return pa.schema([field.with_type(_of_instants(field.type, left)) for field in stored])


def _of_instants(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """Return a type with instants for timestamps in 96 bits; takes its physical types from those of the leaves."""
    if isinstance(kind, pa.BaseExtensionType):
        _of_instants(kind.storage_type, leaves)
        return kind
    if pa.types.is_nested(kind):
        return with_fields(
            kind, [field.with_type(_of_instants(field.type, leaves)) for field in fields_of(kind)]
        )
    is_int96 = next(leaves, None) == "INT96"
    return pa.timestamp(kind.unit, "UTC") if is_int96 and pa.types.is_timestamp(kind) else kind


def _as_in_table(batch: pa.RecordBatch, located: Mapping[str, str]) -> pa.RecordBatch:
    """A batch with the columns of a table by its names for them; one that is read for its rows alone has no name."""
    if not located:
        return pa.RecordBatch.from_arrays(batch.columns, [""])
    return pa.RecordBatch.from_arrays([batch.column(stored) for stored in located.values()], list(located))


def _where_true(
    file: LogFile,
    groups: list[int],
    columns: ColumnsToRead,
    given: Mapping[str, str],
    found: pa.Schema,
    int96_unit: str,
) -> list[int]:
    """Row groups that may hold a row which meets the conditions, by their statistics."""
    known = frozenset(
        name
        for name, wanted in columns.types.items()
        # Arrow looks for statistics of columns by the names that they have in the conditions.
        if given.get(name) == name and found.field(name).type == wanted and _is_ordered(wanted)
    )
    told = [
        condition for condition in columns.where if (expression_columns(condition) or known | {""}) <= known
    ]
    if not told:
        return groups
    import pyarrow.dataset as ds  # slow to load, and mostly not needed

    asked = sorted(set[str]().union(*(expression_columns(condition) or known for condition in told)))
    check_statistics(file, groups, asked)
    parquet = ds.ParquetFileFormat(coerce_int96_timestamp_unit=int96_unit)
    fragment = parquet.make_fragment(file.path, file.filesystem)
    subset = fragment.subset(reduce(and_, told), pa.schema([found.field(name) for name in sorted(known)]))
    left = {group.id for group in subset.row_groups}
    return [group for group in groups if group in left]


def check_statistics(file: LogFile, groups: Iterable[int], names: Sequence[str]) -> None:
    """Read a row of each row group: a reader refuses forged statistics, where what only asks for them ends the process.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If the file or what its footer says of these columns is damaged.
    """
    with pq.ParquetFile(file.path, filesystem=file.filesystem, buffer_size=_PAGE_BYTES) as reader:
        for group in groups:
            next(reader.iter_batches(1, row_groups=[group], columns=list(names), use_threads=False), None)


def _is_ordered(arrow_type: pa.DataType) -> bool:
    """Return whether the least and the greatest value bound all values; with floats, NaN may be anywhere."""
    types = pa.types
    return bool(
        types.is_integer(arrow_type)
        or types.is_string(arrow_type)
        or types.is_timestamp(arrow_type)
        or types.is_date32(arrow_type)
    )


def _check_rows(metadata: Any, rows_of: Mapping[int, int]) -> None:
    """Check that a footer does not contradict itself on the rows of row groups, given by their numbers."""
    rows = sum(rows_of.values())
    if len(rows_of) == metadata.num_row_groups and rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"its row groups have {rows} rows, but the footer says {metadata.num_rows}")


def _flat_leaves(metadata: Any, names: Collection[str]) -> list[int]:
    """Numbers of the leaves of columns that have one value in each row."""
    return [
        leaf
        for leaf, column in enumerate(map(metadata.schema.column, range(metadata.num_columns)))
        if column.max_repetition_level == 0 and _is_in(column.path, names)
    ]


class _SizesOfGroups:
    """Sizes of row groups, as far as they may exceed what a batch may have.

    Parameters
    ----------
    file : LogFile
    metadata : pyarrow.parquet.FileMetaData
    groups : mapping of int to pyarrow.parquet.RowGroupMetaData
        Row groups that are read.
    names : collection of str
        Columns and fields that are read.
    columns : ColumnsToRead

    Attributes
    ----------
    has_large_chunks : bool
        Whether a column of a row group has more bytes in the file than a batch may have.
    """

    def __init__(
        self,
        file: LogFile,
        metadata: Any,
        groups: Mapping[int, Any],
        names: Collection[str],
        columns: ColumnsToRead,
    ) -> None:
        most = columns.batch_bytes
        large = [
            number
            for number, group in groups.items()
            if (rows := group.num_rows)
            and min(columns.batch_rows, rows) * group.total_byte_size / rows > most
        ]
        self._row_bytes: dict[int, float] = {}
        self.has_large_chunks = False
        if not large:
            return
        # Statistics in the footer are read after a reader has found it sound.
        check_statistics(file, large, list(names))
        paths = [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)]
        leaves = [leaf for leaf, path in enumerate(paths) if _is_in(path, names)]
        for number in large:
            group = groups[number]
            chunks = [group.column(leaf) for leaf in leaves]
            self._row_bytes[number] = sum(chunk.total_uncompressed_size for chunk in chunks) / group.num_rows
            self.has_large_chunks |= any(chunk.total_compressed_size > most for chunk in chunks)

    def row_bytes(self, group: int) -> float:
        """Return how many bytes a row of a row group has, on average, with values of dictionaries once; 1 if few."""
        return max(1.0, self._row_bytes.get(group, 1.0))


def _check_columns(metadata: Any, groups: Mapping[int, Any], flat: Sequence[int]) -> None:
    """Check that leaves have as many values as there are rows, in row groups that have been read.

    The footer's facts on a column's values are not read before: if they are forged, Arrow's reader raises an error, but
    its accessor ends the process.
    """
    for number, group in groups.items():
        rows = group.num_rows
        for leaf in flat if rows else ():
            values = group.column(leaf).num_values
            if values != rows:
                raise pa.ArrowInvalid(
                    f"row group {number} has {rows} rows, but {values} values of column "
                    f"{metadata.schema.column(leaf).path!r}"
                )


def _kept_rows(metadata: Any, groups: Sequence[int], deleted: Int64s) -> pa.BooleanArray:
    """Return which rows of row groups are not among the deleted ones, which are counted in the whole file."""
    ends = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
    kept = []
    for group in groups:
        rows = metadata.row_group(group).num_rows
        of_group = np.ones(rows, bool)
        numbers = deleted - (ends[group] - rows)
        of_group[numbers[(numbers >= 0) & (numbers < rows)]] = False
        kept.append(of_group)
    return pa.array(np.concatenate([np.empty(0, bool), *kept]))


def _runs(groups: Mapping[int, Any]) -> list[list[int]]:
    runs: list[list[int]] = []
    held = 0
    for number, group in groups.items():
        size = group.total_byte_size
        if not runs or held + size > _PREFETCH_BYTES:
            runs.append([])
            held = 0
        runs[-1].append(number)
        held += size
    return runs


class ArrowFormat:
    """Arrow IPC: the file format (Feather V2) is read by record batch, the stream format from its
    beginning."""

    name = "arrow"
    is_columnar = True
    has_columns = True
    counts_rows = False
    has_schema = True
    is_text = False
    pieces_name = "record batches"
    _advice = (
        "The file is truncated, damaged or not an Arrow IPC file, stream or Feather V2 file: write it again, "
        "or take it out of the log"
    )

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with source_faults(file.name, self._advice), self._open(file) as source:
            return plain_schema(self._reader(source).schema)

    def pieces(self, file: LogFile) -> list[int | None]:
        with source_faults(file.name, self._advice), self._open(file) as source:
            reader = self._reader(source)
            return [None] * (
                reader.num_record_batches if isinstance(reader, ipc.RecordBatchFileReader) else 1
            )

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), self._open(file) as source:
            schema = self._reader(source).schema
            names = list(columns.located(schema, file.name)) or narrowest(plain_schema(schema))
            source.seek(0)
            reader = self._reader(source, sorted(map(schema.get_field_index, names)))
            batches: Iterator[pa.RecordBatch]
            if isinstance(reader, ipc.RecordBatchFileReader):
                batches = (
                    reader.get_batch(i)
                    for i in (pieces if pieces is not None else range(reader.num_record_batches))
                )
            else:
                batches = self._streamed(file, source, reader, columns.warnings)
            for batch in batches:
                check_layout(batch)
                yield batch

    @staticmethod
    def _streamed(file: LogFile, source: Any, reader: Any, warnings: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield all batches of a stream, which has no list of them: its end is looked at."""
        read = source.tell()
        for batch in reader:
            yield batch
            read = source.tell()
        end = source.tell()
        if end == read:
            warnings.append(
                f"{file.name} is an Arrow stream without an end-of-stream marker: if its writer was stopped, or the "
                "file cut, batches are missing"
            )
        if end < source.size():
            raise pa.ArrowInvalid(f"{source.size() - end} bytes follow the end of the Arrow stream")

    @staticmethod
    def _open(file: LogFile) -> Any:
        # Never a memory map: a file that another process cuts would end this one with SIGBUS.
        return file.filesystem.open_input_file(file.path)

    @staticmethod
    def _reader(source: Any, fields: list[int] | None = None) -> Any:
        options = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        magic = source.read(6)
        source.seek(0)
        if magic == b"ARROW1":
            return ipc.open_file(source, options=options)
        return ipc.open_stream(source, options=options)
