"""What a stream does with its elements one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from flinkcore.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.connectors.print_sink import PrintSink
from flinkcore.datastream.declared_type import declared_type
from flinkcore.datastream.element_transformations import (
    ChoiceTransformation,
    CustomPartitionTransformation,
    ElementProcessTransformation,
    FlatMapTransformation,
    MapTransformation,
    Partitioning,
    RepartitionTransformation,
    SinkTransformation,
)
from flinkcore.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    FunctionOrCallable,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    require_function,
)
from flinkcore.datastream.transformations import Transformation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.closeable_iterator import CloseableIterator
    from flinkcore.datastream.data_stream import DataStream
    from flinkcore.datastream.data_stream_sink import DataStreamSink
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment


class ElementStream:
    """The part of :class:`DataStream` that calls Python functions for single elements.

    A job with one of these steps runs element by element, all of it: embedded in one thread; on Spark in a task for
    each subtask, with the same results.
    """

    _environment: StreamExecutionEnvironment
    _transformation: Transformation

    def _input(self) -> Transformation:
        """The step whose elements the next one reads; for keyed streams, that of the key."""
        return self._transformation

    def _then(self, transformation: Transformation) -> DataStream:
        from flinkcore.datastream.data_stream import DataStream  # a subclass of this class

        return DataStream(self._environment, transformation)

    def get_type(self) -> TypeInformation:
        """Return the declared type of the elements; any Python object unless declared."""
        return self._transformation.element_type

    def map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return what a function makes of each element.

        Parameters
        ----------
        func : MapFunction or callable
            Of an element; what it returns is the result, None, too.
        output_type : TypeInformation, optional
            Of the results; any Python object unless given.

        Raises
        ------
        ConfigurationError
            If it is no function, or the type is none.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.map``.
        """
        require_function(func, MapFunction, "map")
        return self._then(MapTransformation(self._input(), func, declared_type(output_type)))

    def flat_map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return all that a function makes of each element.

        Parameters
        ----------
        func : FlatMapFunction or callable
            Of an element; yields the results, or returns an iterable of them, or None.
        output_type : TypeInformation, optional
            Of the results; any Python object unless given.

        Raises
        ------
        ConfigurationError
            If it is no function, or the type is none.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.flat_map``.
        """
        require_function(func, FlatMapFunction, "flat_map")
        return self._then(FlatMapTransformation(self._input(), func, declared_type(output_type)))

    def _choose(self, func: FunctionOrCallable) -> DataStream:
        require_function(func, FilterFunction, "filter")
        return self._then(ChoiceTransformation(self._input(), func, self.get_type()))

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        """Return what a process function makes of the elements.

        Parameters
        ----------
        func : ProcessFunction
        output_type : TypeInformation, optional
            Of the results; any Python object unless given.

        Raises
        ------
        ConfigurationError
            If it is another function, or the type is none.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.process``. Functions with timers and state need a key:
        :meth:`KeyedStream.process`.
        """
        if not isinstance(func, ProcessFunction):
            raise ConfigurationError(
                f"process on a stream without keys takes a ProcessFunction, not {func!r}; a KeyedProcessFunction needs "
                "key_by first"
            )
        return self._then(ElementProcessTransformation(self._input(), func, declared_type(output_type)))

    def project(self, *field_indexes: int) -> DataStream:
        """Return tuples with some of the fields of this stream's tuples.

        Parameters
        ----------
        *field_indexes : int
            Of the fields, in the order in which they are wanted.

        Raises
        ------
        ConfigurationError
            If this is no stream of declared tuples, or they have no such field.
        """
        type_info = self.get_type()
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
            MapTransformation(self._input(), projected, Types.TUPLE([types[i] for i in field_indexes]))
        )

    def rebalance(self) -> DataStream:
        """Return this stream with its elements dealt out to all subtasks of the next step in turn."""
        return self._repartition(Partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Return this stream with its elements dealt out in turn to those subtasks of the next step that are near."""
        return self._repartition(Partitioning.RESCALE)

    def shuffle(self) -> DataStream:
        """Return this stream with its elements dealt out at random; each run of a job deals in the same way."""
        return self._repartition(Partitioning.SHUFFLE)

    def forward(self) -> DataStream:
        """Return this stream with its elements kept in the subtask of the same number."""
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
            Of a key and the number of subtasks.
        key_selector : KeySelector or callable

        Raises
        ------
        ConfigurationError
            If one of them is no function.
        """
        require_function(partitioner, Partitioner, "partition_custom")
        require_function(key_selector, KeySelector, "partition_custom")
        return self._then(CustomPartitionTransformation(self._input(), partitioner, key_selector))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the elements to the standard output, one per line, when the environment is executed.

        Parameters
        ----------
        sink_identifier : str, optional
            What each line begins with. The number of the subtask follows if there are several.
        """
        return self.sink_to(PrintSink(sink_identifier))

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Give every element to a function when the environment is executed.

        Parameters
        ----------
        sink_func : SinkFunction

        Raises
        ------
        ConfigurationError
            If it is something else.
        """
        if not isinstance(sink_func, SinkFunction):
            raise ConfigurationError(
                f"add_sink takes a SinkFunction, not {sink_func!r}; a Sink goes to sink_to"
            )
        return self._end(sink_func)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements to a sink when the environment is executed.

        Parameters
        ----------
        sink : Sink

        Raises
        ------
        ConfigurationError
            If it is something else.
        """
        if not isinstance(sink, Sink):
            raise ConfigurationError(f"sink_to takes a Sink such as a FileSink, not {sink!r}")
        return self._end(sink)

    def _end(self, sink: Sink | SinkFunction) -> DataStreamSink:
        from flinkcore.datastream.data_stream_sink import DataStreamSink

        transformation = SinkTransformation(self._transformation, sink)
        self._environment._add_sink(transformation)
        return DataStreamSink(transformation)

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job that leads to this stream, and all sinks of the environment, and return the elements.

        Parameters
        ----------
        job_execution_name : str, optional
        limit : int, optional
            Take so many elements at most, and cancel the job then.

        Returns
        -------
        CloseableIterator or list
            A list if there is a limit.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.execute_and_collect``.
        """
        from flinkcore.datastream.closeable_iterator import CloseableIterator

        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ConfigurationError(f"limit is a number of elements, at least 1, not {limit!r}")
        run = self._environment._start_job(job_execution_name, self._transformation)
        elements = CloseableIterator(run)
        if limit is None:
            return elements
        with elements:
            return [element for _, element in zip(range(limit), elements, strict=False)]

    def cache(self) -> DataStream:
        """Raise a ConfigurationError: nothing is kept between jobs."""
        raise ConfigurationError(
            "cache() is not supported: collect the elements once, list(stream.execute_and_collect()), and begin with "
            "env.from_collection(...)"
        )
