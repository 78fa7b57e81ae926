"""Batches whose values are what their types say: lengths, offsets and text that came from a file are checked."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa


def check_layout(batch: pa.RecordBatch) -> None:
    """Check everything that a file says of a batch: kernels follow lengths, offsets and indices unchecked.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        As it was read from Arrow's own formats, where buffers are taken as they are.

    Raises
    ------
    pyarrow.ArrowInvalid
        Names the column and what is wrong with it.
    """
    _check_columns(batch, lambda column: False)


def check_values(batch: pa.RecordBatch) -> None:
    """Check what a reader that decodes values does not look at: above all, whether text is UTF-8.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Made by a reader of Arrow's that builds lengths and offsets itself.

    Raises
    ------
    pyarrow.ArrowInvalid
        Names the column and what is wrong with it.
    """
    _check_columns(batch, _is_sound)


def _check_columns(batch: pa.RecordBatch, is_sound: Callable[[pa.Array], bool]) -> None:
    rows = batch.num_rows
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if len(column) != rows:
            raise pa.ArrowInvalid(f"column {name!r} has {len(column)} values in {rows} rows")
        if is_sound(column):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            raise pa.ArrowInvalid(f"column {name!r}: {str(error).removeprefix('Invalid: ')}") from error


def _is_sound(column: pa.Array) -> bool:
    """Return whether no value of a column can be unsound, or it is known quickly that none is."""
    kind = column.type
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_ascii(column)


def _is_ascii(column: pa.Array) -> bool:
    """Return whether a column is text of ASCII bytes only; far cheaper than a check that each value is UTF-8."""
    if not pa.types.is_string(column.type) or len(column) == 0:
        return False
    _, offsets, data = column.buffers()
    if data is None:
        return True
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    start, end = int(ends[0]), int(ends[-1])
    return start == end or int(np.frombuffer(data, np.int8, end - start, start).min()) >= 0
