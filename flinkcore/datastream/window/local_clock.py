"""The local time of a zone as the time of windows, which Flink SQL cuts by it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError

_DAY_S: Final = 86_400
_HOUR_MS: Final = 3_600_000
_FIRST_S: Final = -70 * 365 * _DAY_S
_LAST_S: Final = 230 * 365 * _DAY_S


@dataclass(frozen=True)
class LocalClock:
    """The clock of a time zone. Immutable and picklable.

    Windows of local time are those of a timeline that shows local times: rows have the local time of their timestamp,
    and a watermark is the last local time that has passed. Where the clock is set back, an hour of local time passes
    twice, and its windows end with the second time.

    Attributes
    ----------
    zone : str
        Name of the time zone.
    changes : bytes
        Pairs of int64, ascending: an instant in ms, and the offset from UTC in ms from then on; the first instant
        stands for all times before.
    sets_back : bool
        Whether the zone still has daylight saving time, on which the local times of its hours depend.

    Notes
    -----
    Flink's ``TimeWindowUtil``: ``toUtcTimestampMills`` and ``toEpochMillsForTimer``. Offsets are those of the years
    1900 to 2200, and the last one from then on.
    """

    zone: str
    changes: bytes
    sets_back: bool

    @staticmethod
    @lru_cache(maxsize=32)
    def of(zone: str) -> LocalClock:
        """Return the clock of a zone.

        Raises
        ------
        ConfigurationError
            If its daylight saving time is not an hour, for which Flink's timers have rules of their own.
        """
        info = ZoneInfo(zone)

        def offset_at(second: int) -> int:
            found = datetime.fromtimestamp(second, info).utcoffset()
            assert found is not None
            return round(found.total_seconds())

        seconds = range(_FIRST_S, _LAST_S, _DAY_S)
        changes = [(MIN_TIMESTAMP, offset_at(_FIRST_S) * 1000)]
        recent = []
        for day in seconds:
            before, after = offset_at(day), offset_at(day + _DAY_S)
            if before == after:
                continue
            low, high = day, day + _DAY_S
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if offset_at(middle) != before else (middle, high)
            changes.append((high * 1000, after * 1000))
            if day > _LAST_S - 2 * 365 * _DAY_S:
                recent.append(abs(after - before) * 1000)
        if any(change != _HOUR_MS for change in recent):
            raise ConfigurationError(
                f"the clock of {zone} is not set forward by an hour. Take TIMESTAMP(3) as rowtime, or another zone"
            )
        return LocalClock(zone, np.array(changes, np.int64).tobytes(), bool(recent))

    @cached_property
    def _changes(self) -> tuple[Int64s, Int64s]:
        """Instants and offsets."""
        pairs = np.frombuffer(self.changes, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def local(self, instants_ms: Int64s) -> Int64s:
        """Return the local times of instants; those at the ends of 64 bits stay as they are."""
        at, offsets = self._changes
        found: Int64s = instants_ms + offsets[np.searchsorted(at, instants_ms, side="right") - 1]
        is_end = (instants_ms <= MIN_TIMESTAMP + _DAY_S * 1000) | (
            instants_ms >= MAX_TIMESTAMP - _DAY_S * 1000
        )
        return np.where(is_end, instants_ms, found)

    def first_instants(self, local_ms: Int64s) -> Int64s:
        """Return the first instants at which the clock shows local times; skipped ones are taken as if it had not."""
        at, offsets = self._changes
        shown_from = at[1:] + np.maximum(offsets[:-1], offsets[1:])
        found: Int64s = local_ms - offsets[np.searchsorted(shown_from, local_ms, side="right")]
        return np.where(local_ms == MAX_TIMESTAMP, local_ms, found)

    def timers(self, local_ms: Int64s) -> Int64s:
        """Return the instants at which timers of local times fire."""
        first = self.first_instants(local_ms)
        if not self.sets_back:
            return first
        hour_later = self.first_instants(np.minimum(local_ms, MAX_TIMESTAMP - _HOUR_MS) + _HOUR_MS)
        skipped, twice = hour_later == first, hour_later - first > _HOUR_MS
        found = np.where(skipped, first - first % _HOUR_MS, np.where(twice, first + _HOUR_MS, first))
        return np.where(local_ms == MAX_TIMESTAMP, local_ms, found)

    def passed(self, instants_ms: Int64s) -> Int64s:
        """Return the last local times whose timers fire up to instants: local times of watermarks."""
        at, offsets = self._changes
        local = self.local(instants_ms)
        if len(at) == 1:
            return local
        number = np.searchsorted(at, instants_ms, side="right") - 1
        if self.sets_back:  # the hour that passes twice has passed with the second time
            following = np.minimum(number + 1, len(at) - 1)
            first_again = at[following] + offsets[following]
            is_first_time = (
                (number + 1 < len(at)) & (offsets[following] < offsets[number]) & (local >= first_again)
            )
            return np.where(is_first_time, first_again - 1, local)
        before = np.maximum(number - 1, 0)
        last_of_first_time = at[number] + offsets[before] - 1
        is_second_time = (number > 0) & (offsets[number] < offsets[before]) & (local < last_of_first_time)
        return np.where(is_second_time, last_of_first_time, local)

    def __str__(self) -> str:
        return f"local time of {self.zone}"
