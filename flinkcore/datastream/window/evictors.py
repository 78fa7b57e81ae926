"""Evictors: which elements a window loses before or after its function is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from flinkcore.common.time import Interval, interval_ms
from flinkcore.datastream.window.delta_function import Delta, delta_call
from flinkcore.datastream.window.window_settings import require_count, require_milliseconds
from flinkcore.datastream.window.windows import Window
from flinkcore.errors import DataError

W = TypeVar("W", bound=Window, contravariant=True)


class TimestampedValue(NamedTuple):
    """An element of a window with its timestamp.

    Parameters
    ----------
    value : object
    timestamp : int or None
        In ms since the epoch; None if the element has none.

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
        """Return whether the element has a timestamp."""
        return self.timestamp is not None

    def get_timestamp(self) -> int:
        """Return the timestamp, in ms since the epoch.

        Raises
        ------
        DataError
            If the element has no timestamp.
        """
        if self.timestamp is None:
            raise DataError(
                "an element of the window has no timestamp. Call assign_timestamps_and_watermarks before, or take "
                "windows of processing time"
            )
        return self.timestamp


class Evictor(ABC, Generic[W]):
    """Removes elements from a window when it fires; later firings do not see them either.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.Evictor``. Deliberate difference: the elements are a
    list that is changed in place (``del elements[:n]``), where Flink's iterable has iterators that remove.
    """

    class EvictorContext(ABC):
        """The time, as an evictor sees it; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements before the window function is called.

        Parameters
        ----------
        elements : list of TimestampedValue
            In order of arrival; in a merged window in any order.
        size : int
            Number of elements.
        window : Window
        evictor_context : Evictor.EvictorContext
        """

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements after the window function was called; parameters as of `evict_before`."""


EvictorContext: TypeAlias = Evictor.EvictorContext


class _BuiltInEvictor(Evictor[Window]):
    """Removes elements either before or after the window function."""

    do_evict_after: bool

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Window, evictor_context: EvictorContext
    ) -> None:
        if not self.do_evict_after and elements:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Window, evictor_context: EvictorContext
    ) -> None:
        if self.do_evict_after and elements:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None:
        """Remove elements from a list that is not empty."""


@dataclass(frozen=True)
class CountEvictor(_BuiltInEvictor):
    """Keeps the last elements of a window, up to a number.

    Parameters
    ----------
    max_count : int
        Number of elements, not negative.
    do_evict_after : bool
        True: elements are removed after the window function was called; False: before.

    Raises
    ------
    ConfigurationError
        If the number is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.CountEvictor``.
    """

    max_count: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        require_count("CountEvictor", "count", self.max_count, least=0)

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps a number of elements."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        surplus = len(elements) - self.max_count
        if surplus > 0:
            del elements[:surplus]


@dataclass(frozen=True)
class TimeEvictor(_BuiltInEvictor):
    """Keeps the elements whose timestamps lie less than a length of time before the latest one.

    If the first element has no timestamp, all elements are kept; otherwise an element without one is an error.

    Parameters
    ----------
    window_size_ms : int
    do_evict_after : bool
        True: elements are removed after the window function was called; False: before.

    Raises
    ------
    ConfigurationError
        If the size is not a whole number.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.TimeEvictor``.
    """

    window_size_ms: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        require_milliseconds("TimeEvictor", "size", self.window_size_ms)

    @staticmethod
    def of(window_size: Interval, do_evict_after: bool = False) -> TimeEvictor:
        """Return an evictor that keeps the latest elements."""
        return TimeEvictor(interval_ms(window_size, "the size of TimeEvictor"), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        if not elements[0].has_timestamp():
            return
        cutoff = max(element.get_timestamp() for element in elements) - self.window_size_ms
        elements[:] = [element for element in elements if element.get_timestamp() > cutoff]


@dataclass(frozen=True)
class DeltaEvictor(_BuiltInEvictor):
    """Removes the elements that differ from the last one to arrive by a threshold or more.

    Parameters
    ----------
    threshold : float
    delta_function : DeltaFunction or callable
        Function of an element and the last one.
    do_evict_after : bool
        True: elements are removed after the window function was called; False: before.

    Raises
    ------
    ConfigurationError
        If `delta_function` cannot be called.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.DeltaEvictor``.
    """

    threshold: float
    delta_function: Delta
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        delta_call("DeltaEvictor", self.delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta, do_evict_after: bool = False) -> DeltaEvictor:
        """Return an evictor with a threshold."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        delta = delta_call("DeltaEvictor", self.delta_function)
        last = elements[-1].value
        elements[:] = [element for element in elements if not delta(element.value, last) >= self.threshold]
