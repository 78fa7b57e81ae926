"""Streams: names for what a job computes, and the calls that run it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, overload

from flinkcore.common.expressions import Expression, is_expression
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.columnar_results import ColumnarResults
from flinkcore.datastream.configured_stream import ConfiguredOperatorStream
from flinkcore.datastream.declared_type import declared_type
from flinkcore.datastream.element_stream import ElementStream
from flinkcore.datastream.element_transformations import Partitioning
from flinkcore.datastream.functions import Function, FunctionOrCallable, KeySelector, require_function
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.datastream.transformations import (
    FilterTransformation,
    SelectTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.two_input_transformations import UnionTransformation
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.all_windowed_stream import AllWindowedStream
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment


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


class DataStream(ConfiguredOperatorStream, ElementStream, ColumnarResults):
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

    def __init__(self, environment: "StreamExecutionEnvironment", transformation: Transformation) -> None:
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

    def get_execution_environment(self) -> "StreamExecutionEnvironment":
        """Return the environment that this stream belongs to."""
        return self._environment

    def filter(self, func: Expression | FunctionOrCallable) -> "DataStream":
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
        return DataStream(self._environment, FilterTransformation(self._transformation, func))

    def select(self, *names: str, **expressions: Expression) -> "DataStream":
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
        return DataStream(
            self._environment,
            SelectTransformation(self._transformation, names, tuple(expressions.items())),
        )

    def with_columns(self, **expressions: Expression) -> "DataStream":
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
        return DataStream(
            self._environment, WithColumnsTransformation(self._transformation, tuple(expressions.items()))
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: StrategyOrAssigner) -> "DataStream":
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
        return DataStream(
            self._environment, TimestampsAndWatermarksTransformation(self._transformation, strategy)
        )

    def key_by(
        self, *keys: Any, key_selector: Any = None, key_type: TypeInformation | None = None
    ) -> "KeyedStream":
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

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> "AllWindowedStream":
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
        from flinkcore.datastream.all_windowed_stream import (
            AllWindowedStream,  # built on a subclass of this class
        )

        return AllWindowedStream(self, require_assigner(window_assigner, "window_all"))

    def count_window_all(self, size: int, slide: int = 0) -> "AllWindowedStream":
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

    def union(self, *streams: "DataStream") -> "DataStream":
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
        return DataStream(self._environment, UnionTransformation(united))

    @overload
    def connect(self, ds: "DataStream") -> "ConnectedStreams": ...

    @overload
    def connect(self, ds: "BroadcastStream") -> "BroadcastConnectedStream": ...

    def connect(self, ds: "DataStream | BroadcastStream") -> "ConnectedStreams | BroadcastConnectedStream":
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

    def join(self, other_stream: "DataStream") -> "JoinedStreams":
        """Return this stream and another one, to be joined in windows (Flink's ``join``); errors as of `connect`."""
        from flinkcore.datastream.joined_streams import JoinedStreams  # gives streams of this class

        self._require_stream(other_stream, "join")
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: "DataStream") -> "CoGroupedStreams":
        """Return this stream and another one, to be grouped together in windows (Flink's ``coGroup``); as `join`."""
        from flinkcore.datastream.joined_streams import CoGroupedStreams

        self._require_stream(other_stream, "co_group")
        return CoGroupedStreams(self, other_stream)

    @overload
    def broadcast(self) -> "DataStream": ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: "MapStateDescriptor[Any, Any]",
        *others: "MapStateDescriptor[Any, Any]",
    ) -> "BroadcastStream": ...

    def broadcast(
        self,
        broadcast_state_descriptor: "MapStateDescriptor[Any, Any] | None" = None,
        *others: "MapStateDescriptor[Any, Any]",
    ) -> "BroadcastStream | DataStream":
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


_ELSEWHERE = {
    "AllWindowedStream": "all_windowed_stream",
    "BroadcastConnectedStream": "connected_streams",
    "BroadcastStream": "connected_streams",
    "CloseableIterator": "closeable_iterator",
    "ConnectedStreams": "connected_streams",
    "DataStreamSink": "data_stream_sink",
    "KeyedStream": "keyed_stream",
    "WindowedStream": "windowed_stream",
}


def __getattr__(name: str) -> Any:
    """Return the other streams, which PyFlink has in this module."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"flinkcore.datastream.{_ELSEWHERE[name]}"), name)
