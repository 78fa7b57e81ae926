"""Late rows of verbs over columns go to a side output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError

LATE = OutputTag("late")
# The watermark is 3,001 ms behind the highest of these seconds: 8,999 ms before row 1, and 16,999 ms from row 4 on.
TIMES = [12, 3, 14, 20, 9, 17, 4, 18, 15, 11]
TENS = TumblingEventTimeWindows.of(Time.seconds(10))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
APART = SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(10))

Verb = Callable[[KeyedLogStream], LogStream]

VERBS: dict[str, tuple[Verb, list[int]]] = {
    "the first row of a key": (lambda keyed: keyed.deduplicate(late_to=LATE), [1, 4, 6, 8, 9]),
    "the first row of a window": (
        lambda keyed: keyed.window(TENS).side_output_late_data(LATE).deduplicate(),
        [4, 6],
    ),
    "the highest row of a window": (
        lambda keyed: keyed.window(TENS).side_output_late_data(LATE).top(1, "n"),
        [4, 6],
    ),
    "the highest row of windows that overlap": (
        lambda keyed: keyed.window(SLIDING).side_output_late_data(LATE).top(1, "n"),
        [4, 6],
    ),
    "the highest row of windows that lie apart": (
        lambda keyed: keyed.window(APART).side_output_late_data(LATE).top(1, "n"),
        [1, 4, 6, 8, 9],
    ),
    "the highest row of a window that rows name": (
        lambda keyed: keyed.top(1, "n", window_end="end", late_to=LATE),
        [4, 6],
    ),
    "frames of all rows": (
        lambda keyed: keyed.over().side_output_late_data(LATE).aggregate(rows=count()),
        [1, 4, 6, 8, 9],
    ),
}


def log(key: Callable[[int], int], parallelism: int = 1) -> KeyedLogStream:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    rows = pa.table(
        {
            "n": range(len(TIMES)),
            "key": [key(number) for number in range(len(TIMES))],
            "ts": pa.array([1000 * time for time in TIMES], pa.timestamp("ms")),
            "end": pa.array([10_000 * (time // 10 + 1) for time in TIMES], pa.timestamp("ms")),
        }
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(3))
    stream = env.from_event_log(rows, timestamp="ts").assign_timestamps_and_watermarks(strategy)
    return stream.key_by("key")


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("of_keys", [1, 3])
@pytest.mark.parametrize("verb", VERBS)
def test_rows_that_are_late_for_a_verb_are_in_its_side_output_as_they_came(verb: str, of_keys: int) -> None:
    results, numbers = VERBS[verb]
    assert late_rows(results(log(lambda number: number % of_keys, of_keys))) == numbers


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize(("of_keys", "numbers"), [(1, [4, 6, 9]), (3, [6, 9])])
def test_rows_are_late_for_frames_of_two_rows_behind_the_last_row_of_their_key(
    of_keys: int, numbers: list[int]
) -> None:
    keyed = log(lambda number: number % of_keys, of_keys)
    assert late_rows(keyed.over(1).side_output_late_data(LATE).aggregate(rows=count())) == numbers


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_a_job_with_late_rows_of_a_verb_is_compared_under_another_strategy() -> None:
    first = log(lambda number: 0).deduplicate(late_to=LATE)
    later = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    compared = first.what_if(later, keys=["key"])
    assert [found["last_n"].to_pylist() for found in compared.results] == [[0], [1]]


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_late_rows_of_a_verb_are_a_stream() -> None:
    assert late_rows(log(lambda number: 0).deduplicate(late_to=LATE)) == [1, 4, 6, 8, 9]
    late = log(lambda number: 0).deduplicate(late_to=LATE).get_side_output(LATE)
    assert sorted(late.to_arrow()["n"].to_pylist()) == [1, 4, 6, 8, 9]


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
@pytest.mark.parametrize("how", ["inner", "full", "semi", "anti"])
@pytest.mark.parametrize("of_keys", [1, 3])
def test_late_rows_of_each_stream_of_a_window_join_are_in_a_side_output(how: Any, of_keys: int) -> None:
    late_right = OutputTag("late right")
    keyed = log(lambda number: number % of_keys, of_keys)
    other = keyed.select("key", right=pc.field("n")).key_by("key")
    joined = keyed.join_window(other, TENS, how, left_late_to=LATE, right_late_to=late_right)
    assert late_rows(joined, of_both=True) == [4, 6]
    right = joined.get_side_output(late_right).to_arrow()
    assert right.schema.names == ["key", "right"]
    assert sorted(right["right"].to_pylist()) == [4, 6]
    dropped = keyed.join_window(other, TENS, how)
    assert sorted(map(str, joined.to_arrow().to_pylist())) == sorted(map(str, dropped.to_arrow().to_pylist()))


@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_late_rows_of_one_stream_of_a_window_join_are_dropped() -> None:
    keyed = log(lambda number: 0)
    joined = keyed.join_window(
        keyed.select("key", right=pc.field("n")).key_by("key"), TENS, right_late_to=LATE
    )
    result = joined.execute()
    assert sorted(result.get_side_output(LATE).to_arrow()["right"].to_pylist()) == [4, 6]
    assert result.report.late == 4


def test_two_side_outputs_of_late_rows_of_a_window_join_have_two_names() -> None:
    keyed = log(lambda number: 0)
    with pytest.raises(ConfigurationError, match="'late' is named for late rows of both streams"):
        keyed.join_window(keyed, TENS, left_late_to=LATE, right_late_to=OutputTag("late"))


def late_rows(results: LogStream, of_both: bool = False) -> list[int]:
    result = results.execute()
    late = result.get_side_output(LATE).to_arrow()
    assert late.schema.names == ["n", "key", "ts", "end"]
    assert result.report.late == late.num_rows * (1 + of_both)
    return sorted(late["n"].to_pylist())


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (lambda keyed: keyed.deduplicate("last", late_to=LATE), "only the first row by event time waits"),
        (
            lambda keyed: keyed.deduplicate(changes=True, late_to=LATE),
            "only the first row by event time waits",
        ),
        (lambda keyed: keyed.top(1, "n", late_to=LATE), "rows are late only for windows"),
        (lambda keyed: keyed.over(by="arrival").side_output_late_data(LATE), "no row is late by arrival"),
        (lambda keyed: keyed.over().side_output_late_data("late"), "takes an OutputTag"),
    ],
)
def test_a_side_output_of_late_rows_is_refused_where_none_can_be_late(verb: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        verb(log(lambda number: 0))
