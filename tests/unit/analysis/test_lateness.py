"""Lateness under every bound at once: small cases by hand, what is refused, and what people read."""

import doctest
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.timelines import packed_steps

from flinkcore._internal.show.durations import shown_duration, shown_share
from flinkcore._native.lateness import LatenessCounter, windows_of_slices
from flinkcore.analysis.bounds import COUNTED, SHOWN, bounds_up_to
from flinkcore.columnar import planned_job
from flinkcore.common import Configuration, Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import CumulativeEventTimeWindows
from flinkcore.errors import ConfigurationError, DataError

MS = Time.milliseconds
# The watermark of bound 0 is 8,999 when the event of 2,000 comes, which is 7,000 behind the greatest timestamp.
ROWS = {
    "ts": [0, 9_000, 2_000, 20_000, 30_000],
    "arrival": [0, 9_000, 10_000, 20_000, 30_000],
    "split": ["a", "a", "a", "a", "a"],
    "key": ["k", "k", "k", "k", "k"],
}


def stream(rows: Any = ROWS, bound_ms: int = 0, **log: Any) -> DataStream:
    settings = {"timestamp": "ts", "arrival": "arrival", "split": "split"} | log
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(pa.table(rows), **settings)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
        )
    )


def test_an_event_is_late_under_every_bound_below_its_disorder() -> None:
    frontier = stream().lateness()
    assert frontier.largest_disorder_ms == 7_000
    late = frontier.at(MS(0), MS(6_900), MS(7_000), MS(8_000))["late_for_watermark"].to_pylist()
    assert late == [1, 1, 0, 0]
    assert frontier.bound_that_loses(0.0) == Duration.of_seconds(7)
    assert frontier.bound_that_loses(0.2) == Duration.of_millis(0)


def test_the_own_bound_and_bounds_asked_for_are_counted_to_the_millisecond() -> None:
    frontier = stream(bound_ms=6_999).lateness()
    assert frontier.at(MS(6_999))["late_for_watermark"].to_pylist() == [1]
    asked = stream().lateness(bounds=[MS(6_998), MS(7_001)])
    assert asked.bounds_ms.tolist() == [0, 6_998, 7_000]
    assert asked.at(MS(6_998), MS(7_001))["late_for_watermark"].to_pylist() == [1, 0]


def test_events_of_splits_are_told_at_bounds_that_were_counted() -> None:
    frontier = stream().lateness(bounds=[MS(1_000)])
    late = [
        frontier.by_split(MS(bound))["late_for_watermark"].to_pylist() for bound in (0, 1_000, 7_000, 9_000)
    ]
    assert late == [[1], [1], [0], [0]]
    with pytest.raises(
        ConfigurationError, match=r"events of splits were not counted at a bound of 5 s, but at 1 s\. Take"
    ):
        frontier.by_split(MS(5_000))
    with pytest.raises(
        ConfigurationError, match=r"not counted at a bound of 500 ms, but at 0 ms and 1 s\. Take"
    ):
        frontier.by_split(MS(500))
    with pytest.raises(ConfigurationError, match="figures are exact up to a bound of"):
        frontier.by_split(MS(2**63 - 1))


def test_one_window_lateness_or_bound_needs_no_list() -> None:
    tumbling = TumblingEventTimeWindows.of(MS(5_000))
    one = stream().lateness(tumbling, MS(2_000), MS(4_000))
    assert one.to_arrow() == stream().lateness([tumbling], [MS(2_000)], [MS(4_000)]).to_arrow()
    assert one.bounds_ms.tolist() == [0, 4_000, 7_000]


@pytest.mark.parametrize(
    "arguments",
    [(5,), ("1h",), ([TumblingEventTimeWindows.of(MS(5_000))], "5s"), (None, None, "1s"), (None, None, 5.5)],
)
def test_what_is_no_window_lateness_or_bound_is_refused(arguments: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"not |is a Time"):
        stream().lateness(*arguments)


@pytest.mark.parametrize("module", ["flinkcore.datastream.data_stream", "flinkcore._internal.show.durations"])
def test_examples_in_docstrings_are_right(module: str) -> None:
    assert doctest.testmod(import_module(module)).failed == 0


