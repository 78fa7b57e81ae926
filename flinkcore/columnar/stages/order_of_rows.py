"""The order of rows that have come up at one timestamp, by further columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.relational import KernelResults
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, SortWords
from flinkcore.columnar.relational.numbered_rows import NumberedRows


def order_with_columns(due: KernelResults, ranking: RowRanking | None, kept: NumberedRows) -> Int64s:
    """Return the order of rows, of which those of a key and timestamp lie together, by further columns, too.

    Parameters
    ----------
    due : KernelResults
        The rows, by timestamp and arrival.
    ranking : RowRanking or None
        The further columns, or None for the timestamp alone.
    kept : NumberedRows
    """
    n = len(due.left)
    if ranking is None:
        return np.arange(n)
    is_first = np.ones(n, np.bool_)
    is_first[1:] = (due.key_ids[1:] != due.key_ids[:-1]) | (due.timestamps[1:] != due.timestamps[:-1])
    if is_first.all():
        return np.arange(n)
    names = [key.column for key in ranking.keys]
    words = ranking.of(kept.take(due.left, list(dict.fromkeys(names))))
    return np.lexsort((*sort_columns(words), np.cumsum(is_first)))


def sort_columns(words: SortWords) -> list[npt.NDArray[Any]]:
    """Return sort keys as columns, the least significant first."""
    columns: list[npt.NDArray[Any]] = list(words.words.T[::-1])
    if words.tail_ends is None or words.tails is None:
        return columns
    offsets = pa.py_buffer(np.ascontiguousarray(words.tail_ends))
    n = len(words.words)
    tails = pa.Array.from_buffers(pa.large_binary(), n, [None, offsets, pa.py_buffer(words.tails)])
    encoded = tails.dictionary_encode()
    places = np.empty(len(encoded.dictionary), np.int64)
    places[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(places))
    return [places[encoded.indices.to_numpy()], *columns]
