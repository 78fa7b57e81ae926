"""Lengths of time."""

import pickle
from datetime import timedelta
from typing import Any

import pytest

from flinkcore.common import Duration, Time
from flinkcore.common.time import interval_ms
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@pytest.mark.parametrize(
    ("duration", "millis"),
    [
        (Duration.of_days(2), 172_800_000),
        (Duration.of_hours(-1), -3_600_000),
        (Duration.of_minutes(3), 180_000),
        (Duration.of_seconds(4), 4_000),
        (Duration.of_millis(5), 5),
        (Duration.of_nanos(1_999_999), 1),
        (Duration.of_nanos(-1_999_999), -1),
        (Duration.of_nanos(-999_999), 0),
    ],
)
def test_durations_count_whole_milliseconds_cut_off_towards_zero(duration: Duration, millis: int) -> None:
    assert duration.to_millis() == millis
    assert interval_ms(duration, "x") == millis


@pytest.mark.parametrize(
    ("time", "millis"),
    [
        (Time.days(1), 86_400_000),
        (Time.hours(-8), -28_800_000),
        (Time.minutes(1), 60_000),
        (Time.seconds(10), 10_000),
        (Time.milliseconds(7), 7),
    ],
)
def test_times_are_in_milliseconds(time: Time, millis: int) -> None:
    assert time.to_milliseconds() == millis
    assert interval_ms(time, "x") == millis


def test_equal_lengths_are_equal_whatever_their_unit() -> None:
    assert Duration.of_minutes(1) == Duration.of_seconds(60)
    assert Time.minutes(1) == Time.seconds(60)
    assert len({Time.minutes(1), Time.seconds(60)}) == 1
    assert Duration.of_millis(1) < Duration.of_seconds(1)
    assert pickle.loads(pickle.dumps(Time.hours(1))) == Time.hours(1)


@pytest.mark.parametrize("make", [Duration.of_seconds, Duration.of_nanos, Time.seconds, Time.milliseconds])
@pytest.mark.parametrize("value", [1.5, "1", True, None])
def test_only_integers_make_a_length(make, value) -> None:
    with pytest.raises(ConfigurationError, match="takes an integer"):
        make(value)


def test_every_setting_takes_a_time_a_duration_a_timedelta_and_milliseconds() -> None:
    for interval in (Time.minutes(1), Duration.of_minutes(1), timedelta(minutes=1), 60_000):
        assert interval_ms(interval, "window size") == 60_000


@pytest.mark.parametrize("microseconds", [1999, -1999])
def test_fractions_of_a_millisecond_are_cut_off_towards_zero(microseconds: int) -> None:
    one = 1 if microseconds > 0 else -1
    assert interval_ms(timedelta(microseconds=microseconds), "offset") == one
    assert interval_ms(Duration.of_nanos(microseconds * 1000), "offset") == one


@pytest.mark.parametrize("value", [1.5, "1h", True, None])
def test_what_is_no_length_of_time_is_refused_with_lines_that_are(value: Any) -> None:
    lines = r"Time\.seconds\(10\), Duration\.of_seconds\(10\) or datetime\.timedelta\(seconds=10\), or a whole number"
    with pytest.raises(ArgumentTypeError, match=f"window size takes a length of time, such as {lines}"):
        interval_ms(value, "window size")


def test_a_duration_without_a_unit_is_refused_with_the_line_that_has_one() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"Duration\(30\) has no unit: write Duration\.of_seconds\(30\)"
    ):
        Duration(30)
    with pytest.raises(ArgumentTypeError, match="has no unit"):
        Duration()
    assert eval(repr(Duration.of_millis(5))) == Duration.of_millis(5)
    assert pickle.loads(pickle.dumps(Duration.of_millis(5))) == Duration.of_millis(5)


def test_an_interval_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="do not fit in 64 bits"):
        interval_ms(Time.days(2**60), "window size")
    assert interval_ms(Time.milliseconds(2**63 - 1), "window size") == 2**63 - 1
