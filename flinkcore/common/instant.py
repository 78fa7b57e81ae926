"""Points on the time-line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Instant:
    """A moment, to the nanosecond.

    Parameters
    ----------
    seconds : int
        Since the epoch; may be negative.
    nanos : int
        Beyond the seconds, from 0 to 999,999,999.

    Notes
    -----
    Follows ``pyflink.common.Instant``.

    Examples
    --------
    >>> Instant.of_epoch_milli(-1)
    Instant(seconds=-1, nanos=999000000)
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Return milliseconds since the epoch, fractions cut off towards the past."""
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the moment of milliseconds since the epoch."""
        seconds, milliseconds = divmod(epoch_milli, 1000)
        return Instant(seconds, milliseconds * 1_000_000)
