"""One plain type per column: what dictionary, view, large and run-end-encoded columns decode to."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import SchemaError


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that a column of this type has once decoded.

    Dictionaries and run-end-encoded columns become their values; large and view strings and binaries become
    string and binary; float16 becomes float32. Every other type, nested ones included, stays.
    """
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return plain_type(arrow_type.value_type)
    if pa.types.is_large_string(arrow_type) or _is_string_view(arrow_type):
        return pa.string()
    if pa.types.is_large_binary(arrow_type) or _is_binary_view(arrow_type):
        return pa.binary()
    if pa.types.is_float16(arrow_type):
        return pa.float32()
    return arrow_type


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types and without metadata."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def plain_column(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Decode a column to its plain type, without copying where it is plain already.

    Parameters
    ----------
    column : pyarrow.Array
        Of any type whose plain type is ``target``, or of type null.
    target : pyarrow.DataType
        A plain type.

    Returns
    -------
    pyarrow.Array
        Of type ``target``.
    """
    if column.type == target:
        return column
    if pa.types.is_dictionary(column.type):
        return plain_column(column.dictionary_decode(), target)
    if pa.types.is_run_end_encoded(column.type):
        return plain_column(pc.run_end_decode(column), target)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), target)
    if pa.types.is_float16(column.type):
        # Older pyarrow has no cast from half floats.
        halves = np.frombuffer(column.buffers()[1], np.float16, len(column), column.offset * 2)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return pa.array(halves.astype(np.float32), pa.float32(), mask=~valid)
    return column.cast(target)


def check_columns(
    found: pa.Schema,
    found_in: str,
    expected: pa.Schema,
    origins: Mapping[str, str],
    columns: Sequence[str],
) -> None:
    """Check that a file has the columns that the log's first file says it has.

    Parameters
    ----------
    found : pyarrow.Schema
        Of the file, encoded or not.
    found_in : str
        The file's name, for the message.
    expected : pyarrow.Schema
        Plain types.
    origins : mapping of str to str
        Column name to the file that gave its expected type.
    columns : sequence of str
        The columns that will be read, all in ``expected``.

    Raises
    ------
    SchemaError
        If a column is missing in the file, or has another plain type; a column of type null fits any type.
    """
    for name in columns:
        wanted = expected.field(name).type
        indices = found.get_all_field_indices(name)
        if len(indices) > 1:
            raise SchemaError(
                f"column {name!r} occurs {len(indices)} times in {found_in}: rename one of them"
            )
        if not indices:
            raise SchemaError(
                f"column {name!r} ({wanted}) of {origins[name]} is missing in {found_in}, which has "
                f"{', '.join(found.names) or 'no columns'}; all files of a log have the same columns"
            )
        actual = plain_type(found.field(indices[0]).type)
        if actual != wanted and not pa.types.is_null(actual):
            raise SchemaError(
                f"column {name!r} is {wanted} in {origins[name]} but {actual} in {found_in}; "
                "write the files anew with one type, or replay them as separate logs"
            )


def _is_string_view(arrow_type: pa.DataType) -> bool:
    # The view types came with pyarrow 16.
    return hasattr(pa.types, "is_string_view") and bool(pa.types.is_string_view(arrow_type))


def _is_binary_view(arrow_type: pa.DataType) -> bool:
    return hasattr(pa.types, "is_binary_view") and bool(pa.types.is_binary_view(arrow_type))
