"""The keys of a dictionary as columns, for look-ups by dense id while keys come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.key_dictionary import KeyDictionary


class KnownKeys:
    """Key columns of a dictionary, in pieces that are joined as they come: O(log n) copies of a key.

    Parameters
    ----------
    keys : KeyDictionary
    """

    def __init__(self, keys: KeyDictionary) -> None:
        self._keys = keys
        self._pieces = [pa.record_batch(keys.keys())]
        self._known = len(keys)

    def take(self, key_ids: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Return the key columns of ids that the dictionary has, a row per id."""
        if len(key_ids) and key_ids.max() >= self._known:
            self._add_new()
        if len(self._pieces) == 1:
            return self._pieces[0].take(pa.array(key_ids))
        found = pa.Table.from_batches(self._pieces).take(pa.array(key_ids)).combine_chunks()
        return found.to_batches()[0] if found.num_rows else self._pieces[0].slice(0, 0)

    def _add_new(self) -> None:
        first, self._known = self._known, len(self._keys)
        while self._pieces and self._pieces[-1].num_rows < 2 * (self._known - first):
            first -= self._pieces.pop().num_rows
        self._pieces.append(pa.record_batch(self._keys.keys(first)))
