"""Timestamps of results of other operators that an operator cannot take; those of logs are checked as they are read."""

from __future__ import annotations

from typing import Final

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.times import dated
from flinkcore.errors import DataError

WINDOWS_TAKE: Final = "a window after another operator, whose windows take"


def require_timestamps(timestamps: Int64s, within: tuple[int, int], takes: str) -> None:
    """Check the timestamps of results of an operator before.

    Parameters
    ----------
    timestamps : int64 array (n,)
        In ms since the epoch, -2**63 where a result has none.
    within : (int, int)
        Lowest and highest timestamp.
    takes : str
        Operator that takes them, for the message, up to the verb, such as `WINDOWS_TAKE`.

    Raises
    ------
    DataError
        If one is outside.
    """
    if len(timestamps) == 0:
        return
    lowest, highest = within
    least, greatest = int(timestamps.min()), int(timestamps.max())
    if least < lowest or greatest > highest:
        outside = least if least < lowest else greatest
        raise DataError(
            f"a record with the timestamp {dated(outside)} comes to {takes} timestamps from {lowest} to {highest}: "
            "results of processing-time timers have none (-2**63)"
        )
