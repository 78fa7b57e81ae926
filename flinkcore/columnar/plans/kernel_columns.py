"""Columns that kernels take, which come to them by Arrow's C data interface."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from flinkcore._internal.arrow.column_values import MOST_DEPTH, depth_of
from flinkcore._internal.arrow.plain_columns import require_readable
from flinkcore.errors import SchemaError


def require_kernel_columns(fields: Iterable[pa.Field], where: str) -> None:
    """Check names, depths and types of columns.

    Raises
    ------
    SchemaError
        If a name, even of a nested column, has a NUL character, at which it would end, a column nests too much, or
        pyarrow has no arrays of its type.
    """
    for field in fields:
        depth = depth_of(field.type)
        if depth > MOST_DEPTH:
            raise SchemaError(
                f"{field.name!r}, {where}, has {depth} levels of values within values, and at most {MOST_DEPTH} are "
                "taken: unnest it, or leave it out"
            )
        cut = _cut_name(field)
        if cut is not None:
            within = "" if cut == field.name else f" in {field.name!r}"
            raise SchemaError(
                f"the name {cut!r} of {where}{within} has a NUL character, at which names end for Arrow. Rename it, or "
                "leave it out"
            )
        require_readable([field])


def _cut_name(field: pa.Field) -> str | None:
    if "\0" in field.name:
        return str(field.name)
    nested = (_cut_name(field.type.field(at)) for at in range(field.type.num_fields))
    return next((name for name in nested if name is not None), None)
