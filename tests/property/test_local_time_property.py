"""Local days, weeks and months against a model that asks zoneinfo for the clock of each moment."""

from bisect import bisect_right
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, cast
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from equipment.example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkcore.datastream.window import LocalEventTimeWindows, TumblingEventTimeWindows
from flinkcore.datastream.window.local_time import local_rules

UTC = timezone.utc
DAY = timedelta(days=1)
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = sorted(available_timezones())
NO_CONTEXT: Any = None


def ms(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def shown(zone: ZoneInfo, moment: datetime) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def first_moment(zone: ZoneInfo, local: datetime) -> datetime:
    """When the clock first shows a time or a later one: by the minute, then by the millisecond."""
    moment = local.replace(tzinfo=UTC) - timedelta(hours=30)
    while shown(zone, moment) < local:
        moment += timedelta(minutes=1)
    moment -= timedelta(minutes=1)
    while shown(zone, moment) < local:
        moment += timedelta(seconds=1)
    return moment


def first_moments(zone: ZoneInfo, around: datetime, start: time) -> list[int]:
    """When the days around a moment begin."""
    today = around.astimezone(zone).date()
    days = [today + number * DAY for number in range(-2, 3)]
    return [ms(first_moment(zone, datetime.combine(day, start))) for day in days]


def window_at(windows: LocalEventTimeWindows, moment: datetime) -> tuple[int, int]:
    (window,) = windows.assign_windows(None, ms(moment), NO_CONTEXT)
    return window.start, window.end


def changes(zone: ZoneInfo, from_year: int, to_year: int) -> list[datetime]:
    """The days on which the offset of a zone differs from that of the day before."""
    days = [
        datetime(from_year, 1, 1, tzinfo=UTC) + number * DAY for number in range(365 * (to_year - from_year))
    ]
    offsets = [zone.utcoffset(day.replace(tzinfo=None)) for day in days]
    return [
        day for day, before, after in zip(days[1:], offsets, offsets[1:], strict=False) if before != after
    ]


@settings(deadline=None, max_examples=examples(20))
@given(st.sampled_from(ZONES), st.data())
def test_days_begin_when_the_clock_first_shows_their_start(name: str, data: st.DataObject) -> None:
    zone = ZoneInfo(name)
    start = data.draw(st.sampled_from([time(), time(), time(6), time(2, 30), time(23, 59, 30)]))
    year = data.draw(st.integers(1880, 2060))
    changed = changes(zone, year, year + 20)
    base = data.draw(
        st.sampled_from(changed)
        if changed
        else st.datetimes(datetime(1800, 1, 2), datetime(2500, 1, 1), timezones=st.just(UTC))
    )
    moment = base + timedelta(minutes=data.draw(st.integers(-3000, 3000)))
    bounds = sorted(set(first_moments(zone, moment, start)))
    at = bisect_right(bounds, ms(moment))
    assert window_at(TumblingEventTimeWindows.of_local_days(name, start), moment) == (
        bounds[at - 1],
        bounds[at],
    )


@settings(deadline=None, max_examples=examples(20))
@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(3, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
)
@example("Europe/Berlin", datetime(9000, 3, 26, 1, tzinfo=UTC))
@example("America/New_York", datetime(3, 1, 1, tzinfo=UTC))
def test_days_of_all_times_are_those_of_the_zone(name: str, moment: datetime) -> None:
    zone = ZoneInfo(name)
    bounds = sorted(set(first_moments(zone, moment, time())))
    at = bisect_right(bounds, ms(moment))
    assert window_at(TumblingEventTimeWindows.of_local_days(name), moment) == (bounds[at - 1], bounds[at])


@settings(deadline=None, max_examples=examples(12))
@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1840, 1, 1), datetime(2700, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 6),
)
def test_weeks_and_months_begin_with_their_first_day(name: str, moment: datetime, first_weekday: int) -> None:
    days = TumblingEventTimeWindows.of_local_days(name)
    weeks = TumblingEventTimeWindows.of_local_weeks(name, first_weekday=first_weekday)
    for windows, begins in (
        (weeks, lambda day: day.weekday() == first_weekday),
        (TumblingEventTimeWindows.of_local_months(name), lambda day: day.day == 1),
    ):
        start, end = window_at(windows, moment)
        assert start <= ms(moment) < end
        zone = ZoneInfo(name)
        for bound in (start, end):
            assert days.calendar.window(bound)[0] == bound
            # At noon, as the day may begin a few hours before or after its midnight.
            noon = EPOCH + bound * MILLISECOND + timedelta(hours=12)
            local = shown(zone, noon).date()
            near = [local - DAY, local, local + DAY]
            firsts = [day for day in near if begins(day)]
            assert any(ms(first_moment(zone, datetime.combine(day, time()))) == bound for day in firsts)
        inner = [days.calendar.window(at)[0] for at in range(start, end, 86_400_000 // 2)]
        inside = {at for at in inner if start < at < end}
        for at in inside:
            day = shown(zone, EPOCH + at * MILLISECOND + timedelta(hours=12)).date()
            assert not begins(day) or ms(first_moment(zone, datetime.combine(day, time()))) != at


@settings(deadline=None, max_examples=examples(12))
@given(st.sampled_from(ZONES), st.lists(st.integers(-(2**43), 2**47), max_size=50))
def test_bounds_of_many_timestamps_are_those_of_each(name: str, timestamps: list[int]) -> None:
    calendar = TumblingEventTimeWindows.of_local_days(name).calendar
    starts, ends = calendar.bounds(np.array(timestamps, np.int64))
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [
        calendar.window(at) for at in timestamps
    ]


@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Europe/Berlin", date(2026, 10, 26), 24),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),  # 00:00 became 01:00
        ("America/Sao_Paulo", date(2018, 2, 17), 25),  # 24:00 became 23:00
        ("Asia/Beirut", date(2024, 3, 31), 23),
        ("America/Havana", date(2025, 11, 2), 25),  # shows midnight twice
        ("America/St_Johns", date(2010, 11, 7), 25),  # 00:01 became 23:01 of the day before
        ("Pacific/Kwajalein", date(1969, 9, 30), 47),  # 24:00 became 01:00
        ("Europe/Berlin", date(2426, 3, 29), 23),
    ],
)
def test_lengths_of_days_follow_the_clock(name: str, day: date, hours: float) -> None:
    noon = datetime.combine(day, time(12), ZoneInfo(name)).astimezone(UTC)
    start, end = window_at(TumblingEventTimeWindows.of_local_days(name), noon)
    assert (end - start) / 3_600_000 == hours


def test_a_day_that_a_zone_skips_has_no_window() -> None:
    zone = ZoneInfo("Pacific/Apia")
    last = datetime(2011, 12, 29, 12, tzinfo=zone).astimezone(UTC)
    _, end = window_at(TumblingEventTimeWindows.of_local_days("Pacific/Apia"), last)
    assert shown(zone, EPOCH + end * MILLISECOND) == datetime(2011, 12, 31)
    assert cast(int, end) - ms(last) == 12 * 3_600_000


def test_rules_are_the_same_for_a_name_and_a_zone_without_cache() -> None:
    name, zone = "Europe/Berlin", ZoneInfo.no_cache("Europe/Berlin")
    assert local_rules(zone, time()) == TumblingEventTimeWindows.of_local_days(name).rules
    assert TumblingEventTimeWindows.of_local_days(zone) == TumblingEventTimeWindows.of_local_days(name)
