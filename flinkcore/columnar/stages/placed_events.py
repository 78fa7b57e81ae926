"""Results that an operator passes to the next one: rows with timestamps and places in a total order.

A result of an operator for an event has the place of that event. Results of a watermark come after all
events that were there before, and before that watermark reaches the next operator. What processing-time timers give
comes after everything that arrived by then. So results are ordered by::

    arrival   what the replay clock showed
    steps     steps of the timeline before, of which the next operator has seen the watermarks
    split     of the event, or `AFTER_ALL_SPLITS` if another cause had the result
    position  of the event, else 0
    cause     0 for an event, else see `cause_of_firing`
    fired     time of the timer, or maximum timestamp of the window; 0 for an event
    group     key group; 0 for an event
    sequence  within the key group, from 1 on; one for each operator, 0 for operators that did not emit it

None of these depends on how the key groups are divided into partitions. All operators of a job count the same steps, so
that results of several, and rows of logs, can be merged: those that have all else in common come from one operator, on
ways, and the sequences say which one is first.

Notes
-----
Watermarks of Flink travel with the records: operators forward each after it has fired, on all channels alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, Int64s, RowNumbers
from flinkcore._internal.arrow.joined_batches import joined
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.stages.external_sort import HELD_BYTES, PIECE_BYTES, ExternalSort
from flinkcore.common import MAX_TIMESTAMP
from flinkcore.time_plane.total_order import LEAST_RUN, BatchesInOrder, Events, TimelineEvents

Order: TypeAlias = tuple[Int64s, ...]
"""Columns that order results, in the order above; the sequences come last."""

FIXED_COLUMNS = 7
"""Columns of an order before the sequences."""


@dataclass(frozen=True)
class PlacedEvents(Events):
    """Rows of one batch with their places among the results of an operator.

    `timestamps` are -2**63 where a record has none.

    Attributes
    ----------
    inputs
        int32 (n_rows,), number of the input, 0 or 1, of the operator to which the rows come.
    order
        See above.
    """

    inputs: Int32s
    order: Order

    @classmethod
    def of(
        cls,
        batch: pa.RecordBatch | BatchesInOrder,
        timestamps: Int64s,
        order: Order,
        inputs: Int32s | None = None,
    ) -> PlacedEvents:
        """Return rows with their timestamps, places and inputs, all of the first input if None."""
        if inputs is None:
            inputs = np.zeros(len(timestamps), np.int32)
        return cls(batch, timestamps, order[0], order[1], inputs, order)

    @classmethod
    def concatenate(cls, parts: Sequence[PlacedEvents]) -> PlacedEvents:
        """All rows of the parts, at least one, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        batches = [batch for part in parts for batch in part.batches]
        timestamps = np.concatenate([part.timestamps for part in parts])
        # An operator may give each row as a batch of its own.
        are_long = len(batches) * LEAST_RUN <= len(timestamps)
        return cls.of(
            BatchesInOrder(batches) if are_long else joined(batches),
            timestamps,
            tuple(map(np.concatenate, zip(*(part.order for part in parts), strict=True))),
            np.concatenate([part.inputs for part in parts]),
        )

    def _of_rows(
        self,
        batch: pa.RecordBatch | BatchesInOrder,
        rows: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    ) -> PlacedEvents:
        return PlacedEvents.of(batch, rows(self.timestamps), tuple(map(rows, self.order)), rows(self.inputs))

    def are_of_second(self, second_from: int) -> npt.NDArray[np.bool_]:
        of_second: npt.NDArray[np.bool_] = self.inputs == 1
        return of_second

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rows take, about."""
        return self.batch_bytes + (12 + 8 * len(self.order)) * len(self.timestamps)

    def packed(self) -> pa.RecordBatch:
        """Return the columns of the rows with timestamps and places after them, without the inputs."""
        columns = [*self.batch.columns, pa.array(self.timestamps), *map(pa.array, self.order)]
        return pa.RecordBatch.from_arrays(columns, [str(number) for number in range(len(columns))])

    @classmethod
    def unpacked(
        cls, packed: pa.RecordBatch, schema: pa.Schema, inputs: Int32s | None = None
    ) -> PlacedEvents:
        """Return rows that were packed, with the schema of their columns and their inputs, all the first if None."""
        timestamps, *order = (column.to_numpy() for column in packed.columns[len(schema) :])
        rows = pa.RecordBatch.from_arrays(packed.columns[: len(schema)], schema=schema)
        return cls.of(rows, timestamps, tuple(order), inputs)

    def coming_to(self, number: int, input_number: int, inputs: ConnectedInputs | None) -> PlacedEvents:
        """Return the rows and places as operator `number` merges them.

        Parameters
        ----------
        number
            Number of the operator.
        input_number
            0 or 1.
        inputs
            Columns of both inputs, or None for a single input.
        """
        widened = self if inputs is None else inputs.widened(input_number, self)
        return replace(
            widened,
            order=_widened(self.order, number),
            inputs=np.full(self.n_events, input_number, np.int32),
        )

    def rows_in_order(self) -> npt.NDArray[np.intp]:
        """The numbers of the rows in total order; one that comes to both inputs comes to the first one first."""
        keys: list[Int32s | Int64s] = [self.inputs, *self.order[::-1]]
        return np.lexsort(keys)

    def sorted(self) -> PlacedEvents:
        """The rows in total order."""
        rows = self.rows_in_order()
        if (rows == np.arange(len(rows))).all():
            return self
        return self.in_order_of(rows.astype(np.uint32))


class _PlacedSort(ExternalSort[PlacedEvents]):
    """Sorts results; all have the same columns."""

    _schema: pa.Schema

    def n_rows(self, rows: PlacedEvents) -> int:
        return rows.n_events

    def nbytes(self, rows: PlacedEvents) -> int:
        return rows.nbytes

    def concatenated(self, parts: Sequence[PlacedEvents]) -> PlacedEvents:
        return PlacedEvents.concatenate(parts)

    def order(self, rows: PlacedEvents) -> npt.NDArray[np.intp]:
        return rows.rows_in_order()

    def taken(self, rows: PlacedEvents, numbers: RowNumbers) -> PlacedEvents:
        return rows.in_order_of(numbers)

    def sliced(self, rows: PlacedEvents, start: int, stop: int) -> PlacedEvents:
        return rows.slice(start, stop)

    def packed(self, rows: PlacedEvents) -> pa.RecordBatch:
        self._schema = rows.batch.schema
        packed = rows.packed()
        return pa.RecordBatch.from_arrays(
            [*packed.columns, pa.array(rows.inputs)], [*packed.schema.names, "inputs"]
        )

    def unpacked(self, batch: pa.RecordBatch) -> PlacedEvents:
        *columns, inputs = batch.columns
        packed = pa.RecordBatch.from_arrays(columns, batch.schema.names[:-1])
        return PlacedEvents.unpacked(packed, self._schema, inputs.to_numpy())


class PlacedMerge:
    """Merges results of an operator; gives those that nothing still to come can precede.

    Parameters
    ----------
    held_bytes, piece_bytes
        Results that take more memory wait in a temporary file; see `ExternalSort`.
    """

    def __init__(self, held_bytes: int = HELD_BYTES, piece_bytes: int = PIECE_BYTES) -> None:
        self._sort = _PlacedSort("results of operators", held_bytes, piece_bytes)
        self._first_ms = MAX_TIMESTAMP

    def add(self, events: PlacedEvents) -> None:
        """Add rows, in any order."""
        if events.n_events:
            self._sort.add(events)
            self._first_ms = min(self._first_ms, int(events.arrivals.min()))

    def release(self, arrival: int | None) -> Iterator[tuple[PlacedEvents, None]]:
        """Yield all rows that arrive before a time, in total order.

        Parameters
        ----------
        arrival
            Lower bound of the arrivals of further rows (ms since the epoch), or None if no more rows come.
        """
        # Results of one watermark may be many blocks, all of one arrival: they are sorted once.
        if arrival is not None and arrival <= self._first_ms:
            return
        self._first_ms = MAX_TIMESTAMP
        while (events := self._sort.take()) is not None:
            n_rows = len(events.arrivals)
            cut = n_rows if arrival is None else int(np.searchsorted(events.arrivals, arrival, side="left"))
            if cut:
                yield events.slice(0, cut), None
            if cut < n_rows:
                self._sort.put_back(events.slice(cut, n_rows))
                self._first_ms = int(events.arrivals[cut])
                return

    def close(self) -> None:
        """Release memory and file."""
        self._sort.close()


def order_of(events: Events, number: int) -> Order:
    """Return the places of events among each other, which order the results of operator `number` for them."""
    if isinstance(events, PlacedEvents):
        return _widened(events.order, number)
    assert isinstance(events, TimelineEvents)
    none = np.zeros(events.n_events, np.int64)
    order = events.arrivals, events.steps, events.splits.astype(np.int64), events.positions, none, none, none
    return _widened(order, number)


def cause_of_firing(number: int, by_watermark: bool) -> int:
    """Return the `cause` of results that operator `number` emits for a timer, by a watermark or by the clock."""
    return 1 + 2 * number + by_watermark


def placed(
    events: Events, rows: RowNumbers | None, number: int, inputs: ConnectedInputs | None
) -> PlacedEvents:
    """Ordered rows of logs as they are merged with results.

    Parameters
    ----------
    events, rows
        Rows and their order, or None for the given order.
    number
        Number of the operator to which they come.
    inputs
        Inputs of the operator, by split, or None for a single input.
    """
    ordered = events if rows is None else events.take(rows)
    of_input = None if inputs is None else inputs.is_second(ordered).astype(np.int32)
    return PlacedEvents.of(ordered.batch, ordered.timestamps, order_of(ordered, number), of_input)


def _widened(order: Order, number: int) -> Order:
    none = np.zeros(len(order[0]), np.int64)
    return (*order, *(none for _ in range(FIXED_COLUMNS + number - len(order))))
