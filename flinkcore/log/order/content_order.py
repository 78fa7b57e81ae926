"""Numbers that order rows by their content: the same for the same values, wherever a row lies."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.event_log import mix_bytes, mix_lists, mix_words

_Words = npt.NDArray[np.uint64]

_NULL: Final = np.uint64(0x5851F42D4C957F2D)
"""Mixed in after the zero of a null: no number that data has by nature, so that a null and a zero do not look alike."""

_SEED: Final = np.uint64(0xDA942042E4DD58B5)


def content_numbers(batch: pa.RecordBatch) -> Int64s:
    """Number the rows of a batch by the values of its columns.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, n rows
        Columns of any plain types, or dictionaries of these.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        From 0 to 2**59 - 1: a hash of 59 bits, as emissions of events have room for, over the columns in their order.
    """
    numbers = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        _mix(numbers, column)
    numbers >>= np.uint64(5)
    return numbers.view(np.int64)


def content_identities(batch: pa.RecordBatch) -> _Words:
    """Return a hash of 128 bits of the values of each row: rows with the same one are taken for equal.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, n rows
        As of `content_numbers`. Floats are equal if their bits are.

    Returns
    -------
    numpy.ndarray of uint64, shape (n, 2)
    """
    low, high = np.zeros(batch.num_rows, np.uint64), np.full(batch.num_rows, _SEED)
    for column in batch.columns:
        _mix(low, column)
        _mix(high, column)
    return np.stack((low, high), axis=1)


def _mix(numbers: _Words, column: pa.Array) -> None:
    """Mix the values of a column into the numbers of its rows."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        _mix(numbers, column.dictionary_decode())
    elif types.is_null(kind):
        pass
    elif types.is_string(kind) or types.is_binary(kind):
        values = pc.fill_null(column, "" if types.is_string(kind) else b"") if column.null_count else column
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets or bytes(4), np.int32)[values.offset : values.offset + len(values) + 1]
        mix_bytes(numbers, bounds, np.frombuffer(data or b"", np.uint8))
        _mix_nulls(numbers, column)
    elif types.is_struct(kind):
        for child in column.flatten():
            _mix(numbers, child)
        _mix_nulls(numbers, column)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        _mix_items(numbers, column)
        _mix_nulls(numbers, column)
    elif types.is_boolean(kind):
        _mix(numbers, column.cast(pa.int8()))
    elif types.is_decimal128(kind):
        halves = np.frombuffer(column.buffers()[1] or b"", np.uint64)[2 * column.offset :][: 2 * len(column)]
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        for half in (halves[::2], halves[1::2]):
            mix_words(numbers, np.where(valid, half, 0))
        _mix_nulls(numbers, column)
    elif types.is_primitive(kind) and kind.bit_width <= 64:
        integers = column.view(f"int{kind.bit_width}")
        mix_words(numbers, _words(pc.fill_null(integers, 0) if column.null_count else integers))
        _mix_nulls(numbers, column)
    else:
        _mix(numbers, pa.array([repr(value) for value in column.to_pylist()], pa.string()))


def _mix_items(numbers: _Words, column: pa.Array) -> None:
    """Mix the numbers of their items into the numbers of rows."""
    if not len(column):
        return
    width = np.int64 if pa.types.is_large_list(column.type) else np.int32
    bounds = np.frombuffer(column.buffers()[1], width)[column.offset :][: len(column) + 1].astype(np.int64)
    lengths = np.diff(bounds)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    first, last = int(bounds[0]), int(bounds[-1])
    items = np.zeros(last - first, np.uint64)
    for values in (column.keys, column.items) if pa.types.is_map(column.type) else (column.values,):
        _mix(items, values.slice(first, last - first))
    mix_lists(numbers, bounds[:-1] - first, lengths, items)


def _mix_nulls(numbers: _Words, column: pa.Array) -> None:
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        of_nulls = numbers[nulls]
        mix_words(of_nulls, np.full(len(of_nulls), _NULL))
        numbers[nulls] = of_nulls


def _words(column: Any) -> _Words:
    words: _Words = column.to_numpy().astype(np.int64, copy=False).view(np.uint64)
    return words
