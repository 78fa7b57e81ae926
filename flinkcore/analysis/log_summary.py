"""Summaries of logs of any length for pictures: events by split and arrival, their lateness, and keys.

Each chunk of the log is summarised by itself; summaries of chunks are added up. A summary has cells of a grid over the
arrivals, bins of lateness, and counts of the keys with most events, so its size does not depend on the log's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.show.tables import shown_value
from flinkcore.columnar.planned_job import PlannedJob
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.stages.emission_times import NOT_KNOWN, EmissionTimes
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.timeline import Timeline, TimePlane
from flinkcore.time_plane.total_order import LogEvents

MOST_CELLS: Final = 240
"""Cells of a grid, and so points of a line in a picture."""

MOST_SPLITS: Final = 8
"""Splits with a line of their own."""

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(factor * _SECOND for factor in (1, 2, 5, 10, 15, 30)),
    *(factor * _MINUTE for factor in (1, 2, 5, 10, 15, 30)),
    *(factor * _HOUR for factor in (1, 2, 3, 6, 12)),
)

LATENESS_MS: Final = (
    *(1, 10, 100, _SECOND, 10 * _SECOND, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 30 * _DAY),
)
"""Ends of the bins of lateness, ms; what lies beyond the last has a bin of its own."""


@dataclass(frozen=True)
class ArrivalGrid:
    """Equal cells of the replay clock.

    Attributes
    ----------
    first_ms
        Where the first cell begins.
    width_ms
        Width of a cell: a length of time that people use.
    cells
        Number of cells.
    """

    first_ms: int
    width_ms: int
    cells: int

    @classmethod
    def over(cls, first_ms: int, last_ms: int, most_cells: int = MOST_CELLS) -> ArrivalGrid:
        """Return the finest grid of so many cells at most that has both arrivals in it."""
        least = max(1, -(-(last_ms - first_ms + 1) // (most_cells - 1)))
        width = next((step for step in _STEPS if step >= least), -(-least // _DAY) * _DAY)
        first = first_ms // width
        return cls(first * width, width, last_ms // width - first + 1)

    @property
    def edges_ms(self) -> Int64s:
        """Return where cells begin, and where the last one ends."""
        return self.first_ms + self.width_ms * np.arange(self.cells + 1, dtype=np.int64)

    def cell_of(self, clock_ms: Int64s) -> Int64s:
        """Return the cell of each time; what lies outside is in the first or the last one."""
        return np.clip((clock_ms - self.first_ms) // self.width_ms, 0, self.cells - 1)


class KeyCounts:
    """Rows of the keys that have most, in bounded memory.

    Where there are more keys than the capacity, each count may be too low by `missing`, and a key that is left out has
    no more rows than that (the summary of Misra and Gries, which can be merged).

    Parameters
    ----------
    keys
        Columns of the key; none: nothing is counted.

    Attributes
    ----------
    columns : tuple of str
        Columns of the key.
    missing : int
    """

    CAPACITY: Final = 1024
    _HELD_ROWS: Final = 1 << 16

    def __init__(self, keys: Sequence[str]) -> None:
        self.columns = tuple(keys)
        # A column of the key may be called as that of its counts.
        self._keys = [str(number) for number in range(len(keys))]
        self._parts: list[pa.Table] = []
        self.missing = 0

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch, which has the columns of the key."""
        if self._keys and batch.num_rows:
            rows = pa.Table.from_arrays([batch.column(name) for name in self.columns], self._keys)
            self._add(rows.group_by(self._keys, use_threads=False).aggregate([([], "count_all")]))

    def _add(self, counts: pa.Table) -> None:
        self._parts.append(counts.rename_columns([*self._keys, "rows"]))
        if sum(part.num_rows for part in self._parts) > self._HELD_ROWS:
            self.counts()

    def counts(self) -> pa.Table:
        """Columns of the key, named by their numbers, and `rows`; most rows first."""
        if not self._parts:
            return pa.table({"rows": pa.array([], pa.int64())})
        held = pa.concat_tables(self._parts).group_by(self._keys, use_threads=False)
        counts = held.aggregate([("rows", "sum")]).rename_columns([*self._keys, "rows"])
        order = pc.sort_indices(counts.column("rows"), sort_keys=[("", "descending")])
        counts = counts.take(order)
        if counts.num_rows > self.CAPACITY:
            too_many = counts.column("rows")[self.CAPACITY].as_py()
            self.missing += too_many
            rows = pc.subtract(counts.column("rows"), too_many)
            counts = counts.set_column(len(self._keys), "rows", rows).slice(0, self.CAPACITY)
            counts = counts.filter(pc.greater(counts.column("rows"), 0))
        self._parts = [counts]
        return counts

    def merge(self, other: KeyCounts) -> None:
        """Add the counts of other rows."""
        self.missing += other.missing
        for part in other._parts:
            self._add(part)

    def top(self, most: int) -> list[tuple[str, int]]:
        """So many keys as text, and their rows, most rows first."""
        counts = self.counts().slice(0, most)
        names = [
            ", ".join(shown_value(counts.column(key)[row]) for key in self._keys)
            for row in range(counts.num_rows)
        ]
        return list(zip(names, counts.column("rows").to_pylist(), strict=True))

    def to_columns(self, name: str) -> dict[str, Any]:
        """Return the counts as columns of :func:`write_columns`."""
        counts = self.counts()
        return {f"{name}.{column}": counts.column(column).combine_chunks() for column in counts.schema.names}

    def add_columns(self, name: str, columns: dict[str, pa.Array], missing: int) -> None:
        """Add counts that `to_columns` gave."""
        self.missing += missing
        if len(columns[f"{name}.rows"]):
            self._add(pa.table({key: columns[f"{name}.{key}"] for key in [*self._keys, "rows"]}))


