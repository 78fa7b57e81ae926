"""Watermarks."""

from dataclasses import dataclass
from typing import ClassVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """Declares that event time has reached a timestamp: elements with it or an earlier one are late.

    Parameters
    ----------
    timestamp : int
        In ms since the epoch; 2**63 - 1 is the end of event time, -2**63 stands for "none yet".

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.Watermark``, which is also sent between operators here.
    """

    timestamp: int

    MAX_WATERMARK: ClassVar["Watermark"]


Watermark.MAX_WATERMARK = Watermark(MAX_TIMESTAMP)
