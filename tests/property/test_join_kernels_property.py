"""Kernels of joins give what small models give: with few results at a time, and cut by snapshots."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.joins import (
    END,
    IntervalJoinModel,
    JoinModel,
    RegularJoinModel,
    Result,
    Row,
    TemporalJoinModel,
    WindowJoinModel,
)

from flinkcore._native.interval_join import interval_join
from flinkcore._native.join_kernel import JoinKernel, JoinKind
from flinkcore._native.regular_join import regular_join
from flinkcore._native.temporal_join import temporal_join
from flinkcore._native.timers import TimerHeap
from flinkcore._native.window_join import window_join
from flinkcore.time_plane.timeline import Timeline

KEYS = 3
HOW = ("inner", "left", "right", "full", "semi", "anti")
KINDS = ("+I", "-U", "+U", "-D")

Event = tuple[int, int, int]
"""Side, key and timestamp of a row; key 0 matches nothing."""


def meets(left: int, right: int) -> bool:
    return (7 * left + 3 * right) % 4 != 0


def always(left: int, right: int) -> bool:
    return True


class KernelRun:
    """A kernel over rows, a batch at a time. `numbers` has the rows of the test by their numbers in the kernel."""

    def __init__(
        self, make: Any, how: str, has_condition: bool, changes: bool, timeline: Timeline, limit: int
    ) -> None:
        self.make, self.how, self.has_condition = make, how, has_condition
        self.changes, self.timeline, self.limit = changes, timeline, limit
        self.numbers: tuple[list[int], list[int]] = ([], [])
        self.results: list[tuple[int, Result]] = []
        self.first_event = 0
        self.open(0)

    def open(self, steps_done: int) -> None:
        self.timers = TimerHeap(128, (0, 127))
        kind: JoinKind = self.make()
        self.kernel = JoinKernel(
            kind,
            self.timers,
            self.timeline.steps,
            how=self.how,
            has_condition=self.has_condition,
            has_kinds=self.changes,
            steps_done=steps_done,
            result_limit=self.limit,
        )

    def process(self, events: list[Event], steps: list[int], is_window: bool) -> None:
        rows = []
        for number, (side, _, _) in enumerate(events, self.first_event):
            rows.append(len(self.numbers[side]))
            self.numbers[side].append(number)
        times = np.array([time for _, _, time in events], np.int64)
        columns: list[Any] = [
            np.array([key for _, key, _ in events], np.uint32),
            np.array([key * 40 for _, key, _ in events], np.int32),
            np.array([side for side, _, _ in events], np.int8),
            np.array(rows, np.int64),
            times,
            np.array(steps, np.int64),
            np.array([key != 0 for _, key, _ in events], np.uint8),
        ]
        if is_window:
            columns += [times, np.arange(len(events) + 1, dtype=np.int64)]
        taken = 0
        while taken < len(events):
            taken = self.kernel.process(*columns, first=taken)
            self.take()
        self.first_event += len(events)
        self.kernel._check()

    def take(self) -> None:
        passed = None
        if self.has_condition:
            left, right = self.kernel.pairs()
            pairs = zip(left.tolist(), right.tolist(), strict=True)
            passed = np.array([meets(self.numbers[0][a], self.numbers[1][b]) for a, b in pairs], np.uint8)
        results = self.kernel.take(passed)
        kinds = np.zeros(len(results.left), np.uint8) if results.kinds is None else results.kinds
        for left, right, kind, event, step in zip(
            results.left.tolist(),
            results.right.tolist(),
            kinds.tolist(),
            results.events.tolist(),
            results.steps.tolist(),
            strict=True,
        ):
            # An event's results before those of the step after it.
            cause = 2 * (self.first_event + event) + 1_000_000 if event >= 0 else 2 * step
            row = (
                KINDS[kind],
                None if left < 0 else self.numbers[0][left],
                None if right < 0 else self.numbers[1][right],
            )
            self.results.append((cause, row))

    def finish(self) -> None:
        done = False
        while not done:
            done = self.kernel.finish()
            self.take()

    def renumber(self) -> None:
        """Let the kernel forget rows that it does not hold."""
        for side in (0, 1):
            live = self.kernel.live_rows(side)
            numbers, rows = np.unique(live, return_inverse=True)
            self.kernel.renumber(rows.astype(np.int64), side)
            self.numbers[side][:] = [self.numbers[side][number] for number in numbers.tolist()]
        self.kernel._check()

    def resume(self, steps: int) -> None:
        """Go on in another kernel, from a snapshot of this one after so many steps."""
        done = False
        while not done:
            done = self.kernel.advance(steps)
            self.take()
        tables, timers = self.kernel.snapshot(), pa.record_batch(self.timers.snapshot())
        self.open(steps)
        numbers: tuple[list[int], list[int]] = ([], [])
        for name, table in tables.items():
            rows = {}
            for side, column in enumerate(("row", "right_row")):
                if column in table:
                    numbers[side].extend(self.numbers[side][row] for row in table[column].tolist())
                    rows[column] = np.arange(len(table[column]), dtype=np.int64)
            others = pa.record_batch(
                {each: values for each, values in table.items() if each not in ("key", "row", "right_row")}
            )
            self.kernel.restore(name, np.ascontiguousarray(table["key"]), rows, others)
        self.numbers = numbers
        self.timers.restore(timers)
        self.kernel._check()


def modelled(
    model: JoinModel, events: list[Event], steps: list[int], watermarks: list[int]
) -> list[tuple[int, Result]]:
    results: list[tuple[int, Result]] = []
    done = 0

    def advance(until: int) -> None:
        nonlocal done
        while done < until:
            model.advance(watermarks[done])
            results.extend((2 * done, result) for result in model.taken())
            done += 1

    for number, ((side, key, time), before) in enumerate(zip(events, steps, strict=True)):
        advance(before)
        model.process(side, Row(number, key, time, can_match=key != 0))
        results.extend((2 * number + 1_000_000, result) for result in model.taken())
    advance(len(watermarks))
    return results


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[Event], list[int], list[int]]:
    """Events, the steps before each, and the watermarks of all steps, the last of which is the end."""
    watermarks = sorted(draw(st.sets(st.integers(1, 60), max_size=8)))
    time = st.integers(0, 60)
    events = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, KEYS - 1), time), max_size=40))
    steps = sorted(
        draw(st.lists(st.integers(0, len(watermarks)), min_size=len(events), max_size=len(events)))
    )
    return events, steps, [*watermarks, END]


def check(
    make: Any, model: JoinModel, drawn: Any, data: st.DataObject, has_condition: bool, changes: bool = False
) -> None:
    events, steps, watermarks = drawn
    timeline = Timeline.of(
        np.array([*range(len(watermarks) - 1), END], np.int64), np.array(watermarks, np.int64)
    )
    run = KernelRun(make, model.how, has_condition, changes, timeline, data.draw(st.integers(1, 5), "limit"))
    cuts = sorted(data.draw(st.sets(st.integers(1, 40), max_size=4), "cuts"))
    begin = 0
    for end in [*(cut for cut in cuts if cut < len(events)), len(events)]:
        run.process(events[begin:end], steps[begin:end], isinstance(model, WindowJoinModel))
        if end < len(events):
            step = data.draw(st.sampled_from(["go on", "renumber", "resume"]), "step")
            if step == "renumber":
                run.renumber()
            elif step == "resume":
                run.resume(steps[end])
        begin = end
    run.finish()
    run.kernel._check()
    expected = modelled(model, events, steps, watermarks)
    assert sorted(run.results, key=repr) == sorted(expected, key=repr)
    if model.how == "anti":
        return
    for (cause, row), (next_cause, pair) in pairwise([*run.results, (-1, ("+I", None, None))]):
        if row[0] == "-D":
            assert (next_cause, pair[0]) == (cause, "+I"), "a row is withdrawn right before its first match"
            assert row[1] in (None, pair[1])
            assert row[2] in (None, pair[2])


conditions = st.booleans()


@given(inputs(), st.sampled_from(HOW[:4]), st.integers(-6, 6), st.integers(0, 8), conditions, st.data())
@settings(deadline=None, max_examples=examples(300))
def test_an_interval_join(
    drawn: Any, how: str, lower: int, size: int, has_condition: bool, data: st.DataObject
) -> None:
    model = IntervalJoinModel(how, meets if has_condition else always, lower, lower + size)
    check(lambda: interval_join(lower, lower + size), model, drawn, data, has_condition)


@given(inputs(), st.sampled_from(HOW), conditions, st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_window_join(drawn: Any, how: str, has_condition: bool, data: st.DataObject) -> None:
    events, steps, watermarks = drawn
    drawn = [(side, key, time - time % 10 + 10) for side, key, time in events], steps, watermarks
    check(window_join, WindowJoinModel(how, meets if has_condition else always), drawn, data, has_condition)


@given(inputs(), st.sampled_from(HOW), conditions, st.booleans(), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_regular_join(
    drawn: Any, how: str, has_condition: bool, changes: bool, data: st.DataObject
) -> None:
    model = RegularJoinModel(how, meets if has_condition else always, changes)
    check(regular_join, model, drawn, data, has_condition, changes)


@given(inputs(), st.sampled_from(HOW[:2]), conditions, st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_temporal_join(drawn: Any, how: str, has_condition: bool, data: st.DataObject) -> None:
    check(
        temporal_join, TemporalJoinModel(how, meets if has_condition else always), drawn, data, has_condition
    )


@given(st.lists(st.integers(0, 3000), min_size=600, max_size=1500), st.integers(0, 3000), st.integers(0, 300))
@settings(deadline=None, max_examples=examples(30))
def test_rows_out_of_order_of_a_key_with_many(times: list[int], at: int, width: int) -> None:
    events: list[Event] = [(0, 1, time) for time in times] + [(1, 1, at)]
    watermarks = [END]
    timeline = Timeline.of(np.array([END], np.int64), np.array(watermarks, np.int64))
    run = KernelRun(lambda: interval_join(-width, width), "full", False, False, timeline, 1 << 20)
    run.process(events, [0] * len(events), is_window=False)
    run.finish()
    model = IntervalJoinModel("full", always, -width, width)
    assert sorted(run.results, key=repr) == sorted(
        modelled(model, events, [0] * len(events), watermarks), key=repr
    )


def test_a_join_refuses_a_way_that_it_does_not_have() -> None:
    timeline = Timeline.of(np.array([END], np.int64), np.array([END], np.int64))
    with pytest.raises(Exception, match="a temporal join has no how='full'; give one of inner, left"):
        KernelRun(temporal_join, "full", False, False, timeline, 1)
