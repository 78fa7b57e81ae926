"""Watermark generators of single splits, and summaries of columns of times."""

import numpy as np
import pytest

from flinkcore._native.event_log import MAX_ARRIVAL_MS
from flinkcore._native.time_summary import MAX_INTERVAL_MS, TimeSummary
from flinkcore._native.watermark_generator import WatermarkGenerator
from flinkcore.errors import ConfigurationError, DataError

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1
STEP, END = "step", "end"


def summary(
    events: list[tuple[int, int]],
    interval_ms: int = 100,
    idleness_ms: int | None = None,
    steps: bool = True,
    window_ticks: int = 1_000,
) -> tuple[dict[str, int], list[tuple[str, int, int]]]:
    """Of one split with these (arrival, timestamp): its columns, and its parts as moves (kind, tick, timestamp)."""
    summary = TimeSummary(
        interval_ms=interval_ms, idleness_ms=idleness_ms, steps=steps, window_ticks=window_ticks
    )
    summary.reserve(1)
    arrivals, timestamps = np.array(events, np.int64).reshape(-1, 2).T.copy()
    summary.update(np.zeros(1, np.int32), np.array([0, len(events)]), arrivals, timestamps)
    return {name: int(column[0]) for name, column in summary.finish().items()}, moves(summary)


def moves(summary: TimeSummary) -> list[tuple[str, int, int]]:
    """The records of each part, and its end; where the first tick is another than that of the first of these, that."""
    firsts, lasts, greatest, n_records, ticks, timestamps = (column.tolist() for column in summary.take()[1:])
    found: list[tuple[str, int, int]] = []
    for first, last, timestamp, n in zip(firsts, lasts, greatest, n_records, strict=True):
        of_part = [(STEP, ticks.pop(0), timestamps.pop(0)) for _ in range(n)] + [(END, last, timestamp)]
        found += [("begin", first, 0)] * (first != of_part[0][1]) + of_part
    return found


def test_the_watermark_trails_the_maximum_timestamp_by_the_delay_and_one_more() -> None:
    generator = WatermarkGenerator(10)
    assert generator.on_periodic_emit(0) == [("watermark", MIN_TIMESTAMP)]
    generator.on_event(50)
    generator.on_event(40)
    assert generator.on_periodic_emit(0) == [("watermark", 39)]


@pytest.mark.parametrize("delay", [0, 10, MAX_TIMESTAMP])
def test_the_watermark_never_wraps_around(delay: int) -> None:
    generator = WatermarkGenerator(delay)
    for timestamp in (MIN_TIMESTAMP, MIN_TIMESTAMP + 5):
        generator.on_event(timestamp)
        assert generator.on_periodic_emit(0) == [("watermark", max(MIN_TIMESTAMP, timestamp - delay - 1))]
    generator.on_event(MAX_TIMESTAMP)
    assert generator.on_periodic_emit(0) == [("watermark", MAX_TIMESTAMP - delay - 1)]


def test_without_a_delay_there_are_no_watermarks() -> None:
    generator = WatermarkGenerator(None)
    generator.on_event(50)
    assert generator.on_periodic_emit(100) == []


def test_idleness_counts_from_the_first_call_without_an_event_and_must_exceed_the_timeout() -> None:
    generator = WatermarkGenerator(0, 100)
    generator.on_event(5)
    assert generator.on_periodic_emit(1_000) == [("watermark", 4)]
    assert generator.on_periodic_emit(2_000) == [("watermark", 4)]
    assert generator.on_periodic_emit(2_100) == [("watermark", 4)]
    assert generator.on_periodic_emit(2_101) == [("status", "idle")]
    assert generator.on_periodic_emit(9_999) == []
    generator.on_event(1)
    assert generator.on_periodic_emit(10_000) == [("watermark", 4)]


def test_a_timeout_beyond_64_bits_is_never_reached() -> None:
    generator = WatermarkGenerator(0, 2**80)
    generator.on_periodic_emit(1)
    assert generator.on_periodic_emit(MAX_TIMESTAMP) == [("watermark", MIN_TIMESTAMP)]


@pytest.mark.parametrize("delay", [-1, 2**63])
def test_a_delay_out_of_range_is_refused(delay: int) -> None:
    with pytest.raises(ConfigurationError, match=f"out-of-orderness .* not {delay}"):
        WatermarkGenerator(delay)


