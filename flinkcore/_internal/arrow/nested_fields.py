"""Fields of struct columns by dotted names, such as ``payload.after.user_id``; a column of that very name wins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.plain_columns import decoded_type, plain_column, plain_type

Fields: TypeAlias = pa.Schema | pa.StructType

_MOST_SHOWN: Final = 12
_MOST_LOOKED_AT: Final = 10_000


class NestedField(NamedTuple):
    """A field within a struct column.

    Attributes
    ----------
    column : str
        Name of the column.
    path : tuple of str
        Names of the fields from the column to this one.
    type : pyarrow.DataType
    """

    column: str
    path: tuple[str, ...]
    type: pa.DataType


def nested_field(schema: Fields, name: str) -> NestedField | None:
    """Return the field that a dotted name means; None if it means a column, or nothing.

    Parameters
    ----------
    schema : pyarrow.Schema or pyarrow.StructType
        Plain types. Names may have dots themselves: the longest one that begins the dotted name counts first.
    name : str
    """
    if "." not in name or schema.get_field_index(name) >= 0:
        return None
    found = _found(schema, name)
    if found is None:
        return None
    (column, *path), kind = found
    return NestedField(column, tuple(path), plain_type(kind))


def _found(fields: Fields, name: str) -> tuple[list[str], pa.DataType] | None:
    at = fields.get_field_index(name)
    if at >= 0:
        return [name], fields.field(at).type
    for head, rest in _cuts(name):
        at = fields.get_field_index(head)
        if at >= 0 and pa.types.is_struct(fields.field(at).type):
            within = _found(fields.field(at).type, rest)
            if within is not None:
                return [head, *within[0]], within[1]
    return None


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Yield both parts of a dotted name around each dot, the longest first part first."""
    at = name.rfind(".")
    while at >= 0:
        yield name[:at], name[at + 1 :]
        at = name.rfind(".", 0, at)


def named_field(schema: pa.Schema, name: str) -> pa.Field:
    """Return a column, or a field by its dotted name, as a column of that name; raise KeyError for an unknown name."""
    found = nested_field(schema, name)
    return schema.field(name) if found is None else pa.field(name, found.type)


def column_of(schema: pa.Schema, name: str) -> str:
    """Return the column that holds what a name means: for a dotted name of a field the struct column."""
    found = nested_field(schema, name)
    return name if found is None else found.column


def with_nested_fields(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return a schema with those of the names that mean fields as further columns."""
    found = nested_fields(schema, names)
    if not found:
        return schema
    return pa.schema([*schema, *(pa.field(name, each.type) for name, each in found.items())])


def field_values(column: pa.Array, path: Iterable[str]) -> pa.Array:
    """Return the values of a field of a struct column, null where a struct around it is null."""
    for name in path:
        if not pa.types.is_struct(column.type):  # such as a dictionary of structs
            column = plain_column(column, decoded_type(column.type))
        column = pc.struct_field(column, column.type.get_field_index(name))
    return column


def named_columns(
    batch: pa.RecordBatch, names: Sequence[str], fields: Mapping[str, NestedField]
) -> pa.RecordBatch:
    """Return columns of a batch, of which some are fields of its structs, encoded as they are there.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    names : sequence of str
        Names of columns, and of `fields`.
    fields : mapping of str to NestedField
        By dotted name.
    """
    arrays = [
        field_values(batch.column(fields[name].column), fields[name].path)
        if name in fields
        else batch.column(name)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def nested_fields(schema: pa.Schema, names: Iterable[str]) -> dict[str, NestedField]:
    """Return those of the names that mean fields, with these."""
    return {name: found for name in names if (found := nested_field(schema, name)) is not None}


def with_field_columns(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return a table of plain types with those of the names that mean nested fields as further columns."""
    fields = nested_fields(table.schema, _dotted(names))
    if not fields:
        return table
    structs = table.select(list({field.column: None for field in fields.values()}))
    batches = [named_columns(batch, list(fields), fields) for batch in structs.to_batches()]
    schema = pa.schema([(name, field.type) for name, field in fields.items()])
    made = pa.Table.from_batches(batches, schema)
    for name in fields:
        table = table.append_column(name, made.column(name))
    return table


def _dotted(names: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and "." in name))


