"""Why the results of a verb over the rows of a key are what they are, and why rows are in none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, sum_
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError

pytestmark = pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")

LATE = OutputTag("late")
LATE_RIGHT = OutputTag("late right")
TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))
FIVES = TumblingEventTimeWindows.of(Time.milliseconds(5))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))
SMALLER = pc.field("value") < pc.field("worth")

ONE: dict[str, Callable[[KeyedLogStream], LogStream]] = {
    "first": lambda keyed: keyed.deduplicate(late_to=LATE),
    "first by arrival": lambda keyed: keyed.deduplicate(by="arrival"),
    "last": lambda keyed: keyed.deduplicate("last"),
    "last, as changes": lambda keyed: keyed.deduplicate("last", changes=True),
    "first of windows": lambda keyed: keyed.window(TENS).side_output_late_data(LATE).deduplicate(),
    "highest": lambda keyed: keyed.top(2, "value"),
    "highest, as changes": lambda keyed: keyed.top(2, "value", changes=True),
    "highest of windows": lambda keyed: keyed.window(SLIDING).side_output_late_data(LATE).top(1, "value"),
    "highest by end": lambda keyed: keyed.top(1, "value", window_end="end", late_to=LATE),
    "frames of rows": lambda keyed: (
        keyed.over(2).side_output_late_data(LATE).aggregate(total=sum_("value"), all=collect("number"))
    ),
    "frames of time": lambda keyed: keyed.over(Time.milliseconds(5)).aggregate(all=collect("number")),
    "all before": lambda keyed: keyed.over().side_output_late_data(LATE).aggregate(total=sum_("value")),
    "all before by arrival": lambda keyed: keyed.over(by="arrival").aggregate(total=sum_("value")),
    "of all": lambda keyed: keyed.aggregate(n=count(), all=collect("number")),
    "of all, as changes": lambda keyed: keyed.aggregate(n=count("number"), total=sum_("value"), changes=True),
}
TWO: dict[str, Callable[[KeyedLogStream, KeyedLogStream], LogStream]] = {
    "near": lambda left, right: left.join_interval(right, -3, 6, "full", where=SMALLER),
    "near, both": lambda left, right: left.join_interval(right, -3, 6),
    "same window": lambda left, right: left.join_window(
        right, FIVES, "full", left_late_to=LATE, right_late_to=LATE_RIGHT
    ),
    "left in window": lambda left, right: left.join_window(right, TENS, "semi"),
    "left alone in window": lambda left, right: left.join_window(right, TENS, "anti"),
    "version": lambda left, right: left.join_temporal(right),
    "version or none": lambda left, right: left.join_temporal(right, "left", where=SMALLER),
    "all": lambda left, right: left.join_regular(right, "full", where=SMALLER),
    "all, as changes": lambda left, right: left.join_regular(right, "left", changes=True),
}


def rows(seed: int, first: int, names: dict[str, str]) -> pa.Table:
    """Rows of three keys, up to 30 ms out of order."""
    drawn = random.Random(seed)
    times = [max(1, 3 * number + drawn.randint(-30, 2)) for number in range(40)]
    return pa.table(
        {
            "number": range(first, first + 40),
            "ts": times,
            "at": [3 * number for number in range(40)],
            names["key"]: [drawn.choice("abc") for _ in range(40)],
            names["value"]: [drawn.randint(0, 6) for _ in range(40)],
            "end": [10 * (time // 10 + 1) for time in times],
        }
    )


def stream(table: Any, key: str, bound_ms: int = 4) -> KeyedLogStream:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    log = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at")
    return log.assign_timestamps_and_watermarks(strategy).key_by(key)


LEFT = rows(1, 0, {"key": "key", "value": "value"})
RIGHT = rows(2, 100, {"key": "who", "value": "worth"}).drop_columns("end")


def of(verb: str, bound_ms: int = 4) -> LogStream:
    left = stream(LEFT, "key", bound_ms)
    if verb in ONE:
        return ONE[verb](left)
    right = left._environment.from_event_log(RIGHT, timestamp="ts", integer_times=True, arrival="at")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return TWO[verb](left, right.assign_timestamps_and_watermarks(strategy).key_by("who"))


def has_key(row: dict[str, Any]) -> bool:
    return "a" in (row.get("key"), row.get("who"))


def numbers(row: dict[str, Any]) -> list[int]:
    """Numbers of the rows that a result shows."""
    if row.get("all") is not None:
        return sorted(row["all"])
    return sorted(row[name] for name in ("number", "number_right") if row.get(name) is not None)


@pytest.mark.parametrize("verb", [*ONE, *TWO])
def test_results_of_a_key_are_those_of_the_job_and_name_their_rows(verb: str) -> None:
    history, result = of(verb).why("a"), of(verb).execute()
    given = [row for rows in history.firings["results"].to_pylist() for row in rows]
    assert Counter(map(str, given)) == Counter(
        str(row) for row in result.to_arrow().to_pylist() if has_key(row)
    )
    assert given
    number_of = {
        row["event"]: row["row"]["number"] for row in history.events.to_pylist() if has_key(row["row"])
    }
    assert len(number_of) == sum(
        map(has_key, [*LEFT.to_pylist(), *(RIGHT.to_pylist() if verb in TWO else [])])
    )
    if verb != "of all, as changes":
        named = [[number_of[event] for event in events] for events in history.firings["events"].to_pylist()]
        assert list(map(sorted, named)) == list(map(numbers, given))


@pytest.mark.parametrize("verb", [*ONE, *TWO])
def test_each_row_of_a_key_is_in_a_result_or_has_a_reason(verb: str) -> None:
    job = of(verb)
    history = job.why("a")
    late = [
        row["number"]
        for tag in job._transformation.side_outputs()
        for row in job.execute().get_side_output(tag).to_arrow().to_pylist()
        if has_key(row)
    ]
    used = {event for events in history.firings["events"].to_pylist() for event in events}
    for event in history.events.to_pylist():
        is_late = event["fate"] == "late"
        assert is_late == (event["row"]["number"] in late) or not late
        if event["event"] in used:
            assert event["fate"] in ("in result", "in window")
            assert event["reason"] is None
        else:
            assert event["reason"]
            assert event["fate"] in ("in no result", "in window", "late", "in no window")
    assert bool(late) == bool(job._transformation.side_outputs())


@pytest.mark.parametrize(
    "verb", ["first", "first of windows", "highest of windows", "highest by end", "all before"]
)
def test_the_least_bound_saves_a_late_row(verb: str) -> None:
    late = [row for row in of(verb).why("a").events.to_pylist() if row["fate"] == "late"]
    saving = {row["event"]: row["saving_out_of_orderness_ms"] for row in late}
    assert saving
    for event, bound_ms in list(saving.items())[:2]:
        fates = [
            of(verb, bound).why("a").events["fate"][event - 1].as_py() for bound in (bound_ms - 1, bound_ms)
        ]
        assert fates[0] == "late"
        assert fates[1] != "late"
    assert {row["saving_allowed_lateness_ms"] for row in late} == {None}


def small(**columns: list[Any]) -> pa.Table:
    return pa.table({"at": columns["ts"], **columns})


def test_the_story_of_a_join_names_rows_timers_and_why_a_row_has_no_match() -> None:
    left = stream(small(ts=[0, 20, 40, 60], key=["k", "k", "k", "l"]), "key", 0)
    paid = left._environment.from_event_log(
        small(ts=[3, 55, 70], who=["k", "k", "l"]), timestamp="ts", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    story = str(left.join_interval(paid.key_by("who"), 0, 5, "left").why("k"))
    assert "5 rows, 4 in result, 1 in no result; 3 firings" in story
    assert "result of event 2\n" in story
    assert "of 2 events: 1-2\n" in story
    assert "result of the timer at 6, watermark 39\n" in story
    assert (
        "in no result: no row of the other stream matches it while both are kept with right - left in [0 ms, 5 ms]"
        in story
    )


def test_the_story_of_a_rank_names_the_rows_that_rank_higher() -> None:
    keyed = stream(small(ts=[1, 2, 3], key=["k"] * 3, value=[5, 9, 7]), "key")
    story = str(keyed.top(2, "value").why("k"))
    assert "in no result: other rows rank higher: 2, 3\n" in story
    assert "result at the end of the log\n" in story
    windows = keyed.window(TENS).top(1, "value").why("k", window=3)
    assert "[0, 10) fires at the end of the log" in str(windows)
    assert "in no result: other rows rank higher: 2\n" in str(windows)


def test_a_rank_of_given_windows_names_the_higher_rows_of_its_own_window_alone() -> None:
    rows = small(ts=[1, 2, 11, 12], key=["k"] * 4, value=[5, 9, 7, 3], end=[10, 10, 20, 20])
    events = stream(rows, "key").top(1, "value", window_end="end").why("k").events.to_pylist()
    reasons = [None if row["reason"] is None else row["reason"].partition(": ")[2] for row in events]
    assert reasons == ["2", None, None, "3"]


def test_columns_of_a_log_that_are_named_as_bounds_of_windows_are_not_bounds() -> None:
    rows = small(ts=[1], key=["k"], window_start=["a"], window_end=["b"])
    (firing,) = stream(rows, "key").deduplicate().why("k").firings.to_pylist()
    assert firing["window_start"] is None
    assert firing["results"][0]["window_end"] == "b"


def test_rows_of_both_streams_with_columns_of_one_name_and_two_types_are_told_apart() -> None:
    left = stream(small(ts=[1, 2], key=["k", "k"], value=[5, 9]), "key")
    right = left.select("key", value=pc.field("value").cast(pa.string())).key_by("key")
    events = left.join_regular(right).why("k").events.to_pylist()
    shown = [(row["row"]["value"], row["row"]["value_right"]) for row in events]
    assert sorted(shown, key=str) == [(5, None), (9, None), (None, "5"), (None, "9")]


def test_a_key_that_no_row_of_either_stream_has_is_near_to_others() -> None:
    assert "but there are rows with 'a'" in str(of("near").why("A"))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            lambda keyed: keyed.with_columns(row_kind=pc.scalar("+I")).key_by("key").aggregate(n=count()),
            "takes changes, with a column 'row_kind'",
        ),
        (
            lambda keyed: (
                keyed.join_regular(keyed.select("key", b=pc.field("value")).key_by("key"))
                .key_by("key")
                .top(1, "value")
            ),
            "joins such as join_interval without a rank after them",
        ),
    ],
)
def test_verbs_whose_rows_cannot_be_followed_are_refused(job: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        job(stream(LEFT, "key")).why("a")


def test_verbs_without_windows_have_none_to_ask_for() -> None:
    with pytest.raises(ConfigurationError, match="has no windows"):
        of("first").why("a", window=3)
    with pytest.raises(ConfigurationError, match="has no windows"):
        of("first").why("a").at(3)
