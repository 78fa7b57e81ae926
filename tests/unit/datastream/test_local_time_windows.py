"""Windows of local days, weeks and months: how they are made, shown and carried, and what is refused."""

import pickle
from collections.abc import Callable
from datetime import datetime, time, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH, ZoneInfo

import pytest

from flinkcore.datastream.window import TumblingEventTimeWindows, local_time
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError

BERLIN = TumblingEventTimeWindows.of_local_days("Europe/Berlin")
NO_CONTEXT: Any = None


def test_windows_say_what_they_are() -> None:
    of = TumblingEventTimeWindows
    assert BERLIN.in_words == "tumbling windows of a local day of Europe/Berlin, from 00:00 (23 to 25 h)"
    assert of.of_local_days("Asia/Tokyo", time(6, 30)).in_words.endswith(
        "day of Asia/Tokyo, from 06:30 (24 h)"
    )
    assert of.of_local_days("UTC", time(6, 0, 30)).in_words.endswith("from 06:00:30 (24 h)")
    weeks = of.of_local_weeks("Europe/Berlin", first_weekday=6)
    assert weeks.in_words == "tumbling windows of a local week of Europe/Berlin, from Sunday 00:00"
    months = of.of_local_months("Europe/Berlin", time(6))
    assert months.in_words == "tumbling windows of a local month of Europe/Berlin, from the 1st 06:00"
    assert [str(BERLIN), str(weeks)] == [
        "local days of Europe/Berlin",
        "local weeks of Europe/Berlin from Sunday",
    ]
    assert str(months) == "local months of Europe/Berlin from 06:00"
    assert repr(weeks) == "TumblingEventTimeWindows.of_local_weeks('Europe/Berlin', first_weekday=6)"
    assert repr(months).endswith("of_local_months('Europe/Berlin', start=datetime.time(6, 0))")


def test_windows_begin_at_their_start_on_the_clock_of_the_zone() -> None:
    gas_days = TumblingEventTimeWindows.of_local_days("Europe/Berlin", time(6))
    moment = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)
    (window,) = gas_days.assign_windows(None, int(moment.timestamp() * 1000), NO_CONTEXT)
    local = [datetime.fromtimestamp(at / 1000, ZoneInfo("Europe/Berlin")) for at in window]
    assert [each.isoformat() for each in local] == ["2026-10-25T06:00:00+01:00", "2026-10-26T06:00:00+01:00"]


def test_windows_carry_their_rules_to_machines_with_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pickle.dumps(BERLIN)
    assert len(packed) < 20_000

    def no_data(*_: Any) -> Any:
        raise AssertionError("time zone data were read")

    monkeypatch.setattr(local_time, "ZoneInfo", no_data)
    monkeypatch.setattr(local_time, "local_rules", no_data)
    local_time.local_calendar.cache_clear()
    windows = pickle.loads(packed)
    assert windows == BERLIN
    assert windows.calendar.window(1_793_000_000_000) == (1_792_969_200_000, 1_793_055_600_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: BERLIN.of(BERLIN.period, "europe/berlin"),
            r"no time zone 'europe/berlin'. Take an IANA name, such as 'Europe/Berlin'",
        ),
        (
            lambda: TumblingEventTimeWindows.of_local_days("Mars/Olympus"),
            "no time zone 'Mars/Olympus'. Take an IANA",
        ),
        (
            lambda: TumblingEventTimeWindows.of_local_days("+02:00"),
            r"'\+02:00' is an offset .* take TumblingEventTimeWindows\.of\(Time\.days\(1\), Time\.hours\(-2\)\)",
        ),
        (lambda: TumblingEventTimeWindows.of_local_days("UTC-3"), r"Time\.hours\(3\)\)$"),
        (lambda: TumblingEventTimeWindows.of_local_days("+0530"), r"Time\.minutes\(-330\)\)$"),
        (lambda: TumblingEventTimeWindows.of_local_days("CEST"), "name, such as 'Europe/Berlin'$"),
        (lambda: TumblingEventTimeWindows.of_local_days("new york"), "name, such as 'America/New_York'$"),
        (lambda: TumblingEventTimeWindows.of_local_days("Europe/Berln"), "name, such as 'Europe/Berlin'"),
        (lambda: TumblingEventTimeWindows.of_local_days("../etc/passwd"), "no time zone"),
        (lambda: TumblingEventTimeWindows.of_local_days(""), "no time zone ''"),
        (lambda: TumblingEventTimeWindows.of_local_days("Europe"), "no time zone 'Europe'"),
        (
            lambda: TumblingEventTimeWindows.of_local_weeks("UTC", first_weekday=7),
            r"first_weekday is from 0 \(Monday\) to 6",
        ),
        (
            lambda: TumblingEventTimeWindows.of_local_days("UTC", time(1, 2, 3, 4)),
            "the start has whole milliseconds",
        ),
    ],
)
def test_what_makes_no_windows_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=2)), 2, None, time(2)])
def test_a_zone_of_a_fixed_offset_is_refused_with_the_line_for_it(zone: Any) -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"of\(Time\.days\(1\), offset\): Time\.hours\(-2\) for UTC\+02:00"
    ):
        TumblingEventTimeWindows.of_local_days(zone)


@pytest.mark.parametrize("start", ["06:00", 6, time(6, tzinfo=timezone.utc)])
def test_a_start_is_a_time_of_the_zone(start: Any) -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"the start is a datetime\.time of the zone, such as time\(6\)"
    ):
        TumblingEventTimeWindows.of_local_days("Europe/Berlin", start)


def test_without_time_zone_data_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_time, "available_timezones", set)
    with pytest.raises(ConfigurationError, match="pip install tzdata; workers need none"):
        TumblingEventTimeWindows.of_local_days("Nowhere/Here")


def test_a_zone_of_a_file_needs_a_name() -> None:
    path = next(path for folder in TZPATH if (path := Path(folder) / "Europe" / "Berlin").exists())
    data = path.read_bytes()
    with pytest.raises(ConfigurationError, match="has no name"):
        TumblingEventTimeWindows.of_local_days(ZoneInfo.from_file(BytesIO(data)))
    named = ZoneInfo.from_file(BytesIO(data), key="Europe/Berlin")
    assert TumblingEventTimeWindows.of_local_days(named) == BERLIN


def test_an_element_without_a_timestamp_is_refused() -> None:
    with pytest.raises(DataError, match="has no timestamp"):
        BERLIN.assign_windows(None, -(2**63), NO_CONTEXT)
