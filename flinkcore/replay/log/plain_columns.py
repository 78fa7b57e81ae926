"""One plain type per column: what dictionary, view, large and run-end-encoded columns decode to."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import DataError

MOST_TEXT = 2**31 - 1
"""Bytes of text that the offsets of a plain column can count."""


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that a column of this type has once decoded.

    Dictionaries and run-end-encoded columns become their values; large and view strings and binaries become
    string and binary; float16 becomes float32. Every other type, nested ones included, stays.
    """
    decoded = decoded_type(arrow_type)
    if pa.types.is_large_string(decoded):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(decoded) else decoded


def decoded_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the plain type, but large for large strings and binaries: as such, computed columns take any text."""
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return decoded_type(arrow_type.value_type)
    if _is_string_view(arrow_type):
        return pa.string()
    if _is_binary_view(arrow_type):
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

    Raises
    ------
    DataError
        If its text does not fit; see `fitting_pieces`.
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
    if _is_large(column.type):
        return _with_narrow_offsets(column, target)
    try:
        return column.cast(target)
    except pa.ArrowInvalid as failure:
        raise DataError(f"a column of type {column.type} cannot become {target}: {failure}") from failure


def fitting_pieces(batch: pa.RecordBatch, names: Collection[str], label: str) -> Iterator[pa.RecordBatch]:
    """Cut a batch into pieces whose text fits into plain columns; mostly it is one piece.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    names : collection of str
        The columns that are to be plain.
    label : str
        Where the batch is from, for messages.

    Raises
    ------
    DataError
        If a single value does not fit.
    """
    for name in names:
        size = _text_size(batch.column(name))
        if size <= MOST_TEXT:
            continue
        if batch.num_rows == 1:
            raise DataError(
                f"{label}: a value of the column {name!r} has {size:,} bytes, more than the {MOST_TEXT:,} of a text "
                "column: shorten it where the log is written, or leave the column out by select(...)"
            )
        half = batch.num_rows // 2
        yield from fitting_pieces(batch.slice(0, half), names, label)
        yield from fitting_pieces(batch.slice(half), names, label)
        return
    yield batch


def _text_size(column: pa.Array) -> int:
    """Return at least how many bytes of text a column has once decoded; 0 where it is plain already."""
    if _is_large(column.type):
        starts = _starts(column)
        return int(starts[-1] - starts[0])
    if _is_string_view(column.type) or _is_binary_view(column.type):
        return int(_lengths(column).sum())
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        lengths = _lengths(column.dictionary)
        most = int(lengths.max(initial=0)) * len(column)
        return most if most <= MOST_TEXT else int(lengths[column.indices.drop_null().to_numpy()].sum())
    if pa.types.is_run_end_encoded(column.type) and _is_text(column.type.value_type):
        values = column.values if len(column) > 1 else pc.run_end_decode(column)
        return int(_lengths(values).max(initial=0)) * len(column)
    return 0


def _lengths(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many bytes each value has; 0 for null."""
    lengths: np.ndarray[Any, np.dtype[np.int64]]
    if _is_string_view(column.type) or _is_binary_view(column.type):
        # A view has 16 bytes, and begins with the length.
        words = np.frombuffer(column.buffers()[1], np.int32, 4 * len(column), 16 * column.offset)
        lengths = words[::4].astype(np.int64)
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    else:
        lengths = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _with_narrow_offsets(column: pa.Array, target: pa.DataType) -> pa.Array:
    """A large column as a plain one of the same bytes, wherever they lie; a cast takes those below 2 GiB only."""
    starts = _starts(column)
    first, last = int(starts[0]), int(starts[-1])
    if last - first > MOST_TEXT:
        raise DataError(
            f"a column of type {column.type} has {last - first:,} bytes of text, more than the {MOST_TEXT:,} that "
            f"{target} holds: let fewer values come together"
        )
    validity = pc.is_valid(column).buffers()[1] if column.null_count else None
    data = column.buffers()[2]
    return pa.Array.from_buffers(
        target,
        len(column),
        [
            validity,
            pa.py_buffer((starts - first).astype(np.int32)),
            None if data is None else data.slice(first, last - first),
        ],
        column.null_count,
    )


def _starts(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    offsets = column.buffers()[1]
    if offsets is None or offsets.size == 0:  # so an empty column may come
        return np.zeros(1, np.int64)
    return np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)


def _is_text(arrow_type: pa.DataType) -> bool:
    return plain_type(arrow_type) in (pa.string(), pa.binary())


def _is_large(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type))


def _is_string_view(arrow_type: pa.DataType) -> bool:
    # The view types came with pyarrow 16.
    return hasattr(pa.types, "is_string_view") and bool(pa.types.is_string_view(arrow_type))


def _is_binary_view(arrow_type: pa.DataType) -> bool:
    return hasattr(pa.types, "is_binary_view") and bool(pa.types.is_binary_view(arrow_type))
