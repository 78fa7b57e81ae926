"""JSON lines, as a format of logs."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from flinkcore._internal.arrow.nested_fields import nested_field, with_field_type
from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.arrow.sound_columns import check_values
from flinkcore._internal.arrow.unified_types import unified_schema
from flinkcore._internal.io.text_files import empty_file, json_fault, read_block
from flinkcore.errors import FlinkcoreError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats import text_formats
from flinkcore.log.formats.bad_records import (
    BadRecord,
    SoundRecords,
    examined,
    records_of,
    rows_with_bad_records,
)
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults
from flinkcore.log.formats.json_keys import OtherKeys
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
        Plain types that are not inferred. Their keys are columns even if inference does not find them. A dotted name is
        that of a field, unless lines have a key of this very name.
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
    pieces_name = "files"
    _advice = (
        "The file is truncated, damaged or not JSON lines (one object per line): repair it or take it out of "
        "the log"
    )

    def __init__(self, *, given: Mapping[str, pa.DataType] | None = None, is_lenient: bool = False) -> None:
        self._given = checked_json_types(given or {}, self.name)
        self._is_lenient = is_lenient

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with source_faults(file.name, self._advice):
            with file.filesystem.open_input_stream(file.path) as stream:
                block_bytes = text_formats.BLOCK_BYTES
                if at_a_glance:
                    block_bytes = min(text_formats.SAMPLED_BYTES, block_bytes)
                blocks = line_blocks(stream, block_bytes)
                offset, block = next((found for found in blocks if not found[1].isspace()), (0, None))
            if block is None:
                return None
            try:
                schema = self._inferred(block)
            except pa.ArrowInvalid as error:
                if self._is_lenient:
                    return self._schema_of_sound_lines(block)
                raise self._fault(file, offset, block, self._explicit(block), "infer", error) from error
            last = _last_lines(file, offset + len(block))
            if last and not last.isspace():
                with suppress(pa.ArrowInvalid):  # an error where it is read
                    schema = unified_schema(schema, self._inferred(last))
            return schema

    def _schema_of_sound_lines(self, block: bytes) -> pa.Schema:
        schema = given = self._explicit(block)
        for part in examined(records_of(block, 1), partial(parse_lines, schema=given, unexpected="infer")):
            if isinstance(part, SoundRecords):
                schema = unified_schema(schema, self._inferred(part.text))
        return schema

    def _inferred(self, block: bytes) -> pa.Schema:
        found = parse_lines(block, self._explicit(block), "infer")
        schema = with_inferred_types(
            plain_schema(found.schema),
            self._given,
            found,
            lambda types: parse_lines(block, pa.schema(list(types.items())), "ignore"),
        )
        # To a struct that is given, Arrow adds the fields that it finds.
        columns = {field.name: self._given.get(field.name, field.type) for field in schema}
        for name, kind in self._given.items():
            nested = nested_field(schema, name)
            if nested is not None:
                columns[nested.column] = with_field_type(columns[nested.column], nested.path, kind)
        return pa.schema(list(columns.items()))

    def _explicit(self, block: bytes) -> pa.Schema:
        """Return the given types as a schema of columns: dotted names mean fields, unless lines have such a key."""
        columns = pa.struct([])
        for name, kind in sorted(self._given.items()):
            is_key = "." in name and re.search(re.escape(json.dumps(name).encode()) + rb"\s*:", block)
            try:
                columns = with_field_type(columns, [name] if is_key else name.split("."), kind)
            except ValueError:  # of a column that is given, too, and not as a struct
                columns = with_field_type(columns, [name], kind)
        return pa.schema(list(columns))

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            is_empty = True
            wanted = columns.wanted
            inferred = inferred_floats(columns, self._given)
            others = None if columns.known is None else OtherKeys(columns.known, self._given, self._inferred)
            line = 1
            for offset, block in line_blocks(stream, text_formats.BLOCK_BYTES):
                if block.isspace():
                    if others is not None:
                        others.skip(block)
                    line += block.count(b"\n") if self._is_lenient else 0
                    continue
                is_empty = False
                if self._is_lenient:
                    table = _with_bad_lines(block, line, wanted, others)
                    line += block.count(b"\n")
                else:
                    try:
                        table = parse_lines(block, wanted, "ignore", others)
                    except pa.ArrowInvalid as error:
                        raise self._fault(file, offset, block, wanted, "ignore", error, columns) from error
                for name in inferred:
                    if may_be_rounded(table.column(name)):
                        _check_digits(file, self._without_given(table.field(name)), block)
                for batch in table.to_batches():
                    check_values(batch)
                    yield batch
            if is_empty:
                columns.warnings.append(empty_file(file.name))
            if others is not None and (warning := others.warning(file.name)):
                columns.warnings.append(warning)

    def _without_given(self, column: pa.Field) -> pa.Field:
        """Return a column without the types of the fields that are given."""
        for name in self._given:
            nested = nested_field(pa.schema([column]), name)
            if nested is not None:
                column = column.with_type(with_field_type(column.type, nested.path, pa.null()))
        return column

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
            return type_fault(file, text, columns)
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
            if is_rounded(digits):
                exact = "pyarrow.decimal128(38, 0)"
                if not pa.types.is_float64(column.type):
                    exact = f"{exact}, or pyarrow.uint64(), in place of the double of {column.type}"
                raise rounded_number(file, column.name, digits, exact)


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


def parse_lines(
    block: bytes, schema: pa.Schema, unexpected: str, others: OtherKeys | None = None
) -> pa.Table:
    """Return lines of JSON as rows; raise pyarrow.ArrowInvalid if one cannot be read."""
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
    parse = partial(parse_lines, schema=schema, unexpected="ignore")
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
                parse_lines(start, schema, unexpected)
        except pa.ArrowInvalid:
            return True
        return False

    return max(0, bisect_left(range(len(lines) + 1), True, key=is_faulty) - 1)


def _lines_before(file: LogFile, offset: int) -> int:
    lines = 0
    with file.filesystem.open_input_stream(file.path) as stream:
        while offset > 0 and (data := read_block(stream, min(text_formats.BLOCK_BYTES, offset))):
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
        opened.seek(max(start, size - text_formats.SAMPLED_BYTES) - 1)
        data = read_block(opened, 1 + text_formats.SAMPLED_BYTES)
    return data[data.find(b"\n") + 1 :] if b"\n" in data else b""


def _is_compressed(path: str) -> bool:
    """Return whether Arrow decompresses the file, as its name says."""
    return path.endswith((".br", ".bz2", ".gz", ".lz4", ".zst"))


def checked_json_types(given: Mapping[str, pa.DataType], format: str) -> Mapping[str, pa.DataType]:
    """Return types of keys of JSON; raise ConfigurationError if Arrow does not read one of them."""
    return checked_types(given, format, _read_json_as)


def _read_json_as(arrow_type: pa.DataType) -> object:
    return parse_lines(b"{}\n", pa.schema({"column": arrow_type}), "ignore")
