"""Streams of a program as tables of SQL: their columns in DDL, and their rows as logs."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.common.time import Instant
from flinkcore.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ArgumentTypeError, UnsupportedOperationError

_TYPES: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.date32(): "DATE",
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def sql_type(kind: pa.DataType) -> str:
    """Return the SQL type of an Arrow type; raise UnsupportedOperationError for another one."""
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP{'_LTZ' if kind.tz else ''}({_DIGITS[kind.unit]})"
    if pa.types.is_time(kind):
        return "TIME(3)"
    if pa.types.is_struct(kind):
        return f"ROW<{', '.join(f'{quoted(field.name)} {sql_type(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{sql_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    raise UnsupportedOperationError(
        f"a column of the type {kind} has no type in SQL. Convert it in the stream"
    )


def quoted(name: str) -> str:
    """Return a name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def path_text(path: str) -> str:
    """Return the name of a table as SQL has it: a name that has no quotes is quoted part by part."""
    return path if "`" in path else ".".join(map(quoted, path.split(".")))


def columns_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the names of columns, each with its type in SQL."""
    return [(field.name, sql_type(field.type)) for field in schema]


def log_of_stream(stream: Any) -> tuple[pa.Schema, Any]:
    """Return the columns of a stream, and the log that has its rows.

    Rows of a log and of a job over columns stay a stream. Elements of a `DataStream` are computed here.

    Raises
    ------
    ArgumentTypeError
        If it is not a stream.
    UnsupportedOperationError
        If an element is a row of another kind than INSERT.
    """
    if isinstance(stream, LogStream):
        result = stream.execute()
        result.discard()  # only its columns are wanted
        return result.schema, stream
    if not isinstance(stream, DataStream):
        raise ArgumentTypeError(f"a table is made of a stream, not of {stream!r:.80}")
    kind = stream.get_type()
    with stream.execute_and_collect() as elements:
        found = list(elements)
    for element in found:
        if isinstance(element, Row) and element.get_row_kind() is not RowKind.INSERT:
            raise UnsupportedOperationError(
                f"an element of the stream is {element.get_row_kind()}{element!r}, and a table of a stream takes "
                "inserted rows alone. Filter them, or name a log of debezium-json by replace_table"
            )
    names, kinds, has_fields = ["f0"], [kind], False
    if isinstance(kind, RowTypeInfo | TupleTypeInfo):
        kinds, has_fields = kind.get_field_types(), True
        names = (
            kind.get_field_names()
            if isinstance(kind, RowTypeInfo)
            else [f"f{number}" for number in range(len(kinds))]
        )
    columns = [
        _column([element[number] if has_fields else element for element in found], each)
        for number, each in enumerate(kinds)
    ]
    table = pa.table(dict(zip(names, columns, strict=True)))
    log = stream._environment.from_event_log(table, timestamp=pc.scalar(0), timestamp_unit="ms")
    return table.schema, log


def _column(values: list[Any], kind: TypeInformation) -> pa.Array:
    if any(isinstance(each, Instant) for each in values):
        ns = [None if each is None else each.seconds * 1_000_000_000 + each.nanos for each in values]
        return pa.array(ns, pa.int64()).cast(pa.timestamp("ns", "UTC"))
    try:
        wanted = kind.to_arrow_type()
    except (AttributeError, NotImplementedError, UnsupportedOperationError):
        return pa.array(values)
    return pa.array(values, wanted)
