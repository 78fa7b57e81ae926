"""Connected streams: two streams that one function processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

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
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import ConnectedTransformation
from flinkcore.datastream.graph.transformations import BroadcastTransformation
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.stream import Stream
from flinkcore.errors import ArgumentTypeError, ConfigurationError

Key = str | Sequence[str] | KeySelector | Callable[[Any], Any]
Sent = TypeVar("Sent", bound=Stream)
Connected = TypeVar("Connected", bound=Stream)


class BroadcastStream(Generic[Sent]):
    """A stream whose elements are sent to every subtask of a function, to be connected with another stream.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastStream``; made by :meth:`DataStream.broadcast` and
    :meth:`LogStream.broadcast`.
    """

    def __init__(
        self, input_stream: Sent, broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)

    def __repr__(self) -> str:
        return f"BroadcastStream({self.input_stream!r})"

    def _transformation(self) -> BroadcastTransformation:
        return BroadcastTransformation(self.input_stream._transformation, self.broadcast_state_descriptors)


class TwoConnected(Generic[Connected]):
    """Two streams that one function processes, both keyed or neither."""

    def __init__(self, stream1: Connected, stream2: Connected) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stream1!r}, {self.stream2!r})"

    def _is_keyed(self, kind: type) -> bool:
        keyed = [isinstance(stream, kind) for stream in (self.stream1, self.stream2)]
        if keyed[0] != keyed[1]:
            raise ConfigurationError(
                f"stream {keyed.index(True) + 1} of the connected streams is keyed and the other is not: key both, "
                "with connect(...).key_by('column1', 'column2'), or broadcast the one without a key"
            )
        return keyed[0]

    def _refuse_second_key(self, kind: type) -> None:
        for number, stream in enumerate((self.stream1, self.stream2), start=1):
            if isinstance(stream, kind):
                raise ConfigurationError(
                    f"stream {number} of the connected streams has a key already: leave out one of the two key_by"
                )


class ConnectedStreams(TwoConnected[DataStream]):
    """Two streams of single elements, to be processed by one function.

    The function sees the elements of both in the order of the job, and the smaller watermark of both; an input whose
    splits are all idle does not hold the other one back.

    Notes
    -----
    Follows ``pyflink.datastream.ConnectedStreams``; made by :meth:`DataStream.connect`.
    """

    def key_by(
        self, key_selector1: Key, key_selector2: Key, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Return these streams partitioned by key.

        Parameters
        ----------
        key_selector1, key_selector2 : str or sequence of str, or KeySelector or callable
            Fields that make up the key of the first and of the second stream, as many and of the same types; or for
            both a function of an element.
        key_type : TypeInformation, optional
            Type of the functions' keys.

        Raises
        ------
        ConfigurationError
            If a stream has a key of fields already, or the numbers of fields differ.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.key_by``, which takes functions alone.
        """
        if is_function_of_key(key_selector1) and is_function_of_key(key_selector2):
            streams = [DataStream(s._environment, s._transformation) for s in (self.stream1, self.stream2)]
            return ConnectedStreams(
                streams[0].key_by(key_selector1, key_type=key_type),
                streams[1].key_by(key_selector2, key_type=key_type),
            )
        self._refuse_second_key(KeyedStream)
        return ConnectedStreams(
            self.stream1.key_by(*columns_of(key_selector1)), self.stream2.key_by(*columns_of(key_selector2))
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
        self._is_keyed(KeyedStream)
        if not isinstance(func, kind):
            raise ArgumentTypeError(f"{call} on connected streams takes a {kind.__name__}, not {func!r}")
        return self.stream1._then(
            ConnectedTransformation(
                self.stream1._input(), self.stream2._input(), func, declared_type(output_type)
            )
        )

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results of a function for the elements of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedCoProcessFunction or CoProcessFunction
            The former if both streams are keyed. The latter then has keys, timers and keyed state, too.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If only one stream is keyed, the function is of another class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.process``.
        """
        keyed = self._is_keyed(KeyedStream)
        expected = (KeyedCoProcessFunction, CoProcessFunction) if keyed else (CoProcessFunction,)
        require_process_function(func, expected, "keyed streams" if keyed else "streams without keys")
        return self.stream1._then(
            ConnectedTransformation(
                self.stream1._input(), self.stream2._input(), func, declared_type(output_type)
            )
        )


class ConnectedWithBroadcast(Generic[Connected]):
    """A stream, keyed or not, and one whose elements are sent to every subtask."""

    def __init__(self, non_broadcast_stream: Connected, broadcast_stream: BroadcastStream[Connected]) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.non_broadcast_stream!r}, {self.broadcast_stream!r})"

    def _require_function(self, func: object, keyed: type) -> None:
        is_keyed = isinstance(self.non_broadcast_stream, keyed)
        expected = KeyedBroadcastProcessFunction if is_keyed else BroadcastProcessFunction
        if not isinstance(func, expected):
            what = "a keyed stream" if is_keyed else "a stream without keys"
            raise ArgumentTypeError(
                f"process on {what} connected with a broadcast one takes a {expected.__name__}, not {func!r}"
            )


class BroadcastConnectedStream(ConnectedWithBroadcast[DataStream]):
    """A stream, keyed or not, and one whose elements are sent to every subtask.

    Notes
    -----
    Follows ``pyflink.datastream.BroadcastConnectedStream``; made by :meth:`DataStream.connect`.
    """

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results of a function for the elements of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedBroadcastProcessFunction or BroadcastProcessFunction
            The former if the stream is keyed. The latter runs as one instance at any parallelism.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If the function is of the other class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.BroadcastConnectedStream.process``. Deliberate difference: the results for an
        element of the broadcast stream are emitted once, where Flink emits them once per subtask.
        """
        self._require_function(func, KeyedStream)
        stream = self.non_broadcast_stream
        return stream._then(
            ConnectedTransformation(
                stream._input(), self.broadcast_stream._transformation(), func, declared_type(output_type)
            )
        )


def require_process_function(func: object, expected: tuple[type, ...], what: str) -> None:
    """Raise ArgumentTypeError unless a function is of a class that connected streams take."""
    if not isinstance(func, expected):
        names = " or a ".join(kind.__name__ for kind in expected)
        raise ArgumentTypeError(f"process on connected {what} takes a {names}, not {func!r}")


def is_function_of_key(key: object) -> bool:
    """Return whether a key is given as a function of an element."""
    return isinstance(key, KeySelector) or callable(key)


def columns_of(key_columns: Any) -> tuple[str, ...]:
    """Return the names of columns that a key is given as."""
    return (key_columns,) if isinstance(key_columns, str) else tuple(key_columns)
