"""Event logs as tests describe them."""

from collections.abc import Mapping
from typing import Any

from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.log.event_log import EventLog


def event_log(
    data: Any,
    *,
    format: str | None = None,
    filesystem: Any = None,
    format_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> EventLog:
    """Return the log with these settings, each by its name."""
    return EventLog.of(
        data, LogSettings(**settings), format=format, filesystem=filesystem, format_options=format_options
    )
