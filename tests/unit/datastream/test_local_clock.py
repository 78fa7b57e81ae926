"""The local time of a zone as a timeline: local times of instants, and instants of local times."""

import pickle
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.errors import ConfigurationError

HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1)


def ms(*time: int) -> int:
    return (datetime(*time) - EPOCH) // timedelta(milliseconds=1)  # type: ignore[arg-type]


def test_local_times_are_those_of_the_zone() -> None:
    clock = LocalClock.of("Europe/Berlin")
    instants = np.arange(ms(2024, 1, 1), ms(2025, 1, 1), 5 * HOUR + 7)
    moments = [datetime.fromtimestamp(int(at) / 1000, timezone.utc) for at in instants]
    from zoneinfo import ZoneInfo

    wanted = [
        (moment.astimezone(ZoneInfo("Europe/Berlin")).replace(tzinfo=None) - EPOCH)
        // timedelta(milliseconds=1)
        for moment in moments
    ]
    assert clock.local(instants).tolist() == wanted
    assert pickle.loads(pickle.dumps(clock)) == clock


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Shanghai"])
@pytest.mark.parametrize("year", [1988, 2024])
def test_a_local_time_has_passed_when_its_timer_fires(zone: str, year: int) -> None:
    clock = LocalClock.of(zone)
    instants = np.arange(ms(year, 1, 1), ms(year + 1, 1, 1), HOUR // 4)
    passed = clock.passed(instants)
    assert (np.diff(passed) >= 0).all()
    timers = clock.timers(passed)
    if clock.sets_back:  # the next millisecond fires later
        assert (timers <= instants).all()
        assert (clock.timers(passed + 1) > instants).all()


def test_the_hour_that_passes_twice_has_passed_with_the_second_time() -> None:
    clock = LocalClock.of("Europe/Berlin")
    again = ms(2024, 10, 27, 1)  # 03:00 is 02:00 again
    at = np.array([again - HOUR - 1, again - HOUR, again - 1, again, again + HOUR])
    two = ms(2024, 10, 27, 2)
    assert clock.passed(at).tolist() == [two - 1, two - 1, two - 1, two, two + HOUR]
    assert clock.timers(np.array([two])).tolist() == [again]
    assert clock.first_instants(np.array([two])).tolist() == [again - HOUR]


def test_timers_of_the_hour_that_is_skipped_fire_when_it_is_skipped() -> None:
    clock = LocalClock.of("Europe/Berlin")
    skipped = np.array([ms(2024, 3, 31, 2), ms(2024, 3, 31, 2, 59), ms(2024, 3, 31, 3)])
    assert clock.timers(skipped).tolist() == [ms(2024, 3, 31, 1)] * 3


def test_the_ends_of_time_stay_as_they_are() -> None:
    clock = LocalClock.of("Europe/Berlin")
    ends = np.array([-(2**63), 2**63 - 1])
    assert clock.local(ends).tolist() == clock.passed(ends).tolist() == ends.tolist()
    assert clock.timers(ends[1:]).tolist() == [2**63 - 1]


def test_a_clock_that_is_set_by_half_an_hour_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Australia/Lord_Howe is not set forward by an hour"):
        LocalClock.of("Australia/Lord_Howe")
