"""The statement that event time has reached a point."""

from dataclasses import dataclass
from typing import ClassVar

from flinkcore.common.constants import MAX_TIMESTAMP


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """No element with this timestamp or an earlier one is expected any more.

    Parameters
    ----------
    timestamp : int
        Milliseconds since the epoch; 2**63 - 1 is the end of event time, -2**63 what "none yet" looks like.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.Watermark``, which also travels between operators here.
    """

    timestamp: int

    MAX_WATERMARK: ClassVar["Watermark"]


Watermark.MAX_WATERMARK = Watermark(MAX_TIMESTAMP)
