"""The end of a stream."""

from __future__ import annotations

from flinkcore.datastream.configured_stream import ConfiguredStream
from flinkcore.datastream.element_transformations import SinkTransformation


class DataStreamSink(ConfiguredStream):
    """A sink that the environment knows, and that its next ``execute`` runs.

    Notes
    -----
    Follows ``pyflink.datastream.DataStreamSink``; made by :meth:`DataStream.sink_to`, `add_sink` and `print`.
    """

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation
