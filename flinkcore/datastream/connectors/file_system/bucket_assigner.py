"""Which directory of a sink an element is written to."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flinkcore.errors import ConfigurationError

_DIRECTIVES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class BucketAssigner:
    """Names the directory of an element by the job's clock; made by its static methods.

    Parameters
    ----------
    bucket_at : callable
        From a processing time in ms since the epoch to the directory below the sink's.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.BucketAssigner``.
    """

    def __init__(self, bucket_at: Callable[[int], str]) -> None:
        self.bucket_at = bucket_at

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner of the sink's own directory."""
        return BucketAssigner(lambda time_ms: "")

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Return an assigner of directories by date and time.

        Parameters
        ----------
        format_str : str
            With the fields yyyy, MM, dd, HH, mm and ss of Java's formats.
        timezone_id : str, optional
            Such as "Europe/Berlin"; UTC unless given, where Flink takes the machine's.

        Raises
        ------
        ConfigurationError
            If the format has other fields, or there is no such time zone.
        """
        try:
            zone: tzinfo = timezone.utc if timezone_id is None else ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError):
            raise ConfigurationError(f"no time zone is named {timezone_id!r}") from None
        if unknown := [field for field in re.findall(r"[A-Za-z]+", format_str) if field not in _DIRECTIVES]:
            raise ConfigurationError(
                f"the format {format_str!r} has the fields {unknown}; there are {', '.join(_DIRECTIVES)}"
            )
        pattern = re.sub(r"[A-Za-z]+", lambda field: _DIRECTIVES[field[0]], format_str)
        return BucketAssigner(lambda time_ms: datetime.fromtimestamp(time_ms / 1000, zone).strftime(pattern))
