"""Assigners of timestamps that make watermarks, too."""

from abc import abstractmethod
from typing import Any

from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.common.watermark import Watermark


class AssignerWithPeriodicWatermarks(TimestampAssigner):
    """Assigns timestamps, and is asked for the watermark once per auto-watermark interval.

    Notes
    -----
    Flink 1.20's ``org.apache.flink.streaming.api.functions.AssignerWithPeriodicWatermarks``.
    """

    @abstractmethod
    def get_current_watermark(self) -> Watermark | None:
        """Return the watermark that holds now; None, or one that does not advance, is not emitted."""


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """Assigns timestamps, and is asked for a watermark after each element.

    Notes
    -----
    Flink 1.20's ``org.apache.flink.streaming.api.functions.AssignerWithPunctuatedWatermarks``.
    """

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> Watermark | None:
        """Return the watermark that an element carries.

        Parameters
        ----------
        last_element : object
        extracted_timestamp : int
            What `extract_timestamp` gave for it, in ms since the epoch.

        Returns
        -------
        Watermark or None
            None, or a watermark that does not advance, is not emitted.
        """
