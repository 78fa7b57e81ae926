"""Windows: what elements are grouped into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.serializer import Serializer
from flinkcore.errors import DataError

if TYPE_CHECKING:
    from flinkcore.datastream.window.window_assigner import MergingWindowAssigner


class Window(ABC):
    """A group of elements of a key; hashable, as it is the namespace of their state.

    Notes
    -----
    Follows ``pyflink.datastream.window.Window``.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp of the window, in ms since the epoch; 2**63 - 1 where time does not end it."""


class _Bounds(NamedTuple):
    start: int
    end: int


class TimeWindow(_Bounds, Window):
    """The time from a start, inclusive, to an end, exclusive; windows are ordered by start, then end.

    Parameters
    ----------
    start, end : int
        In ms since the epoch.

    Notes
    -----
    Follows ``pyflink.datastream.window.TimeWindow``. It is a tuple, so that finding state by window is fast.
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window that contains a timestamp; all in ms, timestamp and offset may be negative."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Merge windows that overlap or touch.

        Parameters
        ----------
        windows : iterable of TimeWindow
        callback : MergingWindowAssigner.MergeCallback
            Called for every group of at least two different windows, with the group, ordered by start, and the window
            that covers it.
        """
        covering: TimeWindow | None = None
        group: list[TimeWindow] = []
        for window in sorted(set(windows)):
            if covering is not None and covering.intersects(window):
                covering = covering.cover(window)
                group.append(window)
                continue
            if covering is not None and len(group) > 1:
                callback.merge(group, covering)
            covering, group = window, [window]
        if covering is not None and len(group) > 1:
            callback.merge(group, covering)


def time_window(start: int, end: int) -> TimeWindow:
    """Return a window; raise DataError if its bounds do not fit in 64 bits, where Flink wraps around."""
    if start < MIN_TIMESTAMP or end > MAX_TIMESTAMP:
        raise DataError(
            f"the window from {start} to {end} ms is beyond 64 bits: the timestamp of the element, or the size of "
            "its window, is too large"
        )
    return TimeWindow(start, end)


def require_timestamp(timestamp: int) -> None:
    """Raise DataError for the timestamp of an element without a timestamp, -2**63."""
    if timestamp == MIN_TIMESTAMP:
        raise DataError(
            "an element has no timestamp (its timestamp is -2**63), but windows of event time need one. Call "
            "assign_timestamps_and_watermarks before, or take windows of processing time"
        )


class _Id(NamedTuple):
    id: int


class CountWindow(_Id, Window):
    """A window of a number of elements.

    Parameters
    ----------
    id : int
        Number of the window among those of its key, from 0.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountWindow``.
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP


class GlobalWindow(Window):
    """The window that contains all elements of a key; there is only one object of this class.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindow``.
    """

    __slots__ = ()

    _instance: GlobalWindow | None = None

    def __new__(cls) -> GlobalWindow:
        if GlobalWindow._instance is None:
            GlobalWindow._instance = super().__new__(cls)
        return GlobalWindow._instance

    @staticmethod
    def get() -> GlobalWindow:
        """Return the global window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        return MAX_TIMESTAMP

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


class TimeWindowSerializer(Serializer):
    """Writes a :class:`TimeWindow` as Flink does: 16 bytes, big-endian start and end.

    Notes
    -----
    Follows ``pyflink.datastream.window.TimeWindowSerializer``.
    """

    name: ClassVar[str] = "time_window"

    def serialize(self, value: Any) -> bytes:
        return pack(">qq", value.start, value.end)

    def deserialize(self, data: bytes) -> TimeWindow:
        return TimeWindow(*unpack(">qq", data))


class CountWindowSerializer(Serializer):
    """Writes a :class:`CountWindow` as its number: 8 bytes, big-endian.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountWindowSerializer``.
    """

    name: ClassVar[str] = "count_window"

    def serialize(self, value: Any) -> bytes:
        return pack(">q", value.id)

    def deserialize(self, data: bytes) -> CountWindow:
        return CountWindow(*unpack(">q", data))


class GlobalWindowSerializer(Serializer):
    """Writes the :class:`GlobalWindow` as one byte.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindowSerializer``.
    """

    name: ClassVar[str] = "global_window"

    def serialize(self, value: Any) -> bytes:
        return b"\0"

    def deserialize(self, data: bytes) -> GlobalWindow:
        return GlobalWindow.get()
