"""Results of an operator on their way to the next one: rows with timestamps and places in a total order.

What comes out of an operator for an event has the place of that event. What a watermark makes it emit comes after all
events that were there before, and before that watermark reaches the next operator. What processing-time timers give
comes after everything that arrived by then. So results are ordered by::

    arrival   what the replay clock showed
    steps     steps of the timeline before, of which the next operator has seen the watermarks
    split     of the event, or `AFTER_ALL_SPLITS` where it was no event
    position  of the event; else 2 * the number of the operator, and 1 more where a watermark was the cause
    fired     time of the timer, or maximum timestamp of the window, where it was no event
    group     key group, where it was no event
    sequence  within the key group; one for each operator on the way

None of these depends on how the key groups are divided into partitions.

Notes
-----
Watermarks of Flink travel with the records: operators forward each after it has fired, on all channels alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.total_order import Events, Int64Array, RowNumbers

Order: TypeAlias = tuple[Int64Array, ...]
"""Columns that order results, in the order above; the sequences come last."""

FIXED_COLUMNS = 6
"""Columns of an order before the sequences."""


@dataclass(frozen=True)
class PlacedEvents(Events):
    """Rows of one batch with their places among the results of an operator.

    `timestamps` are -2**63 where a record has none; `splits` and `positions` have no meaning of their own here.

    Attributes
    ----------
    order
        See above.
    """

    order: Order = ()

    @classmethod
    def of(cls, batch: pa.RecordBatch, timestamps: Int64Array, order: Order) -> PlacedEvents:
        """Rows, their timestamps and their places."""
        return cls(batch, timestamps, order[0], order[2].astype(np.int32), order[3], order)

    @classmethod
    def concatenate(cls, parts: Sequence[PlacedEvents]) -> PlacedEvents:
        """All rows of the parts, at least one, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls.of(
            pa.concat_batches([part.batch for part in parts]),
            np.concatenate([part.timestamps for part in parts]),
            tuple(map(np.concatenate, zip(*(part.order for part in parts), strict=True))),
        )

    @property
    def steps(self) -> Int64Array:
        """Steps of the timeline before each row."""
        return self.order[1]

    def take(self, rows: RowNumbers) -> PlacedEvents:
        """The given rows, copied in the given order."""
        at = rows.astype(np.intp)
        return PlacedEvents.of(
            self.batch.take(pa.array(rows)),
            self.timestamps[at],
            tuple(column[at] for column in self.order),
        )

    def slice(self, start: int, stop: int) -> PlacedEvents:
        """A range of rows, without copying."""
        return PlacedEvents.of(
            self.batch.slice(start, stop - start),
            self.timestamps[start:stop],
            tuple(column[start:stop] for column in self.order),
        )

    def with_batch(self, batch: pa.RecordBatch) -> PlacedEvents:
        """The same places with other columns."""
        return replace(self, batch=batch)

    def sorted(self) -> PlacedEvents:
        """The rows in total order."""
        rows = np.lexsort(self.order[::-1])
        if (rows == np.arange(len(rows))).all():
            return self
        return self.take(rows.astype(np.uint32))


class PlacedMerge:
    """Merges results of an operator; gives those that nothing still to come can precede."""

    def __init__(self) -> None:
        self._held: list[PlacedEvents] = []
        self._first_ms = MAX_TIMESTAMP

    def add(self, events: PlacedEvents) -> None:
        """Add rows, in any order."""
        if events.batch.num_rows:
            self._held.append(events)
            self._first_ms = min(self._first_ms, int(events.arrivals.min()))

    def release(self, arrival: int | None) -> Iterator[tuple[PlacedEvents, None]]:
        """Give all rows that arrive before a time, as they lie in total order.

        Parameters
        ----------
        arrival
            No row that is still to be added arrives earlier (ms since the epoch); None: no more rows come.
        """
        # What one watermark fires may be many blocks, all of one arrival: they are sorted once.
        if not self._held or (arrival is not None and arrival <= self._first_ms):
            return
        held = PlacedEvents.concatenate(self._held).sorted()
        n_rows = len(held.arrivals)
        cut = n_rows if arrival is None else int(np.searchsorted(held.arrivals, arrival, side="left"))
        self._held, self._first_ms = [], MAX_TIMESTAMP
        if cut < n_rows:
            self.add(held.slice(cut, n_rows))
        if cut:
            yield held.slice(0, cut), None


def steps_of(events: Events, timeline: Timeline) -> Int64Array:
    """How many steps of a timeline lie before each event."""
    if isinstance(events, PlacedEvents):
        return events.steps
    return timeline.steps_before(events.arrivals, events.splits, events.positions)


def order_of(events: Events, timeline: Timeline) -> Order:
    """The places of events among each other, as they order what is emitted for them."""
    if isinstance(events, PlacedEvents):
        return events.order
    none = np.zeros(len(events.arrivals), np.int64)
    steps = steps_of(events, timeline)
    return events.arrivals, steps, events.splits.astype(np.int64), events.positions, none, none
