"""Streams of single elements, as PyFlink has them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from flinkcore.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    FunctionOrCallable,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    require_function,
)
from flinkcore.datastream.graph.column_arguments import require_key_columns
from flinkcore.datastream.graph.declared_type import declared_type, require_output_tag
from flinkcore.datastream.graph.element_transformations import (
    ChoiceTransformation,
    CustomPartitionTransformation,
    ElementProcessTransformation,
    FlatMapTransformation,
    MapTransformation,
    Partitioning,
    RepartitionTransformation,
    SideOutputTransformation,
)
from flinkcore.datastream.graph.transformations import Transformation
from flinkcore.datastream.stream import CloseableIterator, DataStreamSink, ExtendableStream
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.window import WindowAssigner
    from flinkcore.datastream.windowed_streams import AllWindowedStream

__all__ = ["CloseableIterator", "DataStream", "DataStreamSink"]


class DataStream(ExtendableStream["DataStream"]):
    """A stream of single elements; each call returns a new stream, and nothing runs yet.

    Its steps call Python functions, as in PyFlink: embedded in one thread, on Spark in a task per subtask, with the
    same results. Elements are returned by :meth:`execute_and_collect`, or written to sinks that the environment's
    ``execute`` runs.

    Notes
    -----
    Follows ``pyflink.datastream.DataStream``. Streams are made by a :class:`StreamExecutionEnvironment`. The stream of
    an event log is a :class:`LogStream`, whose steps work on whole columns; its :meth:`LogStream.elements` are a
    DataStream.
    """

    @property
    def _kind(self) -> type[DataStream]:
        return DataStream

    def _then(self, transformation: Transformation) -> DataStream:
        self._environment._add_step(transformation)
        return DataStream(self._environment, transformation)

    def map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return the result of a function for each element.

        Parameters
        ----------
        func : MapFunction or callable
            From an element to the result, which may be None.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If it is not a function, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.map``.
        """
        require_function(func, MapFunction, "map")
        return self._then(MapTransformation(self._input(), func, declared_type(output_type)))

    def flat_map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return all results of a function for each element.

        Parameters
        ----------
        func : FlatMapFunction or callable
            Called with an element; yields the results, or returns an iterable of them, or None.
        output_type : TypeInformation, optional
            As of :meth:`map`, with its errors.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.flat_map``.
        """
        require_function(func, FlatMapFunction, "flat_map")
        return self._then(FlatMapTransformation(self._input(), func, declared_type(output_type)))

    def filter(self, func: FunctionOrCallable) -> DataStream:
        """Return the elements for which a function returns true.

        Parameters
        ----------
        func : FilterFunction or callable

        Raises
        ------
        ConfigurationError
            If it is not a function.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.filter``.
        """
        require_function(func, FilterFunction, "filter")
        return self._then(ChoiceTransformation(self._input(), func, self._transformation.element_type))

    def process(self, func: ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Return the results of a ProcessFunction for the elements; `output_type` and errors as of :meth:`map`.

        Raises
        ------
        ConfigurationError
            If it is not a ProcessFunction.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.process``. Functions with timers and state need a key:
        :meth:`KeyedStream.process`.
        """
        if not isinstance(func, ProcessFunction):
            raise ArgumentTypeError(
                f"process on a stream without keys takes a ProcessFunction, not {func!r}; a KeyedProcessFunction needs "
                "key_by first"
            )
        return self._then(ElementProcessTransformation(self._input(), func, declared_type(output_type)))

    def key_by(
        self, *keys: Any, key_selector: Any = None, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Return this stream partitioned by key.

        Parameters
        ----------
        *keys : str, or KeySelector or callable
            Fields that make up the key, of elements that are Rows; or one function of an element.
        key_selector : KeySelector or callable, optional
            The function, by its name in PyFlink.
        key_type : TypeInformation, optional
            Type of the function's keys; may also be the second argument.

        Raises
        ------
        ConfigurationError
            If there is neither, a field is given twice, or one is not a name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.key_by``, which takes no names. Keys are equal if their Java objects
        are: all NaNs are one key; -0.0 and 0.0 are two keys, as are 1 and 1.0 of different types.
        """
        from flinkcore.datastream.keyed_stream import KeyedStream  # a subclass of this class

        if key_selector is not None:
            keys = (key_selector, *keys)
        if len(keys) == 2 and isinstance(keys[1], TypeInformation | None):
            key_type = keys[1]
            keys = keys[:1]
        if len(keys) == 1 and not isinstance(keys[0], str) and callable(getattr(keys[0], "get_key", keys[0])):
            require_function(keys[0], KeySelector, "key_by")
            return KeyedStream(self, (), keys[0], declared_type(key_type, "key_type"))
        return KeyedStream(self, require_key_columns(keys, "key_by", ", or one function of an element"))

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Return this stream cut into windows, without keys; parameters as of :meth:`KeyedStream.window`."""
        from flinkcore.datastream.windowed_streams import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Return this stream cut into windows of a number of elements, without keys; as `KeyedStream.count_window`.

        PyFlink has none.
        """
        from flinkcore.datastream.window.count_windows import count_assigner

        return self.window_all(count_assigner(size, slide))

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream[DataStream]) -> BroadcastConnectedStream: ...

    def connect(
        self, ds: DataStream | BroadcastStream[DataStream]
    ) -> ConnectedStreams | BroadcastConnectedStream:
        """Return this stream and another one, to be processed by one function; watermarks as of :meth:`union`.

        Parameters
        ----------
        ds : DataStream or BroadcastStream
            Its elements may be of another type.

        Raises
        ------
        ConfigurationError
            If it is not a stream of single elements of this environment.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.connect``.
        """
        from flinkcore.datastream.connected_streams import (  # made of subclasses of this class
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            self._require_stream(ds.input_stream, "connect")
            return BroadcastConnectedStream(self, ds)
        self._require_stream(ds, "connect")
        return ConnectedStreams(self, ds)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *others: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[DataStream]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *others: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[DataStream] | DataStream:
        """Return this stream with its elements sent to every subtask of the next step.

        Parameters
        ----------
        broadcast_state_descriptor, *others : MapStateDescriptor
            The broadcast states of the function that will process this stream and another one.

        Returns
        -------
        BroadcastStream or DataStream
            A BroadcastStream, to be connected with another stream, if there are states.

        Raises
        ------
        ConfigurationError
            If one is not a MapStateDescriptor, or two have the same name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.broadcast``.
        """
        from flinkcore.datastream.connected_streams import BroadcastStream

        descriptors = tuple(given for given in (broadcast_state_descriptor, *others) if given is not None)
        if not descriptors:
            return self._repartition(Partitioning.BROADCAST)
        return BroadcastStream(self, self._broadcast_states(descriptors))

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return a side output of the last step that has it: late elements, or those of a function.

        Parameters
        ----------
        output_tag : OutputTag
            Tags are compared by id.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.get_side_output``.
        """
        require_output_tag(output_tag, "get_side_output")
        steps = [step for step in self._transformation.in_order() if output_tag in step.side_outputs()]
        step = (steps or [self._transformation])[-1]
        return DataStream(self._environment, SideOutputTransformation(step, output_tag))

    def project(self, *field_indexes: int) -> DataStream:
        """Return tuples with some of the fields of this stream's tuples.

        Parameters
        ----------
        *field_indexes : int
            Positions of the fields, in the order of the results.

        Raises
        ------
        ConfigurationError
            If this is not a stream of declared tuples, or the tuples have no such field.
        """
        type_info = self._transformation.element_type
        if not isinstance(type_info, TupleTypeInfo):
            raise ConfigurationError(
                f"project needs tuples, declared by Types.TUPLE([...]); this is {type_info!r}"
            )
        types = type_info.get_field_types()
        if not field_indexes or not all(isinstance(i, int) and 0 <= i < len(types) for i in field_indexes):
            raise ConfigurationError(
                f"project takes positions from 0 to {len(types) - 1}, not {field_indexes}"
            )

        def projected(value: Any) -> Any:
            return tuple([value[index] for index in field_indexes])

        return self._then(
            MapTransformation(self._values(), projected, Types.TUPLE([types[i] for i in field_indexes]))
        ).name("Projection")

    def rebalance(self) -> DataStream:
        """Return this stream with its elements distributed round-robin to all subtasks of the next step."""
        return self._repartition(Partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Return this stream with its elements distributed round-robin to a subset of the subtasks of the next step."""
        return self._repartition(Partitioning.RESCALE)

    def shuffle(self) -> DataStream:
        """Return this stream with its elements distributed at random, in the same way in each run of a job."""
        return self._repartition(Partitioning.SHUFFLE)

    def forward(self) -> DataStream:
        """Return this stream with its elements sent to the subtask with the same index."""
        return self._repartition(Partitioning.FORWARD)

    def global_(self) -> DataStream:
        """Return this stream with all its elements sent to the first subtask of the next step."""
        return self._repartition(Partitioning.GLOBAL)

    def _repartition(self, partitioning: Partitioning) -> DataStream:
        return self._then(RepartitionTransformation(self._input(), partitioning))

    def partition_custom(
        self,
        partitioner: Partitioner | Callable[[Any, int], int],
        key_selector: KeySelector | Callable[[Any], Any],
    ) -> DataStream:
        """Return this stream with each element sent to the subtask that a partitioner chooses for its key.

        Parameters
        ----------
        partitioner : Partitioner or callable
            From a key and the number of subtasks to the index of a subtask.
        key_selector : KeySelector or callable

        Raises
        ------
        ConfigurationError
            If one of them cannot be called.
        """
        require_function(partitioner, Partitioner, "partition_custom")
        require_function(key_selector, KeySelector, "partition_custom")
        return self._then(CustomPartitionTransformation(self._input(), partitioner, key_selector))

    def cache(self) -> DataStream:
        """Raise a ConfigurationError: nothing is kept between jobs."""
        raise ConfigurationError(
            "cache() is not supported: collect the elements once, list(stream.execute_and_collect()), and begin with "
            "env.from_collection(...)"
        )


_ELSEWHERE = {
    "AllWindowedStream": "windowed_streams",
    "BroadcastConnectedStream": "connected_streams",
    "BroadcastStream": "connected_streams",
    "ConnectedStreams": "connected_streams",
    "KeyedStream": "keyed_stream",
    "WindowedStream": "windowed_streams",
}


def __getattr__(name: str) -> Any:
    """Return a class of another stream, which PyFlink has in this module."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"flinkcore.datastream.{_ELSEWHERE[name]}"), name)
