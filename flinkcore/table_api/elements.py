"""Elements of a program as tables of SQL: their types as PyFlink infers them, and their rows in Arrow."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore.errors import ArgumentTypeError
from flinkcore.sql.expressions.python_values import arrow_values
from flinkcore.sql.types.logical_types import type_of
from flinkcore.table.types import (
    ArrayType,
    DataType,
    DataTypes,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    RowField,
    RowType,
)
from flinkcore.table.udf import type_text

_INFERRED: Final[Mapping[type, DataType]] = {
    bool: DataTypes.BOOLEAN(),
    int: DataTypes.BIGINT(),
    float: DataTypes.DOUBLE(),
    str: DataTypes.STRING(),
    bytes: DataTypes.BYTES(),
    bytearray: DataTypes.BYTES(),
    Decimal: DataTypes.DECIMAL(38, 18),
    datetime.datetime: DataTypes.TIMESTAMP_LTZ(),
    datetime.date: DataTypes.DATE(),
    datetime.time: DataTypes.TIME(),
}
"""Types of values, as PyFlink infers them."""

_GIVE: Final = "Give DataTypes.ROW([DataTypes.FIELD('name', DataTypes.INT())])"


def table_of_elements(elements: Iterable[Any], schema: Any = None) -> tuple[list[tuple[str, str]], pa.Table]:
    """Return the columns of elements, each with its type in SQL, and their rows.

    Parameters
    ----------
    elements : iterable
        Rows: tuples, lists, dictionaries and `Row`; or values of one column.
    schema : DataType or sequence of str, optional
        Type of the rows, or of the one column; or names of the columns, whose types are then inferred.

    Raises
    ------
    ArgumentTypeError
        If the schema is none, a type cannot be inferred, or a value is not of its type.
    """
    rows = list(elements)
    kind = schema if isinstance(schema, DataType) else _inferred_row(rows, _names(schema))
    if not isinstance(kind, RowType):
        kind = RowType(fields=(RowField("value", kind),))
    columns: list[tuple[str, str]] = []
    arrays: list[pa.Array] = []
    for number, field in enumerate(kind):
        text = type_text(field.data_type)
        values = [_value(_field(row, number, field.name, len(kind)), field.data_type) for row in rows]
        columns.append((field.name, text))
        sql = type_of(text)
        try:
            arrays.append(pa.array(arrow_values(values, sql), sql.arrow))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ArgumentTypeError(f"a value of the column {field.name!r} is not {text}: {error}") from error
    return columns, pa.table(dict(zip(kind.names, arrays, strict=True)))


def _names(schema: Any) -> list[str]:
    if schema is None:
        return []
    if isinstance(schema, list | tuple) and all(isinstance(name, str) for name in schema):
        return list(schema)
    raise ArgumentTypeError(
        f"the schema of elements is a list of names or a type, not {schema!r:.80}. {_GIVE}"
    )


def _field(row: Any, number: int, name: str, n_fields: int) -> Any:
    """Return a field of a row, which may be the value of its only field."""
    if isinstance(row, Mapping):
        return row.get(name)
    if isinstance(row, Row | tuple | list):
        if len(row) != n_fields:
            raise ArgumentTypeError(
                f"the row {row!r:.80} has {len(row)} values, and there are {n_fields} columns"
            )
        return row[number]
    if n_fields != 1:
        raise ArgumentTypeError(f"the element {row!r:.80} is not a row of {n_fields} columns")
    return row


def _value(value: Any, kind: DataType) -> Any:
    """Return a value as Arrow takes it."""
    if isinstance(kind, LocalZonedTimestampType) and isinstance(value, datetime.datetime):
        return value.astimezone()  # without a zone, it is of that of the process
    if isinstance(kind, DecimalType) and isinstance(value, Decimal):
        return kind.rounded(value)
    if isinstance(kind, ArrayType) and value is not None:
        return [_value(each, kind.element_type) for each in value]
    if isinstance(kind, MapType) and value is not None:
        return {_value(key, kind.key_type): _value(each, kind.value_type) for key, each in value.items()}
    if isinstance(kind, RowType) and value is not None:
        fields = enumerate(kind)
        return {
            each.name: _value(_field(value, number, each.name, len(kind)), each.data_type)
            for number, each in fields
        }
    return value


# ---- types of values


def _inferred_row(rows: Sequence[Any], names: Sequence[str]) -> RowType:
    """Return the type of rows; columns without names have those of their rows, or ``_1``, ``_2``, ...."""
    if not rows:
        raise ArgumentTypeError(f"the types of no elements are not known. {_GIVE}")
    first = rows[0]
    if isinstance(first, Mapping):
        own = sorted(dict.fromkeys(name for row in rows for name in row))
    elif isinstance(first, Row | tuple | list):
        own = [f"_{number + 1}" for number in range(len(first))]
        if isinstance(first, Row) and first._fields is not None:
            own = list(first._fields)
    else:
        own = ["_1"]
    fields = []
    for number, name in enumerate(own):
        given = names[number] if number < len(names) and not isinstance(first, Mapping) else name
        values = [_field(row, number, name, len(own)) for row in rows]
        fields.append(RowField(given, _inferred(values, given)))
    return RowType(fields=tuple(fields))


def _inferred(values: Iterable[Any], name: str) -> DataType:
    """Return the type of values, of which some may be None."""
    found = [value for value in values if value is not None]
    if not found:
        raise ArgumentTypeError(
            f"the type of the column {name!r} is not known, for it has no value but None. {_GIVE}"
        )
    kinds = {type(value) for value in found}
    if kinds <= {list}:
        return DataTypes.ARRAY(_inferred((each for value in found for each in value), name))
    if kinds <= {dict}:
        keys, each = ([part for value in found for part in of(value)] for of in (dict.keys, dict.values))
        return DataTypes.MAP(_inferred(keys, name), _inferred(each, name))
    if kinds <= {tuple, Row}:
        return _inferred_row(found, ())
    inferred = {_INFERRED.get(kind) for kind in kinds}
    if len(inferred) > 1 or None in inferred:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ArgumentTypeError(
            f"the column {name!r} has values of {shown}, which have no type in common. {_GIVE}"
        )
    return inferred.pop()  # type: ignore[return-value]