def with_field_type(kind: pa.StructType, path: Sequence[str], given: pa.DataType) -> pa.StructType:
    """Return a struct type in which the field at a path has another type; fields that it lacks come last.

    Raises
    ------
    ValueError
        If a field on the path is not a struct.
    """
    name, *below = path
    types = {field.name: field.type for field in kind}
    if below:
        within = types.get(name, pa.struct([]))
        if not pa.types.is_struct(within):
            raise ValueError(f"{name!r} is {within} and not a struct")
        given = with_field_type(within, below, given)
    return pa.struct(list((types | {name: given}).items()))


def struct_of_paths(kind: pa.StructType, paths: Iterable[tuple[str, ...]]) -> pa.StructType:
    """Return a struct type with the fields alone to which paths lead, in its order."""
    within: dict[str, list[tuple[str, ...]]] = {}
    for name, *rest in paths:
        within.setdefault(name, []).append(tuple(rest))
    return pa.struct(
        [
            field
            if not all(within[field.name])
            else field.with_type(struct_of_paths(field.type, within[field.name]))
            for field in kind
            if field.name in within
        ]
    )


def paths_read(name: str, wanted: pa.DataType, stored: pa.DataType) -> list[str]:
    """Return the dotted names of what is to be read of a stored column: itself, or some fields if it has others.

    Parameters
    ----------
    name : str
        Name of the stored column.
    wanted, stored : pyarrow.DataType
        Plain types. Of structs, fields go by their names.
    """
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(stored)):
        return [name]
    there = {field.name: field.type for field in stored}
    shared = [field for field in wanted if field.name in there]
    parts = [paths_read(f"{name}.{field.name}", field.type, there[field.name]) for field in shared]
    is_whole = len(shared) == len(there) and all(
        part == [f"{name}.{field.name}"] for part, field in zip(parts, shared, strict=True)
    )
    # A struct without any wanted field is read for its number of rows.
    return [name] if is_whole or not shared else [path for part in parts for path in part]


# ---- names that mean nothing ----


def unknown_name(schema: Fields, name: str) -> str:
    """Return sentences on a name that means neither a column nor a field: which part is missing, what is similar.

    They begin with a space, and are empty if there is nothing to say.
    """
    told = [each for each in (_missing_level(schema, name), _similar(schema, name)) if each]
    return "".join(f" {sentence}" for sentence in told)


def _missing_level(schema: Fields, name: str) -> str | None:
    """Say at which level a dotted name ends to mean something."""
    for head, rest in _cuts(name):
        found = _found(schema, head)
        if found is None:
            continue
        kind, step = found[1], rest.partition(".")[0]
        if not pa.types.is_struct(kind):
            return f"{head!r} is {kind} and not a struct, so it has no field {step!r}."
        names = [field.name for field in kind]
        more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
        return f"The struct {head!r} has no field {step!r}: {', '.join(names[:_MOST_SHOWN]) or 'none'}{more}."
    return None


def _similar(schema: Fields, name: str) -> str | None:
    """Ask for the fields of the last name, whatever its case, or else the names that look like it."""
    from difflib import get_close_matches

    names = [each for each in dict.fromkeys(_all_names(schema)) if not name.startswith(f"{each}.")]
    last = name.rpartition(".")[2]
    same = [each for each in names if each != name and each.rpartition(".")[2].casefold() == last.casefold()]
    same.sort(key=lambda each: each.rpartition(".")[2] != last)
    by_folded: dict[str, list[str]] = {}
    for each in names:
        by_folded.setdefault(each.casefold(), []).append(each)
    near = same or [
        each for folded in get_close_matches(name.casefold(), by_folded, 3, 0.8) for each in by_folded[folded]
    ]
    return f"Did you mean {' or '.join(map(repr, near[:3]))}?" if near else None


def _all_names(schema: Fields) -> list[str]:
    """Return the names of columns and fields, those of few levels first."""
    names: list[str] = []
    level: list[tuple[str, Fields]] = [("", schema)]
    while level and len(names) < _MOST_LOOKED_AT:
        below = []
        for prefix, fields in level:
            for field in fields:
                if field.name.startswith("__flinkcore_"):
                    continue
                names.append(f"{prefix}{field.name}")
                if pa.types.is_struct(field.type):
                    below.append((f"{names[-1]}.", field.type))
        level = below
    return names
