"""Warnings of late events: how many, and the likely causes in the times of the log, with the line that mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.arrow.column_ops import shown_column
from flinkcore._internal.show.durations import shown_duration, shown_share
from flinkcore._internal.show.times import format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.log.files.topic_paths import COLUMNS
from flinkcore.log.sources.chunks import Chunk, ChunkTask
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.time_plane.time_warnings import goes_back, order_advice
from flinkcore.time_plane.timeline import Timeline, TimePlane

OnChunks: TypeAlias = Callable[[int, ChunkTask], Iterator[bytes]]
"""Runs a task on each chunk of the log with a number, and yields its results in log order."""

_MOST_CAUSES: Final = 2
_MOST_LEAPS: Final = 8
_FEW: Final = 10
"""Events ahead are few if they make so many times as many late."""

_KIND: Final = "EventsAroundLeaps"


def late_warnings(
    plan: JobPlan,
    time_planes: Sequence[TimePlane],
    counts: Sequence[tuple[int, int]],
    on_chunks: OnChunks | None,
) -> list[str]:
    """Return a warning for each operator that loses a larger share of its events as late than the job accepts.

    Parameters
    ----------
    plan : JobPlan
        The job.
    time_planes : sequence of TimePlane
        Result of the first pass over each log.
    counts : sequence of (int, int)
        Late events, and all events that came to the operator, of each operator.
    on_chunks : callable or None
        Reads a log again, in search of one event far ahead of the others. None if logs cannot be read now.

    Returns
    -------
    list of str
        The share, what became of the late events, and the likely causes with what to change.
    """
    return [
        LossWarning.of(plan, number, time_planes, late, on_chunks).text(late, events)
        for number, (late, events) in enumerate(counts)
        if late > plan.late_share_warning * events
    ]


@dataclass(frozen=True)
class LossWarning:
    """Warning of late events of an operator, except for their number; it holds texts alone.

    Attributes
    ----------
    operator : str
        Which operator it is, in words; empty if the job has only one.
    fate : str
        Fate of the late events.
    causes : tuple of str
        Likely causes, each with what to change.
    """

    operator: str
    fate: str
    causes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        plan: JobPlan,
        number: int,
        time_planes: Sequence[TimePlane],
        late: int,
        on_chunks: OnChunks | None,
    ) -> LossWarning:
        """Return the warning of an operator, by its number from 0 on, that has so many late events.

        Other parameters are as of `late_warnings`.
        """
        stage = plan.stages[number]
        tags = [repr(tag.tag_id) for tag in stage.operator.late_tags if tag is not None]
        causes = [
            f"{'' if plan.is_single else f'Log {log}: '}{cause}"
            for log in stage.logs
            for cause in causes_of_lateness(
                plan.logs[log],
                time_planes[log],
                late,
                None if on_chunks is None else partial(on_chunks, log),
            )
            or [_bound_advice(plan.logs[log])]
        ]
        return cls(
            "" if plan.is_single else f" of operator {number + 1} ({stage.uid})",
            f"go to the side output {' or '.join(tags)}" if tags else "are dropped",
            tuple(causes[:_MOST_CAUSES]),
        )

    def text(self, late: int, events: int, is_sample: bool = False) -> str:
        """Return the warning.

        Parameters
        ----------
        late, events : int
            Late events, and all events that came to the operator.
        is_sample : bool
            Whether these are the counts of a sample of the events.
        """
        about, sample = ("About ", " in a sample") if is_sample else ("", "")
        head = f"{about}{shown_share(late / events)} of the events{self.operator} are late and {self.fate}"
        return " ".join([f"{head}: {late:,} of {events:,}{sample}.", *self.causes])


def causes_of_lateness(
    plan: LogPlan,
    time_plane: TimePlane,
    late: int,
    on_chunks: Callable[[ChunkTask], Iterator[bytes]] | None,
) -> list[str]:
    """Return why events of a log are late, the likeliest cause first.

    Parameters
    ----------
    plan : LogPlan
        The log.
    time_plane : TimePlane
        Result of the first pass over it.
    late : int
        Number of late events.
    on_chunks : callable or None
        Runs a task on each chunk of the log. None if it cannot be read now.

    Returns
    -------
    list of str
        Sentences that say what to change; none if only the bound is too low.
    """
    log = plan.log
    columns = [name for name in log.source.schema.names if name.lower() in COLUMNS]
    one_split = _one_split_advice(columns) if log.split is None else None
    goes = goes_back(time_plane.splits)
    if on_chunks is not None:
        with suppress(Exception):  # the results are there: what only explains them fails nothing
            ahead = _event_ahead(plan, time_plane, late, on_chunks)
            if ahead is not None:
                return [ahead]
    causes = [
        one_split if columns else None,
        f"Arrivals go back: {order_advice(plan)}." if goes else None,
        _order_of_rows(plan),
        None if columns or goes or log.arrival is None else one_split,
        _idle_split(plan, time_plane),
    ]
    return [cause for cause in causes if cause is not None]


def _one_split_advice(columns: Sequence[str]) -> str:
    """Return how to split a log that is one split, by columns that seem to hold Kafka's partition if there are any."""
    named = f"give split={columns[0]!r} (--split {columns[0]})" if columns else ""
    return (
        "The log is taken as one split, in which a source that is ahead makes the events of all others late: "
        f"{named or 'name the column that tells sources apart (split=, --split), such as the Kafka partition'}."
    )


