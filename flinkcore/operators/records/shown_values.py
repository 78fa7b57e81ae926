"""Texts of values, and of the timestamps of records, in messages."""

from typing import Any

from flinkcore._internal.show.times import dated
from flinkcore.operators.records.stream_elements import StreamRecord

SHOWN_CHARACTERS = 200


def shown(value: object) -> str:
    """Return the repr of a value, cut off if it is long."""
    try:
        text = repr(value)
    except Exception as failure:
        return f"<{type(value).__qualname__} whose repr raises {type(failure).__name__}>"
    return cut_off(text)


def cut_off(text: str) -> str:
    """Return a text, cut off if it is long."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"


def shown_time(record: StreamRecord[Any]) -> str:
    """Return the timestamp of a record in words."""
    return (
        "without a timestamp" if record.timestamp is None else f"with the timestamp {dated(record.timestamp)}"
    )
