"""CSV and JSON lines: types come from the first block of the first file and hold for the whole log."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from copy import copy
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from flinkcore._internal.arrow.column_values import any_type
from flinkcore._internal.arrow.plain_columns import plain_schema, plain_type
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

    Types are inferred from the first block (8 MiB) of the first file, and every file is read with them. A
    column that is inferred as ``timestamp[s]`` is read as ``timestamp[us]``, so that fractions of a second
    may come later; whole numbers beyond int64 are uint64, if it holds them, and those that float64 cannot distinguish
    from others near them are an error, unless a type is named. Text is UTF-8; of other bytes name the type,
    ``"binary"``. A file that ends within a value is an error; one without a line break at its end, which may be cut, is
    warned of.

    Parameters
    ----------
    delimiter : str
        One character.
    null_values : sequence of str, optional
        Texts that mean null, in every column. By default pyarrow's (empty, "NA", "null", ...), in columns
        that are not strings.
    column_types : mapping of str to pyarrow.DataType or str, optional
        Types (or their names, such as "int64" or "timestamp[us]") that are not to be inferred.
    block_bytes : int
        Size of the blocks that are read at once, 1 MiB to 1 GiB; no row may be longer.
    newlines_in_values : bool
        True if quoted values may hold line breaks, which otherwise are an error; slower.
    """

    name = "csv"
    is_columnar = False
    of_further_files = None
    _advice = (
        "The file is truncated, damaged or not CSV with a header row: repair it or take it out of the log"
    )

    def __init__(
        self,
        delimiter: str = ",",
        null_values: Sequence[str] | None = None,
        column_types: Mapping[str, Any] | None = None,
        newlines_in_values: bool = False,
        block_bytes: int = _BLOCK_BYTES,
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
        self._column_types = _column_types(column_types, self.name, _read_csv_as)
        self._newlines_in_values = newlines_in_values
        if type(block_bytes) is not int or not 1 << 20 <= block_bytes <= 1 << 30:
            raise ConfigurationError(
                f"block_bytes is a number from {1 << 20} to {1 << 30}, not {block_bytes!r}"
            )
        self._block_bytes = block_bytes

    @property
    def declared(self) -> Collection[str]:
        """Names of the columns whose type is given."""
        return self._column_types.keys()

    def schema(self, file: LogFile) -> pa.Schema | None:
        with source_faults(file.name, self._advice):
            try:
                schema, rows = self._first_block(file, {})
            except pa.ArrowInvalid as error:
                if "conversion error" in str(error):  # to a type that was given
                    raise SchemaError(
                        f"{file.name} has a value of another type than column_types says: {error}. Give the type that "
                        "all values have, or repair the value"
                    ) from error
                raise self._row_fault(error) from error
            if schema is None:
                return None
            _check_named(self._column_types, schema.names, file.name)
            return _with_inferred_types(
                plain_schema(schema), self._column_types, rows, partial(self._first_block, file)
            )

    def _first_block(
        self, file: LogFile, types: Mapping[str, pa.DataType]
    ) -> tuple[pa.Schema | None, pa.RecordBatch | None]:
        """Read the schema, None of an empty file, and the first block, None if there are no rows."""
        with file.filesystem.open_input_stream(file.path) as stream:
            rows = CsvRows(stream, self._block_bytes, self._delimiter)
            if rows.is_empty:
                return None, None
            with closing(self._contents(rows, types)) as contents:
                return next(contents), next(contents, None)

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            rows = CsvRows(stream, self._block_bytes, self._delimiter)
            if rows.is_empty:
                columns.warnings.append(empty_file(file.name))
                return
            columns.warn_of_others(rows.names, file.name)
            inferred = _inferred_floats(columns, self._column_types)
            try:
                rows_read = 0
                with closing(self._contents(rows, columns.types)) as contents:
                    next(contents)
                    for batch in contents:
                        rows_read += batch.num_rows
                        for name in [name for name in inferred if _may_be_rounded(batch.column(name))]:
                            self._check_digits(file, name)
                            inferred.remove(name)
                        yield batch
                rows.check_end()
                if not self._newlines_in_values and rows.line_breaks != 1 + rows_read:
                    _check_lines(file, rows_read)
                if rows.ends_within_line:
                    columns.warnings.append(no_last_line_break(file.name))
            except pa.ArrowKeyError:
                # A column in use is missing: the schema of the whole file makes the message.
                found = self.schema(file) or pa.schema([])
                columns.check(found, file.name)
                raise
            except pa.ArrowInvalid as error:
                if "conversion error" in str(error):
                    raise _type_fault(file, error, columns) from error
                raise self._row_fault(error) from error

    def _check_digits(self, file: LogFile, name: str) -> None:
        """Check that a column which was inferred as float64 holds no whole number that such a float rounds."""
        with file.filesystem.open_input_stream(file.path) as stream:
            rows = CsvRows(stream, self._block_bytes, self._delimiter)
            with closing(self._contents(rows, {name: pa.string()})) as contents:
                next(contents)
                for (column,) in contents:
                    for text in column.filter(pc.match_substring_regex(column, _WHOLE)).to_pylist():
                        if _is_rounded(text):
                            raise _rounded(file, name, text, "'string'")

    def _row_fault(self, error: pa.ArrowInvalid) -> pa.ArrowInvalid:
        """Return the error of a row that does not fit into a block, in the terms of the log's settings."""
        if "straddl" not in str(error):
            return error
        return pa.ArrowInvalid(
            f"a row has more than {self._block_bytes:,} bytes, which is right if format_options={{'block_bytes': "
            f"{min(8 * self._block_bytes, 1 << 30)}}} or so says it, or a quote too many"
        )

    def _contents(self, rows: CsvRows, types: Mapping[str, pa.DataType]) -> Generator[Any, None, None]:
        return csv_contents(
            rows,
            pacsv.ReadOptions(use_threads=False, block_size=self._block_bytes),
            pacsv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=self._newlines_in_values,
            ),
            pacsv.ConvertOptions(
                column_types=types or self._column_types,
                include_columns=list(types),
                null_values=self._null_values,
                strings_can_be_null=self._null_values is not None,
            ),
        )


