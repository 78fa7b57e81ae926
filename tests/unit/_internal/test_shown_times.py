"""Times in messages: a number of ms has its date beside."""

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._internal.show.times import EARLIEST_DATE_MS, dated
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import UserCodeError

HOUR = 3_600_000
NEW_YEAR = 978_307_200_000


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [
        (5, "5 ms"),
        (-NEW_YEAR, "-978307200000 ms"),
        (EARLIEST_DATE_MS - 1, "99999999999 ms"),
        (EARLIEST_DATE_MS, "100000000000 ms (1973-03-03 09:46:40.000Z)"),
        (np.int64(NEW_YEAR + 1), "978307200001 ms (2001-01-01 00:00:00.001Z)"),
        (10**17, "100000000000000000 ms"),
        (MIN_TIMESTAMP, "-9223372036854775808 ms"),
        (MAX_TIMESTAMP, "9223372036854775807 ms (the maximum)"),
    ],
)
def test_what_looks_like_a_date_has_it_beside(time_ms: int, shown: str) -> None:
    assert dated(time_ms, " ms") == shown
    assert dated(time_ms) == shown.replace(" ms", "")


class Fails(KeyedProcessFunction):
    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        ctx.timer_service().register_event_time_timer(value.ts + HOUR)

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        raise ValueError("unlucky")


def test_errors_of_functions_name_dates() -> None:
    log = pa.table({"ts": [NEW_YEAR], "key": ["a"]})
    events = StreamExecutionEnvironment().from_event_log(log, timestamp="ts", integer_times=True)
    keyed = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by(
        "key"
    )
    with pytest.raises(
        UserCodeError, match=r"the timer at 978310800000 ms \(2001-01-01 01:00:00.000Z\) of the key"
    ):
        keyed.process(Fails(), pa.schema({"n": pa.int64()})).to_arrow()


@pytest.mark.parametrize(
    ("start", "first_lines"),
    [
        (
            NEW_YEAR,
            [
                "key = 'a'",
                "  1 row, 1 in window; 1 firing; times in UTC, made of ms since the epoch",
                "1970-01-01 00:00:00      event 1 of 2001-01-01 00:00:00, position 0",
            ],
        ),
        (0, ["key = 'a'", "  1 row, 1 in window; 1 firing", "0           event 1 of 0, position 0"]),
    ],
)
def test_the_story_of_a_log_of_numbers_has_dates_if_they_look_like_some(
    start: int, first_lines: list[str]
) -> None:
    events = StreamExecutionEnvironment().from_event_log(
        pa.table({"ts": [start], "key": ["a"]}), timestamp="ts", integer_times=True
    )
    keyed = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by(
        "key"
    )
    windows = keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=count())
    assert str(windows.why("a")).splitlines()[:3] == first_lines
