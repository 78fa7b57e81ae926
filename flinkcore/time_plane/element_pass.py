"""The first pass of a replay whose watermark generator is called event by event.

The columnar pass has found the splits, their arrivals and the ends of the log. Then the operator of each split is run
over its events, in the order of the log, and the valve makes the timeline of what they emit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._native.exchange import total_order
from flinkcore.common.generators.supplied_generators import HeldGenerators
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.emissions import RUN_ROWS, EmissionRuns, Emissions
from flinkcore.time_plane.rowtime_operator import RowtimeOperator
from flinkcore.time_plane.split_operator import SplitOperator, SplitState, SplitStates
from flinkcore.time_plane.tick_clock import TickClock
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timed_log import TimedLog
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.valve_timeline import ValveTimeline

TIMES_AT_ONCE = 1 << 16
"""Events whose times are Python integers at once."""


@dataclass(frozen=True, eq=False)
class PlacedTimes:
    """Timestamps of events and their places in the total order; the events of a split lie in its order.

    Parameters
    ----------
    split : numpy.ndarray of int32, shape (n_rows,)
    position, arrival_ms, timestamp_ms : numpy.ndarray of int64, shape (n_rows,)
    """

    split: Int32s
    position: Int64s
    arrival_ms: Int64s
    timestamp_ms: Int64s

    def by_split(self) -> Iterator[tuple[int, PlacedTimes]]:
        """Yield the events of each split, by its number."""
        if len(self.split) == 0:
            return
        ordered = self
        if (self.split[1:] < self.split[:-1]).any():
            ordered = self.take(np.argsort(self.split, kind="stable"))
        cuts = np.flatnonzero(np.diff(ordered.split)) + 1
        bounds = [0, *cuts.tolist(), len(ordered.split)]
        for start, stop in pairwise(bounds):
            yield int(ordered.split[start]), ordered.take(slice(start, stop))

    @classmethod
    def concatenate(cls, parts: list[PlacedTimes]) -> PlacedTimes:
        """Return all rows of the parts, one part after the other."""
        none = cls(np.empty(0, np.int32), *(np.empty(0, np.int64) for _ in range(3)))
        held = [none, *parts]
        return cls(*(np.concatenate([getattr(part, column.name) for part in held]) for column in fields(cls)))

    def take(self, rows: slice | npt.NDArray[np.intp]) -> PlacedTimes:
        """Some of the rows."""
        return PlacedTimes(*(getattr(self, column.name)[rows] for column in fields(self)))


class ElementPass:
    """The operators of some splits of a log.

    Parameters
    ----------
    strategy : WatermarkStrategy
    interval_ms : int
        The auto-watermark interval.
    time_plane : TimePlane
        Time plane of the columnar pass; there is an event in the replay.
    splits : iterable of int
        Numbers of the splits.
    run_rows : int
        Most emissions of a run.
    cut : TimeCut or None
        Cut at which the log resumes from a checkpoint, or None for its start.
    stops : bool
        Whether the job stops with a checkpoint.

    Raises
    ------
    ConfigurationError, UserCodeError
        If the strategy's supplier gives no generator, or the same for two splits.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        interval_ms: int,
        time_plane: TimePlane,
        splits: Iterable[int],
        run_rows: int = RUN_ROWS,
        cut: TimeCut | None = None,
        stops: bool = False,
    ) -> None:
        assert time_plane.replay_range is not None
        self._clock = TickClock(interval_ms, *time_plane.replay_range)
        values = time_plane.split_values or [None]
        restored: list[SplitState | None] = [None] * len(values)
        if cut is not None and cut.last_arrival_ms is not None:
            self._clock = replace(
                self._clock, restored_opened_ms=cut.opened_ms, stopped_ms=cut.last_arrival_ms
            )
            restored = _restored_states(cut, values)
        self._stops = stops
        self._states: dict[int, SplitState] = {}
        held = HeldGenerators()
        native = RowtimeOperator.supplier_of(strategy)
        self._operators: dict[int, SplitOperator | RowtimeOperator] = {
            split: SplitOperator(strategy, values[split], self._clock, held, restored[split])
            if native is None
            else RowtimeOperator(native, self._clock, restored[split])
            for split in splits
        }
        self._run_rows = run_rows
        self._held: dict[int, int] = {}
        self._n_held = 0
        self._unordered: list[PlacedTimes] | None = [] if time_plane.by_arrival else None

    def add(self, events: PlacedTimes) -> list[Emissions]:
        """Take in events of these splits, those of each split in its order; runs of emissions, if there are enough.

        Where the rows of the log have no positions, events come in any order, and are held until the end.

        Raises
        ------
        UserCodeError
            If a generator raises, or emits something other than a watermark.
        """
        if self._unordered is not None:
            self._unordered.append(events)
            return []
        return self._process(events)

    def _process(self, events: PlacedTimes) -> list[Emissions]:
        runs: list[Emissions] = []
        for split, times in events.by_split():
            for start in range(0, len(times.split), TIMES_AT_ONCE):
                some = times.take(slice(start, start + TIMES_AT_ONCE))
                ticks = self._clock.ticks_of(some.arrival_ms)
                self._operators[split].process(some.position, some.arrival_ms, ticks, some.timestamp_ms)
                runs += self._runs_after(split)
        return runs

    def finish(self) -> Iterator[Emissions]:
        """Let the log end, or stop; the rest of the runs.

        Raises
        ------
        UserCodeError
            If a generator raises, or emits something other than a watermark.
        """
        if self._unordered:
            events, self._unordered = PlacedTimes.concatenate(self._unordered), []
            rows = total_order(events.arrival_ms, events.split, events.position)
            yield from self._process(events if rows is None else events.take(rows.astype(np.intp)))
        for split, operator in self._operators.items():
            if self._stops:
                self._states[split] = operator.stop()
            else:
                operator.finish()
            yield from self._runs_after(split)
        yield from self._take()

    def states(self) -> SplitStates:
        """Return where the operators of these splits stand, if the job stops with a checkpoint; after `finish`."""
        return SplitStates(list(self._states), list(self._states.values()))

    def _runs_after(self, split: int) -> list[Emissions]:
        """Return what is held, if it is enough for a run now that this split may have emitted."""
        n_held = len(self._operators[split].emissions)
        self._n_held += n_held - self._held.get(split, 0)
        self._held[split] = n_held
        return self._take() if self._n_held >= self._run_rows else []

    def _take(self) -> list[Emissions]:
        emissions = Emissions.of({split: self._operators[split].emissions for split in self._held})
        self._held, self._n_held = {}, 0
        starts = range(0, len(emissions), self._run_rows)
        return [Emissions(emissions.rows[start : start + self._run_rows]) for start in starts]


