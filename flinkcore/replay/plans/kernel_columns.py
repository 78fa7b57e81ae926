"""Names of columns that kernels are given: in Arrow's C data interface, a NUL ends them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from flinkcore.errors import SchemaError


def require_whole_names(fields: Iterable[pa.Field], where: str) -> None:
    """Check names of columns, and of what they nest.

    Raises
    ------
    SchemaError
        If one has a NUL character.
    """
    for field in fields:
        cut = _cut_name(field)
        if cut is not None:
            within = "" if cut == field.name else f" in {field.name!r}"
            raise SchemaError(
                f"the name {cut!r} of {where}{within} has a NUL character, at which names end for Arrow: rename it, or "
                "leave it out"
            )


def _cut_name(field: pa.Field) -> str | None:
    if "\0" in field.name:
        return str(field.name)
    nested = (_cut_name(field.type.field(at)) for at in range(field.type.num_fields))
    return next((name for name in nested if name is not None), None)
