"""Columns of the splits of a log, added up chunk by chunk."""

from typing import Any

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.log.arrival_cut import ArrivalCut
from flinkcore.time_plane.chunk_times import ChunkTimes
from flinkcore.time_plane.cut_counts import LogCutCounts
from flinkcore.time_plane.time_cut import TimeCut


class SplitColumns:
    """The columns of SplitTimes, as they are after the chunks so far; and the cut from which the log is resumed."""

    def __init__(
        self, values: list[Any], before: TimeCut, by_arrival: bool, taken: ArrivalCut | None
    ) -> None:
        splits = len(values)
        self._by_arrival = by_arrival
        self.values = values
        self._before = before
        self.cut_counts = LogCutCounts(taken, values)
        self._rows_before = before.column("rows", values)
        self._arrival_before_ms = before.column("last_arrival_ms", values)
        self.recorded_arrival_ms = before.column("recorded_arrival_ms", values)
        self.rows, self.events, self.regressions, self.raised = np.zeros((4, splits), np.int64)
        self.first_arrival_ms = np.full(splits, MAX_TIMESTAMP)
        self.least_arrival_ms = np.full(splits, MAX_TIMESTAMP)
        self.last_arrival_ms = np.full(splits, MIN_TIMESTAMP)
        self.min_timestamp_ms = np.full(splits, MAX_TIMESTAMP)
        self.max_timestamp_ms = np.full(splits, MIN_TIMESTAMP)

    def add(self, chunk: ChunkTimes, splits: Int32s, *, check_bases: bool) -> tuple[Int32s, Int64s, Int64s]:
        """Add a chunk with these splits; they, and their rows and last arrivals before it."""
        bases = self._rows_before[splits]
        arrivals_before = self._arrival_before_ms[splits]
        if not self._by_arrival:
            bases = bases + self.rows[splits]
            arrivals_before = np.maximum(arrivals_before, self.last_arrival_ms[splits])
        if check_bases and not np.array_equal(bases, chunk.bases):
            raise DataError(
                f"the arrivals of chunk {chunk.index} were not counted on from the chunks before; build its "
                "times with the bases that position_bases gives"
            )
        self.rows[splits] += chunk.rows
        self.cut_counts.add(chunk.cut, splits)
        live = chunk.times["events"] > 0
        of_chunk = {name: column[live] for name, column in chunk.times.items()}
        at = splits[live]
        if self._by_arrival:
            first_ms = np.minimum(self.first_arrival_ms[at], of_chunk["first_arrival_ms"])
            recorded_ms = np.maximum(self.recorded_arrival_ms[at], of_chunk["recorded_arrival_ms"])
        else:
            again = self.events[at] > 0
            had_events = again | (self._arrival_before_ms[at] > MIN_TIMESTAMP)
            went_back = had_events & (of_chunk["first_arrival_ms"] < self.recorded_arrival_ms[at])
            self.regressions[at] += of_chunk["regressions"] + went_back
            lies_before = of_chunk["last_arrival_ms"] < arrivals_before[live]
            self.raised[at] += np.where(
                lies_before, of_chunk["events"], np.maximum(of_chunk["raised"], went_back)
            )
            first_ms = np.where(again, self.first_arrival_ms[at], of_chunk["first_arrival_ms"])
            recorded_ms = of_chunk["recorded_arrival_ms"]
        self.first_arrival_ms[at] = first_ms
        self.recorded_arrival_ms[at] = recorded_ms
        self.least_arrival_ms[at] = np.minimum(self.least_arrival_ms[at], of_chunk["least_arrival_ms"])
        self.last_arrival_ms[at] = np.maximum(self.last_arrival_ms[at], of_chunk["last_arrival_ms"])
        self.min_timestamp_ms[at] = np.minimum(self.min_timestamp_ms[at], of_chunk["min_timestamp_ms"])
        self.max_timestamp_ms[at] = np.maximum(self.max_timestamp_ms[at], of_chunk["max_timestamp_ms"])
        self.events[at] += of_chunk["events"]
        return splits, bases, arrivals_before

    def add_waiting(self, chunk: ChunkTimes, splits: Int32s) -> tuple[Int32s, Int64s, Int64s]:
        """Add events that wait in the checkpoint, as `add`: their rows and arrivals have been counted before."""
        live = chunk.times["events"] > 0
        of_chunk = {name: column[live] for name, column in chunk.times.items()}
        at = splits[live]
        for name in ("first_arrival_ms", "min_timestamp_ms"):
            column = getattr(self, name)
            column[at] = np.minimum(column[at], of_chunk[name])
        for name in ("last_arrival_ms", "max_timestamp_ms"):
            column = getattr(self, name)
            column[at] = np.maximum(column[at], of_chunk[name])
        self.events[at] += of_chunk["events"]
        return splits, np.zeros(len(splits), np.int64), np.full(len(splits), MIN_TIMESTAMP)

    def ends(self) -> tuple[int, int]:
        """Return the first and the last arrival; there is an event, here or before."""
        live, stopped = self.events > 0, self._before.last_arrival_ms
        firsts, lasts = self.first_arrival_ms[live].tolist(), self.last_arrival_ms[live].tolist()
        before = [] if stopped is None else [stopped]
        return min(firsts + before), max(lasts + before)

    def cut(self, state: dict[str, Any] | None, replay_range: tuple[int, int] | None) -> TimeCut:
        """Return the cut from which another log can be resumed; without a merge there was never an event."""
        before, values = self._before, self.values
        columns = {
            "rows": self._rows_before + self.rows,
            "last_arrival_ms": np.maximum(self._arrival_before_ms, self.last_arrival_ms),
            "recorded_arrival_ms": self.recorded_arrival_ms,
        }
        until_ms = self.cut_counts.until_ms
        taken_ms = np.maximum(before.column("taken_ms", values), self.cut_counts.columns["taken_ms"])
        columns["taken_ms"] = np.maximum(taken_ms, self.recorded_arrival_ms)
        if state is None or replay_range is None:
            all_columns = before.columns_of(values) | columns
            return TimeCut(None, None, MIN_TIMESTAMP, values, all_columns, until_ms=until_ms)
        if not values:
            values, columns = [None], {name: TimeCut.of_no_split()[name] for name in columns}
        state = dict(state)
        opened_ms, watermark_ms = state.pop("opened_ms"), state.pop("output_ms")
        return TimeCut(replay_range[1], opened_ms, watermark_ms, values, state | columns, until_ms=until_ms)
