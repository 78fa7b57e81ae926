"""An aggregate of a key's values themselves, of which some may be withdrawn: the first, the last, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore._native.kept_values import KeptValues
from flinkcore.columnar.relational.frame_aggregates import KeyIds
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.row_changes import identities_of
from flinkcore.errors import SchemaError

SHOWN: Final[Mapping[str, str]] = {"first": "first", "last": "last", "collect": "all"}
"""Values that the results of each function have."""

DEAD_VALUES: Final = 1 << 12
"""Values that no key holds may be so many more than those that one does."""


NUMBER_BYTES: Final = 8
"""Bytes of a value's number."""


class KeptValuesColumn:
    """The results of an aggregate over values that it keeps.

    Parameters
    ----------
    function : str
        One of `SHOWN`.
    field : pyarrow.Field
        The column of the values.
    type : pyarrow.DataType
        Type of the results.
    dead_values : int
        Values that no key holds may be so many more than the others.
    shown_bytes : int
        Bytes of values that results which wait may have, if they are more than one.
    """

    def __init__(
        self,
        function: str,
        field: pa.Field,
        type: pa.DataType,
        dead_values: int = DEAD_VALUES,
        shown_bytes: int = BATCH_BYTES,
    ) -> None:
        self._name, self._type, self._dead_values = field.name, type, dead_values
        self._shows_all, self._shown_bytes = SHOWN[function] == "all", shown_bytes
        self._kept = KeptValues(SHOWN[function])
        self._values = NumberedRows(pa.schema([field]))

    def fitting(
        self,
        key_ids: KeyIds,
        retracts: npt.NDArray[np.uint8] | None = None,
        rows: pa.RecordBatch | None = None,
    ) -> int:
        """Return how many events, at least one, may have results at once, with those that their keys had before.

        Events come with their rows, if they are still to be taken in.
        """
        if not self._shows_all:
            return len(key_ids)
        own, first, places = np.unique(key_ids, return_index=True, return_inverse=True)
        sizes = self._kept.sizes_of(own)
        by_key = np.argsort(places, kind="stable")
        added = np.ones(len(key_ids), np.int64) if retracts is None else 1 - retracts.astype(np.int64)
        n_added = np.cumsum(added[by_key])
        n_events = np.bincount(places, minlength=len(own))
        begins = np.cumsum(n_events) - n_events
        shown = np.empty(len(key_ids), np.int64)
        shown[by_key] = n_added - np.repeat(n_added[begins] - added[by_key[begins]] - sizes, n_events)
        shown[first] += sizes
        n_bytes, n_values = self._values.nbytes, len(self._values)
        if rows is not None:
            n_bytes, n_values = n_bytes + rows.column(self._name).nbytes, n_values + rows.num_rows
        value_bytes = NUMBER_BYTES + n_bytes // max(1, n_values)
        return max(1, int(np.searchsorted(np.cumsum(shown), self._shown_bytes // value_bytes, side="right")))

    def process(
        self, rows: pa.RecordBatch, key_ids: KeyIds, retracts: npt.NDArray[np.uint8] | None, emits: bool
    ) -> None:
        """Take in rows; a result waits for each, if it emits."""
        values = rows.select([self._name])
        first = self._values.add(values)
        numbers = first + np.arange(rows.num_rows)
        self._kept.process(key_ids, numbers, identities_of(values, [self._name]), retracts, emits)
        if not emits:  # else results wait for values
            self._free_dead_values()

    def emit(self, key_ids: KeyIds) -> None:
        """Append the present results of keys."""
        self._kept.emit(key_ids)

    def take(self) -> pa.Array:
        """Return the results that wait."""
        numbers, ends = self._kept.take()
        values = self._values.take(numbers).column(0)
        self._free_dead_values()
        if ends is None:
            return values
        offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=self._type)

    def _free_dead_values(self) -> None:
        if len(self._values) > 2 * len(self._kept) + self._dead_values:
            self._kept.renumber(self._values.keep(self._kept.live_rows()))

    def memory_bytes(self) -> int:
        return self._kept.memory_bytes() + self._values.nbytes

    def snapshot(self) -> Mapping[str, Any]:
        """Return the values of all keys, by id: `key`, `low`, `high` and `n_rows` as kept, and `value`, a struct."""
        columns: dict[str, Any] = dict(self._kept.snapshot())
        values = self._values.take(columns.pop("row")).column(0)
        return {**columns, "value": pa.StructArray.from_arrays([values], [self._name])}

    def restore(self, keys: Int64s, columns: pa.RecordBatch) -> None:
        """Take rows of a table of `snapshot`, before the first event.

        Raises
        ------
        SchemaError
            If they are of another aggregate.
        """
        values = columns.column("value")
        if values.type.num_fields != 1 or values.type.field(0).type != self._values.schema.field(0).type:
            raise SchemaError(
                f"the kept values are {values.type}, and those of this job {self._values.schema}"
            )
        (column,) = values.flatten()
        first = self._values.add(pa.RecordBatch.from_arrays([column], schema=self._values.schema))
        held = (columns.column(name).to_numpy() for name in ("low", "high", "n_rows"))
        self._kept.restore(keys, first + np.arange(len(keys)), *held)