def test_windows_are_incomplete_or_lost_as_the_watermark_passes_their_end() -> None:
    frontier = stream().lateness([TumblingEventTimeWindows.of(MS(5_000))], [MS(0), MS(2_000)])
    rows = frontier.at(MS(0), MS(2_000), MS(2_100), MS(4_000), MS(4_100)).to_pylist()
    assert [row["late"] for row in rows] == [1, 1, 1, 1, 0, 1, 1, 0, 0, 0]
    assert [row["incomplete"] for row in rows][:5] == [1, 1, 1, 1, 0]
    assert [row["incomplete_for_good"] for row in rows] == [1, 1, 1, 1, 0, 1, 1, 0, 0, 0]
    # The windows from 0, 5,000 and 20,000 on end before the last event comes, which the watermark follows at once.
    assert rows[0] | {"late_for_watermark": 1} == rows[0] | {
        "windows": 4,
        "fired_on_time": 4,
        "open_at_end": 1,
        "wait_median_ms": 5_000,
        "wait_p99_ms": 10_000,
        "wait_max_ms": 10_000,
    }


def test_a_window_whose_first_event_is_late_does_not_fire_on_time() -> None:
    frontier = stream(ROWS | {"ts": [5_000, 9_000, 2_000, 20_000, 30_000]}).lateness(
        [TumblingEventTimeWindows.of(MS(5_000))]
    )
    # The window from 0 on ends at 4,999, which the watermark of bound 4,000 has reached: 8,999 - 4,000.
    assert frontier.at(MS(4_000), MS(4_100))["fired_on_time"].to_pylist() == [3, 4]


def test_a_job_with_windows_is_asked_for_them() -> None:
    job = stream().key_by("key").window(TumblingEventTimeWindows.of(MS(5_000))).allowed_lateness(2_000)
    frontier = job.aggregate(n=count()).lateness()
    (row,) = frontier.at(MS(0)).to_pylist()
    assert (row["window"], row["allowed_lateness_ms"], row["late"]) == ("tumbling windows of 5 s", 2_000, 1)


def test_the_bound_for_a_delay_is_the_greatest_whose_results_come_in_time() -> None:
    frontier = stream().lateness([TumblingEventTimeWindows.of(MS(5_000))])
    waits = [frontier.at(MS(int(bound)))["wait_p99_ms"][0].as_py() for bound in frontier.bounds_ms]
    in_time = max(bound for bound, wait in zip(frontier.bounds_ms, waits, strict=True) if wait <= 15_000)
    assert frontier.bound_that_delays(MS(15_000)).to_millis() == in_time
    with pytest.raises(ConfigurationError, match="no bound makes them come within 1 s"):
        frontier.bound_that_delays(MS(1_000))
    # Without windows, the bound itself is the delay.
    assert stream().lateness().bound_that_delays(MS(1_234)) == Duration.of_millis(1_200)


def test_without_arrivals_nobody_knows_how_long_results_wait() -> None:
    frontier = stream(arrival=None, rate=1.0).lateness([TumblingEventTimeWindows.of(MS(5_000))])
    (row,) = frontier.at(MS(0)).to_pylist()
    assert (row["late"], row["wait_median_ms"], row["wait_max_ms"]) == (1, None, None)
    assert "How long results wait is not known: the log has no arrival" in str(frontier)


def test_a_split_that_stays_behind_holds_the_watermark_and_is_silent() -> None:
    slow = [0, 1_000, 2_000, 38_000, 39_000]
    log = sorted([(time, "slow") for time in slow] + [(time, "b") for time in range(0, 40_000, 1_000)])
    rows = {
        "ts": [time for time, _ in log],
        "arrival": [time for time, _ in log],
        "split": [s for _, s in log],
    }
    by_split = {row["split"]: row for row in stream(rows).lateness().by_split().to_pylist()}
    assert by_split["slow"]["silence_ms"] == 36_000
    assert by_split["slow"]["holds_share"] + by_split["b"]["holds_share"] == 1.0
    # From 3 s to 38 s the watermark of b rises by 1 s in each second, and that of slow stands.
    assert by_split["slow"]["held_back_ms"] == pytest.approx(sum(range(36)) * 1_000 / 39, rel=0.01)
    assert by_split["b"]["held_back_ms"] < 50
    text = str(stream(rows).lateness())
    assert "Split slow holds the watermark back: without it, the watermark would be 16 s " in text
    assert "It is silent for up to 36 s, but its events usually come 600 ms apart: with an idleness" in text
    # 20 s of waiting are chosen anyway.
    assert str(stream(rows).lateness().sentence_for_splits()) in text
    assert stream(rows, bound_ms=20_000).lateness().sentence_for_splits() is None
    assert "Split slow" not in str(stream(rows, bound_ms=20_000).lateness())


