"""The contract of the native kernels of relational operators with the stage that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.relational import KernelResults


class RelationalKernel(Protocol):
    """An operator over dense key ids and numbers of kept rows.

    Before each event, it puts the watermarks of the timeline's steps before that in force, one after the other, and
    fires what is due, in Flink's order of timers. When as many results wait as its limit allows, it stops until they
    are taken. For one thread at a time; its loops run without the GIL.
    """

    @property
    def process(self) -> Callable[..., int]:
        """Take in events in total order from number `first` on, until results are full.

        Parameters
        ----------
        key_ids, key_groups : arrays (n,)
        inputs : int8 array (n,) or None
            0 or 1, the input of each event; None where there is one input.
        rows : int64 array (n,)
            The numbers of the events' rows among those that are kept of their input.
        timestamps : int64 array (n,)
            Event times in ms since the epoch, -2**63 where an event has none.
        steps : int64 array (n,)
            Number of steps of the timeline before each event; not descending.
        *columns
            Further arguments of this kernel, such as sort keys.
        first : int
            Number of events that earlier calls have taken in.

        Returns
        -------
        int
            The number of the next event: below n, results are to be taken first.
        """
        ...

    def advance(self, steps_before: int) -> bool:
        """Fire what so many steps of the timeline make due; False if results are full before."""
        ...

    def finish(self) -> bool:
        """Fire what the end of the log makes due; False if results are full before."""
        ...

    @property
    def is_full(self) -> bool:
        """Return whether results must be taken before the next event."""
        ...

    def take(self) -> KernelResults:
        """Return the results that wait: `events` are indexes into the last call of `process`, -1: a watermark's."""
        ...

    def counts(self) -> dict[str, int]:
        """Counts of events by their names in the report."""
        ...

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        ...

    def memory_bytes(self) -> int:
        """Bytes that its state takes, without rows, keys and timers."""
        ...

    @property
    def live_count(self) -> int:
        """Return the length of `live_rows` for all inputs together; O(1)."""
        ...

    @property
    def live_rows(self) -> Callable[..., Int64s]:
        """Return the numbers of the rows that its state holds, some maybe more than once.

        Parameters
        ----------
        input_number : int
            0 or 1; not given where there is one input.
        """
        ...

    @property
    def renumber(self) -> Callable[..., None]:
        """Hold other numbers, in the order of `live_rows`; called while no results wait."""
        ...

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        """Return its state, without timers, as columns by name of the table.

        Each table has `key` (int64 ids) and further columns, NumPy's or Arrow's. Numbers of rows are in `row`, for the
        first input, and `right_row`: -1 for none. Rows of a table that are restored in their order give the same state
        again; of several tables, the first decides the order of keys.
        """
        ...

    def restore(self, table: str, keys: Int64s, rows: dict[str, Any], columns: pa.RecordBatch) -> None:
        """Take part of a table of `snapshot`, before the first event; called for tables in the order of `snapshot`.

        Parameters
        ----------
        table : str
        keys : int64 array (n,)
            Ids of now.
        rows : dict
            Numbers of now, for `row` and `right_row` where the table has them, what the stage adds of the rows, such as
            sort keys, and values of Python.
        columns : pyarrow.RecordBatch
            The other columns.

        Raises
        ------
        SchemaError
            If it is not a state of such an operator.
        """
        ...
