"""Timestamps that should not go back, and what is done where they do."""

import logging
from abc import ABC, abstractmethod
from typing import Any, final

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.timestamps.assigners import AssignerWithPeriodicWatermarks
from flinkcore.errors import DataError

_LOG = logging.getLogger(__name__)


class MonotonyViolationHandler(ABC):
    """Handles timestamps that go back.

    Notes
    -----
    Flink 1.20's ``AscendingTimestampExtractor.MonotonyViolationHandler``.
    """

    @abstractmethod
    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        """Handle an element whose timestamp is below the largest so far, both in ms since the epoch."""


class IgnoringHandler(MonotonyViolationHandler):
    """Does nothing."""

    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        """Do nothing."""


class FailingHandler(MonotonyViolationHandler):
    """Lets the job fail."""

    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        """Raise.

        Raises
        ------
        DataError
            Always.
        """
        raise DataError(
            f"timestamps should ascend, but an element with {element_timestamp} ms follows one with "
            f"{last_timestamp} ms: allow for out-of-orderness, or ignore or log such elements by another handler"
        )


class LoggingHandler(MonotonyViolationHandler):
    """Logs a warning."""

    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        """Log both timestamps."""
        _LOG.warning("Timestamp monotony violated: %d < %d", element_timestamp, last_timestamp)


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks):
    """The watermark is the largest timestamp less 1 ms; timestamps that go back are logged, unless set otherwise.

    An element whose timestamp goes back keeps it, and does not move the watermark.

    Notes
    -----
    Flink 1.20's ``AscendingTimestampExtractor``. Before the first element, and as long as the largest timestamp
    is -2**63, the watermark is -2**63.
    """

    def __init__(self) -> None:
        self._current_timestamp = MIN_TIMESTAMP
        self._violation_handler: MonotonyViolationHandler = LoggingHandler()

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """Return the element's timestamp in ms since the epoch."""

    def with_violation_handler(self, handler: MonotonyViolationHandler) -> "AscendingTimestampExtractor":
        """Set what is done with a timestamp that goes back; returns this extractor itself."""
        self._violation_handler = handler
        return self

    @final
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the element's timestamp, after the violation handler was called if it goes back."""
        timestamp = self.extract_ascending_timestamp(value)
        if timestamp >= self._current_timestamp:
            self._current_timestamp = timestamp
        else:
            self._violation_handler.handle_violation(timestamp, self._current_timestamp)
        return timestamp

    @final
    def get_current_watermark(self) -> Watermark:
        """Return the watermark that holds now."""
        return Watermark(max(self._current_timestamp - 1, MIN_TIMESTAMP))
