"""The kernels of deduplication and highest rows against their models, with few rows, tiny limits and restored state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from models import ranks as models

from flinkcore._native.deduplication import DeduplicationKernel
from flinkcore._native.timers import TimerHeap
from flinkcore._native.top_rows import TopKernel
from flinkcore.time_plane.timeline import Timeline

KINDS = ["+I", "-U", "+U", "-D"]
GROUPS = {0: 3, 1: 3, 2: 5}
TIMES = st.integers(-3, 12)
EVENTS = st.lists(st.tuples(st.sampled_from([0, 1, 2]), TIMES), max_size=30)
"""Keys and timestamps."""

STEPS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=8)
"""For each step of the timeline, how many events come before it, and by how much it raises the watermark."""


class Run:
    """A kernel over events and steps, in calls of some events, whose state moves to new kernels on the way."""

    def __init__(self, steps: list[tuple[int, int]], n: int, made: Any) -> None:
        self.places = sorted(place for place, _ in steps if place <= n)
        watermarks = np.cumsum([rise for _, rise in steps[: len(self.places)]]).astype(np.int64) - 2
        clocks = np.arange(len(self.places))
        self.watermarks = watermarks
        ended = np.append(clocks, 2**63 - 1), np.append(watermarks, 2**63 - 1)
        self.timeline = Timeline.of(*(column.astype(np.int64) for column in ended)).steps
        self.steps_before = np.searchsorted(self.places, np.arange(n), side="right").astype(np.int64)
        self.made = made
        self.timers = TimerHeap()
        self.kernel = made(self.timers, self.timeline, 0)
        self.results: list[tuple[Any, ...]] = []
        self.begin = 0

    def take(self) -> None:
        taken = self.kernel.take()
        kinds = [0] * len(taken.left) if taken.kinds is None else taken.kinds.tolist()
        values = [None] * len(taken.left) if taken.values is None else taken.values.tolist()
        for row, kind, value, event in zip(
            taken.left.tolist(), kinds, values, taken.events.tolist(), strict=True
        ):
            self.results.append((KINDS[kind], row, value, None if event < 0 else self.begin + event))

    def process(self, begin: int, stop: int, keys: list[int], times: list[int], *columns: Any) -> None:
        self.begin = begin
        rows = np.arange(begin, stop)
        of_kernel = (
            np.array(keys[begin:stop], np.uint32),
            np.array([GROUPS[key] for key in keys[begin:stop]], np.int32),
            None,
            rows,
            np.array(times[begin:stop], np.int64),
            self.steps_before[begin:stop],
            *(None if column is None else column[begin:stop] for column in columns),
        )
        first = 0
        while first < stop - begin:
            first = self.kernel.process(*of_kernel, first=first)
            self.take()
            self.kernel._check()

    def until(self, go_on: Any) -> None:
        while not go_on():
            self.take()
        self.take()

    def moved(self, stop: int, rows_of: Any) -> None:
        """Restore the state in another kernel, as the stage does: whatever is due has fired before."""
        done = int(self.steps_before[stop - 1]) if stop else 0
        self.until(lambda: self.kernel.advance(done))
        tables, timers = self.kernel.snapshot(), self.timers.snapshot()
        self.timers = TimerHeap()
        self.timers.restore(timers)
        self.kernel = self.made(self.timers, self.timeline, done)
        for name, table in tables.items():
            columns = {key: value for key, value in table.items() if key not in ("key", "row")}
            rows = {"row": table["row"], **rows_of(table["row"])} if "row" in table else {}
            self.kernel.restore(name, table["key"], rows, pa.record_batch(columns))
        self.kernel._check()


@settings(deadline=None)
@given(
    EVENTS,
    STEPS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 100]),
    st.integers(1, 7),
    st.booleans(),
    st.booleans(),
)
def test_deduplication_is_that_of_the_model(
    events: list[tuple[int, int]],
    steps: list[tuple[int, int]],
    keeps_last: bool,
    by_time: bool,
    changes: bool,
    limit: int,
    at_once: int,
    moves: bool,
    update_before: bool,
) -> None:
    keys, times = [key for key, _ in events], [time for _, time in events]

    def made(timers: TimerHeap, timeline: Any, done: int) -> DeduplicationKernel:
        return DeduplicationKernel(
            timers,
            timeline,
            steps_done=done,
            result_limit=limit,
            keeps_last=keeps_last,
            by_time=by_time,
            changes=changes,
            update_before=update_before,
        )

    run = Run(steps, len(events), made)
    model = models.Deduplication(keeps_last, by_time, changes)
    expected: list[models.Result] = []
    step = 0
    for begin in range(0, len(events), at_once):
        stop = min(begin + at_once, len(events))
        run.process(begin, stop, keys, times)
        live = run.kernel.live_rows()
        run.kernel.renumber(live)
        assert len(live) == run.kernel.live_count
        if moves:
            run.moved(stop, lambda rows: {})
        for number in range(begin, stop):
            while step < run.steps_before[number]:
                if run.watermarks[step] > model.watermark:
                    expected += model.advance(float(run.watermarks[step]))
                step += 1
            expected += model.event(keys[number], number, times[number], number)
    run.until(run.kernel.finish)
    for watermark in run.watermarks[step:].tolist():
        if watermark > model.watermark:
            expected += model.advance(float(watermark))
    expected += model.finish()
    expected = [result for result in expected if update_before or result[0] != "-U"]
    assert Counter(run.results) == Counter(expected)
    by_event = [result for result in run.results if result[3] is not None]
    assert by_event == [result for result in expected if result[3] is not None]
    if not moves:
        counts = run.kernel.counts()
        assert (counts["processed"], counts["late"]) == (len(events) - model.late, model.late)
        assert counts["event_time_timers"] == sum(model.waits and result[3] is None for result in expected)


SORTED = st.tuples(st.integers(0, 3), st.sampled_from(["", "a", "b", "ab", "a" * 40]))


@settings(deadline=None)
@given(st.data())
def test_the_highest_rows_are_those_of_the_model(data: st.DataObject) -> None:
    events = data.draw(EVENTS)
    n_words, has_tails = data.draw(
        st.sampled_from([(1, False), (2, False), (0, True), (1, True), (0, False)])
    )
    skip, n = data.draw(st.sampled_from([0, 0, 1])), data.draw(st.sampled_from([1, 2, 4]))
    rank = data.draw(st.sampled_from(["row_number", "rank", "dense_rank"]))
    latest_first = rank == "row_number" and data.draw(st.booleans())
    of_windows = data.draw(st.booleans())
    changes = not of_windows and data.draw(st.booleans())
    ranks_shown = data.draw(st.booleans())
    of_limits = rank == "row_number" and not of_windows and not skip and data.draw(st.booleans())
    limits = np.array([data.draw(st.integers(-1, 4)) if of_limits else n for _ in events], np.int64)
    limit, at_once = data.draw(st.sampled_from([1, 2, 100])), data.draw(st.integers(1, 7))
    moves = data.draw(st.booleans())
    keys, times = [key for key, _ in events], [time for _, time in events]
    drawn = [data.draw(SORTED) for _ in events]
    ends = [time - time % 4 + 4 for time in times]
    words = np.array([[number, number % 2][:n_words] for number, _ in drawn], np.uint64).reshape(
        len(events), n_words
    )
    tails = [text.encode() if has_tails else b"" for _, text in drawn]
    sort_keys = [(*row.tolist(), tail) for row, tail in zip(words, tails, strict=True)]

    def tails_of(rows: Any) -> dict[str, Any]:
        parts = [tails[row] for row in rows]
        of_rows = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        return {
            "words": np.ascontiguousarray(words[rows]),
            "tail_ends": of_rows if has_tails else None,
            "tails": np.frombuffer(b"".join(parts), np.uint8) if has_tails else None,
        }

    def made(timers: TimerHeap, timeline: Any, done: int) -> TopKernel:
        return TopKernel(
            timers,
            timeline,
            steps_done=done,
            result_limit=limit,
            n=n + skip,
            skip=skip,
            rank=rank,
            n_words=n_words,
            has_tails=has_tails,
            latest_first=latest_first,
            ranks_shown=ranks_shown,
            changes=changes,
            of_windows=of_windows,
            of_limits=of_limits,
        )

    run = Run(data.draw(STEPS), len(events), made)
    model = models.Top(n + skip, skip, rank, latest_first)
    if of_limits:
        model.limits = dict(reversed([*zip(keys, limits.tolist(), strict=True)]))
    expected: list[tuple[int, int]] = []
    step = 0
    for begin in range(0, len(events), at_once):
        stop = min(begin + at_once, len(events))
        of_rows = tails_of(np.arange(begin, stop))
        run.begin = begin
        arguments = (
            np.array(keys[begin:stop], np.uint32),
            np.array([GROUPS[key] for key in keys[begin:stop]], np.int32),
            None,
            np.arange(begin, stop),
            np.array(times[begin:stop], np.int64),
            run.steps_before[begin:stop],
            of_rows["words"],
            of_rows["tail_ends"],
            of_rows["tails"],
            np.array(ends[begin:stop], np.int64) if of_windows else None,
            None,
            limits[begin:stop] if of_limits else None,
        )
        first = 0
        while first < stop - begin:
            first = run.kernel.process(*arguments, first=first)
            run.take()
            run.kernel._check()
        assert sorted(run.kernel.live_rows().tolist()) == sorted(run.kernel.snapshot()["top"]["row"].tolist())
        run.kernel.renumber(run.kernel.live_rows())
        if moves:
            run.moved(stop, tails_of)
        for number in range(begin, stop):
            while step < run.steps_before[number]:
                expected += model.advance(float(run.watermarks[step]))
                step += 1
            model.event(keys[number], number, sort_keys[number], ends[number] if of_windows else None)
        if changes:
            shown = models.materialised(
                run.results, lambda change: (change[1], change[2] if ranks_shown else None)
            )
            current = [shown for place in list(model.rows) for shown in model.of_list(*place)]
            assert Counter(shown) == Counter((row, place if ranks_shown else None) for row, place in current)
    run.until(run.kernel.finish)
    if changes:
        return
    for watermark in run.watermarks[step:].tolist():
        expected += model.advance(float(watermark))
    expected += model.finish()
    found = [(row, rank) for _, row, rank, _ in run.results]
    assert Counter(found) == Counter((row, place if ranks_shown else None) for row, place in expected)
