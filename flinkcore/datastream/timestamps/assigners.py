"""Assigners of timestamps that emit watermarks, too, from before there were watermark strategies (Flink 1.20)."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, final

from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.time import Interval, bound_ms
from flinkcore.common.timestamp_assigner import ClockedTimestampAssigner, TimestampAssigner
from flinkcore.common.watermark import Watermark
from flinkcore.errors import ConfigurationError, DataError, SchemaError, UnsupportedOperationError


class _AssignerWithWatermarks(TimestampAssigner):
    def snapshot_state(self) -> Any:
        """Return the state of this assigner for a checkpoint; None if it has none.

        A subclass with more state than its base class overrides this and `restore_state`.

        Returns
        -------
        object
            State of the types that `WatermarkGenerator.snapshot_state` may return.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define snapshot_state")

    def restore_state(self, state: Any) -> None:
        """Restore the state that `snapshot_state` returned for another assigner of this class.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define restore_state")


def _restored_time(assigner: TimestampAssigner, state: object) -> int:
    if type(state) is int and MIN_TIMESTAMP <= state <= MAX_TIMESTAMP:
        return state
    raise SchemaError(
        f"{state!r:.80} is not what {type(assigner).__qualname__} holds: the largest timestamp so far"
    )


class AssignerWithPeriodicWatermarks(_AssignerWithWatermarks):
    """Assigns timestamps, and is asked for the watermark once per auto-watermark interval.

    Notes
    -----
    Flink 1.20's ``org.apache.flink.streaming.api.functions.AssignerWithPeriodicWatermarks``.
    """

    @abstractmethod
    def get_current_watermark(self) -> Watermark | None:
        """Return the current watermark; None, or one that does not advance, is not emitted."""


class AssignerWithPunctuatedWatermarks(_AssignerWithWatermarks):
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
            The result of `extract_timestamp` for it, in ms since the epoch.

        Returns
        -------
        Watermark or None
            None, or a watermark that does not advance, is not emitted.
        """


class MonotonyViolationHandler(ABC):
    """Handles elements whose timestamps go back.

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
        pass


class FailingHandler(MonotonyViolationHandler):
    """Fails the job with a DataError."""

    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        raise DataError(
            f"timestamps should ascend, but an element with {dated(element_timestamp, ' ms')} follows one with "
            f"{dated(last_timestamp, ' ms')}: allow for out-of-orderness, or ignore or log such elements by another "
            "handler"
        )


class LoggingHandler(MonotonyViolationHandler):
    """Logs a warning with both timestamps."""

    def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
        from logging import getLogger  # takes time to load, which most programs have no use for

        getLogger(__name__).warning("Timestamp monotony violated: %d < %d", element_timestamp, last_timestamp)


class ColumnTimestampExtractor(AssignerWithPeriodicWatermarks):
    """A periodic assigner whose watermark follows from the timestamps alone: a replay may read a column of them.

    Attributes
    ----------
    largest_timestamp_ms : int
        The largest timestamp so far, in ms since the epoch.
    """

    largest_timestamp_ms: int
    _own_method: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._own_method and cls.__module__ != __name__ and "extract_timestamp" in cls.__dict__:
            raise ConfigurationError(
                f"{cls.__qualname__} overrides extract_timestamp, which keeps track of the largest timestamp. "
                f"Override {cls._own_method}(element), which returns the element's timestamp in ms since the epoch"
            )

    @abstractmethod
    def note_timestamp(self, timestamp: int) -> None:
        """Take the timestamp of the next element, in ms since the epoch."""

    @abstractmethod
    def extract_column_timestamp(self, columns: Any) -> Any:
        """Return what the user's method makes of an element whose fields are columns."""

    def snapshot_state(self) -> int:
        return self.largest_timestamp_ms

    def restore_state(self, state: int) -> None:
        self.largest_timestamp_ms = _restored_time(self, state)


