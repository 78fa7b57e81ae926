"""Lengths of time."""

import pickle

import pytest

from flinkcore.common import Duration, Time
from flinkcore.common.time import interval_ms, interval_or_ms
from flinkcore.errors import ConfigurationError


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


def test_an_interval_without_unit_is_refused_and_the_message_shows_one_with() -> None:
    with pytest.raises(
        ConfigurationError, match=r"window size takes a Time or a Duration.*Time\.seconds\(10\)"
    ):
        interval_ms(10, "window size")  # type: ignore[arg-type]


def test_where_pyflink_takes_a_number_of_milliseconds_so_does_the_setting() -> None:
    assert interval_or_ms(10, "allowed_lateness") == 10
    assert interval_or_ms(Time.seconds(1), "allowed_lateness") == 1000
    with pytest.raises(ConfigurationError, match="allowed_lateness takes an integer"):
        interval_or_ms(True, "allowed_lateness")
    with pytest.raises(
        ConfigurationError, match="allowed_lateness takes a whole number of milliseconds, a T"
    ):
        interval_or_ms(1.5, "allowed_lateness")  # type: ignore[arg-type]


def test_an_interval_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="do not fit in 64 bits"):
        interval_ms(Time.days(2**60), "window size")
    assert interval_ms(Time.milliseconds(2**63 - 1), "window size") == 2**63 - 1
