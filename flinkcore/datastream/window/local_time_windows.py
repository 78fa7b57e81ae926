"""Windows of local days, weeks and months, which follow the clock of a time zone.

Programs without them load neither time zones nor NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import TYPE_CHECKING, Any, Final

from flinkcore.datastream.window.window_assigner import EventTimeWindowAssigner, WindowAssigner
from flinkcore.datastream.window.windows import TimeWindow, require_timestamp
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from flinkcore._native.window_calendar import WindowCalendar
    from flinkcore.datastream.window.local_time import LocalPeriod

_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, repr=False)
class LocalEventTimeWindows(EventTimeWindowAssigner):
    """Windows of the local days, weeks or months of a time zone, without gap or overlap.

    ``of_local_days``, ``of_local_weeks`` and ``of_local_months`` of `TumblingEventTimeWindows` make them. An element
    without a timestamp, or whose timestamp is not of the years 2 to 9998, is a DataError.

    Attributes
    ----------
    zone : str
        Name of the time zone.
    period : str
        "day", "week" or "month".
    start : datetime.time
        Local time at which each period begins.
    first_weekday : int
        Day on which weeks begin, from 0 (Monday) to 6 (Sunday); of other periods 0.
    rules : bytes
        Rules for the beginnings of days, as `local_rules` returns them. Windows carry those of the machine where they
        are made, so workers have the same windows without time zone data.

    Notes
    -----
    Flink has no such assigner: the offset of its ``TumblingEventTimeWindows`` is fixed.
    """

    zone: str
    period: LocalPeriod
    start: time
    first_weekday: int
    rules: bytes

    @staticmethod
    def of(
        period: LocalPeriod, zone: str | ZoneInfo, start: time = time(), first_weekday: int = 0
    ) -> LocalEventTimeWindows:
        """Return the windows of a period; see `TumblingEventTimeWindows.of_local_days` for the errors."""
        call = f"of_local_{period}s"
        if not isinstance(start, time) or start.tzinfo is not None:
            raise ArgumentTypeError(
                f"{call}: the start is a datetime.time of the zone, such as time(6), not {start!r}"
            )
        if start.microsecond % 1000:
            raise ConfigurationError(f"{call}: the start has whole milliseconds, {start!r} has more")
        if (
            isinstance(first_weekday, bool)
            or not isinstance(first_weekday, int)
            or not 0 <= first_weekday < 7
        ):
            raise ConfigurationError(
                f"{call}: first_weekday is from 0 (Monday) to 6 (Sunday), not {first_weekday!r}"
            )
        from flinkcore.datastream.window.local_time import local_rules, zone_named

        found = zone_named(zone, call)
        return LocalEventTimeWindows(
            found.key, period, start.replace(fold=0), first_weekday, local_rules(found, start.replace(fold=0))
        )

    @property
    def calendar(self) -> WindowCalendar:
        """The windows themselves."""
        from flinkcore.datastream.window.local_time import local_calendar

        return local_calendar(self.rules, self.period, self.first_weekday)

    def windows_at(
        self, time_ms: int, element: Any, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        require_timestamp(time_ms)
        calendar = self.calendar
        if not calendar.lowest_timestamp <= time_ms <= calendar.highest_timestamp:
            raise DataError(
                f"the timestamp {time_ms} ms of an element is not of the years 2 to 9998, for which {self.zone} has a "
                "calendar"
            )
        return [TimeWindow(*calendar.window(time_ms))]

    def __repr__(self) -> str:
        start = "" if self.start == time() else f", start={self.start!r}"
        weekday = f", first_weekday={self.first_weekday}" if self.first_weekday else ""
        return f"TumblingEventTimeWindows.of_local_{self.period}s({self.zone!r}{start}{weekday})"

    @property
    def _shown_start(self) -> str:
        return self.start.isoformat("auto" if self.start.second or self.start.microsecond else "minutes")

    def __str__(self) -> str:
        from_start = "" if self.start == time() else f" from {self._shown_start}"
        weekday = f" from {_WEEKDAYS[self.first_weekday]}" if self.first_weekday else ""
        return f"local {self.period}s of {self.zone}{weekday}{from_start}"

    @property
    def in_words(self) -> str:
        start = self._shown_start
        if self.period == "week":
            start = f"{_WEEKDAYS[self.first_weekday]} {start}"
        elif self.period == "month":
            start = f"the 1st {start}"
        else:
            from flinkcore.datastream.window.local_time import day_hours

            least, most = day_hours(self.calendar)
            start = f"{start} ({least:g} h)" if least == most else f"{start} ({least:g} to {most:g} h)"
        return f"tumbling windows of a local {self.period} of {self.zone}, from {start}"