class AscendingTimestampExtractor(ColumnTimestampExtractor):
    """The watermark is the largest timestamp minus 1 ms; by default, timestamps that go back are logged.

    An element whose timestamp goes back keeps it, and does not move the watermark.

    Notes
    -----
    Flink 1.20's ``AscendingTimestampExtractor``. Before the first element, and as long as the largest timestamp
    is -2**63, the watermark is -2**63.
    """

    _own_method = "extract_ascending_timestamp"

    def __init__(self) -> None:
        self.largest_timestamp_ms = MIN_TIMESTAMP
        self.violation_handler: MonotonyViolationHandler = LoggingHandler()

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """Return the element's timestamp in ms since the epoch."""

    def with_violation_handler(self, handler: MonotonyViolationHandler) -> "AscendingTimestampExtractor":
        """Set the handler of timestamps that go back, and return this extractor."""
        self.violation_handler = handler
        return self

    @final
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamp = self.extract_ascending_timestamp(value)
        self.note_timestamp(timestamp)
        return timestamp

    @final
    def note_timestamp(self, timestamp: int) -> None:
        if timestamp >= self.largest_timestamp_ms:
            self.largest_timestamp_ms = timestamp
        else:
            self.violation_handler.handle_violation(timestamp, self.largest_timestamp_ms)

    @final
    def extract_column_timestamp(self, columns: Any) -> Any:
        return self.extract_ascending_timestamp(columns)

    @final
    def get_current_watermark(self) -> Watermark:
        return Watermark(max(self.largest_timestamp_ms - 1, MIN_TIMESTAMP))


class BoundedOutOfOrdernessTimestampExtractor(ColumnTimestampExtractor):
    """The watermark is the largest timestamp minus a bound.

    It is 1 ms ahead of that of ``WatermarkStrategy.for_bounded_out_of_orderness``: an element that trails the maximum
    by exactly the bound is late here, and not there.

    The bound, a Duration or Time, is counted in whole milliseconds; a negative one is a ConfigurationError.

    Notes
    -----
    Flink 1.20's ``BoundedOutOfOrdernessTimestampExtractor``, whose overloaded ``extractTimestamp(element)`` is
    `extract_element_timestamp` here. Sums never overflow 64 bits.
    """

    _own_method = "extract_element_timestamp"

    def __init__(self, max_out_of_orderness: Interval) -> None:
        self._max_out_of_orderness_ms = bound_ms(max_out_of_orderness, "max_out_of_orderness")
        self.largest_timestamp_ms = MIN_TIMESTAMP + self._max_out_of_orderness_ms

    def get_max_out_of_orderness_in_millis(self) -> int:
        """Return the bound in ms."""
        return self._max_out_of_orderness_ms

    @abstractmethod
    def extract_element_timestamp(self, element: Any) -> int:
        """Return the element's timestamp in ms since the epoch."""

    @final
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamp = self.extract_element_timestamp(value)
        self.note_timestamp(timestamp)
        return timestamp

    @final
    def note_timestamp(self, timestamp: int) -> None:
        if timestamp > self.largest_timestamp_ms:
            self.largest_timestamp_ms = timestamp

    @final
    def extract_column_timestamp(self, columns: Any) -> Any:
        return self.extract_element_timestamp(columns)

    @final
    def get_current_watermark(self) -> Watermark:
        return Watermark(self.largest_timestamp_ms - self._max_out_of_orderness_ms)


def _system_time_ms() -> int:
    return time.time_ns() // 1_000_000


class IngestionTimeExtractor(AssignerWithPeriodicWatermarks, ClockedTimestampAssigner):
    """The timestamp of an element is its arrival, which never goes back; the watermark is the current time minus 1 ms.

    The watermark advances even if nothing arrives, so no idleness is needed.

    Parameters
    ----------
    clock : callable or None
        Function that returns the time in ms since the epoch, such as
        ``ProcessingTimeService.current_processing_time``; by default the clock of the job, or outside of one that of
        the system.

    Notes
    -----
    Flink 1.20's ``IngestionTimeExtractor``, which supports the system clock only. As there, times before the epoch
    count as the epoch. A copy starts afresh on the same clock.
    """

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._given_clock = clock
        self._clock = clock or _system_time_ms
        self._max_timestamp = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "IngestionTimeExtractor":
        # The clock is shared: a copy would not advance.
        return IngestionTimeExtractor(self._given_clock)

    def set_clock(self, clock: Callable[[], int]) -> None:
        """Take the time from a job's clock, unless a clock was given."""
        if self._given_clock is None:
            self._clock = clock

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        self._max_timestamp = max(self._clock(), self._max_timestamp)
        return self._max_timestamp

    def get_current_watermark(self) -> Watermark:
        self._max_timestamp = max(self._clock(), self._max_timestamp)
        return Watermark(self._max_timestamp - 1)

    def snapshot_state(self) -> int:
        return self._max_timestamp

    def restore_state(self, state: int) -> None:
        self._max_timestamp = _restored_time(self, state)
