"""CSV and JSON lines: types are inferred from parts of some files and hold for the whole log."""

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from flinkcore._internal.arrow.column_values import any_type
from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.arrow.sound_columns import check_values
from flinkcore._internal.arrow.unified_types import unified_schema
from flinkcore._internal.io.text_files import (
    CsvRows,
    csv_contents,
    empty_file,
    json_fault,
    no_last_line_break,
    read_block,
    refuse_other_encodings,
)
from flinkcore.errors import ConfigurationError, FlinkcoreError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.bad_records import (
    BadRecord,
    Record,
    SoundRecords,
    examined,
    records_of,
    rows_with_bad_records,
)
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults
from flinkcore.log.formats.json_keys import OtherKeys

# Large enough for big batches, small enough for a wide job's memory.
_BLOCK_BYTES = 8 << 20
# Bytes of further files of JSON, and of the end of each, from which types are inferred.
_SAMPLED_BYTES = 1 << 20
# For JSON; a line is held in memory as a whole.
_MOST_BLOCKS_OF_LINE = 16
_LINE = re.compile(rb"[^\r\n]+")
_WHOLE = r"^\s*[+-]?\d{16,}\s*$"
"""Numbers of fewer digits are all told apart by float64."""
_DELIMITER = re.compile(r'(?![\r\n"])[\x01-\x7f]')


