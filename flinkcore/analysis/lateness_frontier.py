"""The frontier of completeness and delay: what every bound of out-of-orderness loses, and how long results wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from os import PathLike
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.durations import shown_duration, shown_share
from flinkcore._internal.show.html import html_lines
from flinkcore._internal.show.tables import shown_table
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.lateness import first_clocks
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, longest_ms
from flinkcore.common.time import Duration, Interval, bound_ms, interval_ms
from flinkcore.datastream.graph.pipeline_executor import load_analysis
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.errors import ConfigurationError
from flinkcore.time_plane.timeline import Timeline

_SCHEMA: Final = pa.schema(
    [
        ("window", pa.string()),
        ("allowed_lateness_ms", pa.int64()),
        ("bound_ms", pa.int64()),
        ("late_for_watermark", pa.int64()),
        ("late_for_watermark_share", pa.float64()),
        ("late", pa.int64()),
        ("late_share", pa.float64()),
        ("windows", pa.int64()),
        ("incomplete", pa.int64()),
        ("incomplete_share", pa.float64()),
        ("incomplete_for_good", pa.int64()),
        ("fired_on_time", pa.int64()),
        ("open_at_end", pa.int64()),
        ("wait_median_ms", pa.int64()),
        ("wait_p99_ms", pa.int64()),
        ("wait_max_ms", pa.int64()),
    ]
)


def shown_windows(window: WindowsByTime) -> str:
    """Return windows in words, such as "tumbling windows of 1 h"."""
    if isinstance(window, LocalEventTimeWindows):
        return f"tumbling windows of {window}"
    size, offset = shown_duration(window.size_ms), window.offset_ms
    shift = f", shifted by {shown_duration(offset)}" if offset else ""
    if isinstance(window, SlidingEventTimeWindows):
        return f"sliding windows of {size} every {shown_duration(window.slide_ms)}{shift}"
    if isinstance(window, CumulativeEventTimeWindows):
        return f"cumulative windows of up to {size}, growing by {shown_duration(window.step_ms)}{shift}"
    return f"tumbling windows of {size}{shift}"


_SHARES: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0001, 0.0)
"""Largest loss of each bound that a text shows."""

_MATTERS: Final = 0.2
"""Least share that is worth a line of advice."""

MANY: Final = 0.01
"""Share of lost events above which their likely causes are named."""

_UNEVEN: Final = 1.5
"""Least multiple of its even share of late events for which a split is named."""

_FAR: Final = 10
"""Multiple of the usual time between two events of a split that counts as far more."""

_BAR_WIDTH: Final = 24


class Waits(NamedTuple):
    """Time from the ends of windows to their first firing.

    Attributes
    ----------
    fired_on_time : int
        Windows that fire because the watermark reaches their end, at the latest at the end of the log.
    open_at_end : int
        Number of windows that only the end of the log fires; the delay of their results is unknown.
    median_ms, p99_ms, max_ms : int or None
        Delays of the other windows, or None if there are no others or arrivals are not a clock.
    """

    fired_on_time: int
    open_at_end: int
    median_ms: int | None
    p99_ms: int | None
    max_ms: int | None


@dataclass(frozen=True, eq=False)
class WindowLateness:
    """Lateness of the windows of one assigner; a window is a stretch of the time axis, whatever the keys.

    Attributes
    ----------
    window
        The assigner.
    allowed_lateness_ms
        As asked for.
    late : numpy.ndarray of int64, shape (n_lateness, n_bounds)
        Events that are late for all their windows.
    max_timestamp_ms : numpy.ndarray of int64, shape (n_windows,)
        Last moments of the windows that have events, ascending.
    opened_behind_ms, last_behind_ms : numpy.ndarray of int64, shape (n_windows,)
        Distance of the window's last moment behind the watermark of bound 0 when its first event arrives, and its last
        one: under bounds up to that, the event is late. -1 if that is not late.
    """

    window: WindowsByTime
    allowed_lateness_ms: tuple[int, ...]
    late: Int64s
    max_timestamp_ms: Int64s
    opened_behind_ms: Int64s
    last_behind_ms: Int64s

    @cached_property
    def _last_in_order(self) -> Int64s:
        return np.sort(self.last_behind_ms)

    @property
    def windows(self) -> int:
        """Number of windows that have events."""
        return len(self.max_timestamp_ms)

    def incomplete(self, bound_ms: int, allowed_lateness_ms: int = 0) -> int:
        """Return the number of windows that get an event after their first firing and an allowed lateness."""
        behind = min(bound_ms + allowed_lateness_ms, MAX_TIMESTAMP)
        return self.windows - int(np.searchsorted(self._last_in_order, behind, side="left"))

    def waits(self, bound_ms: int, timeline: Timeline, own_bound_ms: int, has_clock: bool) -> Waits:
        """Return how long results wait under a bound.

        Parameters
        ----------
        bound_ms
        timeline, own_bound_ms
            The timeline under another bound, and that bound.
        has_clock
            Whether arrivals are a clock.
        """
        on_time = self.opened_behind_ms < bound_ms
        fired = first_clocks(timeline.steps, own_bound_ms, self.max_timestamp_ms, bound_ms)
        chosen = on_time[: len(fired)]
        waits = (fired - 1 - self.max_timestamp_ms[: len(fired)])[chosen]
        n_on_time = int(np.count_nonzero(on_time))
        if not has_clock or len(waits) == 0:
            return Waits(n_on_time, n_on_time - len(waits), None, None, None)
        ranks = [ceil(share * len(waits)) - 1 for share in (0.5, 0.99)]
        waits.partition(ranks)
        median_ms, p99_ms = waits[ranks].tolist()
        return Waits(n_on_time, n_on_time - len(waits), median_ms, p99_ms, int(waits.max()))


@dataclass(frozen=True, eq=False)
class SplitLateness:
    """Late events of each split, and its hold on the watermark.

    Attributes
    ----------
    values : list
        Values of the split column, in split order.
    events : numpy.ndarray of int64, shape (n_splits,)
    loses_none_ms : numpy.ndarray of int64, shape (n_splits,)
        The least bound under which none of its events is late for the watermark.
    late : numpy.ndarray of int64, shape (n_splits, n_shown)
        Events late for the watermark, at the bounds that a table has.
    late_at_own : numpy.ndarray of int64, shape (n_splits,)
        Events late for the watermark under the stream's own bound.
    late_after_leaps : numpy.ndarray of int64, shape (n_splits,)
        Number of these that come while the watermark is where a single advance by more
        than this bound has brought it.
    holds_ms : numpy.ndarray of int64, shape (n_splits,)
        Time during which the merged watermark was the split's own, on the clock of arrivals.
    held_back_ms : numpy.ndarray of int64, shape (n_splits,)
        Mean rise of the merged watermark without the split, over the time of the log.
    silence_ms : numpy.ndarray of int64, shape (n_splits,), or None
        The longest time without an arrival, from the first arrival of the log to the last, or None if the rows
        of the log have no order.
    span_ms : int
        From the first arrival of the log to the last.
    """

    values: list[Any]
    events: Int64s
    loses_none_ms: Int64s
    late: Int64s
    late_at_own: Int64s
    late_after_leaps: Int64s
    holds_ms: Int64s
    held_back_ms: Int64s
    silence_ms: Int64s | None
    span_ms: int

    def usual_gap_ms(self, split: int) -> int:
        """Return the usual time between arrivals of a split: the mean without its longest silence."""
        silence_ms = 0 if self.silence_ms is None else int(self.silence_ms[split])
        return (self.span_ms - silence_ms) // max(int(self.events[split]), 1)


@dataclass(frozen=True, eq=False, repr=False)
class LatenessFrontier:
    """Loss of events and delay of results for every bound of out-of-orderness.

    Figures are exact: those of a replay with that bound. Late events are counted at `bounds_ms`.

    Attributes
    ----------
    events : int
        That filters and rejections have left.
    filtered, rejected : int
        Other rows of the log.
    own_bound_ms : int
        Bound of the stream's strategy.
    largest_disorder_ms : int
        The least bound under which no event is late for the watermark.
    bounds_ms : numpy.ndarray of int64, shape (n_bounds,)
        Ascending from 0 up to `largest_disorder_ms`: every ms up to 100 ms, every 10 ms up to 1 s, then steps of 0.1 s
        up to 1 min, 1 s up to 1 h, 1 min up to a day, 10 min up to 10 days, 1 h up to 100 days, and so on; and the
        stream's own. Or those that were asked for.
    late_for_watermark : numpy.ndarray of int64, shape (n_bounds,)
        Events with a timestamp not above the watermark in force when they arrive.
    by_window : tuple of WindowLateness
    splits : SplitLateness
    idleness_ms : int or None
        Idle timeout of the stream's strategy.
    why_no_waits : str or None
        Why there is no telling how long results wait.
    doubts : tuple of str
        Doubts about the times, which would make the figures those of another log.
    causes : tuple of str
        Likely causes of the late events under the stream's own bound, each with what to change; none if they are few.
    tables : tuple of str
        Name of the table of a lake that the log is, with the version or snapshot that was read; empty if it is none.
    """

    events: int
    filtered: int
    rejected: int
    own_bound_ms: int
    largest_disorder_ms: int
    bounds_ms: Int64s
    late_for_watermark: Int64s
    by_window: tuple[WindowLateness, ...]
    splits: SplitLateness
    idleness_ms: int | None
    why_no_waits: str | None
    doubts: tuple[str, ...]
    causes: tuple[str, ...]
    tables: tuple[str, ...]
    _highest_ms: int = field(repr=False)
    _shown_ms: Int64s = field(repr=False)
    _timeline: Timeline = field(repr=False)

    # ---- tables ----------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Return the figures at some 300 bounds from 0 up to the largest disorder.

        Returns
        -------
        pyarrow.Table
            Ordered by window, allowed lateness and bound. ``window`` (string) and ``allowed_lateness_ms``: null where
            no window was stated, as is then all that is of windows. ``bound_ms``. ``late_for_watermark`` and its share:
            events whose timestamp is not above the watermark when they arrive. ``late`` and its share: events late for
            all their windows, which are dropped or go to the side output. ``windows``: how many have events.
            ``incomplete`` and its share: windows that get an event after they have fired for the first time, or whose
            end the watermark had passed before. ``incomplete_for_good``: windows that lack an event even after the
            allowed lateness. ``fired_on_time``: windows that fire because the watermark reaches their end.
            ``open_at_end``: those of them that only the end of the log fires. ``wait_median_ms``, ``wait_p99_ms``,
            ``wait_max_ms``: how long after its end, on the clock of arrivals, such a window fires, those open at the
            end left out (of n waits the one of rank ceil(n / 2), and of rank ceil(0.99 n)).
        """
        return self._table(self._shown_ms.tolist())

    def at(self, *bounds: Interval) -> pa.Table:
        """Return the figures at given bounds.

        Parameters
        ----------
        *bounds : Time, Duration, datetime.timedelta or int (ms)
            Bounds that are in `bounds_ms`, or above the largest disorder.

        Returns
        -------
        pyarrow.Table
            As of `to_arrow`.

        Raises
        ------
        ConfigurationError
            If late events were not counted at a bound.
        """
        asked = [bound_ms(bound, "bound") for bound in bounds]
        for bound in asked:
            self._place(bound)
        return self._table(asked)

    def _place(self, bound: int, counted_ms: Int64s | None = None, what: str = "late events") -> int:
        """Return where a bound lies among those counted at, by default `bounds_ms`.

        From the largest disorder on, where nothing is late, it is the last of `bounds_ms`.
        """
        counted_ms = self.bounds_ms if counted_ms is None else counted_ms
        if bound > self._highest_ms:
            raise ConfigurationError(
                f"figures are exact up to a bound of {shown_duration(self._highest_ms)}, as timestamps less a higher "
                f"one do not fit into 64 bits; take one below {shown_duration(bound)}"
            )
        if bound >= self.largest_disorder_ms:
            return len(self.bounds_ms) - 1
        at = int(np.searchsorted(counted_ms, bound))
        if at == len(counted_ms) or counted_ms[at] != bound:
            near = [shown_duration(int(each)) for each in counted_ms[max(at - 1, 0) : at + 1]]
            raise ConfigurationError(
                f"{what} were not counted at a bound of {shown_duration(bound)}, but at {' and '.join(near)}. "
                "Take one of these, or name yours in bounds=[...]"
            )
        return at

    def _table(self, bounds: Sequence[int]) -> pa.Table:
        rows: list[dict[str, Any]] = []
        late_shares = self.late_for_watermark / max(self.events, 1)
        for windows, number in self._kinds():
            waits = {} if windows is None else self._waits(windows, bounds)
            for bound in bounds:
                at = self._place(bound)
                row: dict[str, Any] = {
                    "bound_ms": bound,
                    "late_for_watermark": int(self.late_for_watermark[at]),
                    "late_for_watermark_share": float(late_shares[at]),
                }
                if windows is not None:
                    late, incomplete = int(windows.late[number, at]), windows.incomplete(bound)
                    lateness_ms, wait = windows.allowed_lateness_ms[number], waits[bound]
                    row |= {
                        "window": shown_windows(windows.window),
                        "allowed_lateness_ms": lateness_ms,
                        "late": late,
                        "late_share": late / max(self.events, 1),
                        "windows": windows.windows,
                        "incomplete": incomplete,
                        "incomplete_share": incomplete / max(windows.windows, 1),
                        "incomplete_for_good": windows.incomplete(bound, lateness_ms),
                        "fired_on_time": wait.fired_on_time,
                        "open_at_end": wait.open_at_end,
                        "wait_median_ms": wait.median_ms,
                        "wait_p99_ms": wait.p99_ms,
                        "wait_max_ms": wait.max_ms,
                    }
                rows.append(row)
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def _kinds(self) -> Iterator[tuple[WindowLateness | None, int]]:
        if not self.by_window:
            yield None, 0
        for windows in self.by_window:
            for number in range(len(windows.allowed_lateness_ms)):
                yield windows, number

    def _waits(self, windows: WindowLateness, bounds: Sequence[int]) -> dict[int, Waits]:
        known = self._timeline, self.own_bound_ms, self.why_no_waits is None
        return {bound: windows.waits(bound, *known) for bound in bounds}

    # ---- decisions -------------------------------------------------------------------------------------------

    def bound_that_loses(
        self,
        share: float,
        window: WindowAssigner[Any, Any] | None = None,
        allowed_lateness: Interval | None = None,
    ) -> Duration:
        """Return the least of `bounds_ms` under which at most a share of the events is lost.

        Parameters
        ----------
        share : float
            From 0 to 1, such as 0.001.
        window, allowed_lateness
            Lost events are those that are late for all their windows of this assigner, after this lateness; the default
            is the first of each. Without windows, events that are late for the watermark are lost.

        Returns
        -------
        Duration

        Raises
        ------
        ConfigurationError
            If it is not a share, or these windows were not stated.
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ConfigurationError(f"the share of events that may be lost is from 0 to 1, not {share!r}")
        return Duration.of_millis(self._bound_of(share, self._lost(window, allowed_lateness)))

    def _bound_of(self, share: float, lost: Int64s) -> int:
        return int(self.bounds_ms[np.argmax(lost <= share * self.events)])

    def bound_that_delays(
        self,
        delay: Interval,
        window: WindowAssigner[Any, Any] | None = None,
        at_most_share: float = 0.99,
    ) -> Duration:
        """Return the greatest of `bounds_ms` under which results wait no longer than a delay.

        Parameters
        ----------
        delay : Time, Duration, datetime.timedelta or int (ms)
            From the end of a window to its first firing, on the clock of arrivals.
        window
            Windows whose delay counts; by default the first one stated. Without windows, or without a clock, the bound
            itself is the delay.
        at_most_share : float
            The share of results that wait no longer: 0.5, 0.99 or 1.

        Returns
        -------
        Duration

        Raises
        ------
        ConfigurationError
            If even without a bound results wait longer, or these windows were not stated.
        """
        delay_ms = interval_ms(delay, "delay")
        waited = {0.5: 2, 0.99: 3, 1: 4}.get(at_most_share)
        if waited is None:
            raise ConfigurationError(f"at_most_share is 0.5, 0.99 or 1, not {at_most_share!r}")
        windows = self._windows(window)
        if delay_ms < 0:
            raise ConfigurationError(f"a delay is not negative, but {shown_duration(delay_ms)}")
        if windows is None or self.why_no_waits is not None:
            at = int(np.searchsorted(self.bounds_ms, delay_ms, side="right")) - 1
            return Duration.of_millis(int(self.bounds_ms[at]))

        def is_soon(bound: int) -> bool:
            wait = self._waits(windows, [bound])[bound][waited]
            return wait is not None and wait <= delay_ms

        soon = [each for each in self._shown_ms.tolist() if is_soon(each)]
        if not soon:
            least = int(self._shown_ms[0])
            wait = self._waits(windows, [least])[least][waited]
            if wait is None:
                raise ConfigurationError(
                    "no window fires before the end of the log: nobody knows how long results wait"
                )
            of_splits = "; by_split() shows which split holds the watermark back"
            raise ConfigurationError(
                f"under a bound of {shown_duration(least)} {shown_share(at_most_share)} of the results come within "
                f"{shown_duration(wait, 2)}, so no bound makes them come within {shown_duration(delay_ms)}"
                f"{of_splits if len(self.splits.values) > 1 else ''}"
            )
        low = self._place(min(soon[-1], self.largest_disorder_ms))
        high = int(
            np.searchsorted(
                self.bounds_ms, self._shown_ms[self._shown_ms > soon[-1]].min(initial=MAX_TIMESTAMP)
            )
        )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_soon(int(self.bounds_ms[middle])) else (low, middle)
        return Duration.of_millis(int(self.bounds_ms[low]))

    def _windows(self, window: WindowAssigner[Any, Any] | None) -> WindowLateness | None:
        if window is None:
            return self.by_window[0] if self.by_window else None
        for each in self.by_window:
            if each.window == window:
                return each
        stated = "; ".join(each.window.in_words for each in self.by_window) or "none"
        raise ConfigurationError(f"lateness was not counted for {window.in_words}; windows stated: {stated}")

    def _lost(self, window: WindowAssigner[Any, Any] | None, allowed_lateness: Interval | None) -> Int64s:
        """Lost events at each bound."""
        windows = self._windows(window)
        if windows is None:
            if allowed_lateness is not None:
                raise ConfigurationError("allowed_lateness is of windows, but none were stated")
            return self.late_for_watermark
        if allowed_lateness is None:
            of_first: Int64s = windows.late[0]
            return of_first
        lateness_ms = interval_ms(allowed_lateness, "allowed_lateness")
        if lateness_ms not in windows.allowed_lateness_ms:
            stated = ", ".join(map(shown_duration, windows.allowed_lateness_ms))
            raise ConfigurationError(
                f"lateness was not counted for an allowed lateness of {shown_duration(lateness_ms)}; stated: {stated}"
            )
        late: Int64s = windows.late[windows.allowed_lateness_ms.index(lateness_ms)]
        return late

    # ---- splits ----------------------------------------------------------------------------------------------

    def by_split(self, bound: Interval | None = None) -> pa.Table:
        """Return which splits bring the late events, and which hold the watermark back.

        Parameters
        ----------
        bound : Time, Duration, datetime.timedelta or int (ms), optional
            Bound that `to_arrow` has, or above the largest disorder; by default the stream's own.

        Returns
        -------
        pyarrow.Table
            Ordered by ``late_for_watermark``, then ``holds_ms``, the greatest first. ``split``, ``events``,
            ``late_for_watermark`` and its share in the split's events; ``loses_none_ms``: the least bound under which
            none of its events is late; ``late_after_leaps``: of those late under the own bound, how many come while the
            watermark stands where one advance by more than this bound has brought it, as an event far ahead of the
            others does (null where the own bound is 0); ``holds_ms``: how long the merged watermark was this split's;
            ``holds_share``: its share in the holds of all splits; ``held_back_ms``: how much higher the merged
            watermark would be without the split, in the mean over the time of the log (0 while another one stands as
            low; a split that has no watermark yet holds it back by the time since the log began); ``silence_ms``: the
            longest time in which nothing arrived (null where rows have no order).

        Raises
        ------
        ConfigurationError
            If events of splits were not counted at the bound.
        """
        asked = self.own_bound_ms if bound is None else bound_ms(bound, "bound")
        splits = self.splits
        at = self._place(asked, self._shown_ms, "events of splits")
        late = (
            splits.late[:, at] if asked < self.largest_disorder_ms else np.zeros(len(splits.values), np.int64)
        )
        all_holds_ms = max(int(splits.holds_ms.sum()), 1)
        order = np.lexsort((-splits.holds_ms, -late))
        unknown = pa.nulls(len(order), pa.int64())
        return pa.table(
            {
                "split": splits.values,
                "events": splits.events,
                "late_for_watermark": late,
                "late_for_watermark_share": late / np.maximum(splits.events, 1),
                "loses_none_ms": splits.loses_none_ms,
                "late_after_leaps": pa.array(splits.late_after_leaps) if self.own_bound_ms else unknown,
                "holds_ms": splits.holds_ms,
                "holds_share": splits.holds_ms / all_holds_ms,
                "held_back_ms": splits.held_back_ms,
                "silence_ms": unknown if splits.silence_ms is None else pa.array(splits.silence_ms),
            }
        ).take(pa.array(order))

    def shown_splits(self, rows: int = 20) -> str:
        """Return the first rows of `by_split` for people: under the own bound, with durations and percentages."""
        table = self.by_split()
        shown: dict[str, Any] = {"split": table["split"], "events": table["events"]}
        shown |= {
            "late": table["late_for_watermark"],
            "of its events": _shares(table["late_for_watermark_share"]),
        }
        if self.own_bound_ms:
            shown["late after leaps"] = table["late_after_leaps"]
        shown |= {
            "needs a bound of": _durations(table["loses_none_ms"]),
            "holds the watermark": _durations(table["holds_ms"]),
            "of all holds": _shares(table["holds_share"]),
            "held back in the mean": _durations(table["held_back_ms"]),
        }
        if self.splits.silence_ms is not None:
            shown["silent for up to"] = _durations(table["silence_ms"])
        return shown_table(pa.table(shown), rows)

    # ---- text ------------------------------------------------------------------------------------------------

    def sentence(self, share: float = 0.001) -> str:
        """Return in words which bound loses at most a share of events, what it delays, and what the own one does."""
        bound = self.bound_that_loses(share).to_millis()
        lost = self._lost(None, None) / max(self.events, 1)
        by_own = shown_share(lost[self._place(self.own_bound_ms)])
        own = (
            f"your {shown_duration(self.own_bound_ms)} lose {by_own}"
            if self.own_bound_ms
            else f"without one, {by_own} are lost"
        )
        wait = self._waits(self.by_window[0], [bound])[bound] if self.by_window else None
        if wait is None or self.why_no_waits is not None:
            delays = f"delays results by {shown_duration(bound)}"
        elif wait.median_ms is None or wait.p99_ms is None:
            delays = (
                "then no window fires before the end of the log: nobody knows how long results would wait"
            )
        else:
            delays = (
                f"results of {shown_windows(self.by_window[0].window)} come "
                f"{_shown_delay(wait.median_ms, wait.p99_ms, 'the end of their window')}"
            )
        return (
            f"A bound of {shown_duration(bound)} loses {shown_share(lost[self._place(bound)])} of the events, and "
            f"{delays}; {own}."
        )

    def sentence_for_delay(self, delay: Interval) -> str:
        """Return in words which bound lets results wait no longer than a delay, and what it loses."""
        bound = self.bound_that_delays(delay).to_millis()
        at = self._place(bound)
        lost = self._lost(None, None)
        what = "Results that wait"
        if self.by_window and self.why_no_waits is None:
            what = f"Results of {shown_windows(self.by_window[0].window)} of which 99 % wait"
        return (
            f"{what} no longer than {shown_duration(interval_ms(delay, 'delay'))} allow a bound of "
            f"{shown_duration(bound)}, which loses {shown_share(lost[at] / max(self.events, 1))} of the events."
        )

    def sentence_for_splits(self) -> str | None:
        """Return in words which split holds the watermark back most and whether an idle timeout helps, or None."""
        splits = self.splits
        if len(splits.values) < 2:
            return None
        split = int(np.argmax(splits.held_back_ms))
        held_back_ms, usual_ms = int(splits.held_back_ms[split]), splits.usual_gap_ms(split)
        if held_back_ms <= max(self.own_bound_ms, _FAR * usual_ms):
            return None
        text = (
            f"Split {splits.values[split]} holds the watermark back: without it, the watermark would be "
            f"{shown_duration(held_back_ms, 2)} higher in the mean."
        )
        silence_ms = 0 if splits.silence_ms is None else int(splits.silence_ms[split])
        if self.idleness_ms is None and splits.events[split] == 1:
            text += (
                f" It has one event, and is silent for up to {shown_duration(silence_ms, 2)}: with an idleness the "
                "others do not wait for it."
            )
        elif self.idleness_ms is None and silence_ms > _FAR * usual_ms:
            text += (
                f" It is silent for up to {shown_duration(silence_ms, 2)}, but its events usually come "
                f"{shown_duration(usual_ms, 2)} apart: with an idleness well between the two, the others do not "
                "wait for it."
            )
        return text

    def __repr__(self) -> str:
        windows = "".join(f", {shown_windows(each.window)}" for each in self.by_window)
        return (
            f"LatenessFrontier({self.events:,} events, {_counted(len(self.splits.values), 'split')}, out of order by "
            f"up to {shown_duration(self.largest_disorder_ms)}{windows})"
        )

    def __str__(self) -> str:
        of = f"{_counted(self.events, 'event')} of {_counted(len(self.splits.values), 'split')}"
        lost_rows = {"rejected": self.rejected, "filtered out": self.filtered}
        others = [
            f"{_counted(n, 'row')} {'were' if n > 1 else 'was'} {what}" for what, n in lost_rows.items() if n
        ]
        of += f" ({', '.join(others)})" if others else ""
        if not self.events:
            return of
        disorder = f"out of order by up to {shown_duration(self.largest_disorder_ms)}"
        return "\n".join(
            [
                f"{of}, {disorder if self.largest_disorder_ms else 'none late under any bound'}",
                *(f"read as {table}" for table in self.tables),
                *self.doubts,
                self.sentence(),
                *(line for kind in self._kinds() for line in self._picture(*kind)),
                *self._advice(),
            ]
        )

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write the frontier as a page with pictures and the text, which is one file and needs no network.

        Pictures are of the first window and allowed lateness.

        Parameters
        ----------
        path
            A local file, which is replaced.
        title
            Title of the page.

        Raises
        ------
        ConfigurationError
            If a library of ``flinkcore[report]`` is not installed.
        SourceError
            If the page cannot be written.
        """
        load_analysis("lateness_page")(self, path, title)

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def _picture(self, windows: WindowLateness | None, number: int) -> list[str]:
        """Return the lines of the loss under bounds at which it falls below a tenth, a twentieth, and so on."""
        lost = self.late_for_watermark if windows is None else windows.late[number]
        own = min(self.own_bound_ms, self.largest_disorder_ms)
        bounds = sorted({int(self.bounds_ms[0]), own, *(self._bound_of(share, lost) for share in _SHARES)})
        names = ["bound", "loses", "events"]
        title = "Lost are events late for their watermark:"
        waits: dict[int, Waits] = {}
        if windows is not None:
            waits = self._waits(windows, bounds)
            names += ["incomplete windows", "wait (median)", "99 %", "longest"]
            title = (
                f"Lost are events late for all their {shown_windows(windows.window)}, allowed lateness "
                f"{shown_duration(windows.allowed_lateness_ms[number])}; incomplete are windows when they fire first:"
            )
        rows = [names]
        for bound in bounds:
            late = int(lost[self._place(bound)])
            cells = [shown_duration(bound), shown_share(late / self.events), f"{late:,}"]
            if windows is not None:
                cells.append(f"{windows.incomplete(bound):,} of {windows.windows:,}")
                cells += ["-" if wait is None else _shown_wait(wait) for wait in waits[bound][2:]]
            rows.append(cells)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        aligned = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        most = max(int(lost[0]), 1)
        bars = ["", *(_bar(int(lost[self._place(bound)]) / most) for bound in bounds)]
        return ["", title, *(f"  {line}  {bar}".rstrip() for line, bar in zip(aligned, bars, strict=True))]

    def _advice(self) -> list[str]:
        """Return the advice: which splits matter, and what would help besides a bound."""
        lines = [""]
        if self.by_window and self.why_no_waits is not None:
            lines.append(f"How long results wait is not known: {self.why_no_waits}.")
        splits, own = self.splits, shown_duration(self.own_bound_ms)
        late, after_leaps = int(splits.late_at_own.sum()), int(splits.late_after_leaps.sum())
        if self.own_bound_ms and late and after_leaps > _MATTERS * late:
            turns_idle = ", or a split that turns idle," if self.idleness_ms is not None else ""
            lines.append(
                f"{shown_share(after_leaps / late)} of the events late for the watermark under your bound come while "
                f"it stands where one advance by more than {own} has brought it. An event far ahead of the others"
                f"{turns_idle} does that: for_percentile_out_of_orderness does not follow such events."
            )
        if self._lost(None, None)[self._place(self.own_bound_ms)] > MANY * self.events:
            lines += self.causes
        if len(splits.values) < 2:
            return lines if len(lines) > 1 else []
        if late:
            most = self.by_split().slice(0, 3).to_pylist()
            named = (
                f"{row['split']} ({row['late_for_watermark']:,})" for row in most if row["late_for_watermark"]
            )
            is_even = most[0]["late_for_watermark"] < _UNEVEN * late / len(splits.values)
            where = "all splits alike" if is_even else f"splits {', '.join(named)}"
            lines.append(
                f"{_counted(late, 'event')} {'are' if late > 1 else 'is'} late for the watermark under your bound, "
                f"{'of' if is_even else 'most of'} {where}."
            )
        held_back = self.sentence_for_splits() or self._waits_for_silent_splits()
        if held_back is not None:
            lines.append(held_back)
        return lines if len(lines) > 1 else []

    def _waits_for_silent_splits(self) -> str | None:
        """Return what to do if splits hold the watermark back in turn, so that no single one of them would help."""
        if self.idleness_ms is not None or not self.by_window or self.why_no_waits is not None:
            return None
        splits, windows = self.splits, self.by_window[0]
        if splits.silence_ms is None:
            return None
        wait_ms = self._waits(windows, [self.own_bound_ms])[self.own_bound_ms].median_ms
        silence_ms = int(np.median(splits.silence_ms[splits.events > 0]))
        size_ms = longest_ms(windows.window)
        is_long = wait_ms is None or wait_ms - self.own_bound_ms > size_ms
        if not is_long or silence_ms <= size_ms:
            return None
        return (
            f"Results wait for splits that have no events: half of them are silent for {shown_duration(silence_ms, 2)} "
            "or longer. Splits that always have some, such as the Kafka partition, or an idleness, would let results "
            "come earlier."
        )


def _shown_wait(wait_ms: int) -> str:
    return shown_duration(wait_ms, 2) if wait_ms >= 0 else f"{shown_duration(-wait_ms, 2)} early"


def _shown_delay(median_ms: int, p99_ms: int, end: str) -> str:
    """Return when results come, as seen from an end."""
    median, p99 = (shown_duration(abs(wait_ms), 2) for wait_ms in (median_ms, p99_ms))
    if median_ms >= 0:
        return f"{median} after {end} (median; 99 % within {p99})"
    if p99_ms >= 0:
        return f"{median} before {end} (median; 99 % within {p99} after it)"
    return f"{median} before {end} (median; 99 % at least {p99} before it)"


def _durations(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([shown_duration(duration_ms, 2) for duration_ms in column.to_pylist()], pa.string())


def _shares(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([shown_share(share) for share in column.to_pylist()], pa.string())


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _bar(share: float) -> str:
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
