"""Streams: the steps of a job, and the calls that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.expressions import Expression, is_expression
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from flinkcore.datastream.columnar_windows import why_not_columnar
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
    SideOutputTransformation,
    SinkTransformation,
)
from flinkcore.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionOrCallable,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    require_function,
)
from flinkcore.datastream.pipeline_executor import (
    CheckpointSettings,
    ElementJobRun,
    OutputStream,
    ProgressListener,
    ReplayResult,
)
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.datastream.transformations import (
    ChainingStrategy,
    FilterTransformation,
    ProcessTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
    WindowTransformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.keyed_stream import AllWindowedStream, KeyedStream
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

S = TypeVar("S", bound="ConfiguredStream")


class ConfiguredStream:
    """What :class:`DataStream` and :class:`DataStreamSink` can be told about their last step.

    Each call changes the step, and returns the same object, as in PyFlink. Results do not depend on chaining, and on
    parallelism only as far as order and side effects of functions go.
    """

    _transformation: Transformation

    def get_name(self) -> str:
        """Return the name of the step; what it does, unless it has been given one."""
        return self._transformation.settings.name or str(self._transformation)

    def name(self: S, name: str) -> S:
        """Name the step, for messages, ``explain`` and the task name of functions."""
        self._transformation.settings.set_text("name", name)
        return self

    def uid(self: S, uid: str) -> S:
        """Give the step an id, which two steps of a job cannot share.

        By its id a step of a columnar job finds its state in a checkpoint. Without one a process function or a join is
        "process-1", windows are "window-1", and the watermarks of the log, with the positions in its splits,
        "watermarks-1"; each operator and each log after the first counts on. A watermark strategy that follows a union
        gives each log its id with "-" and the number of the log.

        Raises
        ------
        ConfigurationError
            If it is empty, or no text.
        """
        self._transformation.settings.set_text("uid", uid)
        return self

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Raise a ConfigurationError: there are no savepoints of Flink to read."""
        raise ConfigurationError(
            f"set_uid_hash({uid_hash!r}) is for savepoints of Flink, which nothing reads here: take uid(...)"
        )

    def set_description(self: S, description: str) -> S:
        """Describe the step, for ``explain``."""
        self._transformation.settings.set_text("description", description)
        return self

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set how many subtasks run the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_parallelism(parallelism)
        return self

    def disable_chaining(self: S) -> S:
        """Let the step be called neither directly by the one before, nor call the next one directly."""
        self._transformation.settings.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: S, slot_sharing_group: Any) -> S:
        """Accept a group, which has no meaning here: there are no slots."""
        return self


_OF_KEYS: Final = frozenset(
    ("window", "count_window", "interval_join", "reduce", "sum", "min", "max", "min_by", "max_by")
)
"""Calls of a KeyedStream that no other stream has."""


_OF_WINDOWS: Final = frozenset(
    (
        "aggregate",
        "apply",
        "trigger",
        "evictor",
        "allowed_lateness",
        "side_output_late_data",
        "retracting",
        "delta",
    )
)
"""Calls of a WindowedStream that no other stream has."""


class StreamWithoutKeysError(ConfigurationError, AttributeError):
    """A call on a stream without keys that only a keyed stream has."""


class StreamWithoutWindowsError(ConfigurationError, AttributeError):
    """A call on a stream without windows that only a windowed stream has."""