class CsvFormat:
    """CSV with a header row.

    Types are inferred from the first block (8 MiB) of the first file and the beginnings (1 MiB) of up to 15 others that
    are spread over the log, and every file is read with them: a column of numbers in one and of text in another is
    text. A column that is inferred as ``timestamp[s]`` is read as ``timestamp[us]``, so that fractions of a second
    may come later; whole numbers beyond int64 are uint64, if it holds them, and those that float64 would not tell from
    others near them are an error, unless a type is given. Text is UTF-8, unless ``encoding`` says otherwise; for bytes
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
    _advice = (
        "The file is truncated, damaged or not CSV with a header row: repair it or take it out of the log"
    )

    def __init__(
        self,
        delimiter: str = ",",
        null_values: Sequence[str] | None = None,
        newlines_in_values: bool = False,
        block_bytes: int = _BLOCK_BYTES,
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
        self._given = _checked(given or {}, self.name, _read_csv_as)
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
        block_bytes = min(_SAMPLED_BYTES, self._block_bytes) if at_a_glance else self._block_bytes
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
            return _with_inferred_types(plain_schema(schema), self._given, rows, read)

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
        return _with_inferred_types(
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
            inferred = [name for name in _inferred_floats(columns, self._given) if name in names]
            read = self._lenient_batches if self._is_lenient else self._strict_batches
            with closing(read(file, rows, names, columns)) as batches:
                for batch in batches:
                    for name in [name for name in inferred if _may_be_rounded(batch.column(name))]:
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
                raise _type_fault(file, error, columns) from error
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
        """Yield the records after the header, block by block; a record that lacks its end belongs to the next block."""
        line, open_text, is_header = 1, b"", True
        with self._opened(file) as stream:
            for _, block in _line_blocks(stream, block_bytes):
                block = open_text + block
                records = records_of(block, line, self._newlines_in_values)
                line += block.count(b"\n")
                if is_header and records:
                    records, is_header = records[1:], False
                open_text = b""
                if records and self._newlines_in_values and records[-1].text.count(b'"') % 2:
                    *records, last = records
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
                        if _is_rounded(text):
                            raise _rounded(file, name, text, "'string'")

    def _check_lines(self, file: LogFile, rows: int) -> None:
        """Check that a CSV file has a row in each line but the header and blank ones."""
        lines, ends_within_line = 0, False
        with self._opened(file) as stream:
            while block := read_block(stream, _BLOCK_BYTES):
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


class JsonFormat:
    """JSON lines: one object per line.

    Types are inferred from the first block (8 MiB) of the first file, from the beginnings (1 MiB) of up to 15 others
    that are spread over the log, and from the end of each of these that is not compressed. A key that any of them has,
    also within objects, is a column or field, and every file is read with these types. A key that a line does not have
    is null; one that is found only later is left out, with a warning. A column that is inferred as ``timestamp[s]`` is
    read as ``timestamp[us]``; whole numbers are read, or refused, as in CSV.

    Parameters
    ----------
    given : mapping of str to pyarrow.DataType
        Plain types that are not inferred, also of keys that are not found where types are inferred.
    is_lenient : bool
        Whether a line that cannot be read is a row with `BAD_RECORD` and not an error.
    """

    name = "json"
    is_columnar = False
    has_columns = False
    counts_rows = True
    has_schema = False
    # Numbers are not, and text that is a time in one file need not be one in another.
    is_text = False
    _advice = (
        "The file is truncated, damaged or not JSON lines (one object per line): repair it or take it out of "
        "the log"
    )

    def __init__(self, *, given: Mapping[str, pa.DataType] | None = None, is_lenient: bool = False) -> None:
        self._given = _checked(given or {}, self.name, _read_json_as)
        self._is_lenient = is_lenient

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with source_faults(file.name, self._advice):
            with file.filesystem.open_input_stream(file.path) as stream:
                blocks = _line_blocks(
                    stream, min(_SAMPLED_BYTES, _BLOCK_BYTES) if at_a_glance else _BLOCK_BYTES
                )
                offset, block = next((found for found in blocks if not found[1].isspace()), (0, None))
            if block is None:
                return None
            try:
                schema = self._inferred(block)
            except pa.ArrowInvalid as error:
                if self._is_lenient:
                    return self._schema_of_sound_lines(block)
                given = pa.schema(list(self._given.items()))
                raise self._fault(file, offset, block, given, "infer", error) from error
            last = _last_lines(file, offset + len(block))
            if last and not last.isspace():
                with suppress(pa.ArrowInvalid):  # an error where it is read
                    schema = unified_schema(schema, self._inferred(last))
            return schema

    def _schema_of_sound_lines(self, block: bytes) -> pa.Schema:
        given = pa.schema(list(self._given.items()))
        schema = given
        for part in examined(records_of(block, 1), partial(_parse, schema=given, unexpected="infer")):
            if isinstance(part, SoundRecords):
                schema = unified_schema(schema, self._inferred(part.text))
        return schema

    def _inferred(self, block: bytes) -> pa.Schema:
        found = _parse(block, pa.schema(list(self._given.items())), "infer")
        schema = _with_inferred_types(
            plain_schema(found.schema),
            self._given,
            found,
            lambda types: _parse(block, pa.schema(list(types.items())), "ignore"),
        )
        # To a struct that is given, Arrow adds the fields that it finds.
        return pa.schema([field.with_type(self._given.get(field.name, field.type)) for field in schema])

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            is_empty = True
            inferred = _inferred_floats(columns, self._given)
            others = None if columns.known is None else OtherKeys(columns.known, self._given, self._inferred)
            line = 1
            for offset, block in _line_blocks(stream, _BLOCK_BYTES):
                if block.isspace():
                    if others is not None:
                        others.skip(block)
                    line += block.count(b"\n") if self._is_lenient else 0
                    continue
                is_empty = False
                if self._is_lenient:
                    table = _with_bad_lines(block, line, columns.schema, others)
                    line += block.count(b"\n")
                else:
                    try:
                        table = _parse(block, columns.schema, "ignore", others)
                    except pa.ArrowInvalid as error:
                        raise self._fault(
                            file, offset, block, columns.schema, "ignore", error, columns
                        ) from error
                for name in inferred:
                    if _may_be_rounded(table.column(name)):
                        _check_digits(file, table.field(name), block)
                for batch in table.to_batches():
                    check_values(batch)
                    yield batch
            if is_empty:
                columns.warnings.append(empty_file(file.name))
            if others is not None and (warning := others.warning(file.name)):
                columns.warnings.append(warning)

    def _fault(
        self,
        file: LogFile,
        offset: int,
        block: bytes,
        schema: pa.Schema,
        unexpected: str,
        error: pa.ArrowInvalid,
        columns: ColumnsToRead | None = None,
    ) -> FlinkcoreError:
        """Name the line; Arrow counts rows of the block."""
        line = 1 + _lines_before(file, offset) + _sound_lines(block, schema, unexpected)
        text = re.sub(r"[.]? in row \d+$", "", str(error).removeprefix("JSON parse error: "))
        if text == "Column() changed from object to array":
            return SourceError(
                f"{file.name} cannot be read: line {line} is an array, and not an object. If the file is one array, "
                "write a line per object, such as by jq -c '.[]'",
                file=file.name,
            )
        other_type = re.fullmatch(r"Column\(/(.+)\) (changed from \w+ to \w+)", text)
        if other_type:
            text = f"column {other_type[1]!r} {other_type[2]}"
        elif "Failed to convert" not in text and "is not a valid" not in text:
            return SourceError(f"{file.name} cannot be read: {text} in line {line}. {self._advice}")
        text = f"{text} in line {line}"
        if columns is not None:
            return _type_fault(file, text, columns)
        return SchemaError(
            f"{file.name} has a value of another type: {text}. A column has one type in all of a log: repair the lines"
        )


class _WholeNumber(str):
    """The digits of one in JSON."""


_DECODER = json.JSONDecoder(parse_int=_WholeNumber, strict=False)
_OBJECT = re.compile("{")
_MANY_DIGITS = re.compile(rb"[:,\[\s-]\d{16}")


def _check_digits(file: LogFile, column: pa.Field, block: bytes) -> None:
    """Check that a column of JSON with floats that were inferred holds no whole number that such a float rounds."""
    if _MANY_DIGITS.search(block) is None:
        return
    text, place = block.decode(errors="replace"), 0
    while begin := _OBJECT.search(text, place):
        found, place = _DECODER.raw_decode(text, begin.start())
        for digits in _whole_numbers_of_floats(found.get(column.name), column.type):
            if _is_rounded(digits):
                exact = "pyarrow.decimal128(38, 0)"
                if not pa.types.is_float64(column.type):
                    exact = f"{exact}, or pyarrow.uint64(), in place of the double of {column.type}"
                raise _rounded(file, column.name, digits, exact)


def _whole_numbers_of_floats(value: Any, arrow_type: pa.DataType) -> Iterator[_WholeNumber]:
    if pa.types.is_float64(arrow_type):
        if isinstance(value, _WholeNumber):
            yield value
    elif isinstance(value, dict):
        for field in arrow_type:
            yield from _whole_numbers_of_floats(value.get(field.name), field.type)
    elif isinstance(value, list):
        for item in value:
            yield from _whole_numbers_of_floats(item, arrow_type.value_type)


def _parse(block: bytes, schema: pa.Schema, unexpected: str, others: OtherKeys | None = None) -> pa.Table:
    if fault := json_fault(block, None if others is None else others.scanner):
        raise pa.ArrowInvalid(fault)
    if others is not None:
        others.end_block(block)
    return pajson.read_json(
        pa.BufferReader(block),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _with_bad_lines(block: bytes, line: int, schema: pa.Schema, others: OtherKeys | None) -> pa.Table:
    """Return a block as rows with `BAD_RECORD`, and look for other keys in its sound lines."""
    parse = partial(_parse, schema=schema, unexpected="ignore")
    parts: list[SoundRecords | BadRecord]
    try:
        parts = [SoundRecords(block, parse(block))]
    except pa.ArrowInvalid:
        parts = list(examined(records_of(block, line), parse))
    if others is not None:
        lines = block.split(b"\n")
        for part in parts:
            if isinstance(part, BadRecord):
                lines[part.record.line - line] = b""
        others.look_into(b"\n".join(lines))
    return rows_with_bad_records(parts, schema)


def _sound_lines(block: bytes, schema: pa.Schema, unexpected: str) -> int:
    """Return how many lines of a block can be parsed, up to the first that cannot."""
    lines = block.splitlines(keepends=True)

    def is_faulty(count: int) -> bool:
        start = b"".join(lines[:count])
        try:
            if start and not start.isspace():
                _parse(start, schema, unexpected)
        except pa.ArrowInvalid:
            return True
        return False

    return max(0, bisect_left(range(len(lines) + 1), True, key=is_faulty) - 1)


def _lines_before(file: LogFile, offset: int) -> int:
    lines = 0
    with file.filesystem.open_input_stream(file.path) as stream:
        while offset > 0 and (data := read_block(stream, min(_BLOCK_BYTES, offset))):
            lines += data.count(b"\n")
            offset -= len(data)
    return lines


def _last_lines(file: LogFile, start: int) -> bytes:
    """Return the whole lines at the end of a file that is not compressed, from a place on at most."""
    size = file.size_bytes or 0
    if size <= start or _is_compressed(file.path):
        return b""
    with file.filesystem.open_input_file(file.path) as opened:
        # A line may begin there: what is before the first line break is left out.
        opened.seek(max(start, size - _SAMPLED_BYTES) - 1)
        data = read_block(opened, 1 + _SAMPLED_BYTES)
    return data[data.find(b"\n") + 1 :] if b"\n" in data else b""


def _line_blocks(stream: Any, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Cut a stream into blocks of whole lines, each with its place in the stream."""
    offset = 0
    held: list[bytes] = []
    while data := read_block(stream, block_bytes):
        if offset == 0 and not held:
            refuse_other_encodings(data)
        end = data.rfind(b"\n") + 1
        if end == 0:
            held.append(data)
            if sum(map(len, held)) > _MOST_BLOCKS_OF_LINE * _BLOCK_BYTES:
                raise pa.ArrowInvalid(f"a line has more than {_MOST_BLOCKS_OF_LINE * _BLOCK_BYTES:,} bytes")
            continue
        block = b"".join([*held, data[:end]])
        held = [data[end:]]
        yield offset, block
        offset += len(block)
    if block := b"".join(held):
        yield offset, block


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


