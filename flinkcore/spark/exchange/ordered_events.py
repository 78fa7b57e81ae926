"""Events and results in the order in which they go into a shuffle."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX
from flinkcore._internal.arrow.joined_batches import taken
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.spark.exchange.narrow import NarrowIntegers, can_be_narrowed, narrow_columns
from flinkcore.time_plane.total_order import LogEvents

_TIMES: Final = tuple(HIDDEN_PREFIX + name for name in ("timestamps", "arrivals", "splits", "positions"))


class OrderedResults:
    """Results of an operator and their order, for the shuffle as `OrderedEvents` is.

    Parameters
    ----------
    results
        In any order.
    order
        Their rows in order, or None if they lie in order.
    """

    def __init__(self, results: PlacedEvents, order: RowNumbers | None) -> None:
        self._results = results if order is None else results.take(order)

    def arrival(self, place: int) -> int:
        return int(self._results.arrivals[place])

    def column_bytes(self, start: int, stop: int) -> int:
        return int(self._results.batch.slice(start, stop - start).nbytes)

    def packed(self, start: int, stop: int) -> pa.RecordBatch:
        return self._results.slice(start, stop).packed()


class OrderedEvents:
    """Events and their order; what is narrowed is gathered then, so that no wide copy is made of it.

    Parameters
    ----------
    events
        In any order.
    order
        Their rows in order, or None for the given order.
    """

    def __init__(self, events: LogEvents, order: RowNumbers | None = None) -> None:
        self._order = order
        self._arrivals = events.arrivals
        batch = events.batch
        times: tuple[npt.NDArray[Any], ...] = (
            events.timestamps,
            events.arrivals,
            events.splits,
            events.positions,
        )
        self._names = [*batch.schema.names, *_TIMES]
        self._integers: dict[int, npt.NDArray[Any]] = {
            len(batch.columns) + i: column for i, column in enumerate(times)
        }
        self._integers |= {
            i: column.view(pa.int64()).to_numpy()
            for i, column in enumerate(batch.columns)
            if can_be_narrowed(column)
        }
        wide = batch.select([i for i in range(len(batch.columns)) if i not in self._integers])
        self._wide = wide if order is None or wide.num_columns == 0 else taken(wide, order)

    def arrival(self, place: int) -> int:
        """Arrival of the event at a place of the order, ms since the epoch."""
        return int(self._arrivals[place if self._order is None else int(self._order[place])])

    def column_bytes(self, start: int, stop: int) -> int:
        """Bytes of memory that the user's columns of a range take."""
        n_integers = len(self._integers) - len(_TIMES)
        wide = self._wide.slice(start, stop - start).nbytes if self._wide.num_columns else 0
        return 8 * n_integers * (stop - start) + int(wide)

    def packed(self, start: int, stop: int) -> pa.RecordBatch:
        """The user's columns and the times of a range, narrowed."""
        wide = iter(self._wide.slice(start, stop - start).columns)
        columns = (
            self._narrow(self._integers[i], start, stop) if i in self._integers else next(wide)
            for i in range(len(self._names))
        )
        return narrow_columns(self._names, columns, stop - start)

    def _narrow(self, values: npt.NDArray[Any], start: int, stop: int) -> NarrowIntegers:
        if self._order is None:
            return NarrowIntegers.of(values[start:stop])
        return NarrowIntegers.of(values, self._order[start:stop])


OrderedRows: TypeAlias = OrderedEvents | OrderedResults
