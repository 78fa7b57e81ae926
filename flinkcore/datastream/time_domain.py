"""The time domains of timers."""

from enum import Enum


class TimeDomain(Enum):
    """Event time, which watermarks advance, or processing time, which the clock advances.

    Notes
    -----
    Follows ``pyflink.datastream.TimeDomain``.
    """

    EVENT_TIME = 0
    PROCESSING_TIME = 1
