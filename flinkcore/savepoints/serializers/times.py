"""Serializers of dates, times and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flinkcore._native.state_columns import FixedColumn, StateColumn, StructColumn, TextColumn, TimeColumn
from flinkcore.savepoints.serializers.serializer import NothingSerializer, SimpleSerializer

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


def _times(
    kind: int, text: Callable[[memoryview], tuple[bytes | None, int]]
) -> Callable[[bool], StateColumn]:
    return lambda exact: TextColumn(text) if exact else TimeColumn(kind)


def _milliseconds(exact: bool) -> StateColumn:
    # java.sql.Date and java.sql.Time are milliseconds, whose day or time depends on the zone of the JVM.
    return FixedColumn("tsm:UTC", 8, True)


def _sql_timestamp(exact: bool) -> StateColumn:
    if exact:
        return StructColumn(["epoch_ms", "nanos"], [FixedColumn("l", 8, True), FixedColumn("i", 4)])
    return TimeColumn(_SQL_TIMESTAMP)


def _window(exact: bool) -> StateColumn:
    return StructColumn(["start_ms", "end_ms"], [FixedColumn("l", 8), FixedColumn("l", 8)])


_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_SIMPLE: Final = {
    "Date": SimpleSerializer("Date", _milliseconds, 8),
    "SqlDate": SimpleSerializer("java.sql.Date", _milliseconds, 8),
    "SqlTime": SimpleSerializer("java.sql.Time", _milliseconds, 8),
    "SqlTimestamp": SimpleSerializer("java.sql.Timestamp", _sql_timestamp, 12),
    "LocalDate": SimpleSerializer("LocalDate", _times(_DATE, _date_text), 6),
    "LocalTime": SimpleSerializer(
        "LocalTime",
        lambda exact: TimeColumn(_TIME),  # every time of day has its place
        7,
    ),
    "LocalDateTime": SimpleSerializer("LocalDateTime", _times(_DATE_TIME, _date_time_text), 13),
    "Instant": SimpleSerializer("Instant", _times(_INSTANT, _instant_text), 12),
}
_WINDOWS: Final = "org.apache.flink.streaming.api.windowing.windows."
_TIME_WINDOW: Final = SimpleSerializer("TimeWindow", _window, 16)

VOID_NAMESPACE: Final = NothingSerializer("void")
GLOBAL_WINDOW: Final = NothingSerializer("GlobalWindow")

TIME_SERIALIZERS: Final = {
    **{f"{_BASE}{name}Serializer${name}SerializerSnapshot": each for name, each in _SIMPLE.items()},
    f"{_WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot": _TIME_WINDOW,
    f"{_WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot": GLOBAL_WINDOW,
    # Windows of SQL and of PyFlink.
    "org.apache.flink.table.runtime.operators.window.TimeWindow$Serializer$TimeWindowSerializerSnapshot": _TIME_WINDOW,
    "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot": NothingSerializer("Null"),
    "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot": VOID_NAMESPACE,
}
"""Serializers by the class of their snapshots, which have no content."""
