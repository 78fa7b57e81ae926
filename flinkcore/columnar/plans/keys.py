"""Keys of one stream or of two: the columns and types that are allowed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkcore._internal.arrow.milliseconds import untyped_advice
from flinkcore._native.keys import KeyEncoder
from flinkcore.checkpoint.value_shape import MAX_DEPTH
from flinkcore.columnar.operator_plans.operator_plan import require_column
from flinkcore.errors import ConfigurationError, SchemaError


def check_keys(keys: Sequence[str], schema: pa.Schema, what: str) -> None:
    """Check that rows with these columns have keys.

    Raises
    ------
    SchemaError
        If one is missing, which `what` wants, of a type that no key can have, or nested too deep for a checkpoint.
    """
    for key in keys:
        require_column(key, schema, what)
        require_key_type(key, schema, MAX_DEPTH - (len(keys) > 1))  # several columns are a row of them


def require_alike_keys(
    keys: tuple[tuple[str, ...], tuple[str, ...]], schemas: tuple[pa.Schema, pa.Schema]
) -> None:
    """Check that the keys of two connected streams can be equal.

    Raises
    ------
    ConfigurationError
        If one has more columns.
    SchemaError
        If their types differ.
    """
    if len(keys[0]) != len(keys[1]):
        raise ConfigurationError(
            f"connected streams have keys of {len(keys[0])} and {len(keys[1])} columns ({', '.join(keys[0])}; "
            f"{', '.join(keys[1])}): key both by as many"
        )
    for name1, name2 in zip(*keys, strict=True):
        type1, type2 = schemas[0].field(name1).type, schemas[1].field(name2).type
        if type1 != type2:
            raise SchemaError(
                f"connected streams are keyed by {name1!r}, which is {type1}, and {name2!r}, which is {type2}: no keys "
                f"would be equal; convert one, such as with_columns({name2}=pyarrow.compute.field({name2!r})"
                f".cast({str(type1)!r}))"
            )


def require_key_type(key: str, schema: pa.Schema, max_depth: int = MAX_DEPTH) -> None:
    """Raise a SchemaError that says what to do, unless a column is of a type that keys can have, so deep at most."""
    depth = _struct_depth(schema.field(key).type)
    if depth > max_depth:
        raise SchemaError(
            f"key column {key!r} has structs that lie {depth} deep in each other; {max_depth} are the most that a key "
            "has: key by a part of it, such as .with_columns(key=pyarrow.compute.struct_field(pyarrow.compute.field("
            f"{key!r}), {_way_down(schema.field(key).type, depth - max_depth)})).key_by('key')"
        )
    try:
        KeyEncoder(schema, [key])
    except SchemaError as error:
        found = schema.field(key).type
        if pa.types.is_null(found):
            raise SchemaError(f"key column {key!r} has no type: {untyped_advice(key)}") from error
        part = _part(key, found)
        advice = (
            "give the log a column of text or numbers that distinguishes the events, made before the replay"
            if part is None
            else f"key by the part of it that distinguishes the events, such as {part}.key_by('key')"
        )
        raise SchemaError(f"key column {key!r} is {found}, which cannot be a key; {advice}") from error


def _struct_depth(found: pa.DataType) -> int:
    return (
        1 + max((_struct_depth(field.type) for field in found), default=0) if pa.types.is_struct(found) else 0
    )


def _way_down(found: pa.DataType, levels: int) -> list[int]:
    """The numbers of the fields that lead to the deepest structs, for so many levels."""
    numbers: list[int] = []
    while len(numbers) < levels:
        depths = [_struct_depth(field.type) for field in found]
        numbers.append(depths.index(max(depths)))
        found = found.field(numbers[-1]).type
    return numbers


def _part(key: str, found: pa.DataType) -> str | None:
    """The calls that make a key of a column of another type; None where no expression can."""
    column = f"pyarrow.compute.field({key!r})"
    types = pa.types
    if types.is_struct(found):
        names = [field.name for field in found if _can_be_key(field)]
        return f".with_columns(key=pyarrow.compute.struct_field({column}, {names[0]!r}))" if names else None
    if types.is_map(found):
        if not (types.is_string(found.key_type) and _can_be_key(found.item_field)):
            return None
        return f".with_columns(key=pyarrow.compute.map_lookup({column}, 'name', 'first'))"
    if types.is_list(found) and types.is_string(found.value_type):
        return f".with_columns(key=pyarrow.compute.binary_join({column}, ','))"
    if types.is_list(found) or types.is_large_list(found):
        if not _can_be_key(found.value_field):
            return None
        not_empty = f".filter(pyarrow.compute.list_value_length({column}) > 0)"
        return f"{not_empty}.with_columns(key=pyarrow.compute.list_element({column}, 0))"
    if types.is_nested(found) or not _has_text(found):
        return None
    return f".with_columns(key={column}.cast('string'))"


def _has_text(found: pa.DataType) -> bool:
    try:
        pa.array([], found).cast(pa.string())
    except pa.ArrowException:
        return False
    return True


def _can_be_key(field: pa.Field) -> bool:
    try:
        KeyEncoder(pa.schema([field]), [field.name])
    except SchemaError:
        return False
    return True
