"""CSV with a header row, as a format of logs."""

import codecs
import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.io.text_files import (
    CsvRows,
    csv_contents,
    empty_file,
    no_last_line_break,
    read_block,
)
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats import text_formats
from flinkcore.log.formats.bad_records import (
    Record,
    SoundRecords,
    examined,
    records_of,
    rows_with_bad_records,
)
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults
from flinkcore.log.formats.text_formats import (
    checked_types,
    inferred_floats,
    is_rounded,
    line_blocks,
    may_be_rounded,
    rounded_number,
    type_fault,
    with_inferred_types,
)

_LINE = re.compile(rb"[^\r\n]+")
_WHOLE = r"^\s*[+-]?\d{16,}\s*$"
"""Numbers of fewer digits are all told apart by float64."""
_DELIMITER = re.compile(r'(?![\r\n"])[\x01-\x7f]')


class CsvFormat:
    """CSV with a header row.

    Types are inferred from the first block (8 MiB) of the first file and the beginnings (1 MiB) of up to 15 others that
    are spread over the log, and every file is read with them: a column of numbers in one and of text in another is
    text. A column that is inferred as ``timestamp[s]`` is read as ``timestamp[us]``, so that fractions of a second
    may come later; whole numbers beyond int64 are uint64, if it holds them, and those that float64 would round to
    another number are an error, unless a type is given. Text is UTF-8, unless ``encoding`` says otherwise; for bytes
    that are not text give the type ``"binary"``. A file that ends within a value is an error; one without a line break
    at its end, which may be cut, is warned of.

    Parameters
    ----------
    delimiter : str
        One character.
    null_values : sequence of str, optional
        Texts that mean null, in every column. By default pyarrow's (empty, "NA", "null", ...), in columns
        that are not strings.
    newlines_in_values : bool
        True if quoted values may hold line breaks, which otherwise are an error; slower.
    block_bytes : int
        Size of the blocks that are read at once, 1 MiB to 1 GiB; no row may be longer.
    encoding : str, optional
        Encoding of the text as Python names it, such as "latin-1", "cp1252" or "utf-16"; UTF-8 by default.
    given : mapping of str to pyarrow.DataType
        Plain types that are not inferred.
    is_lenient : bool
        Whether a record that cannot be read is a row with `BAD_RECORD` and not an error.
    """

    name = "csv"
    is_columnar = False
    has_columns = True
    counts_rows = True
    has_schema = False
    is_text = True
    pieces_name = "files"
    _advice = (
        "The file is truncated, damaged or not CSV with a header row: repair it or take it out of the log"
    )

    def __init__(
        self,
        delimiter: str = ",",
        null_values: Sequence[str] | None = None,
        newlines_in_values: bool = False,
        block_bytes: int = text_formats.BLOCK_BYTES,
        encoding: str | None = None,
        *,
        given: Mapping[str, pa.DataType] | None = None,
        is_lenient: bool = False,
    ) -> None:
        if not isinstance(delimiter, str) or not _DELIMITER.fullmatch(delimiter):
            raise ConfigurationError(
                f"delimiter is one character of ASCII, no quote or line break, not {delimiter!r}"
            )
        if null_values is not None and (
            isinstance(null_values, str)
            or not isinstance(null_values, Collection)
            or not all(isinstance(text, str) for text in null_values)
        ):
            raise ConfigurationError(f"null_values is a sequence of texts, not {null_values!r}")
        if not isinstance(newlines_in_values, bool):
            raise ConfigurationError(f"newlines_in_values is True or False, not {newlines_in_values!r}")
        self._delimiter = delimiter
        self._null_values = None if null_values is None else list(null_values)
        self._given = checked_types(given or {}, self.name, _read_csv_as)
        self._newlines_in_values = newlines_in_values
        if type(block_bytes) is not int or not 1 << 20 <= block_bytes <= 1 << 30:
            raise ConfigurationError(
                f"block_bytes is a number from {1 << 20} to {1 << 30}, not {block_bytes!r}"
            )
        self._block_bytes = block_bytes
        self._encoding = None if encoding is None else _encoding(encoding)
        self._is_lenient = is_lenient

    def _opened(self, file: LogFile) -> Any:
        """Open a file as a stream of UTF-8."""
        stream = file.filesystem.open_input_stream(file.path)
        return (
            stream if self._encoding is None else pa.transcoding_input_stream(stream, self._encoding, "utf-8")
        )

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        block_bytes = min(text_formats.SAMPLED_BYTES, self._block_bytes) if at_a_glance else self._block_bytes
        read = partial(self._first_block, file, block_bytes)
        with source_faults(file.name, self._advice):
            try:
                schema, rows = read({})
            except pa.ArrowInvalid as error:
                if self._is_lenient:
                    return self._schema_of_sound_records(file, block_bytes)
                if "conversion error" in str(error):  # to a type that was given
                    raise SchemaError(
                        f"{file.name} has a value of another type than schema= says: {error}. Give the type that "
                        "all values have, or repair the value"
                    ) from error
                raise self._row_fault(error) from error
            if schema is None:
                return None
            return with_inferred_types(plain_schema(schema), self._given, rows, read)

    def _schema_of_sound_records(self, file: LogFile, block_bytes: int) -> pa.Schema:
        names = self._names(file)
        records = next(self._blocks_of_records(file, block_bytes), [])

        def read(types: Mapping[str, pa.DataType]) -> Callable[[bytes], pa.Table]:
            return partial(
                self._parsed, names=names, types={**self._given, **types}, wanted=list(types) or names
            )

        sound = b"".join(part.text for part in examined(records, read({})) if isinstance(part, SoundRecords))
        if not sound:
            return pa.schema([(name, self._given.get(name, pa.null())) for name in names])
        rows = read({})(sound)
        return with_inferred_types(
            plain_schema(rows.schema), self._given, rows, lambda types: read(types)(sound)
        )

    def _first_block(
        self, file: LogFile, block_bytes: int, types: Mapping[str, pa.DataType]
    ) -> tuple[pa.Schema | None, pa.RecordBatch | None]:
        """Read the schema, None of an empty file, and the first block, None if there are no rows."""
        with self._opened(file) as stream:
            rows = CsvRows(stream, block_bytes, self._delimiter)
            if rows.is_empty:
                return None, None
            given = {name: kind for name, kind in self._given.items() if name in rows.names}
            with closing(self._contents(rows, types or given, list(types), block_bytes)) as contents:
                return next(contents), next(contents, None)

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), self._opened(file) as stream:
            rows = CsvRows(stream, self._block_bytes, self._delimiter)
            if rows.is_empty:
                columns.warnings.append(empty_file(file.name))
                return
            names = columns.there(rows.names, file.name)
            columns.warn_of_others(pa.schema([(name, pa.null()) for name in rows.names]), file.name)
            inferred = [name for name in inferred_floats(columns, self._given) if name in names]
            read = self._lenient_batches if self._is_lenient else self._strict_batches
            with closing(read(file, rows, names, columns)) as batches:
                for batch in batches:
                    for name in [name for name in inferred if may_be_rounded(batch.column(name))]:
                        self._check_digits(file, name)
                        inferred.remove(name)
                    yield batch

    def _strict_batches(
        self, file: LogFile, rows: CsvRows, names: Sequence[str], columns: ColumnsToRead
    ) -> Generator[pa.RecordBatch, None, None]:
        types = {name: columns.types[name] for name in names}
        try:
            rows_read = 0
            # Without any of the columns, another one has as many rows.
            read = self._contents(rows, types, names or rows.names[:1], self._block_bytes)
            with closing(read) as contents:
                next(contents)
                for batch in contents:
                    rows_read += batch.num_rows
                    yield batch
            rows.check_end()
            if not self._newlines_in_values and rows.line_breaks != 1 + rows_read:
                self._check_lines(file, rows_read)
            if rows.ends_within_line:
                columns.warnings.append(no_last_line_break(file.name))
        except pa.ArrowInvalid as error:
            if "conversion error" in str(error):
                raise type_fault(file, error, columns) from error
            raise self._row_fault(error) from error

    def _lenient_batches(
        self, file: LogFile, rows: CsvRows, names: Sequence[str], columns: ColumnsToRead
    ) -> Generator[pa.RecordBatch, None, None]:
        schema = pa.schema([columns.schema.field(name) for name in names])
        parse = partial(self._parsed, names=rows.names, types=columns.types, wanted=names or rows.names[:1])
        text = b""
        for records in self._blocks_of_records(file, self._block_bytes):
            yield from rows_with_bad_records(examined(records, parse), schema).to_batches()
            text = records[-1].text if records else text
        if text and not text.endswith((b"\n", b"\r")):
            columns.warnings.append(no_last_line_break(file.name))

    def _names(self, file: LogFile) -> list[str]:
        with self._opened(file) as stream:
            return CsvRows(stream, self._block_bytes, self._delimiter).names

    def _blocks_of_records(self, file: LogFile, block_bytes: int) -> Iterator[list[Record]]:
        """Yield the records after the header, block by block; a record that lacks its end belongs to the next block.

        See `_bounded` for one that grows beyond what a line may have.
        """
        line, open_text, is_header = 1, b"", True
        with self._opened(file) as stream:
            for _, block in line_blocks(stream, block_bytes):
                block = open_text + block
                records = records_of(block, line, self._newlines_in_values)
                line += block.count(b"\n")
                if is_header and records:
                    records, is_header = records[1:], False
                open_text = b""
                if records and self._newlines_in_values and records[-1].text.count(b'"') % 2:
                    records[-1:] = _bounded(records[-1])
                    if records[-1].text.count(b'"') % 2:
                        last = records.pop()
                        line, open_text = last.line, last.text
                yield records
            if open_text:
                yield [Record(line, open_text)]

    def _parsed(
        self, text: bytes, names: Sequence[str], types: Mapping[str, pa.DataType], wanted: Sequence[str]
    ) -> pa.Table:
        """Return records as rows with the wanted columns; raise pyarrow.ArrowInvalid if one cannot be read."""
        if text.count(b'"') % 2:
            raise pa.ArrowInvalid("a quote is missing")
        rows = pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(use_threads=False, column_names=names, block_size=len(text) + 1),
            self._parse_options(),
            self._convert_options(types, wanted),
        )
        if not self._newlines_in_values and rows.num_rows != len(_LINE.findall(text)):
            raise pa.ArrowInvalid("a value has line breaks")
        return rows

    def _check_digits(self, file: LogFile, name: str) -> None:
        """Check that a column which was inferred as float64 holds no whole number that such a float rounds."""
        with self._opened(file) as stream:
            rows = CsvRows(stream, self._block_bytes, self._delimiter)
            read = self._contents(rows, {name: pa.string()}, [name], self._block_bytes)
            with closing(read) as contents:
                next(contents)
                for (column,) in contents:
                    for text in column.filter(pc.match_substring_regex(column, _WHOLE)).to_pylist():
                        if is_rounded(text):
                            raise rounded_number(file, name, text, "'string'")

    def _check_lines(self, file: LogFile, rows: int) -> None:
        """Check that a CSV file has a row in each line but the header and blank ones."""
        lines, ends_within_line = 0, False
        with self._opened(file) as stream:
            while block := read_block(stream, text_formats.BLOCK_BYTES):
                found = _LINE.findall(block)
                lines += len(found) - (ends_within_line and block[:1] not in b"\r\n")
                ends_within_line = block[-1:] not in b"\r\n"
        if lines != 1 + rows:
            raise pa.ArrowInvalid(
                f"it has {rows:,} rows in {lines - 1:,} lines below the header: a value has line breaks, which is "
                "right if format_options={'newlines_in_values': True} says so, or a quote too many"
            )

    def _row_fault(self, error: pa.ArrowInvalid) -> pa.ArrowInvalid:
        """Return the error of a row that does not fit into a block, in the terms of the log's settings."""
        if "straddl" not in str(error):
            return error
        return pa.ArrowInvalid(
            f"a row has more than {self._block_bytes:,} bytes, which is right if format_options={{'block_bytes': "
            f"{min(8 * self._block_bytes, 1 << 30)}}} or so says it, or a quote too many"
        )

    def _contents(
        self, rows: CsvRows, types: Mapping[str, pa.DataType], names: Sequence[str], block_bytes: int
    ) -> Generator[Any, None, None]:
        """Yield the schema and the batches of these columns, or of all if none is named."""
        return csv_contents(
            rows,
            pacsv.ReadOptions(use_threads=False, block_size=block_bytes),
            self._parse_options(),
            self._convert_options(types, names),
        )

    def _parse_options(self) -> Any:
        return pacsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=self._newlines_in_values)

    def _convert_options(self, types: Mapping[str, pa.DataType], names: Sequence[str]) -> Any:
        return pacsv.ConvertOptions(
            column_types=types,
            include_columns=list(names),
            null_values=self._null_values,
            strings_can_be_null=self._null_values is not None,
        )


def _bounded(last: Record) -> list[Record]:
    """Return a record that lacks its end, or, if it has more than a line may have, the records that its lines are.

    Its first line then has a quote too many, and those after it are read as if they followed a sound one.
    """
    records = [last]
    while (
        len(records[-1].text) > text_formats.MOST_BLOCKS_OF_LINE * text_formats.BLOCK_BYTES
        and b"\n" in records[-1].text.rstrip()
    ):
        last = records.pop()
        first, _, rest = last.text.partition(b"\n")
        records += [Record(last.line, first + b"\n"), *records_of(rest, last.line + 1, quoted=True)]
    return records


def _encoding(name: object) -> str | None:
    """Return an encoding, or None for UTF-8; raise a ConfigurationError if Python has none of this name."""
    try:
        found = codecs.lookup(name) if isinstance(name, str) else None
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        raise ConfigurationError(
            f"encoding is the name of an encoding of text, such as 'latin-1' or 'utf-16', not {name!r}"
        )
    return None if found.name == "utf-8" else found.name


def _read_csv_as(arrow_type: pa.DataType) -> object:
    return pacsv.read_csv(
        pa.BufferReader(b"column\n"),
        convert_options=pacsv.ConvertOptions(column_types={"column": arrow_type}),
    )