class DataStream(ConfiguredStream):
    """A stream of rows or of other elements; each call returns a new stream, and nothing runs yet.

    Calls with a pyarrow expression or names of columns work on whole columns; calls with a Python function, with its
    single elements, as in PyFlink. A job with one of the latter runs element by element, all of it, and gives its
    elements by :meth:`execute_and_collect` or to sinks that the environment's ``execute`` runs.

    Of a columnar job, each of :meth:`execute`, :meth:`to_arrow`, :meth:`to_batches`, :meth:`write_parquet` and
    :meth:`to_dataframe` runs it. Several outputs of one run are had from :meth:`execute`'s result, a
    :class:`flinkcore.replay.results.result.EmbeddedResult` or :class:`flinkcore.spark.result.SparkResult`, and so is
    the report.

    Such a job begins with one log, or with several that are united or connected: steps over columns and
    :meth:`assign_timestamps_and_watermarks`. Then come operators, ``window`` or ``process`` behind :meth:`key_by`, one
    behind the other with steps over columns between them; an operator is the end, and what comes after is done with the
    rows that it gives. Results keep their timestamps (a window's are its last moment, those of a processing-time timer
    none), and the watermarks go on from operator to operator.

    Notes
    -----
    Follows ``pyflink.datastream.DataStream``. Streams are made by a :class:`StreamExecutionEnvironment`.
    """

    def __init__(self, environment: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self._environment = environment
        self._transformation = transformation

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> Any:
            if name in _OF_WINDOWS:
                raise StreamWithoutWindowsError(
                    f"{name} needs windows: call window(TumblingEventTimeWindows.of(Time.hours(1))), or another, "
                    "right before it, behind key_by('column')"
                )
            if name not in _OF_KEYS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            without = {
                "window": ", or take window_all(...)",
                "count_window": ", or take count_window_all(...)",
            }
            raise StreamWithoutKeysError(
                f"{name} needs a keyed stream: call key_by('column') right before it, behind filter, select and "
                f"with_columns, which give streams without keys{without.get(name, '')}"
            )

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def filter(self, func: Expression | FunctionOrCallable) -> DataStream:
        """Return the rows for which a predicate is true.

        Parameters
        ----------
        func : pyarrow.compute.Expression, FilterFunction or callable
            An expression is boolean; rows for which it is null are left out, as SQL does. A function is called for
            each element. Rows that are left out before :meth:`assign_timestamps_and_watermarks` do not move the
            watermark.

        Raises
        ------
        ConfigurationError
            If it is neither. SQL text is not taken: what it means would depend on a dialect, whereas an expression
            means the same wherever the job runs, and runs on whole columns.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> dear = (pc.field("price") > 100) & pc.field("country").isin(["DE", "FR"])
        >>> stream.filter(dear)  # doctest: +SKIP
        """
        if callable(func) or isinstance(func, Function):
            return self._choose(func)
        _require_expression(func, "filter")
        return self._then(FilterTransformation(self._transformation, func))

    def select(self, *names: str, **expressions: Expression) -> DataStream:
        """Return a stream with these columns only.

        Parameters
        ----------
        *names : str
            Columns to keep.
        **expressions : pyarrow.compute.Expression
            Further columns, computed from those of this stream.

        Raises
        ------
        ConfigurationError
            If there is no column, one is given twice, or an expression is something else.
        """
        for name in names:
            if not isinstance(name, str):
                raise ConfigurationError(
                    f"select takes names of columns, not {name!r}; computed ones need a name: select(x=...)"
                )
        for name, expression in expressions.items():
            _require_expression(expression, f"select({name}=...)")
        columns = (*names, *expressions)
        if not columns:
            raise ConfigurationError("select needs at least one column")
        _refuse_repeated(columns, "select")
        return self._then(
            SelectTransformation(self._transformation, names, tuple(expressions.items())),
        )

    def with_columns(self, **expressions: Expression) -> DataStream:
        """Return this stream with computed columns.

        Parameters
        ----------
        **expressions : pyarrow.compute.Expression
            New columns, or replacements of columns of the same name; all are computed from the columns of
            this stream, none from another one's result. Before :meth:`assign_timestamps_and_watermarks`, a new
            value of the log's timestamp column is the event time; the columns that give arrivals and splits
            cannot be replaced there (``from_event_log(..., arrival=expression)`` converts arrivals).

        Raises
        ------
        ConfigurationError
            If there is none, or one is not an expression.
        """
        if not expressions:
            raise ConfigurationError("with_columns needs at least one column: with_columns(name=expression)")
        for name, expression in expressions.items():
            _require_expression(expression, f"with_columns({name}=...)")
        return self._then(WithColumnsTransformation(self._transformation, tuple(expressions.items())))

    def assign_timestamps_and_watermarks(self, watermark_strategy: StrategyOrAssigner) -> DataStream:
        """Return this stream with event time and, for each split of the log, watermarks.

        Parameters
        ----------
        watermark_strategy : WatermarkStrategy
            Or an assigner from before there were strategies.

        Raises
        ------
        ConfigurationError
            If it is neither.

        Notes
        -----
        Flink's ``TimestampsAndWatermarksOperator`` on each split, merged by a ``StatusWatermarkValve``.
        """
        strategy = as_watermark_strategy(watermark_strategy)
        return self._then(TimestampsAndWatermarksTransformation(self._transformation, strategy))

    def key_by(
        self, *keys: Any, key_selector: Any = None, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Return this stream partitioned by key.

        Parameters
        ----------
        *keys : str, or KeySelector or callable
            Columns that make up the key; or one function of an element.
        key_selector : KeySelector or callable, optional
            The function, by its name in PyFlink.
        key_type : TypeInformation, optional
            Of what a function gives; may also be the second argument.

        Raises
        ------
        ConfigurationError
            If there is neither, a column is given twice, or one is not a name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.key_by``; names of columns are its columnar counterpart. Keys are one
        where Java's objects are equal: every NaN is one key; -0.0 and 0.0, and 1 and 1.0 of different types, are two.
        Functions get a column's value as a plain Python object, of a struct column a Row, of a timestamp with a time
        zone the datetime in UTC, and of several columns a tuple. Times with digits below microseconds, which Python
        does not have, can be keys of windows over columns and of functions over batches.
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
        """Return this stream cut into windows, without keys: all rows come to one place.

        Parameters
        ----------
        window_assigner : WindowAssigner
            From :mod:`flinkcore.datastream.window`.

        Raises
        ------
        ConfigurationError
            If it is not a window assigner.
        """
        from flinkcore.datastream.keyed_stream import (
            AllWindowedStream,  # built on a subclass of this class
        )

        return AllWindowedStream(self, require_assigner(window_assigner, "window_all"))

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Return this stream cut into windows of so many rows, without keys.

        Parameters
        ----------
        size : int
            Rows of a window, at least 1.
        slide : int
            A window starts at every so many rows; 0: each behind the one before.

        Raises
        ------
        ConfigurationError
            If the size is below 1, or the slide negative.

        Notes
        -----
        As :meth:`KeyedStream.count_window`; PyFlink has none.
        """
        if slide == 0:
            return self.window_all(CountTumblingWindowAssigner(size))
        return self.window_all(CountSlidingWindowAssigner(size, slide))

    def union(self, *streams: DataStream) -> DataStream:
        """Return all rows of this stream and of others.

        Each has its own watermarks; the least of those that are not idle counts. A log that has ended holds the
        watermark back until the end of the replay, unless it is idle: name an idleness in its strategy. Calls after the
        union, such as :meth:`filter` or :meth:`assign_timestamps_and_watermarks`, apply to each of the streams.

        Parameters
        ----------
        *streams : DataStream
            With the same columns.

        Raises
        ------
        ConfigurationError
            If there is none, or one is no stream of this environment.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.union``.
        """
        if not streams:
            raise ConfigurationError("union needs at least one other stream")
        for stream in streams:
            self._require_stream(stream, "union")
        united = tuple(stream._transformation for stream in (self, *streams))
        return self._then(UnionTransformation(united))

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Return this stream and another one, to be processed by one function.

        A log that has ended holds the watermark back until the end of the replay, unless it is idle: name an idleness
        in its strategy.

        Parameters
        ----------
        ds : DataStream or BroadcastStream
            Its columns may differ from this stream's.

        Raises
        ------
        ConfigurationError
            If it is no stream of this environment.

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

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Return this stream and another one, to be joined in windows (Flink's ``join``); errors as of `connect`."""
        from flinkcore.datastream.joined_streams import JoinedStreams  # gives streams of this class

        self._require_stream(other_stream, "join")
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Return this stream and another one, to be grouped together in windows (Flink's ``coGroup``); as `join`."""
        from flinkcore.datastream.joined_streams import CoGroupedStreams

        self._require_stream(other_stream, "co_group")
        return CoGroupedStreams(self, other_stream)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *others: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *others: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream | DataStream:
        """Return this stream with its rows sent to every parallel instance of what comes next.

        Parameters
        ----------
        broadcast_state_descriptor, *others : MapStateDescriptor
            The broadcast states that the function can ask for that the stream is connected to.

        Returns
        -------
        BroadcastStream or DataStream
            To be connected with another stream, if there are states.

        Raises
        ------
        ConfigurationError
            If one is something else, or two have one name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.broadcast``.
        """
        from flinkcore.datastream.connected_streams import BroadcastStream
        from flinkcore.datastream.state import MapStateDescriptor

        descriptors = [given for given in (broadcast_state_descriptor, *others) if given is not None]
        if not descriptors:
            return self._repartition(Partitioning.BROADCAST)
        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ConfigurationError(f"broadcast takes MapStateDescriptors, not {descriptor!r}")
        names = [descriptor.name for descriptor in descriptors]
        _refuse_repeated(tuple(names), "broadcast", "states")
        return BroadcastStream(self, descriptors)

    def _require_stream(self, stream: object, call: str) -> None:
        if not isinstance(stream, DataStream):
            raise ConfigurationError(f"{call} takes a DataStream, not {stream!r}")
        if stream.get_execution_environment() is not self._environment:
            raise ConfigurationError(f"{call} takes a stream of the same environment, not of another one")

    def _input(self) -> Transformation:
        """The step whose elements the next one reads; for keyed streams, that of the key."""
        return self._transformation

    def _then(self, transformation: Transformation) -> DataStream:
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

    def get_execution_config(self) -> ExecutionConfig:
        """Return the settings of the environment."""
        return self._environment.get_config()

    def execute(
        self,
        progress: ProgressListener | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayResult:
        """Return the result of the job that leads to this stream: rows, side outputs and report.

        Nothing runs, and no checkpoint is written, before ``to_arrow()``, ``to_batches()``, ``write_parquet()`` or
        ``report`` of the result is asked for.

        A job over yesterday's log that stops with a checkpoint, and one over today's log that goes on from it, give the
        rows that one job over both logs gives, at any parallelism of each. Today's events must not precede
        yesterday's last one in the total order (arrival, split, position). A split that only today's log has is one
        that is discovered at the cut: from there on it holds the watermark back until it has caught up or is idle. A
        split that today's log lacks goes on as one without events: name an idleness where files are splits.

        A job of several logs stops after the last event of them all, and its logs are cut there: no log's events of
        today may precede that one, and at the same arrival those of earlier logs of the job come first. Nothing is
        left between operators. Watermark generators of one's own need `WatermarkGenerator.snapshot_state`. Splits that
        are aligned (`with_watermark_alignment`) have no checkpoints, nor have jobs in which an operator behind the
        first one takes a log, or the results of several operators.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with how far the job has come: embedded, in the thread that takes the rows; on
            Spark, in a thread of its own while that one waits. An error that it raises fails the job.
        restore_from : str or os.PathLike, optional
            Checkpoint from which the job goes on: of the same job over an earlier log. The settings that its state
            depends on must be the same: watermarks, keys, windows, aggregates, number of key groups. A state that a
            function does not ask for any more stays, and is in the next checkpoint, as in Flink.
        stop_with_checkpoint : str or os.PathLike, optional
            Directory for a checkpoint, complete once the rows are: a new one, or one with an older checkpoint, which is
            replaced then. The job stops, and the end of its log fires nothing: open windows and timers are in the
            checkpoint.

        Returns
        -------
        ReplayResult
            With ``to_arrow``, ``to_batches``, ``to_dataframe``, ``write_parquet``, ``get_side_output(tag)`` and
            ``report``: a :class:`flinkcore.replay.results.result.EmbeddedResult` or
            :class:`flinkcore.spark.result.SparkResult`.

        Raises
        ------
        ConfigurationError
            If the job has no meaning, before anything is read.
        SchemaError
            If a column is missing or of an unsupported type.
        DataError, SourceError
            If a row or a file cannot be read.
        """
        graph = StreamGraph(self._transformation)
        if graph.needs_rows:
            by = next(step for step in graph.transformations() if step.needs_rows)
            raise ConfigurationError(
                f"the job runs element by element, because of the step {str(by)!r}: its results are Python objects. "
                "Take them by execute_and_collect(), or give them to a sink and call the environment's execute()"
            )
        checkpoints = CheckpointSettings(restore_from, stop_with_checkpoint)
        return self._environment.executor.execute(
            graph, self._environment.get_config(), progress, checkpoints
        )

    def to_arrow(self) -> Any:
        """Run the job and return its rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield its rows as ``pyarrow.RecordBatch``, as they are made."""
        return self.execute().to_batches()

    def to_dataframe(self) -> Any:
        """Run the job and return its rows as a Spark DataFrame.

        Raises
        ------
        ConfigurationError
            If this environment does not run on Spark.
        """
        self._require_dataframes()
        return self.execute().to_dataframe()

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows as Parquet files.

        The files of all directories appear at the end, or none do. Only a process that is killed just then can
        leave some: a directory that holds a folder ``_temporary`` is unfinished. A checkpoint is completed when all
        files are there, and before ``_temporary`` goes: until then it is the one before that counts, and the
        directories are to be emptied for another run from that.

        Parameters
        ----------
        path : str or os.PathLike
            Directory for the rows of this stream: a new one, or an empty one.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs of the job, new or empty too.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            What became of every event (:class:`flinkcore.replay.results.report.ReplayReport`).

        Raises
        ------
        ConfigurationError
            If a tag is not one of the job's, or a directory is not empty or within that of another output.
        SourceError
            If a directory cannot be made.
        """
        side_outputs = {} if side_outputs is None else side_outputs
        result = self._with_side_outputs(side_outputs).execute(
            restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.write_parquet(path, side_outputs)

    def get_side_output(self, output_tag: OutputTag) -> SideOutputStream:
        """Return a side output of the job that leads to this stream: late rows, rejected ones, or a function's own.

        Of a job that runs element by element, it is a stream of what the last step emits to the side output.

        Parameters
        ----------
        output_tag : OutputTag
            The tag given to ``side_output_late_data`` or ``from_event_log``; or one that a process function emits
            to, with a schema. Matched by its id.

        Raises
        ------
        ConfigurationError
            If no operator of a columnar job has this tag (Flink gives an empty stream).
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
        main = self._then(self._transformation)
        if not StreamGraph(self._transformation).needs_rows:
            main = self._with_side_outputs((output_tag,))
        steps = [step for step in main._transformation.in_order() if output_tag in step.side_outputs()]
        return SideOutputStream(main, (steps or [main._transformation])[-1], output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, each with its path, or with why it is refused."""
        config = self._environment.get_config()
        parallelism = config.get_parallelism()
        needs_rows = StreamGraph(self._transformation).needs_rows
        head = (
            f"{self._environment.executor.name} {'job, element by element' if needs_rows else 'replay'}, "
            f"parallelism {'of the executor' if parallelism == config.PARALLELISM_DEFAULT else parallelism}, "
            f"{config.get_max_parallelism()} key groups, "
            f"watermarks every {config.get_auto_watermark_interval()} ms"
        )
        steps = list(self._transformation.in_order())
        return "\n".join(
            [
                head,
                *(f"{number:>3}. [{_path(step, needs_rows)}] {step}" for number, step in enumerate(steps, 1)),
            ]
        )

    def _with_side_outputs(self, output_tags: Iterable[OutputTag]) -> DataStream:
        """Return this stream, of a job that has these side outputs; a process function can have any with a schema."""
        transformation = self._transformation
        for output_tag in output_tags:
            if not isinstance(output_tag, OutputTag):
                raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
            tags = [tag for step in transformation.in_order() for tag in step.side_outputs()]
            if output_tag in tags:
                continue
            if isinstance(transformation, ProcessTransformation | TwoInputTransformation):
                transformation = replace(transformation, tags=(*transformation.tags, output_tag))
                continue
            known = ", ".join(tag.tag_id for tag in tags) or "none"
            raise ConfigurationError(
                f"no side output is named {output_tag.tag_id!r}; this job has: {known}. Name one with "
                "side_output_late_data(tag), or from_event_log(..., on_bad_row=tag)"
            )
        return self._then(transformation)

    def _require_dataframes(self) -> None:
        executor = self._environment.executor
        if not executor.makes_dataframes:
            raise ConfigurationError(
                f"to_dataframe needs Spark, but this job runs {executor.name}: start from a "
                "SparkExecutionEnvironment (flinkcore.spark), or take to_arrow() or write_parquet(path)"
            )

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """Set how many key groups the step has.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self: S) -> S:
        """Let one subtask run the step."""
        self._transformation.settings.set_parallelism(1)
        self._transformation.settings.set_max_parallelism(1)
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accept a timeout, which has no meaning here: elements are never buffered."""
        return self

    def start_new_chain(self: S) -> S:
        """Let the step not be called directly by the one before."""
        self._transformation.settings.chaining = ChainingStrategy.HEAD
        return self


def _path(step: Transformation, needs_rows: bool) -> str:
    """How a step runs, and why, where its own way is another one."""
    if isinstance(step, WindowTransformation):
        refusal = why_not_columnar(step.assigner, step.trigger, step.evictor)
        if refusal is not None:
            return f"refused: {refusal}"
    if step.needs_rows or not needs_rows or step.path == "rows":
        return step.path
    return "rows, as other steps of the job call functions"


def require_key_columns(columns: tuple[Any, ...], call: str, otherwise: str = "") -> tuple[str, ...]:
    """Return the names of the columns that make up a key.

    Raises
    ------
    ConfigurationError
        If there is none, one is given twice, or one is no name.
    """
    if not columns:
        raise ConfigurationError(f"{call} needs at least one column: {call}('user'){otherwise}")
    for name in columns:
        if not isinstance(name, str) or not name:
            raise ConfigurationError(
                f"{call} takes names of columns{otherwise}, not {name!r}; compute a key first: "
                f"with_columns(key=expression), then {call}('key')"
            )
    _refuse_repeated(columns, call)
    return columns


def _require_expression(value: object, call: str) -> None:
    if is_expression(value):
        return
    if isinstance(value, str):
        hint = (
            "text is neither read as SQL nor as the name of a column; a column is pyarrow.compute.field(name)"
        )
    elif callable(value):
        hint = "a Python function, called for each row, goes to map, flat_map, filter or process"
    else:
        hint = "a constant is pyarrow.compute.scalar(value)"
    raise ConfigurationError(
        f"{call} takes a pyarrow expression, such as pyarrow.compute.field('price') > 100, not {value!r}: "
        f"{hint}"
    )


def _refuse_repeated(columns: tuple[str, ...], call: str, what: str = "columns") -> None:
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise ConfigurationError(f"{call} names {what} twice: {', '.join(repeated)}")


class SideOutputStream(DataStream):
    """A side output of a step; of a columnar job each terminal call runs the job.

    To run a columnar job once for several outputs, take them from :meth:`DataStream.execute`'s result. Calls of
    functions on a side output make the job one that runs element by element.

    Parameters
    ----------
    main : DataStream
        The end of the job.
    step : Transformation
        That has the side output.
    output_tag : OutputTag
    """

    def __init__(self, main: DataStream, step: Transformation, output_tag: OutputTag) -> None:
        super().__init__(main.get_execution_environment(), SideOutputTransformation(step, output_tag))
        self._main = main
        self._output_tag = output_tag

    def execute(  # type: ignore[override]
        self,
        progress: ProgressListener | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> OutputStream:
        """Run the job and return the rows of this side output; parameters as of :meth:`DataStream.execute`."""
        result = self._main.execute(
            progress, restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.get_side_output(self._output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, each with the path that it takes."""
        is_columnar = not StreamGraph(self._main._transformation).needs_rows
        return self._main.explain() if is_columnar else super().explain()


class DataStreamSink(ConfiguredStream):
    """A sink that the environment knows, and that its next ``execute`` runs.

    Notes
    -----
    Follows ``pyflink.datastream.DataStreamSink``; made by :meth:`DataStream.sink_to`, `add_sink` and `print`.
    """

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation


class CloseableIterator(Iterator[Any]):
    """Elements of a stream, as its job makes them: asking for the next one lets the job go on until there is one.

    Parameters
    ----------
    run : ElementJobRun

    Notes
    -----
    Follows ``pyflink.datastream.data_stream.CloseableIterator``. A job that is closed before its end is cancelled:
    its sinks make nothing visible.
    """

    def __init__(self, run: ElementJobRun) -> None:
        self._run = run
        self._elements = iter(run)

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element; StopIteration if the job has come to its end."""
        return next(self._elements)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job if it has not come to its end."""
        self._run.close()


_ELSEWHERE = {
    "AllWindowedStream": "keyed_stream",
    "BroadcastConnectedStream": "connected_streams",
    "BroadcastStream": "connected_streams",
    "ConnectedStreams": "connected_streams",
    "KeyedStream": "keyed_stream",
    "WindowedStream": "keyed_stream",
}


def __getattr__(name: str) -> Any:
    """Return the other streams, which PyFlink has in this module."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"flinkcore.datastream.{_ELSEWHERE[name]}"), name)
