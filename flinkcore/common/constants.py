"""The ends of the time axis."""

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["MAX_TIMESTAMP", "MIN_TIMESTAMP"]
