"""Fingerprints of rows that Spark computes twice, by which both passes are compared."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass
class Fingerprint:
    """Number and checksums of the rows of a partition, which do not depend on how batches divide them."""

    rows: int = 0
    checksums: dict[str, list[int]] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch, columns: Sequence[str]) -> None:
        """Add the rows of a batch."""
        self.rows += batch.num_rows
        for name in columns:
            sums = self.checksums.setdefault(name, [])
            content = _content(batch.column(name))
            sums += [0] * (len(content) - len(sums))
            sums[:] = map(zlib.crc32, content, sums)

    def columns_unlike(self, other: Fingerprint) -> list[str]:
        """Return the columns whose values differ."""
        return [name for name, sums in self.checksums.items() if sums != other.checksums.get(name)]


def _content(column: pa.Array) -> list[Any]:
    """Return buffers with the values of a column; each is continued by that of the next batch."""
    types, kind = pa.types, column.type
    if types.is_string(kind) or types.is_binary(kind):
        return [_values(pc.binary_length(column)), _bytes(column.drop_null())]
    if types.is_struct(kind):
        return [_validity(column), *chain.from_iterable(map(_content, column.flatten()))]
    if types.is_list(kind):
        return [_values(pc.list_value_length(column)), *_content(column.flatten())]
    if types.is_boolean(kind):
        return [_values(column.cast(pa.int8()))]
    if types.is_primitive(kind) and kind.bit_width <= 64:
        return [_values(column.view(f"int{kind.bit_width}")), _validity(column)]
    return ["".join(f"{value!r}\n" for value in column.to_pylist()).encode()]


def _bytes(column: pa.Array) -> Any:
    """Return the bytes of all strings, none of which is null, one after the other."""
    _, offsets, data = column.buffers()
    if data is None or len(column) == 0:
        return b""
    bounds = np.frombuffer(offsets, np.int32)
    return memoryview(data)[bounds[column.offset] : bounds[column.offset + len(column)]]


def _validity(column: pa.Array) -> Any:
    return _values(column.is_valid().cast(pa.int8()))


def _values(column: pa.Array) -> Any:
    return pc.fill_null(column, -1).to_numpy()
