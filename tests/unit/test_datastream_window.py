"""Window assigners refuse what Flink's refuse."""

import pickle

import pytest

from flinkcore.common import Duration, Time
from flinkcore.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError


def test_sizes_and_offsets_are_kept_in_milliseconds() -> None:
    assert TumblingEventTimeWindows.of(Time.hours(1)) == TumblingEventTimeWindows(3_600_000, 0)
    assert TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)) == TumblingEventTimeWindows(
        86_400_000, -28_800_000
    )
    assert SlidingEventTimeWindows.of(
        Time.minutes(1), Time.seconds(10), Time.seconds(5)
    ) == SlidingEventTimeWindows(60_000, 10_000, 5_000)
    assert EventTimeSessionWindows.with_gap(Duration.of_minutes(1)) == EventTimeSessionWindows(60_000)


def test_assigners_are_values_that_can_be_pickled() -> None:
    assigner = SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10))
    assert pickle.loads(pickle.dumps(assigner)) == assigner
    assert assigner.is_event_time()


@pytest.mark.parametrize(("size", "offset"), [(5, 5), (5, -5), (10, 11)])
def test_tumbling_windows_need_an_offset_smaller_than_their_size(size: int, offset: int) -> None:
    with pytest.raises(ConfigurationError, match=r"must satisfy abs\(offset\) < size"):
        TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))


@pytest.mark.parametrize(("size", "slide", "offset"), [(50, 5, 5), (50, 5, -5), (5, 6, 7)])
def test_sliding_windows_need_an_offset_smaller_than_their_slide(size: int, slide: int, offset: int) -> None:
    with pytest.raises(ConfigurationError, match=r"must satisfy abs\(offset\) < slide"):
        SlidingEventTimeWindows.of(
            Time.milliseconds(size), Time.milliseconds(slide), Time.milliseconds(offset)
        )


def test_a_slide_above_the_size_is_allowed() -> None:
    assert SlidingEventTimeWindows.of(Time.seconds(1), Time.seconds(5)).slide_ms == 5000


@pytest.mark.parametrize("length", [0, -1])
def test_sizes_and_slides_are_above_zero(length: int) -> None:
    second, wrong = Time.seconds(1), Time.milliseconds(length)
    with pytest.raises(ConfigurationError, match=f"the size must be above zero, it is {length} ms"):
        TumblingEventTimeWindows.of(wrong)
    with pytest.raises(ConfigurationError, match=f"the size must be above zero, it is {length} ms"):
        SlidingEventTimeWindows.of(wrong, second)
    with pytest.raises(ConfigurationError, match=f"the slide must be above zero, it is {length} ms"):
        SlidingEventTimeWindows.of(second, wrong)


@pytest.mark.parametrize("gap", [0, -1])
def test_sessions_need_a_gap(gap: int) -> None:
    with pytest.raises(ConfigurationError, match="the gap must be above zero"):
        EventTimeSessionWindows.with_gap(Time.milliseconds(gap))


def test_a_size_without_unit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="window size takes a Time or a Duration"):
        TumblingEventTimeWindows.of(10)  # type: ignore[arg-type]
