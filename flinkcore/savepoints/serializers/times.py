"""Serializers of dates, times and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flinkcore._native.state_columns import FixedColumn, StateColumn, StructColumn, TextColumn, TimeColumn
from flinkcore.savepoints.serializers.basic import snapshot_class
from flinkcore.savepoints.serializers.serializer import (
    NothingSerializer,
    SimpleSerializer,
    StateSerializer,
)

_DATE, _TIME, _DATE_TIME, _INSTANT, _SQL_TIMESTAMP = range(5)
_LEAST_YEAR, _LEAST_SECOND = -(2**31), -(2**63)


def _integer(data: memoryview, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "big", signed=True)


def _day(year: int, month: int, day: int) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError(f"there is no month {month} with a day {day}")
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+d}" if year > 0 else f"-{-year:04d}"
    return f"{text}-{month:02d}-{day:02d}"


def _fraction(nanos: int) -> str:
    if not 0 <= nanos < 1_000_000_000:
        raise ValueError(f"a second does not have {nanos:,} nanoseconds")
    return f".{nanos:09d}".rstrip("0").rstrip(".")


def _date_text(data: memoryview) -> tuple[bytes | None, int]:
    year, month, day = _integer(data, 0, 4), _integer(data, 4, 1), _integer(data, 5, 1)
    return (None if year == _LEAST_YEAR else _day(year, month, day).encode()), 6


def _time_text(data: memoryview, at: int = 0) -> str:
    hour, minute, second = (_integer(data, at + i, 1) for i in range(3))
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise ValueError("there is no such time of day")
    return f"{hour:02d}:{minute:02d}:{second:02d}{_fraction(_integer(data, at + 3, 4))}"


def _date_time_text(data: memoryview) -> tuple[bytes | None, int]:
    day, _ = _date_text(data)
    _integer(data, 6, 7)
    return (None if day is None else day + b"T" + _time_text(data, 6).encode()), 13


def _instant_text(data: memoryview) -> tuple[bytes | None, int]:
    seconds, nanos = _integer(data, 0, 8), _integer(data, 8, 4)
    if seconds == _LEAST_SECOND:
        return None, 12
    days, of_day = divmod(seconds, 86_400)
    text = f"{_day(*_civil(days))}T{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
    return f"{text}{_fraction(nanos)}Z".encode(), 12


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of days since 1970-01-01."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def _number(text: str, size: int) -> bytes:
    return int(text).to_bytes(size, "big", signed=True)


def _written_date(text: bytes | None) -> bytes:
    if text is None:
        return _LEAST_YEAR.to_bytes(4, "big", signed=True) + b"\x80\0"
    year, month, day = text.decode().rsplit("-", 2)
    _day(int(year), int(month), int(day))
    return _number(year, 4) + _number(month, 1) + _number(day, 1)


def _written_time_of_day(text: str | None) -> bytes:
    if text is None:
        return b"\x80\x80\0\x80\0\0\0"
    hour, minute, second = text.split(":")
    whole, _, fraction = second.partition(".")
    nanos = _number(fraction.ljust(9, "0") or "0", 4)
    written = _number(hour, 1) + _number(minute, 1) + _number(whole, 1) + nanos
    _time_text(memoryview(written))
    return written


def _written_date_time(text: bytes | None) -> bytes:
    if text is None:
        return _written_date(None) + _written_time_of_day(None)
    day, _, time = text.decode().rpartition("T")
    return _written_date(day.encode()) + _written_time_of_day(time)


def _written_instant(text: bytes | None) -> bytes:
    if text is None:
        return _LEAST_SECOND.to_bytes(8, "big", signed=True) + b"\x80\0\0\0"
    day, _, time = text.decode().removesuffix("Z").rpartition("T")
    year, month, of_month = map(int, day.rsplit("-", 2))
    _day(year, month, of_month)
    of_day = memoryview(_written_time_of_day(time))
    seconds = (_days(year, month, of_month) * 24 + of_day[0]) * 3600 + of_day[1] * 60 + of_day[2]
    return seconds.to_bytes(8, "big", signed=True) + bytes(of_day[3:])


def _days(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01, as the inverse of `_civil`."""
    era, of_era = divmod(year - (month <= 2), 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _times(
    kind: int,
    read: Callable[[memoryview], tuple[bytes | None, int]],
    write: Callable[[bytes | None], bytes],
) -> Callable[[bool], StateColumn]:
    return lambda exact: TextColumn(read, write) if exact else TimeColumn(kind)


def _milliseconds(exact: bool) -> StateColumn:
    # java.sql.Date and java.sql.Time are milliseconds, whose day or time depends on the zone of the JVM.
    return FixedColumn("tsm:UTC", 8, True)


def _sql_timestamp(exact: bool) -> StateColumn:
    if exact:
        return StructColumn(["epoch_ms", "nanos"], [FixedColumn("l", 8, True), FixedColumn("i", 4)])
    return TimeColumn(_SQL_TIMESTAMP)


def _window(exact: bool) -> StateColumn:
    return StructColumn(["start_ms", "end_ms"], [FixedColumn("l", 8), FixedColumn("l", 8)])


_WINDOWS: Final = "org.apache.flink.streaming.api.windowing.windows."
_STATE: Final = "org.apache.flink.runtime.state."


def _basic(name: str, java_name: str, make: Callable[[bool], StateColumn], size: int) -> SimpleSerializer:
    return SimpleSerializer(java_name, make, size, snapshot_class(name))


SQL_DATE: Final = _basic("SqlDate", "java.sql.Date", _milliseconds, 8)
SQL_TIME: Final = _basic("SqlTime", "java.sql.Time", _milliseconds, 8)
SQL_TIMESTAMP: Final = _basic("SqlTimestamp", "java.sql.Timestamp", _sql_timestamp, 12)
LOCAL_DATE: Final = _basic("LocalDate", "LocalDate", _times(_DATE, _date_text, _written_date), 6)
LOCAL_TIME: Final = _basic(
    "LocalTime",
    "LocalTime",
    lambda exact: TimeColumn(_TIME),  # every time of day has its place
    7,
)
LOCAL_DATE_TIME: Final = _basic(
    "LocalDateTime", "LocalDateTime", _times(_DATE_TIME, _date_time_text, _written_date_time), 13
)
INSTANT: Final = _basic("Instant", "Instant", _times(_INSTANT, _instant_text, _written_instant), 12)
TIME_WINDOW: Final = SimpleSerializer(
    "TimeWindow", _window, 16, f"{_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot"
)
GLOBAL_WINDOW: Final = NothingSerializer(
    "GlobalWindow", 1, f"{_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"
)
VOID_NAMESPACE: Final = NothingSerializer(
    "void", 1, f"{_STATE}VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot"
)
_TABLE_WINDOWS: Final = "org.apache.flink.table.runtime.operators.window."
TABLE_TIME_WINDOW: Final = SimpleSerializer(
    "TimeWindow", _window, 16, f"{_TABLE_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot"
)
"""Windows of SQL and of PyFlink, as are the next two."""
TABLE_GLOBAL_WINDOW: Final = NothingSerializer(
    "GlobalWindow", 1, f"{_TABLE_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"
)
TABLE_COUNT_WINDOW: Final = SimpleSerializer(
    "CountWindow",
    lambda exact: FixedColumn("l", 8),
    8,
    f"{_TABLE_WINDOWS}CountWindow$Serializer$CountWindowSerializerSnapshot",
)

TIME_SERIALIZERS: Final[dict[str, StateSerializer]] = {
    each.snapshot_class: each
    for each in (
        _basic("Date", "Date", _milliseconds, 8),
        *(SQL_DATE, SQL_TIME, SQL_TIMESTAMP, LOCAL_DATE, LOCAL_TIME, LOCAL_DATE_TIME, INSTANT),
        *(TIME_WINDOW, GLOBAL_WINDOW, VOID_NAMESPACE),
        *(TABLE_TIME_WINDOW, TABLE_GLOBAL_WINDOW, TABLE_COUNT_WINDOW),
        NothingSerializer("Null", 1, snapshot_class("Null", "org.apache.flink.table.dataview.")),
    )
}
"""Serializers by the class of their snapshots, which have no content."""
