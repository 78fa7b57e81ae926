"""Where steps of a timeline lie among events."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.replay.time_plane.step_order import AFTER_ALL_SPLITS, steps_before
from flinkcore.replay.time_plane.timeline import Timeline

PLACES = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3))
TICKS = st.tuples(st.integers(0, 4), st.just(AFTER_ALL_SPLITS), st.just(0))


def columns(places: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    clocks, splits, positions = np.array(places, np.int64).reshape(-1, 3).T.copy()
    return clocks, splits, positions


@settings(deadline=None, max_examples=200)
@given(steps=st.lists(st.one_of(PLACES, TICKS), max_size=40), events=st.lists(PLACES, max_size=40))
def test_a_step_is_before_the_events_that_follow_its_own(
    steps: list[tuple[int, int, int]], events: list[tuple[int, int, int]]
) -> None:
    arrivals, splits, positions = columns(events)
    before = steps_before(*columns(sorted(steps)), arrivals, splits.astype(np.int32), positions)
    assert before.tolist() == [sum(step < event for step in steps) for event in events]


def test_a_timeline_of_ticks_goes_by_arrival() -> None:
    timeline = Timeline(np.array([3, 5, 2**63 - 1]), np.array([1, 2, 2**63 - 1]))
    arrivals = np.array([3, 4, 5, 6])
    before = timeline.steps_before(arrivals, np.zeros(4, np.int32), np.arange(4))
    assert before.tolist() == [0, 1, 1, 2]
    assert timeline.watermark_after(before).tolist() == timeline.current_watermark(arrivals).tolist()
