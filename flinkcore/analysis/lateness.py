"""Loss of events and delay of results under every bound of out-of-orderness, computed from a planned job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.durations import shown_duration
from flinkcore._internal.show.times import format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.lateness import windows_of_slices
from flinkcore.analysis.bounds import COUNTED, SHOWN, bounds_up_to
from flinkcore.analysis.lateness_count import (
    CountLateness,
    add_counts,
    highest_exact_bound,
    require_bound,
    require_time_windows,
)
from flinkcore.analysis.lateness_frontier import MANY, LatenessFrontier, SplitLateness, WindowLateness
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, window_bounds
from flinkcore.columnar.operator_plans.operator_plan import OperatorWindows
from flinkcore.columnar.planned_job import PlannedJob
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.results.late_events import causes_of_lateness
from flinkcore.common.time import Interval, bound_ms
from flinkcore.datastream.window import WindowAssigner
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.time_plane.timeline import TimePlane

_AHEAD_MS: Final = 45 * 60_000
"""Less than that is usual of times of plans; times of another time zone are ahead by more."""

_DAY_MS: Final = 86_400_000
_YEARS_MS: Final = 3_653 * _DAY_MS
"""Ten of them; no log of a time measured from elsewhere reaches so far."""


def lateness_of(
    planned: PlannedJob,
    windows: Sequence[WindowAssigner[Any, Any]] | None = None,
    allowed_lateness: Sequence[Interval] | None = None,
    bounds: Sequence[Interval] | None = None,
) -> LatenessFrontier:
    """Return what every bound of out-of-orderness loses in the log of a job.

    Parameters
    ----------
    planned : PlannedJob
        Job of one log.
    windows : sequence of WindowAssigner, optional
        Tumbling, sliding or cumulative windows of event time; by default those of the job's first operator, if it is
        such a window over columns.
    allowed_lateness : sequence of Duration or Time, optional
        Allowed lateness, counted for each of the windows; by default that of the job's first operator, or 0.
    bounds : sequence of Duration or Time, optional
        Bounds at which late events are counted, besides the strategy's own; default: `LatenessFrontier.bounds_ms`.

    Raises
    ------
    ConfigurationError
        If the job has several logs or is restored from a checkpoint, its strategy has no bound, or a setting is
        invalid.
    DataError
        If timestamps lie at the ends of 64 bits, where watermarks are not exact under every bound.
    """
    plan = planned.plan
    if len(plan.logs) > 1:
        raise ConfigurationError(
            f"lateness is that of one log, but the job has {len(plan.logs)}: ask the stream of each before they meet"
        )
    if planned.checkpoints.cuts:
        raise ConfigurationError(
            "The loss of a bound is known only for a log from its beginning, but this job resumes from a "
            "checkpoint, with the watermarks of an earlier log"
        )
    log = plan.logs[0]
    own_ms = require_bound(log.strategy)
    if windows is None:
        windows = _own_windows(plan)
    kinds = [require_time_windows(window) for window in windows]
    latenesses = (
        _own_lateness(plan)
        if allowed_lateness is None
        else [bound_ms(each, "allowed_lateness") for each in allowed_lateness]
    )
    if allowed_lateness is not None and not kinds:
        raise ConfigurationError("allowed_lateness is of windows, but none were stated")
    if kinds and not latenesses:
        raise ConfigurationError("allowed_lateness names no length of time: leave it out, or name one")
    asked = None if bounds is None else [bound_ms(each, "bound") for each in bounds]

    planned.keep_times()
    time_plane = planned.time_planes[0]
    highest = highest_exact_bound(time_plane)
    for each in (own_ms, *(asked or ())):
        if each > highest:
            raise DataError(
                f"the least timestamp less a bound of {shown_duration(each)} does not fit into 64 bits: take a lower "
                "bound, or filter such rows out before timestamps are assigned"
            )
    if asked is None:
        reach_ms = _reach(time_plane, own_ms)
        counted = _joined(bounds_up_to(min(reach_ms, highest), COUNTED), [own_ms], highest)
        shown = _joined(np.intersect1d(bounds_up_to(reach_ms, SHOWN), counted), [own_ms], highest)
    else:
        counted = shown = _joined(np.array(asked, np.int64), [own_ms], highest)
    groups = np.searchsorted(np.searchsorted(counted, shown), np.arange(len(counted) + 1)).astype(np.int32)
    task = CountLateness.of(log, time_plane, counted, groups, kinds, latenesses)
    counter, filtered, rejected = task.counter(), 0, 0
    for given in planned.on_times(task):
        of_chunk = add_counts(counter, given)
        filtered, rejected = filtered + of_chunk[0], rejected + of_chunk[1]
    counts = counter.counts()
    largest = int(counts["split_loses_none_ms"].max(initial=0))
    # Under the largest disorder nothing is late.
    bounds_ms = _joined(counted[counted < largest], [largest])
    known = counted[counted < largest]
    shown_ms = shown if asked is not None else _joined(shown[shown < largest], [own_ms, largest])
    splits = _of_splits(counts, time_plane, shown, shown_ms, own_ms)
    causes: tuple[str, ...] = ()
    late = int(splits.late_at_own.sum())
    if late > MANY * splits.events.sum():
        # Another reading, which names the event ahead, only where one explains most late events.
        has_leapt = 2 * int(splits.late_after_leaps.sum()) > late
        on_chunks = partial(planned.on_chunks, 0) if has_leapt else None
        causes = tuple(causes_of_lateness(log, time_plane, late, on_chunks))
    return LatenessFrontier(
        events=int(counts["split_events"].sum()),
        filtered=filtered,
        rejected=rejected,
        own_bound_ms=own_ms,
        largest_disorder_ms=largest,
        bounds_ms=bounds_ms,
        late_for_watermark=_late(counts["late"], len(known)),
        by_window=tuple(
            _of_window(counts, number, window, latenesses, len(counted), len(known))
            for number, window in enumerate(kinds)
        ),
        splits=splits,
        idleness_ms=log.strategy.idleness_ms,
        why_no_waits=None
        if log.log.arrival is not None
        else "the log has no arrival, and positions are no clock",
        doubts=tuple(_doubts(time_plane, own_ms, largest, log.log.arrival is not None)),
        causes=causes,
        tables=tuple(plan.tables),
        _highest_ms=highest,
        _shown_ms=shown_ms,
        _timeline=time_plane.timeline,
    )


def _doubts(time_plane: TimePlane, own_ms: int, largest_ms: int, has_arrivals: bool) -> Iterator[str]:
    """Yield the doubts about the times of a log, in words."""
    splits = time_plane.splits
    live = np.flatnonzero(splits.events > 0)
    if not len(live):
        return
    least, greatest = int(splits.min_timestamp_ms[live].min()), int(splits.max_timestamp_ms[live].max())
    if 0 <= least < _DAY_MS and greatest > _YEARS_MS:
        yield (
            f"The least event time is {format_timestamp(least)}: times that are missing are often written so. Filter "
            "such rows out, or they count as late events."
        )
    if not has_arrivals:
        if largest_ms == 0 and int(splits.events.sum()) > 1:
            yield (
                "The rows lie in the order of their event times, and no column says when they arrived: which of them "
                "were late cannot be known. Name the column of when each event reached the system, if there is one."
            )
        return
    first, last = splits.arrival_range
    if first == last:
        if int(splits.events.sum()) > 1:
            yield (
                f"All events have the arrival {format_timestamp(last)}, so none is late. If that is when the log was "
                "written or loaded, name the column of when each event reached the system."
            )
        return
    times = zip(splits.max_timestamp_ms[live].tolist(), splits.last_arrival_ms[live].tolist(), strict=True)
    ahead_ms = [timestamp - arrival for timestamp, arrival in times]
    most_ms = max(ahead_ms)
    if most_ms <= max(own_ms, _AHEAD_MS):
        return
    split, by = splits.values[live[ahead_ms.index(most_ms)]], shown_duration(most_ms, 2)
    newest = (
        f"The newest event time is {by} after the last arrival"
        if len(splits.values) == 1
        else f"The newest event time of split {split} is {by} after its last arrival"
    )
    yield f"{newest}: a clock is ahead, or times are of another zone. The watermark of a split follows its newest time."


def _own_windows(plan: JobPlan) -> list[WindowAssigner[Any, Any]]:
    windows = _native_windows(plan)
    if windows is None or windows.trigger is not None:
        return []
    try:
        return [require_time_windows(windows.assigner)]
    except ConfigurationError:
        return []


def _own_lateness(plan: JobPlan) -> list[int]:
    windows = _native_windows(plan)
    return [0 if windows is None else windows.allowed_lateness_ms]


def _native_windows(plan: JobPlan) -> OperatorWindows | None:
    """The windows of the first operator, if they are over columns."""
    stage = plan.stages[0]
    return stage.windows if stage.operator.gives_firings else None


def _reach(time_plane: TimePlane, own_ms: int) -> int:
    """Return from which bound on no event can be late."""
    timeline = time_plane.timeline
    if timeline.steps_before_end == 0 or time_plane.events == 0:
        return 0
    reach_ms = timeline.watermark_before_end + own_ms - int(time_plane.splits.min_timestamp_ms.min()) + 1
    return min(max(reach_ms, 0), MAX_TIMESTAMP)


def _joined(bounds: Int64s, more: Sequence[int], highest: int = MAX_TIMESTAMP) -> Int64s:
    joined = np.union1d(bounds, np.array(more, np.int64))
    return joined[joined <= highest]


def _late(late: Int64s, known: int) -> Int64s:
    """Late events at the first bounds, and none at the one after; from events by how many bounds they are late at."""
    from_end = np.cumsum(late[..., ::-1], axis=-1)[..., ::-1]
    result: Int64s = np.concatenate(
        (from_end[..., 1 : known + 1], np.zeros((*late.shape[:-1], 1), np.int64)), axis=-1
    )
    return result


def _of_window(
    counts: dict[str, Int64s],
    number: int,
    window: WindowsByTime,
    latenesses: Sequence[int],
    n_bounds: int,
    known: int,
) -> WindowLateness:
    order = np.argsort(counts[f"{number}.slice"])
    slices = (counts[f"{number}.{name}"][order] for name in ("slice", "least_ms", "greatest_ms"))
    max_timestamp_ms, least_ms, greatest_ms = windows_of_slices(
        *slices,
        **window_bounds(window),
    )
    late = counts[f"{number}.late"].reshape(len(latenesses), n_bounds + 1)
    return WindowLateness(
        window,
        tuple(latenesses),
        _late(late, known),
        max_timestamp_ms,
        _behind(least_ms, max_timestamp_ms),
        _behind(greatest_ms, max_timestamp_ms),
    )


def _behind(watermark_ms: Int64s, time_ms: Int64s) -> Int64s:
    """Return how far times lie behind watermarks, at most 2**63 - 1, or -1 for times above the watermark."""
    difference = watermark_ms.view(np.uint64) - time_ms.view(np.uint64)
    behind = np.minimum(difference, np.uint64(MAX_TIMESTAMP)).astype(np.int64)
    return np.where(watermark_ms < time_ms, np.int64(-1), behind)


def _of_splits(
    counts: dict[str, Int64s],
    time_plane: TimePlane,
    shown: Int64s,
    shown_ms: Int64s,
    own_ms: int,
) -> SplitLateness:
    n_splits, at = len(time_plane.split_values), counts["split"]

    def column(name: str) -> Int64s:
        values = np.zeros(n_splits, np.int64)
        values[at] = counts[name]
        return values

    # Under the last of the bounds shown, too, events may be late.
    by_group = counts["split_late"].reshape(len(at), len(shown) + 1)
    late = np.zeros((n_splits, len(shown) + 1), np.int64)
    late[at] = _late(by_group, len(shown))
    holds_ms, held_back_ms = _holds(time_plane)
    place = np.where(np.isin(shown_ms, shown), np.searchsorted(shown, shown_ms), len(shown))
    return SplitLateness(
        values=list(time_plane.split_values),
        events=column("split_events"),
        loses_none_ms=column("split_loses_none_ms"),
        late=late[:, place],
        late_at_own=late[:, np.searchsorted(shown, own_ms)],
        late_after_leaps=column("split_after_leaps"),
        holds_ms=holds_ms,
        held_back_ms=held_back_ms,
        silence_ms=None if time_plane.by_arrival else _silence(time_plane, column("split_silence_ms")),
        span_ms=0 if time_plane.replay_range is None else int(np.diff(time_plane.replay_range)[0]),
    )


def _holds(time_plane: TimePlane) -> tuple[Int64s, Int64s]:
    """Return how long each split held the watermark, in ms, and by how much in the mean over the time of the log."""
    n_splits, holders = len(time_plane.split_values), time_plane.holders
    if time_plane.replay_range is None or not len(holders.split):
        return np.zeros(n_splits, np.int64), np.zeros(n_splits, np.int64)
    first_ms, last_ms = time_plane.replay_range
    spans = np.diff(np.append(holders.clock_ms, max(last_ms, int(holders.clock_ms[-1]))))
    known = holders.split >= 0
    holds = np.zeros(n_splits, np.int64)
    np.add.at(holds, holders.split[known], spans[known])
    shares = spans[known] / max(last_ms - first_ms, 1)
    held_back = np.bincount(holders.split[known], holders.lead_ms[known] * shares, minlength=n_splits)
    return holds, np.minimum(held_back, MAX_TIMESTAMP // 2).astype(np.int64)


def _silence(time_plane: TimePlane, between: Int64s) -> Int64s:
    """Return the longest time without an arrival of each split: between, before or after its arrivals."""
    splits = time_plane.splits
    if time_plane.replay_range is None:
        return between
    first_ms, last_ms = time_plane.replay_range
    live = splits.events > 0
    before = np.where(live, splits.first_arrival_ms, last_ms) - first_ms
    after = last_ms - np.where(live, splits.last_arrival_ms, first_ms)
    silence: Int64s = np.maximum(between, np.maximum(before, after))
    return silence