def _order_of_rows(plan: LogPlan) -> str | None:
    log = plan.log
    if log.arrival is not None or log.position is not None:
        return None
    name, is_computed = shown_column(log.timestamp, plan.before)
    orders = not is_computed and name in log.schema.names
    position = f"position={name!r} (--position {name})" if orders else "position= (--position)"
    several = isinstance(log.source, LogFiles) and len(log.source.files) > 1 and log.has_positions
    by_file = (
        ", or split=FILE (--split-per-file), if each file is in order"
        if several and log.split is None
        else ""
    )
    return (
        f"The log has no arrival=, so its events arrive in the order of the rows, which is not that of {name!r}: name "
        "the column of when each event reached the system (arrival=, --arrival), or "
        f"{position}, which takes the events in the order of "
        f"{'their event times, so that none is late' if orders else 'a column'}{by_file}."
    )


def _idle_split(plan: LogPlan, time_plane: TimePlane) -> str | None:
    splits = time_plane.splits
    if plan.strategy.idleness_ms is None or len(splits.values) < 2 or not len(splits.idle_split):
        return None
    idle_ms = np.zeros(len(splits.values), np.int64)
    np.add.at(idle_ms, splits.idle_split, splits.idle_to_ms - splits.idle_from_ms)
    split = int(np.argmax(idle_ms))
    return (
        f"Split {splits.values[split]!r} was idle for {shown_duration(int(idle_ms[split]), 2)} in all: the others do "
        f"not wait for an idle split, and its next events may be late. An idleness above {_idleness(plan)}, or none, "
        "makes them wait."
    )


def _idleness(plan: LogPlan) -> str:
    assert plan.strategy.idleness_ms is not None
    return shown_duration(plan.strategy.idleness_ms)


def _bound_advice(plan: LogPlan) -> str:
    bound_ms = plan.strategy.out_of_orderness_ms
    if bound_ms is None:
        return "The watermark strategy is ahead of the events: compare others by what_if([...])."
    return (
        f"The events are out of order by more than the bound of {shown_duration(bound_ms)}: lateness() of the stream, "
        "or flinkcore lateness, shows how many each bound loses."
    )


