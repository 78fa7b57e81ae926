"""The least allowed lateness, and so the least out-of-orderness bound, with which a late event is in time for a window.

A window is open for an event as long as its last millisecond plus the allowed lateness is above the watermark. For
bounded out-of-orderness the watermark is the merged maximum less the bound and 1 ms, and ticks, idleness and the merge
of the splits do not depend on the bound. So a bound longer by some ms saves what a lateness longer by as much saves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


def lateness_needed(last_ms: int, watermark: int) -> int:
    """Return the least allowed lateness with which a window is open at a watermark; at most 0: it is without one.

    Parameters
    ----------
    last_ms
        Its last millisecond.
    watermark
        In ms since the epoch.
    """
    return watermark - last_ms + 1


class SessionsByLateness:
    """The sessions of a key under every allowed lateness at once.

    A longer lateness takes more events in and keeps sessions for longer, so at any moment a stretch of time lies within
    an open session from some lateness on. Each stretch is kept with that; what touches under a lateness is one session.

    Parameters
    ----------
    lateness_ms
        Shorter ones are of no interest.
    """

    def __init__(self, lateness_ms: int) -> None:
        self._lateness_ms = lateness_ms
        # In order of time, none within another. Sessions that have ended since stay until a new one touches them.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._from: list[int] = []

    def take(self, start: int, end: int, watermark: int) -> int:
        """Add an event, in the order in which they arrive, and return the least lateness with which it is in time.

        Parameters
        ----------
        start, end
            Bounds of the session that the event would form alone.
        watermark
            That it met.
        """
        first, behind = bisect_left(self._ends, start), bisect_right(self._starts, end)
        open_from = [self._open_from(place, watermark) for place in range(first, behind)]
        needed = max(self._lateness_ms, min([lateness_needed(end - 1, watermark), *open_from]))
        pieces = [(start, end, needed)]
        if open_from:
            # Between these, what there was is open from no shorter lateness than the event needs.
            pieces.insert(0, (self._starts[first], start, open_from[0]))
            pieces.append((end, self._ends[behind - 1], open_from[-1]))
        touched = slice(first, behind)
        self._starts[touched], self._ends[touched], self._from[touched] = map(
            list, zip(*_joined(pieces), strict=True)
        )
        return needed

    def _open_from(self, place: int, watermark: int) -> int:
        """From which lateness on the session of a stretch is still open."""
        lateness_ms, last = self._from[place], place
        while True:
            beside = last + 1
            follows = beside < len(self._starts) and self._starts[beside] == self._ends[last]
            if follows and self._from[beside] <= lateness_ms:
                last = beside
                continue
            needed = lateness_needed(self._ends[last] - 1, watermark)
            if needed <= lateness_ms:
                return lateness_ms
            if not follows or needed < self._from[beside]:
                return needed
            lateness_ms = self._from[beside]


def _joined(pieces: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return those stretches that are not empty; neighbours that are open from the same lateness on are one."""
    joined: list[tuple[int, int, int]] = []
    for start, end, lateness_ms in pieces:
        if start >= end:
            continue
        if joined and joined[-1][2] == lateness_ms:
            joined[-1] = (joined[-1][0], end, lateness_ms)
        else:
            joined.append((start, end, lateness_ms))
    return joined