@pytest.mark.parametrize("filters", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_a_split_that_is_paused_is_silent_only_while_nothing_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: bool, chunk_rows: int
) -> None:
    # The first event of `ahead` pauses it until `behind` comes to 250: what arrives at 40 is read then.
    arrived = [
        ("ahead", -50, 350),
        ("behind", 0, 0),
        ("ahead", 40, 40),
        ("behind", 250, 250),
        ("ahead", 740, 740),
    ]
    split, arrival, ts = zip(*arrived, strict=True)
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"split": split, "arrival": arrival, "ts": ts}), path, row_group_size=chunk_rows)
    monkeypatch.setattr(planned_job, "CHUNK_BYTES", 1)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(7)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_millis(100), Duration.of_millis(14)
    )
    events = env.from_event_log(
        str(path), timestamp="ts", arrival="arrival", split="split"
    ).assign_timestamps_and_watermarks(strategy)
    if filters:
        events = events.filter(pc.field("ts") != 40)
    by_split = {row["split"]: row for row in events.lateness().by_split().to_pylist()}
    assert by_split["ahead"]["silence_ms"] == 700
    assert by_split["behind"]["silence_ms"] == 490


def test_a_split_without_a_watermark_holds_it_back_by_the_time_since_the_log_began() -> None:
    times = [*range(0, 40_000, 1_000), 40_000]
    rows = {"ts": times, "arrival": times, "split": ["b"] * 40 + ["new"]}
    (new,) = (row for row in stream(rows).lateness().by_split().to_pylist() if row["split"] == "new")
    assert new["held_back_ms"] == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize("n_splits", [2, 4])
def test_splits_that_live_are_not_called_idle(n_splits: int) -> None:
    random = np.random.default_rng(1)
    arrival = 100 * np.arange(20_000)
    # All splits rest for ten minutes, as in a night, and wake a few seconds apart.
    arrival[10_000:] += 600_000
    delay = random.choice([0, 0, 0, 0, 0, 300, 800], len(arrival))
    rows = {"ts": arrival - delay, "arrival": arrival, "split": random.integers(0, n_splits, len(arrival))}
    for bound_ms in (0, 500):
        assert "holds the watermark back" not in str(stream(rows, bound_ms=bound_ms).lateness())


def test_events_after_one_far_ahead_are_told_apart() -> None:
    times = [0, 1_000, 50_000, *range(2_000, 10_000, 1_000)]
    rows = {"ts": times, "arrival": [1_000 * i for i in range(len(times))], "split": [0] * len(times)}
    frontier = stream(rows, bound_ms=2_000).lateness()
    assert frontier.by_split()["late_after_leaps"].to_pylist() == [8]
    assert stream(rows).lateness().by_split()["late_after_leaps"].to_pylist() == [None]
    assert "for_percentile_out_of_orderness" in str(frontier)


def test_the_text_decides() -> None:
    frontier = stream(bound_ms=1_000).lateness([TumblingEventTimeWindows.of(MS(5_000))])
    lines = str(frontier).splitlines()
    assert lines[0] == "5 events of 1 split, out of order by up to 7 s"
    assert lines[1] == (
        "A bound of 4 s 100 ms loses 0 % of the events, and results of tumbling windows of 5 s come 10 s after the end "
        "of their window (median; 99 % within 15 s); your 1 s lose 20 %."
    )
    # Where nobody knows how long results wait, the bound is what a result waits longer.
    assert stream(bound_ms=1_000).lateness().sentence() == (
        "A bound of 7 s loses 0 % of the events, and delays results by 7 s; your 1 s lose 20 %."
    )
    assert frontier._repr_html_() == f"<pre>{frontier}</pre>"
    assert repr(frontier) == (
        "LatenessFrontier(5 events, 1 split, out of order by up to 7 s, tumbling windows of 5 s)"
    )


def test_where_no_window_fires_before_the_end_nobody_knows_how_long_results_wait() -> None:
    rows = {"ts": [0, 1_000], "arrival": [0, 1_000], "split": ["a", "b"]}
    frontier = stream(rows).lateness([TumblingEventTimeWindows.of(MS(500))])
    assert frontier.sentence() == (
        "A bound of 0 ms loses 0 % of the events, and then no window fires before the end of the log: nobody knows how "
        "long results would wait; without one, 0 % are lost."
    )
    assert "It has one event, and is silent for up to 1 s: with an idleness the others" in str(frontier)