# ---- an event far ahead --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaps:
    """Advances of the watermark after which it stands for long; each array has shape (n_leaps,).

    Attributes
    ----------
    from_ms, at_ms, soon_ms, to_ms : numpy.ndarray of int64
        On the replay clock: the step before, the leap, a quarter of the time to the next step, and that step.
    before_ms, watermark_ms : numpy.ndarray of int64
        Watermark before the leap, at least the least event time; and after it.
    middle_ms : numpy.ndarray of int64
        Event time in the middle between both.
    """

    from_ms: Int64s
    at_ms: Int64s
    soon_ms: Int64s
    to_ms: Int64s
    before_ms: Int64s
    watermark_ms: Int64s
    middle_ms: Int64s


def _leaps(timeline: Timeline, time_plane: TimePlane) -> _Leaps:
    """Find the leaps; an advance that the events make up for soon is none."""
    last_ms, least_ms = time_plane.last_arrival_ms, int(time_plane.splits.min_timestamp_ms.min())
    assert last_ms is not None
    farthest = np.empty((5, 0), np.int64)
    known_ms = np.array([[MIN_TIMESTAMP], [MIN_TIMESTAMP]])
    for block in timeline.blocks():
        known_ms = np.concatenate((known_ms, np.stack((block.clock_ms, block.watermark_ms))), axis=1)
        farthest = _farthest(farthest, known_ms, least_ms)
        known_ms = known_ms[:, -2:]  # of the last step it is not known yet how long it lasts
    end_ms = np.array([[max(last_ms, int(known_ms[0, -1]))], [MAX_TIMESTAMP]])
    farthest = _farthest(farthest, np.concatenate((known_ms, end_ms), axis=1), least_ms)
    from_ms, at_ms, to_ms, before_ms, watermark_ms = farthest
    return _Leaps(
        from_ms=from_ms,
        at_ms=at_ms,
        soon_ms=at_ms + ((to_ms.astype(np.float64) - at_ms) / 4).astype(np.int64),
        to_ms=to_ms,
        before_ms=before_ms,
        watermark_ms=watermark_ms,
        middle_ms=before_ms // 2 + watermark_ms // 2,
    )


def _farthest(leaps: Int64s, steps_ms: Int64s, least_ms: int) -> Int64s:
    """Return the farthest of some leaps and of the steps between the first and the last one of these, in their order.

    Parameters
    ----------
    leaps : numpy.ndarray of int64, shape (5, n_leaps)
        As `_Leaps` has them: from, at and to; the watermarks before and after.
    steps_ms : numpy.ndarray of int64, shape (2, n_steps)
        Clocks and watermarks.
    least_ms : int
        Least event time.
    """
    clock_ms, watermark_ms = steps_ms
    before_ms = np.maximum(watermark_ms[:-2], least_ms - 1)
    leaps = np.concatenate(
        (leaps, np.stack((clock_ms[:-2], clock_ms[1:-1], clock_ms[2:], before_ms, watermark_ms[1:-1]))),
        axis=1,
    )
    _, at_ms, to_ms, before_ms, watermark_ms = leaps
    # As floats, since differences of far times do not overflow there.
    rises, stands = (
        after.astype(np.float64) - before for after, before in ((watermark_ms, before_ms), (to_ms, at_ms))
    )
    far = np.argsort(-np.minimum(rises, stands), kind="stable")[:_MOST_LEAPS]
    return leaps[:, np.sort(far[(rises[far] > 0) & (stands[far] > 0)])]


