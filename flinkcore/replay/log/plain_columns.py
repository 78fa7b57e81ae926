"""One plain type per column: what dictionary, view, large and run-end-encoded columns decode to."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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


def _is_string_view(arrow_type: pa.DataType) -> bool:
    # The view types came with pyarrow 16.
    return hasattr(pa.types, "is_string_view") and bool(pa.types.is_string_view(arrow_type))


def _is_binary_view(arrow_type: pa.DataType) -> bool:
    return hasattr(pa.types, "is_binary_view") and bool(pa.types.is_binary_view(arrow_type))