def _is_compressed(path: str) -> bool:
    """Return whether Arrow decompresses the file, as its name says."""
    return path.endswith((".br", ".bz2", ".gz", ".lz4", ".zst"))


def _checked(
    given: Mapping[str, pa.DataType], format: str, read_as: Callable[[pa.DataType], object]
) -> Mapping[str, pa.DataType]:
    """Return given types; `read_as` lets Arrow refuse those that it does not read from the format."""
    for name, wanted in given.items():
        try:
            read_as(wanted)
        except pa.ArrowNotImplementedError as error:
            raise ConfigurationError(
                f"schema=: column {name!r} cannot be read from {format} as {wanted}. Give another type, such as "
                "'string', and cast the column in with_columns(...)"
            ) from error
    return given


def _read_csv_as(arrow_type: pa.DataType) -> object:
    return pacsv.read_csv(
        pa.BufferReader(b"column\n"),
        convert_options=pacsv.ConvertOptions(column_types={"column": arrow_type}),
    )


def _read_json_as(arrow_type: pa.DataType) -> object:
    return _parse(b"{}\n", pa.schema({"column": arrow_type}), "ignore")


def _with_inferred_types(
    schema: pa.Schema,
    given: Mapping[str, pa.DataType],
    rows: pa.RecordBatch | pa.Table | None,
    read: Callable[[Mapping[str, pa.DataType]], object],
) -> pa.Schema:
    """Return the schema that Arrow inferred, with other types where later or near values would not keep theirs.

    Parameters
    ----------
    schema : pyarrow.Schema
    given : mapping
        Types that were not inferred.
    rows : pyarrow.RecordBatch or pyarrow.Table, optional
        Rows of the first block, None if there are none.
    read : callable
        Reads the first block once more, with other types of some columns.
    """
    fields = []
    for place, field in enumerate(schema):
        if field.name not in given:
            if pa.types.is_timestamp(field.type) and field.type.unit == "s":
                field = field.with_type(pa.timestamp("us", field.type.tz))
            elif pa.types.is_binary(field.type):
                # It is not UTF-8, which is an error where the column is read, as in every later block.
                field = field.with_type(pa.string())
            elif rows is not None and _may_be_uint64(rows.column(place)):
                uint64 = field.with_type(pa.uint64())
                field = uint64 if _can_read(read, {field.name: uint64.type}) else field
        fields.append(field)
    return pa.schema(fields)


