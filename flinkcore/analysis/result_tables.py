"""Tables that are given to an analysis, and names of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.plain_columns import decoded_type, plain_column
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.columnar.results.result import JobResult
from flinkcore.errors import ConfigurationError, DataError, SchemaError

NO_KEY: Final = -1
"""In place of the id of a key that is null."""
_MOST_DIGITS: Final = 75
"""Decimals of fewer digits have a difference that is a decimal."""
_UNKNOWN: Final = 2**32 - 1
"""The same in a dictionary of keys."""


def as_table(data: Any, name: str) -> pa.Table:
    """Return the rows of a job's result, or of anything that Arrow makes a table of.

    Columns of dictionaries, views and extension types are given as their values.

    Raises
    ------
    ConfigurationError
        If it is something else; says what it is called.
    """
    if isinstance(data, JobResult):
        return data.to_arrow()
    if isinstance(data, pa.RecordBatch):
        return _plain(pa.Table.from_batches([data]))
    if isinstance(data, pa.Table) or hasattr(data, "__arrow_c_stream__"):
        return _plain(pa.table(data))
    way_out = "for DataFrames of Spark take the function of this name in flinkcore.spark"
    if isinstance(data, str | PathLike):
        way_out = (
            "give the rows of the path, as pyarrow.parquet.read_table(path), deltalake.DeltaTable(path)"
            ".to_pyarrow_table() or catalog.load_table(name).scan().to_arrow() read them"
        )
    raise ConfigurationError(
        f"{name} are a pyarrow.Table, a result of a job, or another object that Arrow makes a table of, not "
        f"{type(data).__qualname__}; {way_out}"
    )


def _plain(table: pa.Table) -> pa.Table:
    for number, field in enumerate(table.schema):
        decoded = field.with_type(decoded_type(field.type))
        if decoded.type != field.type:
            pieces = [plain_column(piece, decoded.type) for piece in table.column(number).chunks]
            table = table.set_column(number, decoded, pa.chunked_array(pieces, decoded.type))
    return table


def cast_to(table: pa.Table, types: pa.Schema, side: str) -> pa.Table:
    """Return a table with other types of its columns; DataError if a value does not fit, which says what has it."""
    columns = []
    for name, kind in zip(types.names, types.types, strict=True):
        try:
            columns.append(table.column(name).cast(kind))
        except pa.ArrowInvalid as failure:
            raise DataError(
                f"a value of the column {name!r} of the {side} cannot be compared: {failure}", column=name
            ) from failure
    return pa.table(columns, schema=types)


def with_room_for(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type of the same kind, of which Arrow finds one that holds all values of both types."""
    types = pa.types
    if types.is_struct(kind) and types.is_struct(other) and _names(kind) == _names(other):
        fields = zip(kind, other, strict=True)
        return pa.struct(
            [(field.name, with_room_for(field.type, of_other.type)) for field, of_other in fields]
        )
    if types.is_map(kind) and types.is_map(other):
        parts = (kind.key_type, other.key_type), (kind.item_type, other.item_type)
        return pa.map_(*(with_room_for(*part) for part in parts))
    for is_list, make in ((types.is_list, pa.list_), (types.is_large_list, pa.large_list)):
        if is_list(kind) and is_list(other):
            return make(with_room_for(kind.value_type, other.value_type))
    if types.is_timestamp(kind) and types.is_timestamp(other):
        return pa.timestamp(kind.unit, "UTC" if kind.tz else None)
    if types.is_integer(kind) and types.is_integer(other) and pa.uint64() in (kind, other) and kind != other:
        return pa.decimal128(20)  # an int64 has no room for the values of a uint64 from 2**63 on
    return kind


def _names(struct: pa.StructType) -> list[str]:
    return [field.name for field in struct]


def differences(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the second of two columns of numbers, of one type, less the first: exact for integers and decimals."""
    kind, exact = first.type, pa.float64()
    if pa.types.is_integer(kind):
        exact = pa.decimal128(20)  # the difference of two integers of 64 bits has up to 20 digits
    elif pa.types.is_decimal(kind) and kind.precision < _MOST_DIGITS:
        exact = pa.decimal256(kind.precision + 1, kind.scale)
    return pc.subtract(second.cast(exact), first.cast(exact))


def check_names(names: Sequence[str], side: str) -> None:
    """Check that each column is there once (ConfigurationError)."""
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise ConfigurationError(f"the {side} have two columns {twice!r}. Rename or drop one of them")


def names_of(names: str | Sequence[str], setting: str) -> tuple[str, ...]:
    """Return one name or several as a tuple; ConfigurationError if there are no names, or one comes twice."""
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found or len(set(found)) < len(found) or not all(isinstance(name, str) for name in found):
        raise ConfigurationError(f"{setting} names one column or several, each once, not {names!r}")
    return found


def names_each_row(table: pa.Table, keys: Sequence[str]) -> bool:
    """Return whether no two rows of a table have the same key; null is a key like any other.

    Raises
    ------
    SchemaError
        If a column is of a type that no key can have.
    """
    dictionary = KeyDictionary(table.schema.remove_metadata(), list(keys))
    n_null = 0
    for batch in table.select(list(keys)).to_batches():
        known = _with_keys(batch)
        n_null += batch.num_rows - known.num_rows
        dictionary.ids(known)
    return len(dictionary) == table.num_rows - n_null and n_null <= 1


def _with_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that have a key: one of a single column cannot be null."""
    return pc.drop_null(batch) if batch.num_columns == 1 else batch


def ids_of_keys(
    first: tuple[str, pa.Table], second: tuple[str, pa.Table], keys: Sequence[str]
) -> tuple[Int64s, Int64s]:
    """Return a number for the key of each row of two tables, by which equal keys are known.

    Parameters
    ----------
    first, second : (str, pyarrow.Table)
        Names of the tables in messages, and the tables.
    keys : sequence of str
        Columns of both. Those of the first table are made of the types of the second.

    Returns
    -------
    (numpy.ndarray of int64, shape (n_rows,)) of each table
        `NO_KEY` where a key of one column is null.

    Raises
    ------
    SchemaError
        If the types differ, and a value of the first does not fit that of the second.
    """
    names = list(keys)
    sides = first[1].select(names), second[1].select(names)
    schema = sides[1].schema.remove_metadata()
    if sides[0].schema.types != schema.types:
        try:
            sides = sides[0].cast(pa.schema(zip(names, schema.types, strict=True))), sides[1]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
            types = (", ".join(map(str, side.schema.types)) for side in sides)
            shown = [
                f"{kinds} in the {name}" for kinds, (name, _) in zip(types, (first, second), strict=True)
            ]
            raise SchemaError(
                f"the keys {', '.join(names)} are {' and '.join(shown)}: {failure}"
            ) from failure
    dictionary = KeyDictionary(schema, names)
    found = []
    for side in sides:
        ids = [np.empty(0, np.int64)]
        for batch in side.to_batches():
            dictionary.ids(_with_keys(batch))
            numbers = dictionary.find(batch).astype(np.int64)
            ids.append(np.where(numbers == _UNKNOWN, NO_KEY, numbers))
        found.append(np.concatenate(ids))
    return found[0], found[1]
