"""Columns as plain Python values, and Rows on their way back."""

import re
from datetime import datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from flinkcore._internal.arrow.column_values import column_values, key_values
from flinkcore.common import Row
from flinkcore.errors import DataError

MOMENT = datetime(2026, 7, 1, 12, 30, 0, 250)
BERLIN = MOMENT.replace(tzinfo=timezone.utc).astimezone(ZoneInfo("Europe/Berlin"))
AHEAD = MOMENT.replace(tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=5, minutes=30)))


def types_in(value: Any) -> list[type]:
    if isinstance(value, list | tuple | Row):
        return [kind for item in value for kind in types_in(item)]
    if isinstance(value, dict):
        return [kind for item in value.values() for kind in types_in(item)]
    return [type(value)]


PLAIN: list[tuple[pa.DataType, Any]] = [
    (pa.timestamp("ns"), MOMENT),
    (pa.timestamp("us"), MOMENT),
    (pa.timestamp("ns", "UTC"), MOMENT.replace(tzinfo=timezone.utc)),
    (pa.timestamp("ns", "Europe/Berlin"), BERLIN),
    (pa.timestamp("ns", "+05:30"), AHEAD),
    (pa.timestamp("s"), datetime(1, 1, 1)),
    (pa.timestamp("us"), datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    (pa.duration("ns"), timedelta(days=-3, microseconds=1)),
    (pa.duration("s"), timedelta(days=400_000)),
    (pa.time64("ns"), time(1, 2, 3, 4)),
    (pa.list_(pa.timestamp("ns")), [MOMENT, None]),
    (pa.list_(pa.timestamp("ns"), 2), [MOMENT, None]),
    (pa.large_list(pa.duration("ns")), []),
    (pa.map_(pa.string(), pa.timestamp("ns")), [("a", MOMENT), ("b", None)]),
    (pa.struct([("at", pa.timestamp("ns")), ("n", pa.int64())]), {"at": MOMENT, "n": None}),
    (
        pa.struct([("all", pa.list_(pa.struct([("at", pa.duration("ns"))])))]),
        {"all": [{"at": timedelta(1)}, None]},
    ),
]


@pytest.mark.parametrize(("kind", "value"), PLAIN, ids=repr)
def test_times_of_every_unit_are_those_of_datetime(kind: pa.DataType, value: Any) -> None:
    column = pa.array([None, value, value, None], kind)
    assert column_values(column, "c") == [None, value, value, None]
    assert column_values(column.slice(2), "c") == [value, None]
    assert {found.__module__ for found in types_in(column_values(column, "c"))} <= {"builtins", "datetime"}


@pytest.mark.parametrize("encoded", [pa.array([MOMENT, None], pa.timestamp("ns")).dictionary_encode()])
def test_encoded_times_are_decoded(encoded: pa.Array) -> None:
    assert column_values(encoded, "c") == [MOMENT, None]


def test_zones_of_values_are_those_of_the_standard_library() -> None:
    zones = [
        column_values(pa.array([MOMENT], pa.timestamp("ms", zone)), "c")[0].tzinfo
        for zone in ("UTC", "Europe/Berlin", "-03:00")
    ]
    assert zones == [timezone.utc, ZoneInfo("Europe/Berlin"), timezone(timedelta(hours=-3))]


@pytest.mark.parametrize(
    ("kind", "number", "why"),
    [
        (pa.timestamp("ns"), 1_700_000_000_000_000_001, "digits below microseconds"),
        (pa.timestamp("ns", "Asia/Tokyo"), -1, "digits below microseconds"),
        (pa.duration("ns"), -1, "digits below microseconds"),
        (pa.time64("ns"), 999, "digits below microseconds"),
        (pa.timestamp("us"), 2**62, "the years 1 to 9999"),
        (pa.timestamp("s"), -(2**62), "too large"),
        (pa.duration("s"), 2**62, "too large"),
        (pa.timestamp("us"), -(2**63), "too large"),
        (pa.duration("us"), -(2**63), "too large"),
        (pa.time64("us"), -1, "a time is of one day"),
        (pa.time64("ns"), 86_400_000_000_000, "a time is of one day"),
        (pa.timestamp("us", "America/New_York"), -62_135_596_800_000_000, "out of range"),
    ],
)
def test_a_time_that_python_cannot_hold_is_refused_by_name(kind: pa.DataType, number: int, why: str) -> None:
    column = pa.array([0, None, number], pa.int64()).view(kind)
    shown = re.escape(f"the column 'at' ({kind}) holds {number} ")
    message = rf"{shown}.*{why}.*Filter such rows out.*cast\('int64'\)"
    with pytest.raises(DataError, match=message):
        column_values(column, "at")
    with pytest.raises(DataError, match=r"the column 'at' .* holds"):
        column_values(pa.StructArray.from_arrays([column], ["inner"]), "at")


@pytest.mark.parametrize(("unit", "number"), [("s", -1), ("s", 86_400), ("ms", 86_400_000)])
def test_a_time_of_32_bits_beyond_its_day_is_refused(unit: str, number: int) -> None:
    column = pa.array([0, None, number], pa.int32()).view(pa.time32(unit))
    with pytest.raises(DataError, match=rf"holds {number} .*a time is of one day"):
        column_values(column, "at")


def test_an_unknown_zone_says_what_to_install() -> None:
    with pytest.raises(DataError, match=r"time zone 'Mars/Olympus'.*tzdata"):
        column_values(
            pa.array([1, 2], pa.int64()).view(pa.timestamp("ms")).view(pa.timestamp("ms", "Mars/Olympus")),
            "c",
        )


def test_a_key_with_a_zone_is_in_utc() -> None:
    (key,) = key_values(pa.array([BERLIN], pa.timestamp("us", "Europe/Berlin")), "k")
    assert (key, key.tzinfo) == (BERLIN, timezone.utc)