@dataclass(frozen=True)
class _CountAroundLeaps:
    """Counts the events of a chunk that are ahead or late around leaps; picklable.

    Attributes
    ----------
    plan : LogPlan
    time_plane : TimePlane
        For reading.
    leaps : _Leaps
    """

    plan: LogPlan
    time_plane: TimePlane
    leaps: _Leaps

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield the counts, and the event of the greatest time before each leap."""
        leaps = self.leaps
        n_leaps = len(leaps.at_ms)
        ahead, late = np.zeros((2, n_leaps), np.int64)
        greatest_ms, names = np.full(n_leaps, MIN_TIMESTAMP), [""] * n_leaps
        for read in ChunkReader(self.plan, self.time_plane).read(chunk):
            times, arrivals = read.events.timestamps, read.events.arrivals
            if not len(times):
                continue
            for leap in range(n_leaps):
                near = (arrivals > leaps.from_ms[leap]) & (arrivals <= leaps.soon_ms[leap])
                ahead[leap] += np.count_nonzero(near & (times >= leaps.middle_ms[leap]))
                behind = (arrivals > leaps.at_ms[leap]) & (arrivals <= leaps.to_ms[leap])
                passed = (times > leaps.before_ms[leap]) & (times <= leaps.watermark_ms[leap])
                late[leap] += np.count_nonzero(behind & passed)
                before: npt.NDArray[np.int64] = np.where(arrivals <= leaps.at_ms[leap], times, MIN_TIMESTAMP)
                row = int(np.argmax(before))
                if before[row] > max(greatest_ms[leap], leaps.middle_ms[leap] - 1):
                    greatest_ms[leap] = before[row]
                    names[leap] = self._name(chunk, read.events.splits[row], read.events.positions[row])
        columns: dict[str, Any] = {"ahead": ahead, "late": late, "greatest_ms": greatest_ms, "names": names}
        yield write_columns(_KIND, {}, columns)

    def _name(self, chunk: Chunk, split: int, position: int) -> str:
        """Name the row of an event as far as its place in the log is known."""
        is_known, value = chunk.only_split(self.plan.log.split)
        if self.time_plane.by_arrival:
            return "an event" if is_known and value is None else f"an event of split {self._value(split)!r}"
        if not is_known:
            return f"an event of split {self._value(split)!r} in {chunk.label}"
        starts = self.time_plane.starts
        return chunk.row_name(int(position - starts.base[starts.entries(chunk.index)][0]))

    def _value(self, split: int) -> Any:
        return self.time_plane.split_values[split]


def _event_ahead(
    plan: LogPlan, time_plane: TimePlane, all_late: int, on_chunks: Callable[[ChunkTask], Iterator[bytes]]
) -> str | None:
    """Return which event has moved the watermark far ahead of the others, or None if none made most events late."""
    if not time_plane.events or not time_plane.timeline.steps_before_end:
        return None
    leaps = _leaps(time_plane.timeline, time_plane)
    n_leaps = len(leaps.at_ms)
    ahead, late = np.zeros((2, n_leaps), np.int64)
    greatest_ms, names = np.full(n_leaps, MIN_TIMESTAMP), [""] * n_leaps
    if not n_leaps:
        return None
    reading = replace(plan, read=frozenset()).narrowed()
    for given in on_chunks(_CountAroundLeaps(reading, time_plane.for_reading(), leaps)):
        _, columns = read_columns(_KIND, given)
        ahead += columns["ahead"].to_numpy()
        late += columns["late"].to_numpy()
        of_chunk = columns["greatest_ms"].to_numpy()
        for leap in np.flatnonzero(of_chunk > greatest_ms).tolist():
            names[leap] = columns["names"][leap].as_py()
        greatest_ms = np.maximum(greatest_ms, of_chunk)
    late[(ahead == 0) | (ahead * _FEW > late) | (greatest_ms == MIN_TIMESTAMP)] = 0
    leap = int(np.argmax(late))
    if 2 * late[leap] <= all_late:
        return None
    name, is_computed = shown_column(plan.log.timestamp, plan.before)
    condition = "a condition" if is_computed else f"pc.field({name!r}) < ..."
    return (
        f"A clock was ahead: {names[leap]} has the event time {format_timestamp(int(greatest_ms[leap]))}, and "
        f"{late[leap]:,} events that arrived after it are late. Filter such events out by .filter({condition}) before "
        "the watermark strategy, or take WatermarkStrategy.for_percentile_out_of_orderness, which does not follow them."
    )
