"""Moments as people read them."""

from datetime import datetime, timedelta, timezone

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP


def format_timestamp(timestamp_ms: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC; the ends of the int64 range as words."""
    if timestamp_ms == MIN_TIMESTAMP:
        return "none yet"
    if timestamp_ms == MAX_TIMESTAMP:
        return "the maximum"
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
