"""Blocks and types of text: those of CSV and JSON lines are inferred from parts of some files, for the whole log."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_values import any_type
from flinkcore._internal.io.text_files import read_block, refuse_other_encodings
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead

BLOCK_BYTES = 8 << 20
"""Large enough for big batches, small enough for a wide job's memory."""

SAMPLED_BYTES = 1 << 20
"""Bytes of further files, and of the end of each file of JSON, from which types are inferred."""

MOST_BLOCKS_OF_LINE = 16
"""The longest line of JSON, or record of CSV with bad ones: it is held in memory as a whole."""


def line_blocks(stream: Any, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Cut a stream into blocks of whole lines, each with its place in the stream."""
    offset = 0
    held: list[bytes] = []
    while data := read_block(stream, block_bytes):
        if offset == 0 and not held:
            refuse_other_encodings(data)
        end = data.rfind(b"\n") + 1
        if end == 0:
            held.append(data)
            if sum(map(len, held)) > MOST_BLOCKS_OF_LINE * BLOCK_BYTES:
                raise pa.ArrowInvalid(f"a line has more than {MOST_BLOCKS_OF_LINE * BLOCK_BYTES:,} bytes")
            continue
        block = b"".join([*held, data[:end]])
        held = [data[end:]]
        yield offset, block
        offset += len(block)
    if block := b"".join(held):
        yield offset, block


def checked_types(
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


def with_inferred_types(
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
        Rows of the first block, or None if it is empty.
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


def inferred_floats(columns: ColumnsToRead, given: Mapping[str, pa.DataType]) -> list[str]:
    """Columns whose whole numbers float64 might round, which nobody has said is all right."""
    return [
        name
        for name, kind in columns.types.items()
        if any_type(kind, pa.types.is_float64) and name not in given
    ]


def may_be_rounded(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether some numbers are so large that not every whole number is a float64."""
    if pa.types.is_float64(column.type):
        return (pc.max(pc.abs(column)).as_py() or 0.0) >= 2.0**53
    if pa.types.is_struct(column.type):
        return any(map(may_be_rounded, column.flatten()))
    return pa.types.is_list(column.type) and may_be_rounded(pc.list_flatten(column))


def is_rounded(digits: str) -> bool:
    # None of so many digits is a float64, and Python refuses to read all of a long number.
    if len(digits) > 400:
        return True
    number = float(digits)
    # JavaScript writes a float in the fewest digits that identify it, and zeros.
    return number != int(digits) and Decimal(repr(number)) != int(digits)


def rounded_number(file: LogFile, name: str, digits: str, exact: str) -> SchemaError:
    shown = digits if len(digits) <= 60 else f"{digits[:57]}..."
    return SchemaError(
        f"{file.name} has a number in column {name!r} that float64, the type found for it, would round: "
        f"{shown}. Give the type with schema={{{name!r}: type}}: {exact} "
        "keeps every digit, as keys need it, and 'double' rounds"
    )


def type_fault(file: LogFile, error: object, columns: ColumnsToRead) -> SchemaError:
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
        "column may be a 'string', and on_bad_row then covers values that are not times"
    )
