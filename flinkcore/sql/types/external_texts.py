"""Values of SQL as texts of the objects of Java that they are outside of Flink's tables."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.java.texts import bytes_text, double_text, float_text
from flinkcore.sql.types.logical_types import BINARIES, TIMESTAMPS, LogicalType, Root
from flinkcore.sql.types.times import NANOS_OF_DAY, date_text

_NANOS_PER_UNIT: Final = {"ms": 10**6, "us": 10**3, "ns": 1}


def external_texts(column: pa.Array, kind: LogicalType) -> list[str]:
    """Return the values of a column as ``RowUtils.deepToString`` writes them, as in rows of the connector ``print``.

    Notes
    -----
    Entries of a map come in their order, and in Flink in that of a hash map.
    """
    stored = _stored(column.type)
    return [
        _text(value, kind) for value in (column if stored == column.type else column.cast(stored)).to_pylist()
    ]


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return a type with integers in place of dates and times, of which Python has fewer."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _stored(each.type)) for each in kind])
    return kind


def _text(value: Any, kind: LogicalType) -> str:
    if value is None:
        return "null"
    root = kind.root
    if root is Root.BOOLEAN:
        return "true" if value else "false"
    if root is Root.FLOAT:
        return float_text(value)
    if root is Root.DOUBLE:
        return double_text(value)
    if root in BINARIES:
        return bytes_text(value)
    if root is Root.DATE:
        return date_text(value)
    if root is Root.TIME:
        return _time_text(value * 10**6)
    if root in TIMESTAMPS:
        days, nanos = divmod(value * _NANOS_PER_UNIT[kind.unit], NANOS_OF_DAY)
        is_instant = root is Root.TIMESTAMP_LTZ
        return f"{date_text(days)}T{_time_text(nanos, is_instant)}{'Z' if is_instant else ''}"
    if root is Root.INTERVAL_MONTHS:
        return _period_text(value)
    if root is Root.INTERVAL_MS:
        return _duration_text(value)
    if root is Root.ARRAY:
        return f"[{', '.join(_text(each, kind.children[0][1]) for each in value)}]"
    if root in (Root.MAP, Root.MULTISET):
        of_key = kind.children[0][1]
        of_value = kind.children[1][1] if root is Root.MAP else LogicalType(Root.INT)
        return f"{{{', '.join(f'{_text(key, of_key)}={_text(each, of_value)}' for key, each in value)}}}"
    if root is Root.ROW:
        return f"+I[{', '.join(_text(value[name], child) for name, child in kind.children)}]"
    return str(value)


def _time_text(nanos: int, with_seconds: bool = False) -> str:
    """Return a time of day as ``LocalTime.toString``: without seconds that are 0, unless they are wanted."""
    second, fraction = divmod(nanos, 10**9)
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    if not (second % 60 or fraction or with_seconds):
        return text
    digits = f"{fraction:09d}" if fraction else ""
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}:{second % 60:02d}{'.' if digits else ''}{digits}"


def _period_text(months: int) -> str:
    years, rest = abs(months) // 12, abs(months) % 12
    sign = "-" if months < 0 else ""
    parts = f"{sign}{years}Y" * bool(years) + f"{sign}{rest}M" * bool(rest)
    return f"P{parts or '0D'}"


def _duration_text(millis: int) -> str:
    sign, left = ("-" if millis < 0 else ""), abs(millis)
    hours, minutes, seconds = left // 3_600_000, left // 60_000 % 60, left % 60_000
    text = f"{seconds // 1000}.{seconds % 1000:03d}".rstrip("0").rstrip(".")
    parts = f"{sign}{hours}H" * bool(hours) + f"{sign}{minutes}M" * bool(minutes)
    parts += f"{sign}{text}S" * bool(seconds)
    return f"PT{parts or '0S'}"
