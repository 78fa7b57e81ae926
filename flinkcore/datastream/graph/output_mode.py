"""Output modes of windows that fire again."""

from enum import Enum


class OutputMode(Enum):
    """Output of a window that fires again, for a late row or by its trigger.

    ``ACCUMULATING``: the whole new result, as in Flink's DataStream API. ``RETRACTING``: first the last result, marked
    as withdrawn, then the new one, as in updates of Flink's Table API. ``DELTA``: only the difference.
    """

    ACCUMULATING = "accumulating"
    RETRACTING = "retracting"
    DELTA = "delta"