def _check_lines(file: LogFile, rows: int) -> None:
    """Check that a CSV file has a row in each line but the header and blank ones."""
    lines, ends_within_line = 0, False
    with file.filesystem.open_input_stream(file.path) as stream:
        while block := read_block(stream, _BLOCK_BYTES):
            found = _LINE.findall(block)
            lines += len(found) - (ends_within_line and block[:1] not in b"\r\n")
            ends_within_line = block[-1:] not in b"\r\n"
    if lines != 1 + rows:
        raise pa.ArrowInvalid(
            f"it has {rows:,} rows in {lines - 1:,} lines below the header: a value has line breaks, which is right if "
            "format_options={'newlines_in_values': True} says so, or a quote too many"
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
    column_types : mapping of str to pyarrow.DataType or str, optional
        Types that are not to be inferred, including those of keys that inference does not find.
    """

    name = "json"
    is_columnar = False
    _advice = (
        "The file is truncated, damaged or not JSON lines (one object per line): repair it or take it out of "
        "the log"
    )

    def __init__(self, column_types: Mapping[str, Any] | None = None) -> None:
        self._column_types = _column_types(column_types, self.name, _read_json_as)
        self._inferred_bytes = _BLOCK_BYTES

    @property
    def of_further_files(self) -> "JsonFormat":
        further = copy(self)
        further._inferred_bytes = min(_SAMPLED_BYTES, _BLOCK_BYTES)
        return further

    @property
    def declared(self) -> Collection[str]:
        """Names of the columns whose type is given."""
        return self._column_types.keys()

    def schema(self, file: LogFile) -> pa.Schema | None:
        with source_faults(file.name, self._advice):
            with file.filesystem.open_input_stream(file.path) as stream:
                blocks = _line_blocks(stream, self._inferred_bytes)
                offset, block = next((found for found in blocks if not found[1].isspace()), (0, None))
            if block is None:
                return None
            try:
                schema = self._inferred(block)
            except pa.ArrowInvalid as error:
                given = pa.schema(list(self._column_types.items()))
                raise self._fault(file, offset, block, given, "infer", error) from error
            last = _last_lines(file, offset + len(block))
            if last and not last.isspace():
                with suppress(pa.ArrowInvalid):  # an error where it is read
                    schema = unified_schema(schema, self._inferred(last))
            return schema

    def _inferred(self, block: bytes) -> pa.Schema:
        found = _parse(block, pa.schema(list(self._column_types.items())), "infer")
        schema = _with_inferred_types(
            plain_schema(found.schema),
            self._column_types,
            found,
            lambda types: _parse(block, pa.schema(list(types.items())), "ignore"),
        )
        # To a struct that is given, Arrow adds the fields that it finds.
        return pa.schema(
            [field.with_type(self._column_types.get(field.name, field.type)) for field in schema]
        )

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            is_empty = True
            inferred = _inferred_floats(columns, self._column_types)
            others = (
                None
                if columns.known is None
                else OtherKeys(columns.known, self._column_types, self._inferred)
            )
            for offset, block in _line_blocks(stream, _BLOCK_BYTES):
                try:
                    if block.isspace():
                        if others is not None:
                            others.skip(block)
                        continue
                    is_empty = False
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


def _is_compressed(path: str) -> bool:
    """Return whether Arrow decompresses the file, as its name says."""
    return path.endswith((".br", ".bz2", ".gz", ".lz4", ".zst"))


def _column_types(
    given: Mapping[str, Any] | None, format: str, read_as: Callable[[pa.DataType], object]
) -> dict[str, pa.DataType]:
    """Return given types as a log has them; `read_as` lets Arrow refuse those that it does not read from the format."""
    if given is not None and not isinstance(given, Mapping):
        raise ConfigurationError(
            f"column_types is a mapping of columns to types, such as {{'zip': 'string'}}, not {given!r}"
        )
    types = {}
    for name, wanted in (given or {}).items():
        try:
            named = pa.type_for_alias(wanted) if isinstance(wanted, str) else wanted
        except ValueError as error:
            raise ConfigurationError(
                f"column_types: {wanted!r} of column {name!r} is not an Arrow type"
            ) from error
        if not isinstance(name, str) or not isinstance(named, pa.DataType):
            raise ConfigurationError(f"column_types: {wanted!r} of column {name!r} is not an Arrow type")
        types[name] = plain_type(named)
        try:
            read_as(types[name])
        except pa.ArrowNotImplementedError as error:
            raise ConfigurationError(
                f"column_types: column {name!r} cannot be read from {format} as {named}; give another type, such as "
                "'string', and cast the column in with_columns(...)"
            ) from error
    return types


def _read_csv_as(arrow_type: pa.DataType) -> object:
    return pacsv.read_csv(
        pa.BufferReader(b"column\n"),
        convert_options=pacsv.ConvertOptions(column_types={"column": arrow_type}),
    )


def _read_json_as(arrow_type: pa.DataType) -> object:
    return _parse(b"{}\n", pa.schema({"column": arrow_type}), "ignore")


def _check_named(column_types: Mapping[str, pa.DataType], names: Sequence[str], file: str) -> None:
    for name in column_types:
        if name not in names:
            raise ConfigurationError(
                f"column_types names {name!r}, which {file} does not have: {', '.join(names)}"
            )


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
        f"{file.name} has a number in column {name!r} that float64, the inferred type, does not distinguish from "
        f"others near it: {shown}. Give the type with format_options={{'column_types': {{{name!r}: type}}}}: {exact} "
        "keeps every digit, as keys need it, and 'double' rounds"
    )


def _type_fault(file: LogFile, error: object, columns: ColumnsToRead) -> SchemaError:
    read_as = ", ".join(
        f"{name} {wanted} (from {columns.origins[name]})" for name, wanted in columns.types.items()
    )
    return SchemaError(
        f"{file.name} has a value of another type: {error}. Its columns were read as {read_as}; "
        "give the type with format_options={'column_types': {column: type}} ('binary' of text that is not "
        "UTF-8), or repair the value; a time column may be a 'string', and on_bad_row then covers what is not a time"
    )