class LogSummary:
    """Events of a log, or of a part of it.

    Parameters
    ----------
    grid
        Over the arrivals.
    groups
        Number of groups of splits.
    keys
        Columns of the key; none: keys are not counted.

    Attributes
    ----------
    events, late : numpy.ndarray of int64, shape (groups, cells)
        Events, and those of them that are behind the watermark in force when they arrive.
    least_ms, greatest_ms : numpy.ndarray of int64, shape (groups, cells)
        Event times; 2**63 - 1 and -2**63 where there is no event.
    least_delay_ms, greatest_delay_ms, delays_ms : numpy.ndarray of float64, shape (groups, cells)
        Delay of arrivals after event times: least and greatest (infinite without an event), and sum.
    behind, ahead : numpy.ndarray of int64, shape (len(LATENESS_MS) + 1,)
        Numbers of events by distance behind the watermark, 0 ms included, and ahead of it.
    before_watermark : int
        Events that came before the first watermark.
    keys, late_keys : KeyCounts
        Counts of the keys of all events, and of those behind the watermark.
    """

    def __init__(self, grid: ArrivalGrid, groups: int, keys: Sequence[str]) -> None:
        self.grid = grid
        self._key_columns = tuple(keys)
        shape = groups, grid.cells
        self.events, self.late = np.zeros((2, *shape), np.int64)
        self.least_ms = np.full(shape, MAX_TIMESTAMP)
        self.greatest_ms = np.full(shape, MIN_TIMESTAMP)
        self.least_delay_ms, self.greatest_delay_ms = np.full(shape, np.inf), np.full(shape, -np.inf)
        self.delays_ms = np.zeros(shape)
        self.behind, self.ahead = np.zeros((2, len(LATENESS_MS) + 1), np.int64)
        self.before_watermark = 0
        self.keys = KeyCounts(keys)
        self.late_keys = KeyCounts(keys)

    def add(self, events: LogEvents, groups: npt.NDArray[np.integer], watermark_ms: Int64s) -> None:
        """Add events.

        Parameters
        ----------
        events
            Their batches have the columns of the key.
        groups : numpy.ndarray of integers, shape (n_rows,)
            Into which their splits fall.
        watermark_ms : numpy.ndarray of int64, shape (n_rows,)
            In force when each arrives.
        """
        if not len(groups):
            return
        cells = groups * self.grid.cells + self.grid.cell_of(events.arrivals)
        is_late = events.timestamps <= watermark_ms
        self.events += np.bincount(cells, minlength=self.events.size).reshape(self.events.shape)
        self.late += np.bincount(cells[is_late], minlength=self.late.size).reshape(self.late.shape)
        # As floats, since differences of far times do not overflow there.
        delay = events.arrivals.astype(np.float64) - events.timestamps
        self.delays_ms += np.bincount(cells, delay, minlength=self.events.size).reshape(self.events.shape)
        for ufunc, ends, values in (
            (np.minimum, self.least_ms, events.timestamps),
            (np.maximum, self.greatest_ms, events.timestamps),
            (np.minimum, self.least_delay_ms, delay),
            (np.maximum, self.greatest_delay_ms, delay),
        ):
            ufunc.at(ends.reshape(-1), cells, values)
        has_watermark = watermark_ms > MIN_TIMESTAMP
        self.before_watermark += len(groups) - int(has_watermark.sum())
        distance = watermark_ms.astype(np.float64) - events.timestamps
        self.behind += _binned(distance[is_late])
        self.ahead += _binned(-distance[has_watermark & ~is_late])
        self.keys.add_rows(events.batch)
        if self._key_columns and is_late.any():
            self.late_keys.add_rows(events.batch.filter(pa.array(is_late)))

    def merge_bytes(self, data: bytes) -> None:
        """Add the events that `to_bytes` packed."""
        header, columns = read_columns("LogSummary", data)
        cells = columns["cells"].to_numpy()
        for name, ufunc in _CELL_COLUMNS.items():
            of_all = getattr(self, name).reshape(-1)
            of_all[cells] = ufunc(of_all[cells], columns[name].to_numpy())
        self.behind += columns["behind"].to_numpy()
        self.ahead += columns["ahead"].to_numpy()
        self.before_watermark += header["before_watermark"]
        self.keys.add_columns("keys", columns, header["missing"])
        self.late_keys.add_columns("late_keys", columns, header["late_missing"])

    def to_bytes(self) -> bytes:
        """Return all that is known, for another process."""
        cells = np.flatnonzero(self.events)
        columns = {name: getattr(self, name).reshape(-1)[cells] for name in _CELL_COLUMNS}
        key_columns = self.keys.to_columns("keys") | self.late_keys.to_columns("late_keys")
        header = {
            "before_watermark": self.before_watermark,
            "missing": self.keys.missing,
            "late_missing": self.late_keys.missing,
        }
        return write_columns(
            "LogSummary",
            header,
            {"cells": cells, "behind": self.behind, "ahead": self.ahead} | columns | key_columns,
        )


