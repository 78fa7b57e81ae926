"""Values of columns as integers and binaries that sort as they do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s


def has_order(kind: pa.DataType) -> bool:
    """Return whether values of a type have an order here: numbers, text, binaries, booleans and times do."""
    return is_integral(kind) or is_binary(kind) or bool(pa.types.is_decimal128(kind))


def is_integral(kind: pa.DataType) -> bool:
    """Return whether integers of 64 bits can stand for values of a type."""
    types = pa.types
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    return bool(is_time or types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether values of a type are texts or binaries."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind))


def ordered_integers(column: pa.Array) -> Int64s:
    """Return integers that sort as the values of a column, of which `is_integral`; 0 for nulls."""
    types, kind = pa.types, column.type
    if types.is_floating(kind):
        column = column.cast(pa.float64())
    elif types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif types.is_temporal(kind):
        column = column.view(f"int{kind.bit_width}")
    values = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    if types.is_floating(kind):
        # One zero, and one NaN, above infinity; the bits of others are in their order, of negative ones backwards.
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        values = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    if types.is_uint64(kind):
        values = (values ^ np.uint64(1 << 63)).view(np.int64)
    integers: Int64s = values.astype(np.int64, copy=False)
    return integers


def ordered_binaries(column: pa.Array) -> pa.Array:
    """Return binaries that sort as the values of a column of another type; empty ones for nulls."""
    if pa.types.is_decimal128(column.type):
        words = np.frombuffer(column.buffers()[1] or b"", np.uint64)[2 * column.offset :][: 2 * len(column)]
        low, high = words[::2], words[1::2] ^ np.uint64(1 << 63)
        big_endian = np.stack([high, low], axis=1).astype(">u8").tobytes()
        valid = column.is_valid()
        column = pa.Array.from_buffers(pa.binary(16), len(column), [None, pa.py_buffer(big_endian)])
        column = pc.if_else(valid, column.cast(pa.binary()), b"")
    values = column.cast(pa.binary())
    return pc.fill_null(values, b"") if values.null_count else values


def inverted_binaries(values: pa.Array) -> pa.Array:
    """Binaries in the opposite order: with an end, as none begins another one then, and all bits turned around."""
    escaped = pc.replace_substring(values, b"\x00", b"\x00\xff")
    ended = pc.binary_join_element_wise(
        escaped, pa.scalar(b"\x00\x00", pa.binary()), pa.scalar(b"", pa.binary())
    )
    _, offsets, data = ended.buffers()
    turned = ~np.frombuffer(data or b"", np.uint8)
    return pa.Array.from_buffers(
        pa.binary(), len(ended), [None, offsets, pa.py_buffer(turned.tobytes())], offset=ended.offset
    )