def _may_be_uint64(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether some numbers are beyond those of int64, as hashes are."""
    most = pc.max(column).as_py() if pa.types.is_float64(column.type) else None
    return most is not None and 2.0**63 <= most <= 2.0**64


def _can_read(read: Callable[[Mapping[str, pa.DataType]], object], types: Mapping[str, pa.DataType]) -> bool:
    try:
        read(types)
    except pa.ArrowInvalid:
        return False
    return True


def _inferred_floats(columns: ColumnsToRead, given: Mapping[str, pa.DataType]) -> list[str]:
    """Columns whose whole numbers float64 might round, which nobody has said is all right."""
    return [
        name
        for name, kind in columns.types.items()
        if any_type(kind, pa.types.is_float64) and name not in given
    ]


def _may_be_rounded(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether some numbers are so large that not every whole number is a float64."""
    if pa.types.is_float64(column.type):
        return (pc.max(pc.abs(column)).as_py() or 0.0) >= 2.0**53
    if pa.types.is_struct(column.type):
        return any(map(_may_be_rounded, column.flatten()))
    return pa.types.is_list(column.type) and _may_be_rounded(pc.list_flatten(column))


def _is_rounded(digits: str) -> bool:
    # None of so many digits is a float64, and Python refuses to read all of a long number.
    if len(digits) > 400:
        return True
    number = float(digits)
    # JavaScript writes a float in the fewest digits that identify it, and zeros.
    return number != int(digits) and Decimal(repr(number)) != int(digits)


def _rounded(file: LogFile, name: str, digits: str, exact: str) -> SchemaError:
    shown = digits if len(digits) <= 60 else f"{digits[:57]}..."
    return SchemaError(
        f"{file.name} has a number in column {name!r} that float64, the type found for it, does not tell from "
        f"others near it: {shown}. Give the type with schema={{{name!r}: type}}: {exact} "
        "keeps every digit, as keys need it, and 'double' rounds"
    )


def _type_fault(file: LogFile, error: object, columns: ColumnsToRead) -> SchemaError:
    read_as = ", ".join(
        f"{name} {wanted} (from {columns.origins[name]})" for name, wanted in columns.types.items()
    )
    if "invalid UTF8 data" in str(error):
        return SchemaError(
            f"{file.name} has text that is not UTF-8: {error}. Give its encoding, such as "
            "format_options={'encoding': 'latin-1'}, or the type 'binary' of bytes that are not text with "
            "schema={column: type}"
        )
    return SchemaError(
        f"{file.name} has a value of another type: {error}. Its columns were read as {read_as}; "
        "give the type with schema={column: type}, or repair the value; a time "
        "column may be a 'string', and on_bad_row then covers what is no time"
    )
