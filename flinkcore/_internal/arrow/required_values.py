"""Columns whose type says that they, or what they nest, have no nulls."""

from __future__ import annotations

import pyarrow as pa

from flinkcore._internal.arrow.column_values import is_list


def refused_null(column: pa.Array, field: pa.Field) -> str | None:
    """Return the path of the field, or of one nested in it, that takes no null and has one in a column; None if none.

    Old versions of pyarrow write other values in their place into Parquet files.
    """
    if not field.nullable and column.null_count:
        return str(field.name)
    if not _has_required(field.type):
        return None
    for part, values in _parts(column, field.type):
        place = refused_null(values, part)
        if place is not None:
            return f"{field.name}.{place}"
    return None


def refused_null_of(batch: pa.RecordBatch) -> str | None:
    """Return the path of a field of a batch that takes no null and has one; None if none."""
    return next(filter(None, map(refused_null, batch.columns, batch.schema)), None)


def null_fault(place: str, results: str) -> str:
    """Return the message about a null in a field of results, given by the path of `refused_null_of`."""
    problem = f"column {place!r} of {results} has a null, which its type does not take"
    return f"{problem}: declare it nullable, or give a value"


def _has_required(kind: pa.DataType) -> bool:
    """Return whether a type nests a field that takes no null."""
    fields = (kind.field(at) for at in range(kind.num_fields))
    return any(not field.nullable or _has_required(field.type) for field in fields)


def _parts(column: pa.Array, kind: pa.DataType) -> list[tuple[pa.Field, pa.Array]]:
    """Return what a type nests, and the column's values of it where itself is not null."""
    if pa.types.is_struct(kind):
        there = column.drop_null()
        return [(field, there.field(at)) for at, field in enumerate(kind)]
    if is_list(kind):
        return [(kind.value_field, column.flatten())]
    if pa.types.is_map(kind):
        there = column.drop_null()
        first, last = there.offsets[0].as_py(), there.offsets[-1].as_py()
        entries = zip((kind.key_field, kind.item_field), (there.keys, there.items), strict=True)
        return [(field, values.slice(first, last - first)) for field, values in entries]
    return []
