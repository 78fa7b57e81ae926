"""The place of a chunk's events in the total order of the replay."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import order_events, running_maxima
from flinkcore.errors import SourceError
from flinkcore.time_plane.chunk_times import (
    ArrivalRate,
    BatchSplits,
    TimeColumns,
    TimedEvents,
    TimesBySplit,
    TimesChecksum,
    arrivals_of,
)
from flinkcore.time_plane.paused_spans import PausedSpans

_PositionsT = TypeVar("_PositionsT", Int64s, None)


class ChunkClock:
    """The place of a chunk's events in the total order of the replay; batches come in log order, each once.

    Parameters
    ----------
    chunk_index : int
        For error messages.
    split_values : sequence
        All splits of the log, or those of the chunk by their numbers.
    splits : numpy.ndarray of int32, shape (n_chunk_splits,)
        Numbers of the chunk's splits.
    bases, arrivals_ms : numpy.ndarray of int64, shape (n_chunk_splits,)
        As of ChunkStarts.
    rate : ArrivalRate or None
    paused : PausedSpans
    checksum : TimesChecksum
        Checksum of the events so far.
    by_arrival : bool
        Whether the rows of the log have no positions, and the batches come in any order.

    Attributes
    ----------
    arrived_ms : numpy.ndarray of int64, shape (n_rows,)
        Arrivals in the last batch, as the running maximum, including events that were read later.
    """

    def __init__(
        self,
        chunk_index: int,
        split_values: Sequence[Any],
        splits: Int32s,
        bases: Int64s,
        arrivals_ms: Int64s,
        rate: ArrivalRate | None,
        paused: PausedSpans,
        checksum: TimesChecksum,
        by_arrival: bool = False,
    ) -> None:
        self.chunk_index = chunk_index
        self.checksum = checksum
        self._places = {split_values[split]: place for place, split in enumerate(splits.tolist())}
        self._batch_splits = BatchSplits(self._places.__getitem__)
        self._splits = splits
        self._bases = bases
        self._running_arrivals_ms = arrivals_ms.copy()
        self._rate = rate
        self._paused = paused
        self._by_arrival = by_arrival
        self._n_splits = len(split_values)
        self._columns = TimeColumns()
        self._numbers: Int32s = np.empty(0, np.int32)
        self.arrived_ms: Int64s = np.empty(0, np.int64)

    @property
    def least_ms(self) -> int:
        """Lower bound of the arrivals of further events: no split goes back; ms since the epoch."""
        return (
            MIN_TIMESTAMP if self._by_arrival else int(self._running_arrivals_ms.min(initial=MAX_TIMESTAMP))
        )

    def order(self, timed: TimedEvents) -> tuple[Int64s, Int32s, Int64s]:
        """Place the events of the next batch.

        Parameters
        ----------
        timed : TimedEvents

        Returns
        -------
        tuple of numpy.ndarray, each of shape (n_rows,)
            `(arrival_ms int64, split int32, position int64)`: the arrival is the running maximum in the
            split, or when the split is read again, if it is paused then, `NOT_READ` if that is in another log; the
            split its number in split order, the position that in the whole split.

        Raises
        ------
        SourceError
            If the batch has a split that the first pass did not see in this chunk.
        ConfigurationError
            If the batch has no recorded arrivals, and the time plane no rate.
        """
        places = self._places_of(timed.split_values)
        recorded = arrivals_of(timed, self._bases[places], self._rate)
        self.checksum.add(timed, recorded, places)
        return self._in_order(recorded, timed.positions, timed.split_codes, places)

    def by_split(self, timed: TimedEvents) -> TimesBySplit:
        """Return the times of the next batch, with arrivals as recorded or by rate; they last until another one comes.

        Errors as of `order`.
        """
        places = self._places_of(timed.split_values)
        recorded = arrivals_of(timed, self._bases[places], self._rate)
        self.checksum.add(timed, recorded, places)
        return TimesBySplit.of(timed, recorded, self._columns)

    def order_by_split(self, times: TimesBySplit) -> tuple[Int32s, Int64s]:
        """Place events of the next batch, whose times the first pass has read.

        Parameters
        ----------
        times : TimesBySplit

        Returns
        -------
        tuple of numpy.ndarray
            `(split int32, arrival_ms int64)`, of shapes (n_splits,) and (n_events,): the number of each split, and the
            arrivals as of `order`.

        Raises
        ------
        SourceError
            As of `order`.
        """
        places = self._places_of(times.split_values)
        numbers, arrivals = self._splits[places], times.arrival_ms
        if not self._by_arrival:
            arrivals = running_maxima(arrivals, times.offsets, places, self._running_arrivals_ms)
        self.arrived_ms = arrivals
        if self._paused.are_none:
            return numbers, arrivals
        of_events = np.repeat(numbers, np.diff(times.offsets))
        return numbers, self._paused.held_back(arrivals, of_events, self._n_splits)

    def _places_of(self, split_values: list[Any]) -> Int32s:
        try:
            return self._batch_splits.numbers(split_values)
        except KeyError as error:
            raise SourceError(
                f"split {error.args[0]!r} of chunk {self.chunk_index} was not there when the timeline was "
                "computed; the log has changed during the replay",
                split=error.args[0],
            ) from None

    def _in_order(
        self, recorded: Int64s, positions: _PositionsT, split_codes: Int32s, places: Int32s
    ) -> tuple[Int64s, Int32s, _PositionsT]:
        if self._by_arrival:
            arrivals, numbers = recorded, self._splits[places[split_codes]]
        elif len(places) == 1:
            arrivals, numbers, positions = self._order_split(int(places[0]), recorded, positions)
        else:
            arrivals, numbers, positions = order_events(
                recorded,
                positions,
                split_codes,
                places,
                self._splits,
                self._bases,
                self._running_arrivals_ms,
            )
        self.arrived_ms = arrivals
        return self._paused.held_back(arrivals, numbers, self._n_splits), numbers, positions

    def _order_split(
        self, place: int, recorded: Int64s, positions: _PositionsT
    ) -> tuple[Int64s, Int32s, _PositionsT]:
        """`order_events` of a batch that is all of one split, without copies where they would change nothing."""
        n_rows = len(recorded)
        ends, first = np.array([0, n_rows]), np.array([place], np.int32)
        arrivals = running_maxima(recorded, ends, first, self._running_arrivals_ms)
        base, split = int(self._bases[place]), self._splits[place]
        if len(self._numbers) < n_rows or (self._numbers[:1] != split).any():
            self._numbers = np.full(n_rows, split, np.int32)
            self._numbers.flags.writeable = False
        if base and positions is not None:
            positions = positions + base
        return arrivals, self._numbers[:n_rows], positions
