"""Sort keys of rows as native kernels compare them: words, and tails of bytes from the first text on.

The least sort key is the first row. Null is less than any value, as in Flink, unless it is said where nulls come; NaN
is greater than all numbers; -0.0 equals 0.0; text goes by its bytes in UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.joined_batches import empty_batch
from flinkcore._internal.arrow.ordered_values import (
    has_order,
    inverted_binaries,
    is_integral,
    ordered_binaries,
    ordered_integers,
)
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore.errors import SchemaError

_SIGN = np.uint64(1 << 63)
_NARROW_BITS = 32
"""Values of so many bits have room for a flag in their word."""

Words = npt.NDArray[np.uint64]


class SortWords(NamedTuple):
    """Sort keys of rows.

    Attributes
    ----------
    words : uint64 array (n, n_words)
    tail_ends : int64 array (n + 1,) or None
    tails : uint8 array or None
    """

    words: Words
    tail_ends: Int64s | None
    tails: npt.NDArray[np.uint8] | None


@dataclass(frozen=True)
class RowRanking:
    """Order of rows by columns.

    Attributes
    ----------
    keys : tuple of SortKey
        The first one counts most.
    nulls_last : tuple of (bool or None)
        For each key, whether nulls come last; None: they are less than any value.
    schema : pyarrow.Schema
        Columns of the rows.
    """

    keys: tuple[SortKey, ...]
    nulls_last: tuple[bool | None, ...]
    schema: pa.Schema

    def check(self, call: str) -> None:
        """Raise a SchemaError if the values of a column have no order."""
        for key in self.keys:
            kind = self.schema.field(key.column).type
            if not has_order(kind):
                raise SchemaError(
                    f"{call} orders rows by {key.column!r}, which is {kind}: numbers, text, binaries, booleans and "
                    "times order rows. Convert the column first"
                )

    @cached_property
    def _in_words(self) -> int:
        """How many of the first columns are words."""
        for number, key in enumerate(self.keys):
            kind = self.schema.field(key.column).type
            if not is_integral(kind) and not pa.types.is_decimal128(kind):
                return number
        return len(self.keys)

    @property
    def has_tails(self) -> bool:
        """Return whether sort keys have tails."""
        return self._in_words < len(self.keys)

    @cached_property
    def n_words(self) -> int:
        """Words of a sort key."""
        return int(self.of(empty_batch(self.schema)).words.shape[1])

    def of(self, rows: pa.RecordBatch) -> SortWords:
        """Return the sort keys of rows."""
        words = [word for number in range(self._in_words) for word in self._words(number, rows)]
        matrix = np.stack(words, axis=1) if words else np.empty((rows.num_rows, 0), np.uint64)
        if not self.has_tails:
            return SortWords(np.ascontiguousarray(matrix), None, None)
        tails = self._tails(rows)
        _, offsets, data = tails.buffers()
        if offsets is None:
            return SortWords(np.ascontiguousarray(matrix), np.zeros(1, np.int64), np.empty(0, np.uint8))
        ends = np.frombuffer(offsets, np.int64)[tails.offset : tails.offset + len(tails) + 1]
        return SortWords(np.ascontiguousarray(matrix), ends, np.frombuffer(data or b"", np.uint8))

    def _nulls_are_last(self, number: int) -> bool:
        given = self.nulls_last[number]
        return self.keys[number].is_descending if given is None else given

    def _words(self, number: int, rows: pa.RecordBatch) -> list[Words]:
        """Words of a column of fixed width: a flag for nulls where there may be some, then the value."""
        key, field = self.keys[number], self.schema.field(self.keys[number].column)
        column = rows.column(key.column)
        if pa.types.is_decimal128(field.type):
            values = _decimal_words(column)
            is_narrow = False
        else:
            values = [ordered_integers(column).view(np.uint64) ^ _SIGN]
            is_narrow = field.type.bit_width <= _NARROW_BITS and not pa.types.is_floating(field.type)
        if key.is_descending:
            values = [~word for word in values]
        if not field.nullable:
            return values
        is_set = column.is_valid().to_numpy(zero_copy_only=False)
        flag = (~is_set if self._nulls_are_last(number) else is_set).astype(np.uint64)
        if is_narrow:
            # The values lie around 2**63: in 33 bits there is room for all, and for the flag above them.
            low = (values[0] - (_SIGN - np.uint64(1 << _NARROW_BITS))) & np.uint64((1 << 34) - 1)
            return [np.where(is_set, low, np.uint64(0)) | flag << np.uint64(40)]
        return [flag, *(np.where(is_set, word, np.uint64(0)) for word in values)]

    def _tails(self, rows: pa.RecordBatch) -> pa.Array:
        parts: list[pa.Array] = []
        for number in range(self._in_words, len(self.keys)):
            key, field = self.keys[number], self.schema.field(self.keys[number].column)
            column = rows.column(key.column)
            if is_integral(field.type) or pa.types.is_decimal128(field.type):
                parts += [_big_endian(word) for word in self._words(number, rows)]
                continue
            if field.nullable:
                is_set = column.is_valid()
                is_first = pc.invert(is_set) if self._nulls_are_last(number) else is_set
                parts.append(pc.if_else(is_first, pa.scalar(b"\x01"), pa.scalar(b"\x00")))
            values = ordered_binaries(column)
            inverted = inverted_binaries(values)
            parts.append(inverted if key.is_descending else _turned(inverted))
        wide = [part.cast(pa.large_binary()) for part in parts]
        empty = pa.scalar(b"", pa.large_binary())
        return wide[0] if len(wide) == 1 else pc.binary_join_element_wise(*wide, empty)


def ranking_of(
    names: Sequence[str],
    descending: Sequence[bool],
    nulls_last: Sequence[bool | None],
    schema: pa.Schema,
) -> RowRanking:
    """Return the order of rows by columns, each with its direction and the place of its nulls."""
    keys = tuple(SortKey(name, is_down) for name, is_down in zip(names, descending, strict=True))
    return RowRanking(keys, tuple(nulls_last), schema)


def _decimal_words(column: pa.Array) -> list[Words]:
    words = np.frombuffer(column.buffers()[1] or b"", np.uint64)[2 * column.offset :][: 2 * len(column)]
    return [words[1::2] ^ _SIGN, words[::2]]


def _big_endian(word: Words) -> pa.Array:
    data = pa.py_buffer(word.astype(">u8").tobytes())
    return pa.Array.from_buffers(pa.binary(8), len(word), [None, data]).cast(pa.binary())


def _turned(inverted: pa.Array) -> pa.Array:
    """Binaries with an end in their own order, of those with all bits turned around."""
    _, offsets, data = inverted.buffers()
    turned = ~np.frombuffer(data or b"", np.uint8)
    return pa.Array.from_buffers(
        pa.binary(), len(inverted), [None, offsets, pa.py_buffer(turned.tobytes())], offset=inverted.offset
    )