def read_placed_times(timed_log: TimedLog, time_plane: TimePlane, chunk: Chunk) -> Iterator[PlacedTimes]:
    """Yield the times of a chunk's events, batch by batch.

    Raises
    ------
    SourceError
        If the chunk has other rows than in the columnar pass.
    """
    clock = time_plane.enter(chunk.index)
    rows_read = 0
    for timed in timed_log.reader(None).read(chunk):
        rows_read += timed.rows_read
        arrivals, splits, positions = clock.order(timed)
        yield PlacedTimes(splits, positions, arrivals, timed.timestamp_ms)
    time_plane.check_chunk(clock, chunk, rows_read)


def with_emissions(
    time_plane: TimePlane,
    runs: EmissionRuns,
    cut: TimeCut | None = None,
    states: Sequence[SplitStates] = (),
) -> TimePlane:
    """Return the time plane of the columnar pass, with the timeline that the emissions of all splits make.

    Parameters
    ----------
    time_plane : TimePlane
    runs : EmissionRuns
    cut : TimeCut or None
        Cut at which the log resumes from a checkpoint, or None for its start.
    states : sequence of SplitStates
        States of all splits, if the job stops with a checkpoint.
    """
    splits = len(time_plane.split_values)
    merged = ValveTimeline(max(1, splits))
    if cut is not None and cut.last_arrival_ms is not None:
        merged.restore(cut, cut.columns_of(time_plane.split_values or [None]))
    for emissions in runs.in_order():
        merged.add(emissions)
    assert time_plane.replay_range is not None
    idle_split, idle_from_ms, idle_to_ms = (
        column[:splits] if splits == 0 else column for column in merged.idle_spans(time_plane.replay_range[1])
    )
    ends_at = time_plane.cut
    if ends_at is not None:
        ends_at = _with_states(ends_at, merged, SplitStates.concatenate(states))
    return replace(
        time_plane,
        timeline=merged.timeline(stops=ends_at is not None),
        cut=ends_at,
        statuses=merged.statuses(),
        splits=replace(
            time_plane.splits,
            final_watermark_ms=merged.final_watermark_ms[:splits],
            idle_split=idle_split,
            idle_from_ms=idle_from_ms,
            idle_to_ms=idle_to_ms,
        ),
    )


def _restored_states(cut: TimeCut, split_values: Sequence[Any]) -> list[SplitState | None]:
    """Return where the operators of these splits stood; None of a new one."""
    names = "unseen", "watermark_ms", "operator_idle"
    columns = [cut.column(name, split_values).tolist() for name in names]
    generators = dict(zip(cut.split_values, cut.generators or (), strict=False))
    return [
        SplitState(generators[value], bool(unseen), watermark_ms, bool(is_idle))
        if value in generators
        else None
        for value, unseen, watermark_ms, is_idle in zip(split_values, *columns, strict=True)
    ]


def _with_states(cut: TimeCut, merged: ValveTimeline, states: SplitStates) -> TimeCut:
    watermark_ms, columns = merged.state()
    return replace(
        cut,
        watermark_ms=watermark_ms,
        columns=cut.columns | columns | states.columns,
        generators=states.generators,
    )


def run_element_pass(
    timed: TimedLog, time_plane: TimePlane, chunks: Iterable[Chunk], cut: TimeCut | None = None
) -> TimePlane:
    """Run the pass in this process.

    Parameters
    ----------
    timed : TimedLog
        Its strategy has a generator of its own.
    time_plane : TimePlane
        Time plane of the columnar pass.
    chunks : iterable of Chunk
        All chunks, in log order.
    cut : TimeCut or None
        Cut at which the log resumes from a checkpoint, or None for its start.

    Returns
    -------
    TimePlane
        With the timeline of the generators.

    Raises
    ------
    UserCodeError
        If a generator raises, or emits something else than a watermark; names split, position and timestamp.
    SourceError
        If the log has changed since the columnar pass.
    """
    if time_plane.replay_range is None:
        return time_plane
    # A log without splits holds its replay back as one split without events does.
    splits = range(max(1, len(time_plane.split_values)))
    element_pass = ElementPass(
        timed.strategy,
        timed.auto_watermark_interval_ms,
        time_plane,
        splits,
        cut=cut,
        stops=time_plane.cut is not None,
    )
    read = chain.from_iterable(read_placed_times(timed, time_plane, chunk) for chunk in chunks)
    with closing(EmissionRuns()) as runs:
        for number, emissions in enumerate(
            chain(chain.from_iterable(map(element_pass.add, read)), element_pass.finish())
        ):
            runs.add(number, emissions)
        return with_emissions(time_plane, runs, cut, [element_pass.states()])
