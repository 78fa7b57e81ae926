"""Where steps of a timeline lie among events."""

import numpy as np
import pytest
from equipment.timelines import packed_steps, timeline_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.packed_steps import PackedSteps, StepPacker
from flinkcore.errors import DataError
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS

PLACES = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3))
TICKS = st.tuples(st.integers(0, 4), st.just(AFTER_ALL_SPLITS), st.just(0))


def columns(places: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    clocks, splits, positions = np.array(places, np.int64).reshape(-1, 3).T.copy()
    return clocks, splits, positions


def packed(places: list[tuple[int, int, int]]) -> PackedSteps:
    clocks, splits, positions = columns(places)
    return packed_steps(clocks, np.arange(len(clocks)), splits, positions)


@settings(deadline=None, max_examples=200)
@given(steps=st.lists(st.one_of(PLACES, TICKS), max_size=40), events=st.lists(PLACES, max_size=40))
def test_a_step_is_before_the_events_that_follow_its_own(
    steps: list[tuple[int, int, int]], events: list[tuple[int, int, int]]
) -> None:
    arrivals, splits, positions = columns(events)
    before = packed(sorted(steps)).steps_before(arrivals, splits.astype(np.int32), positions)
    assert before.tolist() == [sum(step < event for step in steps) for event in events]


@settings(deadline=None, max_examples=100)
@given(
    steps=st.lists(st.one_of(PLACES, TICKS), max_size=40),
    events=st.lists(PLACES, min_size=1, max_size=40),
    data=st.data(),
)
def test_events_that_are_not_asked_for_have_no_steps(
    steps: list[tuple[int, int, int]], events: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    arrivals, splits, positions = columns(events)
    rows = data.draw(st.permutations(range(len(events))))[: data.draw(st.integers(0, len(events)))]
    rows = sorted(rows, key=lambda row: events[row])
    before = packed(sorted(steps)).steps_before(
        arrivals, splits.astype(np.int32), positions, np.array(rows, np.uint32)
    )
    expected = [sum(step < event for step in steps) for event in events]
    assert before.tolist() == [n if row in rows else 0 for row, n in enumerate(expected)]


def test_columns_that_do_not_fit_together_are_refused() -> None:
    one, two, split = np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int32)
    packer = StepPacker()
    for places in ((one,), (one, two), (two, one), (two, two)):
        with pytest.raises(
            DataError, match="1 clocks of steps, but other numbers of watermarks, splits or positions"
        ):
            packer.add(one, one, *places)
    with pytest.raises(DataError, match="not one each"):
        packer.add(one, two)
    packer.add(one, one)
    steps = packer.finish()
    with pytest.raises(DataError, match="2 arrivals, 1 splits and 1 positions"):
        steps.steps_before(two, split, one)
    with pytest.raises(DataError, match="row 1 of 1"):
        steps.steps_before(one, split, one, np.array([1], np.uint32))


def test_a_timeline_of_ticks_goes_by_arrival() -> None:
    timeline = timeline_of([3, 5], [1, 2], ends=True)
    arrivals = np.array([3, 4, 5, 6])
    before = timeline.steps_before(arrivals, np.zeros(4, np.int32), np.arange(4))
    assert before.tolist() == [0, 1, 1, 2]
    assert timeline.watermark_after(before).tolist() == [MIN_TIMESTAMP, 1, 1, 2]
