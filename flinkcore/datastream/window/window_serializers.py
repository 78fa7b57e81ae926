"""What PyFlink's window assigners name as the serializers of their windows."""

from struct import pack, unpack
from typing import Any, ClassVar

from flinkcore.common.serializer import Serializer
from flinkcore.datastream.window.count_window import CountWindow
from flinkcore.datastream.window.global_window import GlobalWindow
from flinkcore.datastream.window.time_window import TimeWindow


class TimeWindowSerializer(Serializer):
    """Writes a :class:`TimeWindow` as Flink does: start and end, 64 bits each.

    Notes
    -----
    Follows ``pyflink.datastream.window.TimeWindowSerializer``.
    """

    name: ClassVar[str] = "time_window"

    def serialize(self, value: Any) -> bytes:
        """Return a window as 16 bytes."""
        return pack(">qq", value.start, value.end)

    def deserialize(self, data: bytes) -> TimeWindow:
        """Return the window of 16 bytes."""
        return TimeWindow(*unpack(">qq", data))


class CountWindowSerializer(Serializer):
    """Writes a :class:`CountWindow` as its number, 64 bits.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountWindowSerializer``.
    """

    name: ClassVar[str] = "count_window"

    def serialize(self, value: Any) -> bytes:
        """Return a window as 8 bytes."""
        return pack(">q", value.id)

    def deserialize(self, data: bytes) -> CountWindow:
        """Return the window of 8 bytes."""
        return CountWindow(*unpack(">q", data))


class GlobalWindowSerializer(Serializer):
    """Writes the :class:`GlobalWindow` as a byte.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindowSerializer``.
    """

    name: ClassVar[str] = "global_window"

    def serialize(self, value: Any) -> bytes:
        """Return one byte."""
        return b"\0"

    def deserialize(self, data: bytes) -> GlobalWindow:
        """Return the global window."""
        return GlobalWindow.get()
