"""The types that tables of a lake have for columns of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.arrow.unified_types import fits
from flinkcore.errors import SchemaError

TypeOf = Callable[[pa.DataType], pa.DataType | None]

SAME = frozenset(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32()),
    ]
)
"""Types that Spark and tables of a lake have, too."""

WIDENED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
"""Types that Delta tables have for others."""


def has_digits(given: pa.DataType) -> bool:
    """Return whether a type is a decimal as all have it: of 128 bits, not of hundreds or thousands."""
    return bool(pa.types.is_decimal128(given) and given.scale >= 0)


def delta_type(given: pa.DataType) -> pa.DataType | None:
    """Return the type of a Delta table that has all values of a type, or None."""
    types = pa.types
    if given in SAME or has_digits(given):
        return given
    if given in WIDENED:
        return WIDENED[given]
    if types.is_dictionary(given):
        return delta_type(given.value_type)
    if types.is_timestamp(given):
        return pa.timestamp("us", None if given.tz is None else "UTC")
    if types.is_fixed_size_binary(given):
        return pa.binary()
    return _nested(given, delta_type)


def iceberg_type(given: pa.DataType) -> pa.DataType | None:
    """Return the type of an Iceberg table that has all values of a type, or None."""
    if pa.types.is_time(given):
        return pa.time64("us")
    if pa.types.is_fixed_size_binary(given):
        return given
    if given in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()):
        return pa.int32()
    if pa.types.is_dictionary(given):
        return iceberg_type(given.value_type)
    return _nested(given, iceberg_type) or delta_type(given)


def _nested(given: pa.DataType, type_of: TypeOf) -> pa.DataType | None:
    types = pa.types
    if types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given):
        item = type_of(given.value_type)
        return None if item is None else pa.list_(item)
    if types.is_map(given):
        key, item = type_of(given.key_type), type_of(given.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if types.is_struct(given):
        fields = [(field.name, type_of(field.type)) for field in given]
        return None if any(kind is None for _, kind in fields) else pa.struct(fields)
    return None


def new_table_schema(results: pa.Schema, type_of: TypeOf, table: str) -> pa.Schema:
    """Return the columns of a new table for results.

    Raises
    ------
    SchemaError
        If the table's format has no type for a column, or names differ in case only.
    """
    _require_different_names(results, table)
    return pa.schema([(field.name, _type_of(field, type_of, table)) for field in results])


def require_fitting(results: pa.Schema, columns: pa.Schema, type_of: TypeOf, table: str) -> None:
    """Check that a table has columns for results.

    Raises
    ------
    SchemaError
        If a column is not in the table, or of a type there that does not have all its values, or the table has a
        column that takes no null and is not in the results.
    """
    for field in results:
        if field.name not in columns.names:
            raise SchemaError(
                f"column {field.name!r} ({field.type}) of the results is not in {table}, which has "
                f"{', '.join(columns.names)}. Add it to the table"
            )
        wanted = columns.field(field.name).type
        if not fits(_type_of(field, type_of, table), plain_type(wanted), is_exact=True):
            raise SchemaError(
                f"column {field.name!r} of the results is {field.type}, and {wanted} in {table}, which does not have "
                "all of its values. Convert it, or write to a table with another type"
            )
    for field in columns:
        if not field.nullable and field.name not in results.names:
            raise SchemaError(f"column {field.name!r} of {table} takes no null, and is not in the results")


def _type_of(field: pa.Field, type_of: TypeOf, table: str) -> pa.DataType:
    kind = type_of(field.type)
    if kind is None:
        raise SchemaError(
            f"column {field.name!r} of the results is {field.type}, for which {table} has no type. Convert it before "
            "the key, with with_columns(...), or take write_parquet()"
        )
    return kind


def _require_different_names(fields: Iterable[pa.Field], table: str) -> None:
    """Raise a SchemaError if names differ in case only, also in what is nested."""
    found: dict[str, str] = {}
    for field in fields:
        other = found.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise SchemaError(
                f"{other!r} and {field.name!r} of the results differ in case only, which are one column in {table}. "
                "Rename one"
            )
        _require_different_names(map(field.type.field, range(field.type.num_fields)), table)
