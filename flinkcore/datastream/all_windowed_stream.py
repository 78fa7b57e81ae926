"""Streams that are not keyed, cut into windows."""

from typing import ClassVar

from flinkcore.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from flinkcore.datastream.windowed_stream import WindowedStream


class AllWindowedStream(WindowedStream):
    """A stream cut into windows that all rows share, whatever their key; they run row by row, in one partition.

    Its functions are a :class:`ProcessAllWindowFunction` or an :class:`AllWindowFunction`.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowedStream``.
    """

    _window_function_types: ClassVar[tuple[type, ...]] = (ProcessAllWindowFunction, AllWindowFunction)
