"""Streams partitioned by key."""

from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.window import WindowAssigner
from flinkcore.datastream.windowed_stream import WindowedStream
from flinkcore.errors import ConfigurationError


class KeyedStream(DataStream):
    """A stream partitioned by key.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedStream``: calls inherited from :class:`DataStream` apply to the stream
    before it was keyed.
    """

    def __init__(self, stream: DataStream, key_columns: tuple[str, ...]) -> None:
        super().__init__(stream._environment, stream._transformation)
        self._key_columns = key_columns

    def window(self, window_assigner: WindowAssigner) -> WindowedStream:
        """Return this stream cut into windows.

        Parameters
        ----------
        window_assigner : WindowAssigner
            From :mod:`flinkcore.datastream.window`.

        Raises
        ------
        ConfigurationError
            If it is not a window assigner.
        """
        if not isinstance(window_assigner, WindowAssigner):
            raise ConfigurationError(
                "window takes an assigner such as TumblingEventTimeWindows.of(Time.hours(1)), "
                f"not {window_assigner!r}"
            )
        return WindowedStream(self, window_assigner)
