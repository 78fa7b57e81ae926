"""What removes elements from a window, before or after its function sees them."""

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

from flinkcore.datastream.window.window import Window
from flinkcore.errors import DataError

W = TypeVar("W", bound=Window, contravariant=True)


class TimestampedValue(NamedTuple):
    """An element of a window with its timestamp.

    Parameters
    ----------
    value : object
    timestamp : int or None
        In ms since the epoch; None if it has none.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.TimestampedValue``.
    """

    value: Any
    timestamp: int | None

    def get_value(self) -> Any:
        """Return the element."""
        return self.value

    def has_timestamp(self) -> bool:
        """Return whether it has a timestamp."""
        return self.timestamp is not None

    def get_timestamp(self) -> int:
        """Return the timestamp.

        Raises
        ------
        DataError
            If there is none.
        """
        if self.timestamp is None:
            raise DataError(
                "an element of the window has no timestamp: call assign_timestamps_and_watermarks before, or take "
                "windows of processing time"
            )
        return self.timestamp


class Evictor(ABC, Generic[W]):
    """Removes elements from a window when it fires. What it removes is gone for later firings, too.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.Evictor``. Deliberate difference: the elements are a
    list, to be changed in place (``del elements[:n]``), where Flink's iterable has iterators that remove.
    """

    class EvictorContext(ABC):
        """What an evictor can ask; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        evictor_context: "Evictor.EvictorContext",
    ) -> None:
        """Remove elements before the window function is called.

        Parameters
        ----------
        elements : list of TimestampedValue
            In order of arrival; of merged windows in any order.
        size : int
            How many they are.
        window : Window
        evictor_context : Evictor.EvictorContext
        """

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        evictor_context: "Evictor.EvictorContext",
    ) -> None:
        """Remove elements after the window function was called; parameters as of `evict_before`."""
