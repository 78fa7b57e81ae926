"""Two streams that one function processes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.transformations import PartitionTransformation, Transformation
from flinkcore.datastream.two_input_transformations import BroadcastTransformation, TwoInputTransformation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

KeyColumns = str | Sequence[str]


class BroadcastStream:
    """A stream whose rows go to every parallel instance of a function, to be connected with another one.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastStream``; made by :meth:`DataStream.broadcast`.
    """

    def __init__(
        self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)


class ConnectedStreams:
    """Two streams of rows that may differ in their columns, to be processed by one function.

    The function sees the rows of both in the order of the replay, and the lesser watermark of both; an input all of
    whose splits are idle does not hold the other one back.

    Notes
    -----
    Follows ``pyflink.datastream.ConnectedStreams``; made by :meth:`DataStream.connect`.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(self, key_columns1: KeyColumns, key_columns2: KeyColumns) -> "ConnectedStreams":
        """Return these streams partitioned by key.

        Parameters
        ----------
        key_columns1, key_columns2 : str or sequence of str
            Columns that make up the key in the first and in the second stream: as many, and of the same types.

        Raises
        ------
        ConfigurationError
            If a stream has a key already, or the numbers of columns differ.

        Notes
        -----
        The columnar counterpart of ``ConnectedStreams.key_by``: columns instead of key selector functions.
        """
        for number, stream in enumerate((self.stream1, self.stream2), start=1):
            if isinstance(stream, KeyedStream):
                raise ConfigurationError(
                    f"stream {number} of the connected streams has a key already: leave out one of the two key_by"
                )
        return ConnectedStreams(
            self.stream1.key_by(*_columns(key_columns1)), self.stream2.key_by(*_columns(key_columns2))
        )

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedCoProcessFunction or CoProcessFunction
            The former if both streams are keyed. The latter, without keys, timers and keyed state, runs as one
            instance, whatever the parallelism: results do not depend on it.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedStream.process`.

        Raises
        ------
        ConfigurationError
            If only one stream is keyed, the function is of the other kind, or a type is missing or no schema.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.process``; the differences of :meth:`KeyedStream.process`.
        """
        keyed = [isinstance(stream, KeyedStream) for stream in (self.stream1, self.stream2)]
        if keyed[0] != keyed[1]:
            raise ConfigurationError(
                f"stream {keyed.index(True) + 1} of the connected streams is keyed and the other is not: key both, "
                "with connect(...).key_by('column1', 'column2'), or broadcast the one without a key"
            )
        expected = KeyedCoProcessFunction if keyed[0] else CoProcessFunction
        if not isinstance(func, expected):
            what = "keyed streams" if keyed[0] else "streams without keys"
            raise ConfigurationError(f"process on connected {what} takes a {expected.__name__}, not {func!r}")
        transformation = TwoInputTransformation(
            _partitioned(self.stream1),
            _partitioned(self.stream2),
            func,
            output_type,
            tuple(side_outputs),
            timestamp_column,
        )
        return DataStream(self.stream1.get_execution_environment(), transformation)


class BroadcastConnectedStream:
    """A stream, keyed or not, and one whose rows go to every parallel instance.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastConnectedStream``; made by :meth:`DataStream.connect`.
    """

    def __init__(self, non_broadcast_stream: DataStream, broadcast_stream: BroadcastStream) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedBroadcastProcessFunction or BroadcastProcessFunction
            The former if the stream is keyed. The latter runs as one instance, whatever the parallelism.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedStream.process`.

        Raises
        ------
        ConfigurationError
            If the function is of the other kind, or a type is missing or no schema.

        Notes
        -----
        Follows ``pyflink.datastream.BroadcastConnectedStream.process``. Deliberate difference: what a function gives
        for a row of the broadcast stream is given once, where Flink gives it once per subtask.
        """
        keyed = isinstance(self.non_broadcast_stream, KeyedStream)
        expected = KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction
        if not isinstance(func, expected):
            what = "a keyed stream" if keyed else "a stream without keys"
            raise ConfigurationError(
                f"process on {what} connected with a broadcast one takes a {expected.__name__}, not {func!r}"
            )
        broadcast = self.broadcast_stream
        transformation = TwoInputTransformation(
            _partitioned(self.non_broadcast_stream),
            BroadcastTransformation(
                broadcast.input_stream._transformation, broadcast.broadcast_state_descriptors
            ),
            func,
            output_type,
            tuple(side_outputs),
            timestamp_column,
        )
        return DataStream(self._environment, transformation)

    @property
    def _environment(self) -> "StreamExecutionEnvironment":
        return self.non_broadcast_stream.get_execution_environment()


def _columns(key_columns: KeyColumns) -> tuple[str, ...]:
    return (key_columns,) if isinstance(key_columns, str) else tuple(key_columns)


def _partitioned(stream: DataStream) -> Transformation:
    if isinstance(stream, KeyedStream):
        return PartitionTransformation(stream._transformation, stream._key_columns)
    return stream._transformation
