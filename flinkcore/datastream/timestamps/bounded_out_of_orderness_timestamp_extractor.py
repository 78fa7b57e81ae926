"""Timestamps that go back by no more than a bound."""

from abc import abstractmethod
from typing import Any, final

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.time import Duration, Time, bound_ms
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.timestamps.assigners import AssignerWithPeriodicWatermarks


class BoundedOutOfOrdernessTimestampExtractor(AssignerWithPeriodicWatermarks):
    """The watermark is the largest timestamp less a bound.

    That is 1 ms more than ``WatermarkStrategy.for_bounded_out_of_orderness`` gives: an element that is late by
    just the bound is behind the watermark here, and not there.

    Parameters
    ----------
    max_out_of_orderness : Duration or Time
        Not negative; counted in whole milliseconds.

    Raises
    ------
    ConfigurationError
        If the bound is negative.

    Notes
    -----
    Flink 1.20's ``BoundedOutOfOrdernessTimestampExtractor``, whose ``extractTimestamp(element)`` is
    `extract_element_timestamp` here, for want of overloading. No sum leaves 64 bits.
    """

    def __init__(self, max_out_of_orderness: Duration | Time) -> None:
        self._max_out_of_orderness_ms = bound_ms(max_out_of_orderness, "max_out_of_orderness")
        self._current_max_timestamp = MIN_TIMESTAMP + self._max_out_of_orderness_ms

    def get_max_out_of_orderness_in_millis(self) -> int:
        """Return the bound in ms."""
        return self._max_out_of_orderness_ms

    @abstractmethod
    def extract_element_timestamp(self, element: Any) -> int:
        """Return the element's timestamp in ms since the epoch."""

    @final
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the element's timestamp."""
        timestamp = self.extract_element_timestamp(value)
        if timestamp > self._current_max_timestamp:
            self._current_max_timestamp = timestamp
        return timestamp

    @final
    def get_current_watermark(self) -> Watermark:
        """Return the watermark that holds now."""
        return Watermark(self._current_max_timestamp - self._max_out_of_orderness_ms)
