"""Streams: the steps of a job, and the calls that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from flinkcore._internal.arrow.expressions import Expression, is_expression
from flinkcore._internal.python.missing_features import refuse_stream_method
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Time
from flinkcore.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.connectors.print_sink import PrintSink
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
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import (
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
from flinkcore.datastream.graph.pipeline_executor import (
    ElementJobRun,
    KeyStory,
    LatenessFigures,
    OutputStream,
    ProgressChoice,
    ProgressListener,
    ReplayResult,
    StrategyComparison,
    load_analysis,
)
from flinkcore.datastream.graph.transformations import (
    ChainingStrategy,
    EventLogSource,
    FilterTransformation,
    LogData,
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
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.slot_sharing_group import SlotSharingGroup
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
    from flinkcore.datastream.window import WindowAssigner
    from flinkcore.datastream.windowed_streams import AllWindowedStream

T = TypeVar("T")
S = TypeVar("S", bound="ConfiguredStream")
D = TypeVar("D", bound="DataStream")


class ConfiguredStream:
    """The settings of the last step of a :class:`DataStream` or :class:`DataStreamSink`.

    Each call changes the step and returns the same object, as in PyFlink. Chaining does not change results; parallelism
    changes only their order, and the side effects of functions.
    """

    _transformation: Transformation

    def get_name(self) -> str:
        """Return the name of the step; by default, the one that PyFlink gives it."""
        return self._transformation.settings.name or self._transformation.operator_name

    def name(self: S, name: str) -> S:
        """Set the name of the step, for messages, ``explain`` and the task name of functions."""
        self._transformation.settings.set_text("name", name)
        return self

    def uid(self: S, uid: str) -> S:
        """Set the id of the step, which must be unique in its job.

        A step of a columnar job finds its state in a checkpoint by its id. By default the ids are "process-1" for a
        process function or a join, "window-1" for windows, and "watermarks-1" for the watermarks of the log with the
        positions in its splits; further operators and logs are numbered on. A watermark strategy that follows a union
        has one state per log: its id with "-" and the number of the log.

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
        """Set the description of the step, for ``explain``."""
        self._transformation.settings.set_text("description", description)
        return self

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set the number of subtasks of the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_parallelism(parallelism)
        return self

    def disable_chaining(self: S) -> S:
        """Chain the step neither to the one before it nor to the next one."""
        self._transformation.settings.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Accept a group, or its name, without an effect: there are no slots; ConfigurationError if it is neither."""
        from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

        if not isinstance(slot_sharing_group, str | SlotSharingGroup):
            raise ArgumentTypeError(
                "a slot sharing group is a name, or made by SlotSharingGroup.builder(name), not "
                f"{slot_sharing_group!r}"
            )
        return self


_OF_KEYS: Final = frozenset(
    ("window", "count_window", "interval_join", "reduce", "sum", "min", "max", "min_by", "max_by")
)
"""Calls of a KeyedStream that no other stream has."""


_OVER_COLUMNS: Final[dict[type[Transformation], str]] = {
    MapTransformation: "with_columns(x=...) or select(x=...) with expressions, such as pyarrow.compute.field('y') * 2",
    ChoiceTransformation: "filter(...) with an expression, such as pyarrow.compute.field('price') > 100",
    ElementProcessTransformation: "process(function, schema) with the pyarrow.schema of its results",
}
"""What to call instead of steps of single elements."""


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

    Calls with a pyarrow expression or names of columns work on whole columns; calls with a Python function work on
    single elements, as in PyFlink. One such function makes the whole job run element by element: embedded in one
    thread, on Spark in a task per subtask, with the same results. Its elements are returned by
    :meth:`execute_and_collect`, or written to sinks that the environment's ``execute`` runs.

    A columnar job is run by each of :meth:`execute`, :meth:`to_arrow`, :meth:`to_batches`, :meth:`write_parquet` and
    :meth:`to_dataframe`. To get several outputs or the report of one run, take them from the result of
    :meth:`execute`, a :class:`flinkcore.columnar.results.result.EmbeddedResult` or
    :class:`flinkcore.spark.columnar.result.SparkResult`.

    A columnar job starts with one log, or several that are united or connected, steps over columns and
    :meth:`assign_timestamps_and_watermarks`. Operators may follow, ``window`` or ``process`` behind :meth:`key_by`,
    with steps over columns between them and after the last one. Results have timestamps (those of a window its largest
    timestamp, those of a processing-time timer none), and watermarks are forwarded from operator to operator.

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
                refuse_stream_method(self, name)
            without = {
                "window": ", or take window_all(...)",
                "count_window": ", or take count_window_all(...)",
            }
            raise StreamWithoutKeysError(
                f"{name} needs a keyed stream: call key_by('column') right before it, behind filter, select and "
                f"with_columns, which give streams without keys{without.get(name, '')}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._input()})"

    def _repr_html_(self) -> str:
        from flinkcore._internal.show.html import html_lines  # for notebooks alone

        return html_lines(f"{type(self).__name__}\n{_numbered_steps(self._input())}")

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def filter(self, func: Expression | FunctionOrCallable) -> DataStream:
        """Return the rows for which a predicate is true.

        Parameters
        ----------
        func : pyarrow.compute.Expression, FilterFunction or callable
            A boolean expression; rows for which it is null are dropped, as in SQL. Or a function, which is called for
            each element. Rows that are dropped before :meth:`assign_timestamps_and_watermarks` do not move the
            watermark. On the stream of a log that is a Spark DataFrame also a condition of Spark, as text or as a
            ``Column``: Spark applies it before the replay.

        Raises
        ------
        ConfigurationError
            If it is none of these, or a condition of Spark comes after other steps.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> dear = (pc.field("price") > 100) & pc.field("country").isin(["DE", "FR"])
        >>> stream.filter(dear)  # doctest: +SKIP
        """
        if callable(func) or isinstance(func, Function):
            return self._choose(func)
        of_log = self._in_log(lambda data: data.filter(func))
        if of_log is not None:
            return of_log
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
                raise ArgumentTypeError(
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

    def with_columns(self, *unnamed: Expression, **expressions: Expression) -> DataStream:
        """Return this stream with computed columns.

        Parameters
        ----------
        *unnamed
            Refused: a column needs a name.
        **expressions : pyarrow.compute.Expression
            New columns, or replacements of columns of the same name; all are computed from the columns of this stream,
            not from each other. Before :meth:`assign_timestamps_and_watermarks`, replacing the log's timestamp column
            changes the event time, and the columns of arrivals and splits cannot be replaced
            (``from_event_log(..., arrival=expression)`` converts arrivals). On the stream of a log that is a Spark
            DataFrame they may also be columns of Spark, which Spark computes before the replay.

        Raises
        ------
        ConfigurationError
            If there is none, or one is not an expression or has no name.
        """
        if unnamed:
            raise ConfigurationError(
                f"with_columns got {unnamed[0]!r} without a name: a column is given as with_columns(name=expression)"
            )
        if not expressions:
            raise ConfigurationError("with_columns needs at least one column: with_columns(name=expression)")
        if not any(isinstance(expression, str) for expression in expressions.values()):
            of_log = self._in_log(lambda data: data.with_columns(expressions))
            if of_log is not None:
                self._refuse_replaced(expressions)
                return of_log
        for name, expression in expressions.items():
            _require_expression(expression, f"with_columns({name}=...)")
        return self._then(WithColumnsTransformation(self._transformation, tuple(expressions.items())))

    def assign_timestamps_and_watermarks(self, watermark_strategy: StrategyOrAssigner) -> DataStream:
        """Return this stream with event time and, for each split of the log, watermarks.

        Parameters
        ----------
        watermark_strategy : WatermarkStrategy
            Or an assigner of :mod:`flinkcore.datastream.timestamps`. A replay over columns takes bounded and ascending
            extractors whose method returns a field of the element, or an arithmetic expression of fields.

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
            Type of the function's keys; may also be the second argument.

        Raises
        ------
        ConfigurationError
            If there is neither, a column is given twice, or one is not a name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.key_by``; names of columns are its columnar counterpart. Keys are equal
        if their Java objects are: all NaNs are one key; -0.0 and 0.0 are two keys, as are 1 and 1.0 of different types.
        Functions get the key as a plain Python object: of a struct column a Row, of a timestamp with a time zone the
        datetime in UTC, and of several columns a tuple. Timestamps with digits below microseconds, which Python cannot
        represent, can be keys of windows over columns and of functions over batches.
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
        """Return this stream cut into windows, without keys: all rows go to one partition; as `KeyedStream.window`."""
        from flinkcore.datastream.windowed_streams import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Return this stream cut into windows of a number of rows, without keys; as `KeyedStream.count_window`.

        PyFlink has none.
        """
        from flinkcore.datastream.window.count_windows import count_assigner

        return self.window_all(count_assigner(size, slide))

    def union(self, *streams: DataStream) -> DataStream:
        """Return all rows of this stream and of others.

        The watermark is the minimum over all streams that are not idle. A log that has ended holds it back until the
        end of the replay, unless it is idle: set an idleness in its strategy. Calls after the union, such as
        :meth:`filter` or :meth:`assign_timestamps_and_watermarks`, apply to each of the streams.

        Parameters
        ----------
        *streams : DataStream
            Streams of this environment with the same columns, or elements of the same type; without any it is this
            stream alone. Streams without a declared type go with all others, to a stream without one.

        Raises
        ------
        ConfigurationError
            If one is no such stream.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.union``, where streams without a type go with none that has one.
        """
        for stream in streams:
            self._require_stream(stream, "union")
        if not streams:
            return DataStream(self._environment, self._values())
        united = tuple(stream._values() for stream in (self, *streams))
        declared = dict.fromkeys(step.element_type for step in united)
        declared.pop(Types.PICKLED_BYTE_ARRAY(), None)
        if len(declared) > 1:
            raise ConfigurationError(
                f"union takes streams of one type, not of {' and '.join(map(repr, declared))}: declare the same "
                "output_type for all, or connect them"
            )
        return self._then(UnionTransformation(united))

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Return this stream and another one, to be processed by one function; watermarks as of :meth:`union`.

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
        """Return this stream and another one, to be co-grouped in windows (Flink's ``coGroup``); as :meth:`join`."""
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
        """Return this stream with its rows sent to every subtask of the next step.

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
        from flinkcore.datastream.state import MapStateDescriptor

        descriptors = [given for given in (broadcast_state_descriptor, *others) if given is not None]
        if not descriptors:
            return self._repartition(Partitioning.BROADCAST)
        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ArgumentTypeError(f"broadcast takes MapStateDescriptors, not {descriptor!r}")
        names = [descriptor.name for descriptor in descriptors]
        _refuse_repeated(tuple(names), "broadcast", "states")
        return BroadcastStream(self, descriptors)

    def _require_stream(self, stream: object, call: str) -> None:
        if not isinstance(stream, DataStream):
            raise ArgumentTypeError(f"{call} takes a DataStream, not {stream!r}")
        if stream.get_execution_environment() is not self._environment:
            raise ConfigurationError(f"{call} takes a stream of the same environment, not of another one")

    def _input(self) -> Transformation:
        """Return the step whose elements the next one reads; for keyed streams, that of the key."""
        return self._transformation

    def _values(self) -> Transformation:
        """Return the step whose elements a call reads that has no use for keys."""
        return self._transformation

    def _collected(self) -> Transformation:
        """Return the step whose elements are collected, and go to sinks."""
        return self._transformation

    def _then(self, transformation: Transformation) -> DataStream:
        self._environment._add_step(transformation)
        return DataStream(self._environment, transformation)

    def _in_log(self, change: Callable[[LogData], LogData | None]) -> DataStream | None:
        """Return the stream of the changed log; None if the log does not evaluate the expressions itself."""
        log = self._transformation
        if not isinstance(log, EventLogSource) or not isinstance(log.data, LogData):
            return None
        changed = change(log.data)
        return None if changed is None else self._then(replace(log, data=changed))

    def _refuse_replaced(self, names: Iterable[str]) -> None:
        log = self._transformation
        assert isinstance(log, EventLogSource)
        for name in names:
            if name in (log.arrival, log.split):
                raise ConfigurationError(
                    f"column {name!r} has the arrivals or splits of the log: replace it in the DataFrame before "
                    "from_event_log, or give another name to the computed column"
                )

    def get_type(self) -> TypeInformation:
        """Return the declared type of the elements; any Python object by default."""
        return self._transformation.element_type

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
            If it is no function, or the type is no type.

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

    def _choose(self, func: FunctionOrCallable) -> DataStream:
        require_function(func, FilterFunction, "filter")
        return self._then(ChoiceTransformation(self._input(), func, self._transformation.element_type))

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        """Return the results of a ProcessFunction for the elements; `output_type` and errors as of :meth:`map`.

        Raises
        ------
        ConfigurationError
            If it is no ProcessFunction.

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

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the elements to the standard output, one per line, when the environment is executed.

        Parameters
        ----------
        sink_identifier : str, optional
            Prefix of each line; the number of the subtask follows if there are several.
        """
        return self._end(self._values(), PrintSink(sink_identifier))

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Call a SinkFunction with every element when the environment is executed; ConfigurationError if it is none."""
        if not isinstance(sink_func, SinkFunction):
            raise ArgumentTypeError(
                f"add_sink takes a SinkFunction, not {sink_func!r}; a Sink goes to sink_to"
            )
        return self._end(self._values(), sink_func)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements to a Sink when the environment is executed; ConfigurationError if it is none."""
        if not isinstance(sink, Sink):
            raise ArgumentTypeError(f"sink_to takes a Sink such as a FileSink, not {sink!r}")
        return self._end(self._collected(), sink)

    def _end(self, step: Transformation, sink: Sink | SinkFunction) -> DataStreamSink:
        transformation = SinkTransformation(step, sink)
        self._environment._add_sink(transformation)
        return DataStreamSink(transformation)

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        limit: None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        *,
        limit: int,
        restore_from: str | PathLike[str] | None = None,
    ) -> list[Any]: ...

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None,
        limit: int,
        *,
        restore_from: str | PathLike[str] | None = None,
    ) -> list[Any]: ...

    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        limit: int | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> CloseableIterator | list[Any]:
        """Run the job that leads to this stream, and all sinks of the environment, and return the elements.

        Parameters
        ----------
        job_execution_name : str, optional
        limit : int, optional
            Maximum number of elements; the job is cancelled when they have been collected.
        restore_from : path, optional
            Checkpoint of this job over what its sources had before: it goes on from there, with what they have now.
        stop_with_checkpoint : path, optional
            Directory for a checkpoint with which the job stops, when all elements have been taken: the end of its
            sources then fires nothing. Not with a limit.

        Returns
        -------
        CloseableIterator or list
            A list if there is a limit.

        Raises
        ------
        ConfigurationError
            If the limit is no whole number of at least 1, or there is one where the job is to stop with a checkpoint.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.execute_and_collect``.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ConfigurationError(f"limit is a number of elements, at least 1, not {limit!r}")
        if limit is not None and stop_with_checkpoint is not None:
            raise ConfigurationError(
                "limit cancels the job, which then has no checkpoint: leave limit or stop_with_checkpoint out"
            )
        checkpoints = self._environment._checkpoint_settings(restore_from, stop_with_checkpoint)
        step = self._collected()
        element_type = step.element_type
        collected_type = element_type.collected_type()
        run = self._environment._start_job(job_execution_name, step, checkpoints)
        conversion = None if collected_type is element_type else collected_type.conversion()
        elements = CloseableIterator(run, conversion)
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
        progress: ProgressListener | bool | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayResult:
        """Return the result of the job that leads to this stream: rows, side outputs and report.

        The job runs, and writes its checkpoint, when ``to_arrow()``, ``to_batches()``, ``write_parquet()`` or
        ``report`` of the result is called.

        A job over yesterday's log that stops with a checkpoint, and a job over today's log that is restored from it,
        return the same rows as one job over both logs, at any parallelism of each. Today's events must not precede
        yesterday's last one in the total order (arrival, split, position). A split that only today's log has counts as
        discovered at the cut: from there on it holds the watermark back until it has caught up or is idle. A split that
        today's log lacks continues without events: set an idleness if files are splits.

        A job of several logs stops after the last event of all logs: no event of today's logs may precede it, and at
        equal arrivals events of earlier logs of the job come first. Custom watermark generators need
        `WatermarkGenerator.snapshot_state`. Checkpoints are not supported for aligned splits
        (`with_watermark_alignment`), and for jobs in which an operator behind the first one reads a log, or the results
        of several operators.

        Parameters
        ----------
        progress : callable or bool, optional
            Called from time to time with the progress of the job: embedded, in the thread that reads the rows; on
            Spark, in a separate thread while that one waits. An error that it raises fails the job. True: progress is
            shown on standard error, by tqdm if that is installed; False: it is not. By default
            :meth:`ExecutionConfig.set_progress` decides: it is shown in a terminal and in a notebook.
        restore_from : str or os.PathLike, optional
            Checkpoint to restore: of the same job over an earlier log. The settings that its state depends on must be
            the same: watermarks, keys, windows, aggregates, number of key groups. A state that a function no longer
            asks for is kept, and written to the next checkpoint, as in Flink.
        stop_with_checkpoint : str or os.PathLike, optional
            Directory for a checkpoint, complete once the rows are: a new one, or one with an older checkpoint, which is
            replaced. The job stops, and the end of its log fires nothing: open windows and timers are in the
            checkpoint.

        Returns
        -------
        ReplayResult
            With ``to_arrow``, ``to_batches``, ``to_dataframe``, ``write_parquet``, ``get_side_output(tag)`` and
            ``report``: a :class:`flinkcore.columnar.results.result.EmbeddedResult` or
            :class:`flinkcore.spark.columnar.result.SparkResult`.

        Raises
        ------
        ConfigurationError
            If the job is invalid, before anything is read.
        SchemaError
            If a column is missing or of an unsupported type.
        DataError, SourceError
            If a row or a file cannot be read.
        """
        graph = self._columnar_graph(
            "its results are Python objects. Take them by execute_and_collect(), or give them to a sink and call the "
            "environment's execute()"
        )
        config = self._environment.get_config()
        checkpoints = self._environment._checkpoint_settings(restore_from, stop_with_checkpoint)
        return self._environment.executor.execute(graph, config, _choice(progress, config), checkpoints)

    def to_arrow(self) -> Any:
        """Run the job and return its rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield its rows as ``pyarrow.RecordBatch``, as they are made."""
        return self.execute().to_batches()

    def to_pandas(self) -> Any:
        """Run the job and return its rows as a ``pandas.DataFrame`` (``flinkcore[pandas]``)."""
        return self.execute().to_pandas()

    def to_polars(self) -> Any:
        """Run the job and return its rows as a ``polars.DataFrame`` (``flinkcore[polars]``)."""
        return self.execute().to_polars()

    def show(self, rows: int = 20) -> None:
        """Run the job until it has given so many rows, and print them."""
        self.execute().show(rows)

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
        mode: str = "error",
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows as Parquet files.

        Either all files of all directories appear at the end, or none. Only a process that is killed in that moment can
        leave some: a directory with a folder ``_temporary`` is incomplete. A checkpoint is completed after all files
        have appeared, and before ``_temporary`` is removed: until then the previous checkpoint is valid, and the
        directories must be emptied before another run from it.

        Parameters
        ----------
        path : str or os.PathLike
            Directory for the rows of this stream.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs of the job.
        mode : {"error", "overwrite"}
            "error": the directories are new, or empty. "overwrite": Parquet files in them are replaced: they stay until
            all of the new ones are complete, in ``_temporary`` where these are moved into place, and are put back if
            that fails.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event (:class:`flinkcore.columnar.results.report.ReplayReport`).

        Raises
        ------
        ConfigurationError
            If a tag is not one of the job's, or a directory has what is not to be replaced or is within that of
            another output.
        SourceError
            If a directory cannot be made.
        """
        side_outputs = {} if side_outputs is None else side_outputs
        result = self._with_side_outputs(side_outputs).execute(
            restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.write_parquet(path, side_outputs, mode)

    def write_delta(
        self,
        path: str | PathLike[str],
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows into a Delta table, by one commit (``flinkcore[delta]``).

        The files are part of the table at once, or not at all: if the job or the commit fails, the table is as it was,
        and no file stays. A checkpoint is completed after the commit; if that fails, the error says so, and the table
        is to be restored to the version before.

        Parameters
        ----------
        path : str or os.PathLike
            Path or URI of the table.
        mode : {"error", "append", "overwrite", "overwrite_partitions"}
            "error": there is no table yet. The others take one that is there, or make one: "overwrite" replaces all of
            its rows; "overwrite_partitions" those of the partitions that rows of this stream fall into. Nothing is
            replaced if somebody else has committed to the table since the call.
        partition_by : str or sequence of str
            Columns by which a new table is partitioned: integers, text, dates, times, decimals or booleans.
        storage_options : mapping of str to str, optional
            Of deltalake, for the table's log.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the data files; None: by the table's URI.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event.

        Raises
        ------
        ConfigurationError
            If deltalake is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no type for a column, or no such column.
        SourceError
            If the table cannot be written or committed to.
        """
        result = self.execute(restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint)
        return result.write_delta(path, mode, partition_by, storage_options, filesystem)

    def write_iceberg(
        self,
        table: Any,
        mode: str = "append",
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows into an Iceberg table, by one commit (``flinkcore[iceberg]``).

        As :meth:`write_delta`.

        Parameters
        ----------
        table : pyiceberg.table.Table or str
            A table, or the name of one in the default catalog; not partitioned, or by values, years, months, days or
            hours of columns.
        mode : {"append", "overwrite", "overwrite_partitions"}
            As of :meth:`write_delta`; the last one for tables that are partitioned by values only.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event.

        Raises
        ------
        ConfigurationError
            If pyiceberg is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no such column, or another type for it.
        SourceError
            If the table cannot be written or committed to.
        """
        result = self.execute(restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint)
        return result.write_iceberg(table, mode)

    def with_emitted_at(self: D, name: str = "emitted_at") -> D:
        """Add a column to the results of the operator that this stream comes from: when each was emitted.

        That is what the clock of the replay showed, so when a result was known: the arrival of the event for which it
        was given; for what a watermark fires, the time at which that came; the time of a processing-time timer. It
        has the type of the bounds of windows: a timestamp in ms, or int64 ms where event times are numbers. Results
        that only the end of the log makes come are null: they were not known within the log.

        A function over batches must yield ``elements.results(batch, rows)`` then, which says for which element or timer
        each result is.

        It is the last column of the results, and of a function's own side outputs; late rows stay as they came. Like
        :meth:`uid` it changes the step, also for streams that came from it before, and returns this stream.

        Parameters
        ----------
        name : str
            Of the column; none of the operator has it.

        Raises
        ------
        ConfigurationError
            If no operator over columns comes right before, or the name is empty or no text. Where the job is planned,
            also if a column has this name.

        Examples
        --------
        >>> windowed.aggregate(n=count()).with_emitted_at()  # doctest: +SKIP
        """
        step = self._transformation
        if not isinstance(step, WindowTransformation | ProcessTransformation | TwoInputTransformation):
            raise ConfigurationError(
                f"with_emitted_at({name!r}) comes right behind an operator that gives columns, such as aggregate(...), "
                f"process(...) or a join, but here it follows: {step}"
            )
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"with_emitted_at(name) takes the name of a column, not {name!r}")
        step.settings.emitted_at = name
        return self

    def get_side_output(self, output_tag: OutputTag) -> SideOutputStream:
        """Return a side output of the job that leads to this stream: late rows, rejected ones, or a function's own.

        In a job that runs element by element, it is the side output of the last step.

        Parameters
        ----------
        output_tag : OutputTag
            The tag passed to ``side_output_late_data`` or ``from_event_log``, or one with a schema that a process
            function emits to. Tags are compared by id.

        Raises
        ------
        ConfigurationError
            If no operator of a columnar job has this tag (Flink gives an empty stream).
        """
        if not isinstance(output_tag, OutputTag):
            raise ArgumentTypeError(f"a side output is named by an OutputTag, not {output_tag!r}")
        main = self._then(self._transformation)
        if not StreamGraph(self._transformation).needs_rows:
            main = self._with_side_outputs((output_tag,))
        steps = [step for step in main._transformation.in_order() if output_tag in step.side_outputs()]
        return SideOutputStream(main, (steps or [main._transformation])[-1], output_tag)

    def lateness(
        self,
        windows: WindowAssigner[Any, Any] | Iterable[WindowAssigner[Any, Any]] | None = None,
        allowed_lateness: Time | Duration | Iterable[Time | Duration] | None = None,
        bounds: Time | Duration | Iterable[Time | Duration] | None = None,
    ) -> LatenessFigures:
        """Return how many events every bound of out-of-orderness loses, and how long it makes results wait.

        Reads the times of the log here and now: those of files once, as far as they fit into 256 MiB, in which an event
        takes 3 to 4 bytes where the log is about in order; what does not fit, and on Spark all, twice. Of the job only
        the log, the steps before the key and the watermark strategy count: the strategy's own bound is one among all;
        idleness, alignment, ticks and splits are as they are. Figures are exact: those of a replay with the bound.
        Besides these 256 MiB memory depends on splits, steps of the watermark and windows, but not on the number of
        events.

        Parameters
        ----------
        windows : WindowAssigner or iterable of these, optional
            Tumbling, sliding or cumulative windows of event time, for which events may be late. None: those of the
            job, if such windows over columns are its first operator; else events may be late for the watermark only.
        allowed_lateness : Time, Duration or iterable of these, optional
            Counted for each of the windows. None: that of the job's windows, else 0.
        bounds : Time, Duration or iterable of these, optional
            At which late events are counted. None: at some thousand bounds from 0 up to the largest disorder, about a
            hundredth apart.

        Returns
        -------
        LatenessFigures
            A :class:`flinkcore.analysis.lateness_frontier.LatenessFrontier`; printed, a sentence, a picture and advice.

        Raises
        ------
        ConfigurationError
            If the strategy has no bound (generators of one's own, percentiles, no watermarks), the job has several logs
            or runs element by element, jobs of the environment are restored from a checkpoint, or a setting is invalid.
        SchemaError, DataError, SourceError
            As of :meth:`execute`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from flinkcore.common import WatermarkStrategy
        >>> from flinkcore.datastream import StreamExecutionEnvironment
        >>> rows = pa.table({"ts": [0, 9_000, 2_000, 20_000], "arrival": [0, 9_000, 10_000, 20_000]})
        >>> frontier = (
        ...     StreamExecutionEnvironment.get_execution_environment()
        ...     .from_event_log(rows, timestamp="ts", arrival="arrival")
        ...     .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        ...     .lateness()
        ... )
        >>> frontier.bound_that_loses(0.0).to_millis()
        7000
        """
        from flinkcore.datastream.window import GlobalWindows

        self._refuse_restored("lateness()")
        asked = _several(windows)
        stream: DataStream = self
        steps = self._transformation.in_order()
        if not any(
            isinstance(step, WindowTransformation | ProcessTransformation | TwoInputTransformation)
            for step in steps
        ):
            # A replay has an operator; rows that have no place in the windows are bad rows of its log.
            first = asked[0] if asked else GlobalWindows.create_with_end_of_stream_trigger()
            stream = self.window_all(first).aggregate(events=Aggregate("count"))
        planned = self._environment.executor.planned(
            stream._columnar_graph("ask its log for lateness, before that step"),
            self._environment.get_config(),
        )
        frontier: LatenessFigures = load_analysis("lateness")(
            planned, asked, _several(allowed_lateness), _several(bounds)
        )
        return frontier

    def what_if(
        self,
        strategies: WatermarkStrategy | Iterable[WatermarkStrategy],
        keys: str | Sequence[str] | None = None,
    ) -> StrategyComparison:
        """Return what this job would give under other watermark strategies, compared with what it gives under its own.

        One replay, here and now, runs the job under all strategies side by side: also those for which `lateness` has no
        closed form, such as generators of one's own and percentiles, and any windows, such as sessions. The results of
        all are held in memory, a row for each, however often it was given.

        Parameters
        ----------
        strategies : WatermarkStrategy or iterable of these
            Each is to take the place of the job's own.
        keys : str or sequence of str, optional
            Columns by which results are the same result. None: the keys and bounds of the windows over columns whose
            results this stream has.

        Returns
        -------
        StrategyComparison
            A :class:`flinkcore.analysis.what_if.WhatIf`; printed, how many results change, and by how much.

        Raises
        ------
        ConfigurationError
            If the job has not one strategy over one log, withdraws results, or runs element by element; if jobs of the
            environment are restored from a checkpoint, keys are to be named, or a setting is invalid.
        SchemaError, DataError, SourceError
            As of :meth:`execute`; a DataError also if results have no timestamp, as those of processing-time timers.
        """
        self._refuse_restored("what_if()")
        self._columnar_graph("what_if compares jobs over columns only")
        comparison: StrategyComparison = load_analysis("what_if")(self, _several(strategies) or [], keys)
        return comparison

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, with the path of each, or the reason why it is refused.

        The last lines report which version or snapshot is read of each log that is a table of a lake; on Spark also
        whether tasks merge events before the shuffle, how they read each DataFrame, and why so.
        """
        config = self._environment.get_config()
        parallelism = config.get_parallelism()
        graph, executor = StreamGraph(self._transformation), self._environment.executor
        self._environment._settle_sinks()
        needs_rows = graph.needs_rows
        head = (
            f"{executor.name} {'job, element by element' if needs_rows else 'replay'}, "
            f"parallelism {'of the executor' if parallelism == config.PARALLELISM_DEFAULT else parallelism}, "
            f"{config.get_max_parallelism()} key groups, "
            f"watermarks every {config.get_auto_watermark_interval()} ms"
        )
        return "\n".join(
            [
                head,
                _numbered_steps(self._transformation),
                *(f"     {line}" for line in executor.explain_execution(graph, config)),
            ]
        )

    def _columnar_graph(self, otherwise: str) -> StreamGraph:
        """Return the graph of a job over columns; raise a ConfigurationError that says what to do otherwise."""
        graph = StreamGraph(self._transformation)
        if graph.needs_rows:
            steps = graph.transformations()
            by = next(step for step in steps if step.needs_rows)
            is_over_log = any(isinstance(step, EventLogSource) for step in steps)
            instead = next((call for kind, call in _OVER_COLUMNS.items() if isinstance(by, kind)), "")
            raise ConfigurationError(
                f"the job runs element by element, because of the step {str(by)!r}: {otherwise}"
                f"{f'. Or let it run over the columns of the log: {instead}' if is_over_log and instead else ''}"
            )
        return graph

    def _refuse_restored(self, call: str) -> None:
        """Raise a ConfigurationError if jobs of the environment go on from a checkpoint, which a call cannot judge."""
        restored = self._environment._checkpoint_settings(None, None).restore_from
        if restored is not None:
            raise ConfigurationError(
                f"{call} judges a log from its beginning, but jobs of this environment are restored from {restored}: "
                "leave execution.state-recovery.path out, and give it the whole log"
            )

    def why(self, key: Any, window: Any = None) -> KeyStory:
        """Return what became of the events of one key, and what its results were made of.

        The times of the whole log are read, for the watermarks; of the rest only what can have the key.

        Parameters
        ----------
        key : object
            Its value; of a key of several columns a tuple in their order, or a mapping by name. Text stands for a value
            of any type.
        window : int, datetime, str or pair of these, optional
            A time, in ms since the epoch, or as text in ISO 8601: only the windows that it falls into. Two: the start
            and the end of one window. By default all; a process function has none to ask for.

        Returns
        -------
        KeyStory
            A :class:`flinkcore.analysis.key_history.KeyHistory`: `print` it, or take its tables `events`, `firings` and
            `timers`.

        Raises
        ------
        ConfigurationError
            If the job has not one keyed operator over one stream, jobs of the environment are restored from a
            checkpoint, or the key or the window is none of it; before anything is read.
        """
        self._refuse_restored("why()")
        graph = self._columnar_graph(
            "why() tells of jobs over an event log; begin with env.from_event_log(...), and give its functions an "
            "output schema"
        )
        planned = self._environment.executor.planned(graph, self._environment.get_config())
        story: KeyStory = load_analysis("why")(planned, key, window)
        return story

    def _with_side_outputs(self, output_tags: Iterable[OutputTag]) -> DataStream:
        """Return this stream of a job with these side outputs; a process function accepts any tag with a schema."""
        transformation = self._transformation
        for output_tag in output_tags:
            if not isinstance(output_tag, OutputTag):
                raise ArgumentTypeError(f"a side output is named by an OutputTag, not {output_tag!r}")
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
        """Set the number of key groups of the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self: S) -> S:
        """Run the step in one subtask."""
        self._transformation.settings.set_parallelism(1)
        self._transformation.settings.set_max_parallelism(1)
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accept a timeout without an effect: elements are never buffered."""
        return self

    def start_new_chain(self: S) -> S:
        """Do not chain the step to the one before it."""
        self._transformation.settings.chaining = ChainingStrategy.HEAD
        return self


def _several(given: T | Iterable[T] | None) -> list[T] | None:
    """One or several as a list; what reads it says what they should be."""
    if given is None:
        return None
    if isinstance(given, Iterable) and not isinstance(given, str):
        return list(given)
    return [given]


def _path(step: Transformation, needs_rows: bool) -> str:
    """Return how a step runs in its job, and why, if it differs from the step's own path."""
    if isinstance(step, WindowTransformation):
        from flinkcore.datastream.graph.columnar_windows import why_not_columnar

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
            raise ArgumentTypeError(
                f"{call} takes names of columns{otherwise}, not {name!r}; compute a key first: "
                f"with_columns(key=expression), then {call}('key')"
            )
    _refuse_repeated(columns, call)
    return columns


def _require_expression(value: object, call: str) -> None:
    if is_expression(value):
        return
    if type(value).__name__ == "Column":
        hint = (
            "columns of Spark are for filter and with_columns on the stream of a log that is a Spark DataFrame, before "
            "any other step, and all of the call"
        )
    elif isinstance(value, str):
        hint = (
            "text is a condition of Spark SQL only in filter on the stream of a log that is a Spark DataFrame, before "
            "any other step; a column is pyarrow.compute.field(name)"
        )
    elif callable(value):
        hint = "a Python function, called for each row, goes to map, flat_map, filter or process"
    else:
        hint = "a constant is pyarrow.compute.scalar(value)"
    raise ArgumentTypeError(
        f"{call} takes a pyarrow expression, such as pyarrow.compute.field('price') > 100, not {value!r}: "
        f"{hint}"
    )


def _choice(progress: object, config: ExecutionConfig) -> ProgressChoice:
    if progress is None:
        return config.get_progress()
    if isinstance(progress, bool):
        return "on" if progress else "off"
    if not callable(progress):
        raise ArgumentTypeError(
            f"progress is called with how far the job is, or is True or False, and cannot be {progress!r}"
        )
    return progress


def _numbered_steps(last: Transformation) -> str:
    needs_rows = StreamGraph(last).needs_rows
    steps = enumerate(last.in_order(), 1)
    return "\n".join(f"{number:>3}. [{_path(step, needs_rows)}] {step}" for number, step in steps)


def _refuse_repeated(columns: tuple[str, ...], call: str, what: str = "columns") -> None:
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise ConfigurationError(f"{call} names {what} twice: {', '.join(repeated)}")


class SideOutputStream(DataStream):
    """A side output of a step; in a columnar job each terminal call runs the job.

    To run a columnar job once for several outputs, take them from the result of :meth:`DataStream.execute`. Calls of
    functions on a side output make the job run element by element.

    Parameters
    ----------
    main : DataStream
        The last stream of the job.
    step : Transformation
        The step with the side output.
    output_tag : OutputTag
    """

    def __init__(self, main: DataStream, step: Transformation, output_tag: OutputTag) -> None:
        super().__init__(main.get_execution_environment(), SideOutputTransformation(step, output_tag))
        self._main = main
        self._output_tag = output_tag

    def execute(  # type: ignore[override]
        self,
        progress: ProgressListener | bool | None = None,
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
        is_columnar = not StreamGraph(self._main._transformation).needs_rows
        return self._main.explain() if is_columnar else super().explain()


class DataStreamSink(ConfiguredStream):
    """A sink that is registered with the environment, whose next ``execute`` runs it.

    Notes
    -----
    Follows ``pyflink.datastream.DataStreamSink``; made by :meth:`DataStream.sink_to`, `add_sink` and `print`.
    """

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation


class CloseableIterator(Iterator[Any]):
    """The elements of a stream; asking for the next one runs the job until there is one.

    Parameters
    ----------
    run : ElementJobRun
    conversion : callable, optional
        From an element of the job to what the program gets.

    Notes
    -----
    Follows ``pyflink.datastream.data_stream.CloseableIterator``. Closing it before the end cancels the job: its sinks
    commit nothing.
    """

    def __init__(self, run: ElementJobRun, conversion: Callable[[Any], Any] | None = None) -> None:
        self._run = run
        self._elements = iter(run) if conversion is None else map(conversion, run)

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element; StopIteration at the end of the job."""
        return next(self._elements)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job unless it has ended."""
        self._run.close()


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