def test_splits_that_hold_the_watermark_back_in_turn_are_told() -> None:
    times = np.arange(0, 1_000_000, 1_000)
    rows = {"ts": times, "arrival": times, "split": times // 1_000 % 50}
    windows = [TumblingEventTimeWindows.of(MS(10_000))]
    told = "half of them are silent for 50 s or longer"
    assert told in str(stream(rows).lateness(windows))
    assert told not in str(stream(rows, split=None).lateness(windows))
    assert told not in str(stream(rows).lateness([TumblingEventTimeWindows.of(MS(60_000))]))


def test_a_log_of_one_split_that_loses_much_is_told_to_name_its_splits() -> None:
    times = np.arange(0, 100_000, 1_000)
    rows = {"ts": times - np.where(times % 2_000, 0, 5_000), "arrival": times, "split": times // 1_000 % 2}
    told = (
        "The log is taken as one split, in which a source that is ahead makes the events of all others late"
    )
    assert told in str(stream(rows, split=None).lateness())
    assert told not in str(stream(rows).lateness())
    assert told not in str(stream(rows, split=None, bound_ms=5_000).lateness())


def test_splits_that_bring_as_many_late_events_are_not_named() -> None:
    times = np.arange(0, 400_000, 1_000)
    late = (times // 1_000) % 40 < 4
    rows = {"ts": times - np.where(late, 10_000, 0), "arrival": times, "split": times // 1_000 % 4}
    assert "36 events are late for the watermark under your bound, of all splits alike." in str(
        stream(rows).lateness()
    )
    some = rows | {"ts": times - np.where(late & (times // 1_000 % 4 == 3), 10_000, 0)}
    assert "9 events are late for the watermark under your bound, most of splits 3 (9)." in str(
        stream(some).lateness()
    )


DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ()),
        (
            {"ts": (5, 0)},
            ("The least event time is 1970-01-01 00:00:00.000Z: times that are missing are often",),
        ),
        (
            {"ts": (9, NOW_MS + DAY_MS)},
            ("The newest event time of split b is 23 h 59 min after its last arrival: a clock is ahead",),
        ),
        (
            {"arrival": (slice(None), NOW_MS)},
            ("All events have the arrival 2024-10-04 00:00:00.000Z, so none is late.",),
        ),
    ],
)
def test_times_that_look_wrong_are_told_first(changed: dict[str, Any], told: tuple[str, ...]) -> None:
    rows = {name: NOW_MS + np.arange(0, 10_000, 1_000) for name in ("ts", "arrival")}
    for name, (at, value) in changed.items():
        rows[name][at] = value
    frontier = stream({**rows, "split": list("ab") * 5}).lateness()
    assert [doubt[: len(text)] for doubt, text in zip(frontier.doubts, told, strict=True)] == list(told)
    assert str(frontier).splitlines()[1 : 1 + len(told)] == list(frontier.doubts)
    times = {name: values - NOW_MS for name, values in rows.items()} if not changed else {}
    assert not times or stream({**times, "split": list("ab") * 5}).lateness().doubts == ()  # not of an epoch


def test_a_log_in_order_of_event_time_without_arrivals_says_nothing_of_lateness() -> None:
    told = "The rows lie in the order of their event times, and no column says when they arrived"
    in_order = {name: sorted(values) for name, values in ROWS.items()}
    assert [doubt[: len(told)] for doubt in stream(in_order, arrival=None).lateness().doubts] == [told]
    for frontier in (stream(in_order), stream(arrival=None, rate=1.0)):
        assert frontier.lateness().doubts == ()


def test_rows_that_are_no_events_are_told() -> None:
    log = pa.table(ROWS)
    log = log.append_column("none", pa.array([*range(1, len(log)), None], pa.int64()))
    events = StreamExecutionEnvironment().from_event_log(
        log, timestamp="none", arrival="arrival", split="split", on_bad_row="drop"
    )
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(MS(0))
    frontier = events.filter(
        pa.compute.field("arrival") > log["arrival"][1].as_py()
    ).assign_timestamps_and_watermarks(bounded)
    assert str(frontier.lateness()).startswith(
        "2 events of 1 split (1 row was rejected, 2 rows were filtered out), "
    )


def test_results_of_what_arrives_before_its_time_come_before_the_end_of_their_window() -> None:
    arrival = np.arange(0, 26_000, 1_000)
    windows = [TumblingEventTimeWindows.of(MS(5_000))]
    early = {"arrival": arrival, "ts": arrival + 60_000}
    frontier = stream(early, split=None).lateness(windows)
    assert "come 1 min before the end of their window (median; 99 % at least 1 min before it)" in str(
        frontier
    )
    assert "  1 min early  1 min early" in str(frontier)
    late = {name: np.append(times, 200_000) for name, times in early.items()}
    assert "come 1 min before the end of their window (median; 99 % within 1 min 50 s after it)" in str(
        stream(late, split=None).lateness(windows)
    )


def test_a_log_without_events_has_a_frontier() -> None:
    frontier = stream(pa.table(ROWS).slice(0, 0)).lateness([TumblingEventTimeWindows.of(MS(5_000))])
    (row,) = frontier.to_arrow().to_pylist()
    assert (row["bound_ms"], row["late"], row["late_share"], row["windows"]) == (0, 0, 0.0, 0)
    assert str(frontier) == "0 events of 0 splits"
    assert frontier.by_split().num_rows == 0


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (WatermarkStrategy.no_watermarks(), r"no watermarks.*what_if"),
        (
            WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_seconds(1), 0.9, 10),
            r"what_if",
        ),
    ],
)
def test_strategies_without_a_bound_are_refused(strategy: WatermarkStrategy, message: str) -> None:
    log = StreamExecutionEnvironment.get_execution_environment().from_event_log(
        pa.table(ROWS), timestamp="ts", arrival="arrival"
    )
    with pytest.raises(ConfigurationError, match=message):
        log.assign_timestamps_and_watermarks(strategy).lateness()


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="what_if"):
        stream().lateness([EventTimeSessionWindows.with_gap(MS(10))])
    with pytest.raises(ConfigurationError, match="allowed_lateness is of windows, but none were stated"):
        stream().lateness(allowed_lateness=[MS(10)])
    log = stream()
    with pytest.raises(ConfigurationError, match="the job has 2"):
        log.union(log).lateness()
    frontier = stream().lateness([TumblingEventTimeWindows.of(MS(5_000))])
    with pytest.raises(
        ConfigurationError, match="not counted at a bound of 1 s 50 ms, but at 1 s and 1 s 100 ms"
    ):
        frontier.at(MS(1_050))
    with pytest.raises(ConfigurationError, match="windows stated: tumbling windows of 5000 ms"):
        frontier.bound_that_loses(0.1, TumblingEventTimeWindows.of(MS(10)))
    with pytest.raises(ConfigurationError, match="from 0 to 1, not 10"):
        frontier.bound_that_loses(10)
    with pytest.raises(ConfigurationError, match="stated: 0 ms"):
        frontier.bound_that_loses(0.1, allowed_lateness=MS(10))