@pytest.mark.parametrize("timeout", [0, -5])
def test_an_idle_timeout_that_is_not_positive_is_refused(timeout: int) -> None:
    with pytest.raises(ConfigurationError, match=f"idle timeout must be greater than zero, not {timeout} ms"):
        WatermarkGenerator(0, timeout)


def test_a_step_is_recorded_for_each_tick_at_which_the_maximum_has_grown() -> None:
    _, records = summary([(5, 1), (100, 7), (101, 3), (200, 6), (201, 8), (250, 9), (777, 9)])
    assert records == [(STEP, 100, 7), (STEP, 300, 9), (END, 800, 9)]


def test_an_event_on_a_tick_belongs_to_it() -> None:
    assert summary([(100, 1), (101, 2)])[1] == [(STEP, 100, 1), (END, 200, 2)]


def test_ticks_before_the_epoch_are_multiples_of_the_interval_too() -> None:
    assert summary([(-250, 1), (-200, 2), (-199, 3), (-1, 4)])[1] == [
        (STEP, -200, 2),
        (END, -100, 3),
        (END, 0, 4),
    ]


def test_an_event_at_the_minimum_timestamp_begins_a_part() -> None:
    assert summary([(0, MIN_TIMESTAMP), (100, MIN_TIMESTAMP)])[1] == [
        ("begin", 0, 0),
        (END, 100, MIN_TIMESTAMP),
    ]


def test_a_part_ends_with_its_window() -> None:
    events = [(100, 1), (200, 2), (300, 3), (301, 3), (-100, 9), (700, 9)]
    assert summary(events, window_ticks=2)[1] == [
        (END, 100, 1),
        (STEP, 200, 2),
        (END, 300, 3),
        (END, 400, 9),
        (END, 700, 9),
    ]
    assert summary([(-300, 1), (-200, 2), (-100, 3), (0, 4)], window_ticks=2)[1] == [
        (END, -300, 1),
        (STEP, -200, 2),
        (END, -100, 3),
        (END, 0, 4),
    ]


def test_parts_come_by_window() -> None:
    summary = TimeSummary(interval_ms=10, idleness_ms=None, steps=True, window_ticks=1)
    summary.reserve(2)
    times = np.array([10, 20, 10, 20])
    summary.update(np.arange(2, dtype=np.int32), np.array([0, 2, 4]), times, times)
    splits, firsts, *_ = summary.take()
    assert (splits.tolist(), firsts.tolist()) == ([0, 1, 0, 1], [10, 10, 20, 20])


def test_what_was_taken_does_not_come_again() -> None:
    summary = TimeSummary(interval_ms=10, idleness_ms=None, steps=True)
    summary.reserve(1)
    for arrivals, expected in (([5, 25], [(STEP, 10, 5), (END, 30, 25)]), ([26, 7], [(END, 30, 26)])):
        times = np.array(arrivals)
        summary.update(np.zeros(1, np.int32), np.array([0, 2]), times, times)
        assert summary.nbytes > 0
        assert moves(summary) == expected
        assert (summary.nbytes, moves(summary)) == (0, [])
    assert summary.finish()["events"].tolist() == [4]


def test_an_arrival_that_goes_back_counts_as_the_maximum_before_it() -> None:
    times, records = summary([(150, 1), (20, 9), (160, 3), (170, 4), (10, 5)])
    assert records == [(END, 200, 9)]
    assert times["regressions"] == 2
    assert (times["first_arrival_ms"], times["recorded_arrival_ms"], times["last_arrival_ms"]) == (
        150,
        10,
        170,
    )


def test_a_part_ends_before_a_gap_in_which_the_split_turns_idle() -> None:
    # Active at 100, the count starts at 200, and exceeds 250 at 500: idle if the next activity is later.
    assert summary([(100, 1), (500, 1)], idleness_ms=250)[1] == [(STEP, 100, 1), (END, 500, 1)]
    assert summary([(100, 1), (501, 1)], idleness_ms=250)[1] == [(END, 100, 1), (END, 600, 1)]