_CELL_COLUMNS: Final = {
    "events": np.add,
    "late": np.add,
    "least_ms": np.minimum,
    "greatest_ms": np.maximum,
    "least_delay_ms": np.minimum,
    "greatest_delay_ms": np.maximum,
    "delays_ms": np.add,
}


def _binned(distance_ms: npt.NDArray[np.float64]) -> Int64s:
    bins = np.searchsorted(np.array(LATENESS_MS), distance_ms, side="right")
    return np.bincount(bins, minlength=len(LATENESS_MS) + 1)


@dataclass(frozen=True)
class SummariseChunk:
    """Summarises a chunk; picklable.

    Attributes
    ----------
    plan
        Plan of the log; only times and keys are read.
    time_plane
        Time plane of the log.
    timeline
        As its operator sees it.
    grid
        Over the arrivals.
    groups : numpy.ndarray of int64, shape (n_splits,)
        The group of each split.
    first_split
        Number of the first split among those of all logs.
    """

    plan: LogPlan
    time_plane: TimePlane
    timeline: Timeline
    grid: ArrivalGrid
    groups: Int64s
    first_split: int

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield the summary."""
        summary = LogSummary(self.grid, int(self.groups.max(initial=0)) + 1, self.plan.key.names)
        for read in ChunkReader(self.plan, self.time_plane).read(chunk):
            events = read.events
            splits = events.splits + np.int32(self.first_split)
            steps = self.timeline.steps_before(events.arrivals, splits, events.positions)
            summary.add(events, self.groups[events.splits], self.timeline.watermark_after(steps))
        yield summary.to_bytes()


@dataclass(frozen=True)
class SummarisedLog:
    """A log as pictures show it.

    Attributes
    ----------
    plan
        Plan of the log.
    time_plane
        Its own.
    timeline
        As its operator sees it.
    summary
        Summary of its events.
    split_names
        Names of the groups: the busiest splits, and a name for the others, if there are more.
    shown_splits
        Numbers of the splits that have a group of their own.
    """

    plan: LogPlan
    time_plane: TimePlane
    timeline: Timeline
    summary: LogSummary
    split_names: tuple[str, ...]
    shown_splits: tuple[int, ...]

    @property
    def grid(self) -> ArrivalGrid:
        """Over the arrivals."""
        return self.summary.grid

    @cached_property
    def watermark_ms(self) -> Int64s:
        """The merged watermark at the edges of the cells, shape (cells + 1,); -2**63 before the first."""
        steps = self.timeline.steps_before_arrivals(self.grid.edges_ms)
        return self.timeline.watermark_after(steps)


def summarised_log(planned: PlannedJob, log: int) -> SummarisedLog | None:
    """Read times and keys of a log once more; return their summary, or None if no event comes to its operator.

    Parameters
    ----------
    planned
        The job.
    log
        Number of the log.
    """
    time_plane = planned.time_planes[log]
    if not time_plane.events or time_plane.replay_range is None:
        return None
    job_time = JobTime(planned.plan.streams, planned.time_planes, planned.checkpoints.cuts)
    timeline = job_time.replay_times()[planned.plan.stage_of_log(log)].timeline
    splits = time_plane.splits
    grid = ArrivalGrid.over(*splits.arrival_range)
    busiest = np.argsort(-splits.events, kind="stable")
    one_more = len(busiest) == MOST_SPLITS + 1
    shown = busiest[: MOST_SPLITS + one_more]
    groups = np.full(len(busiest), len(shown), np.int64)
    groups[shown] = np.arange(len(shown))
    names = [_split_name(splits.values[split]) for split in shown]
    if len(busiest) > len(shown):
        names.append(f"{len(busiest) - len(shown):,} other splits")
    plan = replace(planned.plan.logs[log], read=frozenset()).narrowed()
    summary = LogSummary(grid, len(names), plan.key.names)
    task = SummariseChunk(plan, time_plane.for_reading(), timeline, grid, groups, job_time.first_splits[log])
    for data in planned.on_chunks(log, task):
        summary.merge_bytes(data)
    if not summary.events.any():  # filters behind the watermarks have left none
        return None
    return SummarisedLog(
        planned.plan.logs[log], time_plane, timeline, summary, tuple(names), tuple(shown.tolist())
    )


def _split_name(value: Any) -> str:
    return "the log" if value is None else str(value)


class Firings:
    """Result rows of windows by the clock at which they fired.

    Parameters
    ----------
    grid
        Over the clock.
    timeline
        As the windows see it.
    last_arrival_ms
        Last arrival of all logs.
    emitted_at
        Column with the times, or None if only the times of what watermarks fire are known, from the timeline.

    Attributes
    ----------
    on_time, late : numpy.ndarray of int64, shape (cells,)
        Rows that fired in time, and after their end by a late event.
    at_end : int
        Rows that the end of the log fired.
    without_time : int
        Rows that late events fired, of which the times are not known.
    """

    def __init__(
        self, grid: ArrivalGrid, timeline: Timeline, last_arrival_ms: int, emitted_at: str | None = None
    ) -> None:
        self.grid = grid
        self.columns = ("late_firing", "watermark", *([] if emitted_at is None else [emitted_at]))
        self._emitted_at = emitted_at
        self._timeline, self._times = timeline, EmissionTimes(timeline, last_arrival_ms)
        self.on_time, self.late = np.zeros((2, grid.cells), np.int64)
        self.at_end = self.without_time = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Count rows, of which `columns` are known."""
        is_late = rows.column("late_firing").to_numpy(zero_copy_only=False)
        if self._emitted_at is not None:
            clock_ms = rows.column(self._emitted_at).cast(pa.int64()).fill_null(NOT_KNOWN).to_numpy()
        else:
            steps = self._timeline.steps_below(rows.column("watermark").to_numpy())
            clock_ms = self._times.of_steps(steps)
        is_end = clock_ms == NOT_KNOWN
        self.at_end += int(np.count_nonzero(is_end))
        self._count(clock_ms[~is_late & ~is_end], self.on_time)
        late_ms = clock_ms[is_late & ~is_end]
        if self._emitted_at is not None:
            self._count(late_ms, self.late)
        else:  # the watermark may have come long before the late event
            self.without_time += len(late_ms)

    def _count(self, clock_ms: Int64s, rows: Int64s) -> None:
        rows += np.bincount(self.grid.cell_of(clock_ms), minlength=self.grid.cells)
