"""Connected streams: two streams that one function processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkcore._internal.arrow.schemas import Schema, is_schema
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from flinkcore.datastream.graph.declared_type import declared_type, named_outputs, refuse_columns_of_outputs
from flinkcore.datastream.graph.element_transformations import ConnectedTransformation
from flinkcore.datastream.graph.transformations import (
    BroadcastTransformation,
    Transformation,
    TwoInputTransformation,
)
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.graph.transformations import TwoInputFunction

Key = str | Sequence[str] | KeySelector | Callable[[Any], Any]


class BroadcastStream:
    """A stream whose rows are sent to every subtask of a function, to be connected with another stream.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastStream``; made by :meth:`DataStream.broadcast`.
    """

    def __init__(
        self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)

    def __repr__(self) -> str:
        return f"BroadcastStream({self.input_stream!r})"


class ConnectedStreams:
    """Two streams of rows that may differ in their columns, to be processed by one function.

    The function sees the rows of both in the order of the replay, and the smaller watermark of both; an input whose
    splits are all idle does not hold the other one back.

    Notes
    -----
    Follows ``pyflink.datastream.ConnectedStreams``; made by :meth:`DataStream.connect`.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def __repr__(self) -> str:
        return f"ConnectedStreams({self.stream1!r}, {self.stream2!r})"

    def key_by(
        self, key_selector1: Key, key_selector2: Key, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Return these streams partitioned by key.

        Parameters
        ----------
        key_selector1, key_selector2 : str or sequence of str, or KeySelector or callable
            Columns that make up the key of the first and of the second stream, as many and of the same types; or for
            both a function of an element.
        key_type : TypeInformation, optional
            Type of the functions' keys.

        Raises
        ------
        ConfigurationError
            If a stream has a key of columns already, or the numbers of columns differ.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.key_by``; columns are its columnar counterpart.
        """
        if _is_function(key_selector1) and _is_function(key_selector2):
            streams = [DataStream(s._environment, s._transformation) for s in (self.stream1, self.stream2)]
            return ConnectedStreams(
                streams[0].key_by(key_selector1, key_type=key_type),
                streams[1].key_by(key_selector2, key_type=key_type),
            )
        for number, stream in enumerate((self.stream1, self.stream2), start=1):
            if isinstance(stream, KeyedStream):
                raise ConfigurationError(
                    f"stream {number} of the connected streams has a key already: leave out one of the two key_by"
                )
        return ConnectedStreams(
            self.stream1.key_by(*_columns(key_selector1)), self.stream2.key_by(*_columns(key_selector2))
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Return the result of a function for each element of both streams; results that are None are dropped.

        Parameters
        ----------
        func : CoMapFunction
            It has keyed state if both streams are keyed.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If the function is of another class, only one stream is keyed, or the type is invalid.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.map``.
        """
        return self._of_elements(func, CoMapFunction, "map", output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Return all results of a CoFlatMapFunction for each element of both streams; the rest as of :meth:`map`.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.flat_map``.
        """
        return self._of_elements(func, CoFlatMapFunction, "flat_map", output_type)

    def _of_elements(
        self, func: CoMapFunction | CoFlatMapFunction, kind: type, call: str, output_type: Any
    ) -> DataStream:
        self._is_keyed()
        if not isinstance(func, kind):
            raise ArgumentTypeError(f"{call} on connected streams takes a {kind.__name__}, not {func!r}")
        return self.stream1._then(
            ConnectedTransformation(
                self.stream1._input(), self.stream2._input(), func, declared_type(output_type)
            )
        )

    def _is_keyed(self) -> bool:
        keyed = [isinstance(stream, KeyedStream) for stream in (self.stream1, self.stream2)]
        if keyed[0] != keyed[1]:
            raise ConfigurationError(
                f"stream {keyed.index(True) + 1} of the connected streams is keyed and the other is not: key both, "
                "with connect(...).key_by('column1', 'column2'), or broadcast the one without a key"
            )
        return keyed[0]

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return the results of a function for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedCoProcessFunction or CoProcessFunction
            The former if both streams are keyed. The latter has keys, timers and keyed state, too, in a job of single
            elements whose streams are keyed. Without keys it runs in a job over columns as one instance at any
            parallelism, so that results do not depend on it.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedStream.process`.

        Raises
        ------
        ConfigurationError
            If only one stream is keyed, the function is of another class, or a type is missing or no schema.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.process``; the differences of :meth:`KeyedStream.process`.
        """
        expected: tuple[type, ...]
        if not self._is_keyed():
            what, expected = "streams without keys", (CoProcessFunction,)
        elif is_schema(output_type):
            what, expected = "streams keyed by columns", (KeyedCoProcessFunction,)
        else:
            what, expected = "keyed streams", (KeyedCoProcessFunction, CoProcessFunction)
        if not isinstance(func, expected):
            names = " or a ".join(kind.__name__ for kind in expected)
            raise ArgumentTypeError(f"process on connected {what} takes a {names}, not {func!r}")
        return _processed(
            self.stream1,
            self.stream2._input(),
            func,
            output_type,
            named_outputs(side_outputs),
            timestamp_column,
        )


class BroadcastConnectedStream:
    """A stream, keyed or not, and one whose rows are sent to every subtask.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastConnectedStream``; made by :meth:`DataStream.connect`.
    """

    def __init__(self, non_broadcast_stream: DataStream, broadcast_stream: BroadcastStream) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream

    def __repr__(self) -> str:
        return f"BroadcastConnectedStream({self.non_broadcast_stream!r}, {self.broadcast_stream!r})"

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return the results of a function for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedBroadcastProcessFunction or BroadcastProcessFunction
            The former if the stream is keyed. The latter runs as one instance at any parallelism.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedStream.process`.

        Raises
        ------
        ConfigurationError
            If the function is of the other class, or a type is missing or no schema.

        Notes
        -----
        Follows ``pyflink.datastream.BroadcastConnectedStream.process``. Deliberate difference: the results for a row of
        the broadcast stream are emitted once, where Flink emits them once per subtask.
        """
        keyed = isinstance(self.non_broadcast_stream, KeyedStream)
        expected = KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction
        if not isinstance(func, expected):
            what = "a keyed stream" if keyed else "a stream without keys"
            raise ArgumentTypeError(
                f"process on {what} connected with a broadcast one takes a {expected.__name__}, not {func!r}"
            )
        broadcast = self.broadcast_stream
        return _processed(
            self.non_broadcast_stream,
            BroadcastTransformation(
                broadcast.input_stream._transformation, broadcast.broadcast_state_descriptors
            ),
            func,
            output_type,
            named_outputs(side_outputs),
            timestamp_column,
        )


def _processed(
    stream: DataStream,
    input2: Transformation,
    func: TwoInputFunction,
    output_type: Any,
    side_outputs: tuple[OutputTag, ...],
    timestamp_column: str | None,
) -> DataStream:
    input1 = stream._input()
    if is_schema(output_type):
        return stream._then(
            TwoInputTransformation(input1, input2, func, output_type, side_outputs, timestamp_column)
        )
    refuse_columns_of_outputs(side_outputs, timestamp_column)
    return stream._then(ConnectedTransformation(input1, input2, func, declared_type(output_type)))


def _is_function(key: object) -> bool:
    return isinstance(key, KeySelector) or callable(key)


def _columns(key_columns: Any) -> tuple[str, ...]:
    return (key_columns,) if isinstance(key_columns, str) else tuple(key_columns)