def test_a_job_that_goes_on_from_a_checkpoint_is_not_judged_as_if_it_began(tmp_path: Path) -> None:
    def job(log: Any) -> DataStream:
        windows = stream(log).key_by("key").window(TumblingEventTimeWindows.of(MS(5_000)))
        return windows.aggregate(n=count())

    state = str(tmp_path / "state")
    job(pa.table(ROWS).slice(0, 2)).execute(stop_with_checkpoint=state).to_arrow()
    today = job(pa.table(ROWS).slice(2))
    restored = Configuration().set_string("execution.state-recovery.path", state)
    today.get_execution_environment().configure(restored)
    assert today.execute().report.late == 1
    message = rf"{state}: leave execution.state-recovery.path out"
    with pytest.raises(ConfigurationError, match=rf"lateness\(\) judges .*{message}"):
        today.lateness()
    with pytest.raises(ConfigurationError, match=rf"what_if\(\) judges .*{message}"):
        today.what_if([WatermarkStrategy.for_monotonous_timestamps()])


def test_timestamps_at_the_ends_of_64_bits_are_refused_where_figures_would_not_be_exact() -> None:
    lowest = -(2**63) + 10_000
    rows = ROWS | {"ts": [lowest, 9_000, 2_000, 20_000, 30_000]}
    with pytest.raises(DataError, match="does not fit into 64 bits"):
        stream(rows, bound_ms=20_000).lateness()
    frontier = stream(rows, bound_ms=10).lateness()
    assert frontier.at(MS(5_000))["late_for_watermark"].to_pylist() == [1]
    with pytest.raises(ConfigurationError, match="exact up to a bound of 9 s 998 ms"):
        frontier.at(MS(30_000))


