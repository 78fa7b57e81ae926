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
        found, column = schema.field(key).type, f"pyarrow.compute.field({key!r})"
        if pa.types.is_null(found):
            raise SchemaError(f"key column {key!r} has no type: {untyped_advice(key)}") from error
        if not pa.types.is_list(found):
            made = f"{column}.cast('string')"
        elif pa.types.is_string(found.value_type):
            made = f"pyarrow.compute.binary_join({column}, ',')"
        else:
            made = f"pyarrow.compute.list_element({column}, 0)"
        raise SchemaError(
            f"key column {key!r} is {found}, which cannot be a key; key by what tells the events apart in it, such as "
            f".with_columns(key={made}).key_by('key')"
        ) from error
