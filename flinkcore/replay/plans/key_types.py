"""What can be a key."""

from __future__ import annotations

import pyarrow as pa

from flinkcore._native.keys import KeyEncoder
from flinkcore.errors import SchemaError
from flinkcore.replay.log.milliseconds import untyped_advice


def require_key_type(key: str, schema: pa.Schema) -> None:
    """Raise a SchemaError that says what to do, unless a column is of a type that keys can have."""
    try:
        KeyEncoder(schema, [key])
    except SchemaError as error:
        found = schema.field(key).type
        if pa.types.is_null(found):
            raise SchemaError(f"key column {key!r} has no type: {untyped_advice(key)}") from error
        raise SchemaError(
            f"key column {key!r} is {found}, which cannot be a key; key by what tells the events apart in it, such as "
            f".with_columns(key={_part(key, found)}).key_by('key')"
        ) from error


def _part(key: str, found: pa.DataType) -> str:
    """An expression that makes a key of a column of another type."""
    column = f"pyarrow.compute.field({key!r})"
    types = pa.types
    if types.is_struct(found):
        names = [field.name for field in found if _can_be_key(field)] or [field.name for field in found]
        return f"pyarrow.compute.struct_field({column}, {names[0]!r})"
    if types.is_map(found):
        return f"pyarrow.compute.map_lookup({column}, 'name', 'first')"
    if not types.is_nested(found):
        return f"{column}.cast('string')"
    if types.is_list(found) and types.is_string(found.value_type):
        return f"pyarrow.compute.binary_join({column}, ',')"
    return f"pyarrow.compute.list_element({column}, 0)"


def _can_be_key(field: pa.Field) -> bool:
    try:
        KeyEncoder(pa.schema([field]), [field.name])
    except SchemaError:
        return False
    return True