@pytest.mark.parametrize("reach", [0, 1, 99, 100, 59_950, 3_600_001, 10**9, 10**12, 2**62, 2**63 - 1])
def test_ladders_reach_far_and_are_round(reach: int) -> None:
    counted, shown = bounds_up_to(reach, COUNTED), bounds_up_to(reach, SHOWN)
    assert counted[0] == shown[0] == 0
    assert (np.diff(counted) > 0).all()
    assert counted[-1] >= reach
    assert len(counted) == 1 or counted[-2] < reach
    assert set(shown[:-1].tolist()) <= set(counted.tolist())


def test_numbers_of_any_magnitude_find_their_bound() -> None:
    bounds = np.unique(np.concatenate([bounds_up_to(2**62, COUNTED), [255, 256, 257, 2**62, 2**63 - 1]]))
    behind = np.unique(np.concatenate([bounds, bounds[1:] - 1, bounds[:-1] + 1]))
    clocks = np.arange(len(behind))
    counter = LatenessCounter(
        packed_steps(clocks, behind), bounds, np.arange(len(bounds) + 1, dtype=np.int32), 0, 1
    )
    one, ends = np.zeros(1, np.int32), np.array([0, len(behind)])
    counter.update(one, ends, clocks + 1, np.zeros(len(behind), np.int64))
    expected = np.bincount(np.searchsorted(bounds, behind, side="right"), minlength=len(bounds) + 1)
    assert counter.counts()["late"].tolist() == expected.tolist()


def test_events_behind_and_before_watermarks_at_the_ends_of_64_bits_are_told_apart() -> None:
    least, greatest = -(2**63), 2**63 - 1
    bounds = np.array([0, 2**63 - 1])
    for watermark, late in ((greatest, [0, 1, 2]), (0, [1, 1, 1]), (least, [2, 1, 0])):
        counter = LatenessCounter(packed_steps([0], [watermark]), bounds, np.arange(3, dtype=np.int32), 0, 1)
        times = np.array([least, 0, greatest])
        counter.update(np.zeros(1, np.int32), np.array([0, 3]), np.ones(3, np.int64), times)
        assert counter.counts()["late"].tolist() == late


@pytest.mark.parametrize(
    "window",
    [
        TumblingEventTimeWindows.of(MS(7), MS(3)),
        SlidingEventTimeWindows.of(MS(10), MS(4), MS(-3)),
        SlidingEventTimeWindows.of(MS(3), MS(10)),
        SlidingEventTimeWindows.of(MS(12), MS(3)),
        CumulativeEventTimeWindows.of(MS(12), MS(4)),
    ],
)
def test_windows_of_slices_that_lie_far_apart_have_the_extremes_of_their_events(window: Any) -> None:
    times = np.array([-5_000_000, -5_000_003, -9, -8, 0, 1, 2, 3, 11, 40, 41, 6_000_000_000])
    watermarks = np.array([5, 9, 3, 3, 2, 8, 8, -(2**63), 7, 1, 0, 4])
    timeline = np.unique(watermarks)[1:]
    counter = LatenessCounter(
        packed_steps(np.arange(len(timeline)), timeline), np.array([0]), np.array([0, 1], np.int32), 0, 1
    )
    cumulative = isinstance(window, CumulativeEventTimeWindows)
    slide = getattr(window, "step_ms" if cumulative else "slide_ms", window.size_ms)
    kind = {"size": window.size_ms, "slide": slide, "offset": window.offset_ms, "cumulative": cumulative}
    counter.add_windows(**kind, allowed_lateness_ms=np.array([0]))
    arrivals = np.searchsorted(timeline, watermarks, side="right")
    counter.update(np.zeros(1, np.int32), np.array([0, len(times)]), arrivals, times)
    counts = counter.counts()
    order = np.argsort(counts["0.slice"])
    found = windows_of_slices(
        *(counts[f"0.{name}"][order] for name in ("slice", "least_ms", "greatest_ms")), **kind
    )
    expected: dict[int, list[int]] = {}
    for time, watermark in zip(times.tolist(), watermarks.tolist(), strict=True):
        for each in window.assign_windows(None, time, None):
            expected.setdefault(each.end - 1, []).append(watermark)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (end, min(of_window), max(of_window)) for end, of_window in sorted(expected.items())
    ]


def test_durations_and_shares_are_shown_for_people() -> None:
    assert [shown_duration(ms) for ms in (0, 59_000, 5_400_000, 172_800_001)] == [
        "0 ms",
        "59 s",
        "1 h 30 min",
        "2 days 1 ms",
    ]
    assert [shown_share(share) for share in (0, 0.00001234, 0.5, 1)] == ["0 %", "0.0012 %", "50 %", "100 %"]
