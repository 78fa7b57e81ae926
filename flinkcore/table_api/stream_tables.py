"""Streams of a program as tables of SQL: their columns in DDL, and their rows as logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.common.time import Instant
from flinkcore.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ArgumentTypeError, SchemaError, UnsupportedOperationError
from flinkcore.sql.types.logical_types import BINARIES, TEXTS, LogicalType, type_of

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


def check_declared(schema: pa.Schema, declared: Mapping[str, str]) -> None:
    """Check that columns of a stream are declared with types of their own values; those may have another precision.

    Follows the converters of Flink's DataStructureConverters, which take values of one class for a type.

    Raises
    ------
    SchemaError
        If a column has values of another type.
    """
    for name in filter(declared.__contains__, schema.names):
        try:
            given = sql_type(schema.field(name).type)
            is_taken = _takes(type_of(declared[name].upper()), type_of(given))
        except (UnsupportedOperationError, ValueError):
            continue  # Flink reads the declared type, and has none for the given one
        if not is_taken:
            raise SchemaError(
                f"the column {name!r} of the stream is {given}, and its schema declares {declared[name]}, which takes "
                f"no value of another type. Declare {given}, and CAST({quoted(name)} AS {declared[name]}) in a query"
            )


def _takes(declared: LogicalType, given: LogicalType) -> bool:
    """Return whether a type takes the values of another one, of any precision."""
    roots = {declared.root, given.root}
    if len(roots) > 1 and not roots <= TEXTS and not roots <= BINARIES:
        return False
    children = [[kind for _, kind in each.children] for each in (declared, given)]
    return len(children[0]) == len(children[1]) and all(map(_takes, *children))


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