def test_without_an_interval_there_are_no_records() -> None:
    times, records = summary([(100, 5), (9_999, 7)], interval_ms=0, idleness_ms=1)
    assert records == [(END, MAX_TIMESTAMP, 7)]
    assert (times["events"], times["min_timestamp_ms"], times["max_timestamp_ms"]) == (2, 5, 7)


def test_without_watermarks_there_are_parts_alone() -> None:
    assert summary([(100, 5), (200, 6), (9_999, 7)], idleness_ms=50, steps=False)[1] == [
        ("begin", 100, 0),
        (END, 200, 6),
        (END, 10_000, 7),
    ]


def test_splits_are_summarised_apart() -> None:
    summary = TimeSummary(interval_ms=10, idleness_ms=None, steps=True)
    summary.reserve(5)
    arrivals, timestamps = np.array([5, 15, 7, 8, 25]), np.array([1, 3, 2, 1, 9])
    earliest = summary.update(np.array([4, 1, 2], np.int32), np.array([0, 2, 2, 5]), arrivals, timestamps)
    assert earliest == 5
    assert summary.finish()["events"].tolist() == [0, 0, 3, 0, 2]
    assert moves(summary) == [(STEP, 10, 1), (END, 20, 3), (STEP, 10, 2), (END, 30, 9)]


def test_the_earliest_arrival_of_a_batch_is_the_running_maximum_of_its_split() -> None:
    summary = TimeSummary(interval_ms=10, idleness_ms=None, steps=True)
    summary.reserve(2)
    splits, offsets, times = np.array([0, 1], np.int32), np.array([0, 1, 2]), np.array([30, 40])
    assert summary.update(splits, offsets, times, times) == 30
    assert summary.update(splits, offsets, np.array([50, 35]), times) == 40
    assert summary.update(splits, np.array([0, 0, 0]), times[:0], times[:0]) is None


@pytest.mark.parametrize("arrival", [MAX_ARRIVAL_MS + 1, -MAX_ARRIVAL_MS - 1, MIN_TIMESTAMP, MAX_TIMESTAMP])
@pytest.mark.parametrize("interval_ms", [0, 7, MAX_INTERVAL_MS])
def test_an_arrival_out_of_bounds_is_refused(arrival: int, interval_ms: int) -> None:
    with pytest.raises(DataError, match=f"arrival {arrival} is further than"):
        summary([(arrival, 5)], interval_ms)


def test_arrivals_at_the_bounds_are_accepted() -> None:
    times, records = summary([(-MAX_ARRIVAL_MS, 5), (MAX_ARRIVAL_MS, 6)], MAX_INTERVAL_MS, 1)
    assert times["last_arrival_ms"] == MAX_ARRIVAL_MS
    # 2**62 apart, with an idle wait of 2**61.
    assert records == [(END, -MAX_ARRIVAL_MS, 5), (END, MAX_ARRIVAL_MS, 6)]


@pytest.mark.parametrize("interval_ms", [-1, MAX_INTERVAL_MS + 1])
def test_an_interval_out_of_range_is_refused(interval_ms: int) -> None:
    with pytest.raises(ConfigurationError, match=f"interval must be from 0 to .* not {interval_ms}"):
        summary([], interval_ms)


@pytest.mark.parametrize(
    ("offsets", "splits", "arrivals", "message"),
    [
        ([0, 2], [2], 2, "split number 2, but there is room for 2"),
        ([0, 2], [0], 1, "2 timestamps and 1 arrivals"),
        ([0, 1, 2], [0], 2, "3 offsets of 1 groups of 2 rows"),
        ([0], [], 2, "1 offsets of 0 groups of 2 rows"),
        ([0, 1], [0], 2, "2 offsets of 1 groups of 2 rows"),
        ([1, 2], [0], 2, "2 offsets of 1 groups of 2 rows"),
        ([0, 3, 2], [0, 1], 2, "group 1 begins at row 3 and ends at row 2"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(
    offsets: list[int], splits: list[int], arrivals: int, message: str
) -> None:
    summary = TimeSummary(interval_ms=10, idleness_ms=None, steps=True)
    summary.reserve(2)
    times = np.zeros(2, np.int64)
    with pytest.raises(DataError, match=message):
        summary.update(np.array(splits, np.int32), np.array(offsets), times[:arrivals], times)
