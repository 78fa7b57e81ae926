"""Keyed streams, and streams cut into windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema, is_schema
from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.columnar_windows import ROW_KIND, OutputMode, require_output_mode
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.declared_type import (
    declared_type,
    refuse_columns_of_outputs,
    require_output_tag,
    with_settings,
)
from flinkcore.datastream.element_transformations import (
    ElementProcessTransformation,
    ElementWindowTransformation,
    KeyedTransformation,
    Partitioning,
    ReduceTransformation,
)
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
    require_function,
)
from flinkcore.datastream.functions.reduce_function import as_reduce_function
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.transformations import (
    BatchProcessTransformation,
    PartitionTransformation,
    ProcessTransformation,
    StreamGraph,
    Transformation,
    WindowProcessTransformation,
    WindowTransformation,
)
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    Evictor,
    MergingWindowAssigner,
    Trigger,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.datastream.window.window_operation import AnyWindowFunction, PreAggregation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.joined_streams import IntervalJoin
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment


class KeyedStream(DataStream):
    """A stream partitioned by key.

    Parameters
    ----------
    stream : DataStream
    key_columns : tuple of str
        Columns that make up the key; empty if a function gives it.
    key_selector : KeySelector or callable, optional
    key_type : TypeInformation, optional
        Of what the function gives.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedStream``: what is not about keys applies to the stream before it was keyed.
    """

    def __init__(
        self,
        stream: DataStream,
        key_columns: tuple[str, ...],
        key_selector: KeySelector | Callable[[Any], Any] | None = None,
        key_type: TypeInformation | None = None,
    ) -> None:
        super().__init__(stream._environment, stream._transformation)
        self._key_columns = key_columns
        self._key_selector = key_selector
        self._key_type = key_type

    def _input(self) -> Transformation:
        if self._key_selector is None:
            return PartitionTransformation(self._transformation, self._key_columns)
        assert self._key_type is not None
        return KeyedTransformation(self._transformation, self._key_selector, self._key_type)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
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
        return WindowedStream(self, require_assigner(window_assigner, "window"))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Return this stream cut into windows of so many rows of a key.

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
        Follows ``pyflink.datastream.KeyedStream.count_window``: only full windows fire. Java's sliding count windows
        fire at every slide: ``window(GlobalWindows.create())`` with a CountTrigger of the slide and a CountEvictor of
        the size. Both run over columns; rows in no window, where the slide is above the size, are counted.
        """
        if slide == 0:
            return self.window(CountTumblingWindowAssigner(size))
        return self.window(CountSlidingWindowAssigner(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Return this stream and another one, to be joined where timestamps of a key are close; this is the left one.

        Parameters
        ----------
        other_stream : KeyedStream
            With as many key columns as this one, of the same types.

        Raises
        ------
        ConfigurationError
            If it is no keyed stream of this environment.

        Notes
        -----
        Flink's ``KeyedStream.intervalJoin``, which PyFlink does not have.

        Examples
        --------
        >>> clicks.interval_join(orders).between(
        ...     Time.seconds(-5), Time.seconds(10)
        ... ).process(MyJoin(), schema)  # doctest: +SKIP
        """
        from flinkcore.datastream.joined_streams import IntervalJoin  # made of this class

        self._require_stream(other_stream, "interval_join")
        if not isinstance(other_stream, KeyedStream):
            raise ConfigurationError("interval_join takes a keyed stream: call key_by on the other one, too")
        return IntervalJoin(self, other_stream)

    def reduce(self, func: ReduceFunction[Any] | Callable[[Any, Any], Any]) -> DataStream:
        """Return for each element what it and all before it of its key are reduced to.

        Parameters
        ----------
        func : ReduceFunction or callable
            Of two elements.

        Raises
        ------
        ConfigurationError
            If it cannot be called.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.reduce``.
        """
        require_function(func, ReduceFunction, "reduce")
        return self._then(ReduceTransformation(self._input(), func, self.get_type()))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Return for each element the one before it of its key, with the sum of a field.

        Parameters
        ----------
        position_to_sum : int or str
            Position or name of the field; 0 is a number itself.

        Raises
        ------
        ConfigurationError
            If it is neither, or elements of the declared type have no such field.
        """
        return self._rolling(RollingAggregation.Kind.SUM, position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Return for each element the first one of its key, with the smallest value of a field so far."""
        return self._rolling(RollingAggregation.Kind.MIN, position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Return for each element the first one of its key, with the largest value of a field so far."""
        return self._rolling(RollingAggregation.Kind.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Return for each element that of its key with the smallest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Return for each element that of its key with the largest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MAX_BY, position_to_max_by)

    def _rolling(self, kind: RollingAggregation.Kind, position: int | str) -> DataStream:
        aggregation = RollingAggregation(kind, position)
        aggregation.check_type(self.get_type())
        return self.reduce(aggregation)

    def process(
        self,
        func: KeyedProcessFunction | KeyedBatchProcessFunction,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of each key, and for the timers that it registers.

        Rows are ``flinkcore.common.Row`` with the columns of this stream, and come in the order of the replay. The
        replay clock is the processing time. Every parallel instance works on a copy of the function.

        Parameters
        ----------
        func : KeyedProcessFunction or KeyedBatchProcessFunction
            The latter gets Arrow batches of rows of many keys, not rows.
        output_type : pyarrow.Schema or TypeInformation, optional
            A schema names the columns of the results of a columnar job; any other type, or none, makes the job run
            element by element. Of a schema, a result for a row is a Row, a tuple or list in the order of the
            columns, or a dict; where there is one column only, also the bare value, and that alone where the
            column is a list, struct or map. Integers for a timestamp column are in that column's unit:
            ``ctx.timestamp()`` fits ``timestamp('ms')``.
        side_outputs : sequence of OutputTag
            Side outputs that are wanted, each with a schema as its `type_info`. One that is asked for by
            :meth:`get_side_output` need not be named here. What the function emits to others is counted and
            dropped, as in Flink.
        timestamp_column : str, optional
            Name of a column that all outputs get after their own, with the timestamps of the records: null where a
            record has none, which is so in the main output of processing-time timers. Not for functions over batches.

        Raises
        ------
        ConfigurationError
            If the function is another one, or a type is none.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``.
        """
        if not isinstance(func, KeyedProcessFunction | KeyedBatchProcessFunction):
            raise ConfigurationError(
                "process on a keyed stream takes a KeyedProcessFunction or a KeyedBatchProcessFunction, "
                f"not {func!r}"
            )
        is_over_batches = isinstance(func, KeyedBatchProcessFunction)
        if isinstance(func, KeyedProcessFunction) and not is_schema(output_type):
            refuse_columns_of_outputs(side_outputs, timestamp_column)
            return self._then(ElementProcessTransformation(self._input(), func, declared_type(output_type)))
        if not self._key_columns:
            raise ConfigurationError(
                "an output_type that is a pyarrow.Schema needs a key of columns, key_by('user'), or take a type of "
                "Types such as Types.ROW_NAMED([...], [...])"
            )
        transformation = BatchProcessTransformation if is_over_batches else ProcessTransformation
        return self._then(
            transformation(self._input(), func, output_type, tuple(side_outputs), timestamp_column)
        )

    def _repartition(self, partitioning: Partitioning) -> DataStream:
        raise ConfigurationError(
            f"{partitioning.value} cannot take the place of a key: call it on the stream before key_by"
        )

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """Raise a ConfigurationError: the key says where elements go."""
        raise ConfigurationError(
            "partition_custom cannot take the place of a key: call it on the stream before key_by"
        )

    def broadcast(self, *descriptors: Any) -> Any:
        """Raise a ConfigurationError: the key says where elements go."""
        raise ConfigurationError(
            "broadcast cannot take the place of a key: call it on the stream before key_by"
        )

    def project(self, *field_indexes: int) -> DataStream:
        """Return tuples with some of the fields of this stream's tuples, without a key."""
        return DataStream(self._environment, self._transformation).project(*field_indexes)


WINDOW_RESULT_COLUMNS: Final = ("window_start", "window_end", "late_firing", "watermark")
"""Columns of every window result beside the keys and the aggregates."""


Windows = TypeVar("Windows", bound="WindowedStream")


class WindowedStream:
    """A keyed stream cut into windows, to be aggregated.

    Notes
    -----
    Follows ``pyflink.datastream.WindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    _window_function_types: ClassVar[tuple[type, ...]] = (ProcessWindowFunction, WindowFunction)

    def __init__(self, stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None
        self._output_mode = OutputMode.ACCUMULATING

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """Return the declared type of the elements."""
        return self._stream.get_type()

    def trigger(self: Windows, trigger: Trigger[Any, Any]) -> Windows:
        """Return this with windows that fire when a trigger says so, instead of their own.

        Parameters
        ----------
        trigger : Trigger
            From :mod:`flinkcore.datastream.window`. Over columns run EventTimeTrigger, CountTrigger and
            ContinuousEventTimeTrigger, also within a PurgingTrigger.

        Raises
        ------
        ConfigurationError
            If it is no trigger, or the windows merge and it does not support that.

        Examples
        --------
        >>> windowed.trigger(PurgingTrigger.of(CountTrigger.of(100)))  # doctest: +SKIP
        """
        if not isinstance(trigger, Trigger):
            raise ConfigurationError(f"trigger takes one such as CountTrigger.of(10), not {trigger!r}")
        if isinstance(self._window_assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise ConfigurationError(
                f"{type(self._window_assigner).__name__} makes windows that merge, but {type(trigger).__name__} does "
                "not support merging"
            )
        return with_settings(self, trigger=trigger)

    def evictor(self: Windows, evictor: Evictor[Any]) -> Windows:
        """Return this with windows that an evictor removes rows from when they fire.

        Parameters
        ----------
        evictor : Evictor
            From :mod:`flinkcore.datastream.window`. Over columns runs a CountEvictor on global windows with a
            CountTrigger; the others run row by row. Aggregates that depend on the order of rows, or collect them, then
            keep what they hold once per window, of which as many overlap as the one count goes into the other.

        Raises
        ------
        ConfigurationError
            If it is no evictor.

        Notes
        -----
        Java's ``WindowedStream.evictor``; PyFlink has none. Deliberate difference: what an evictor returns is ignored
        there; here a list is an error, since it is meant to be what is left.
        """
        if not isinstance(evictor, Evictor):
            raise ConfigurationError(f"evictor takes one such as CountEvictor.of(10), not {evictor!r}")
        return with_settings(self, evictor=evictor)

    def allowed_lateness(self: Windows, time_ms: int | Time | Duration) -> Windows:
        """Return this with windows that stay open for late rows.

        Parameters
        ----------
        time_ms : int, Time or Duration
            Not negative; a number is milliseconds. A row that comes into a fired window fires it again, at
            once.

        Raises
        ------
        ConfigurationError
            If it is negative.
        """
        lateness_ms = interval_or_ms(time_ms, "allowed_lateness")
        if lateness_ms < 0:
            raise ConfigurationError(f"allowed_lateness cannot be negative, it is {lateness_ms} ms")
        return with_settings(self, allowed_lateness_ms=lateness_ms)

    def side_output_late_data(self: Windows, output_tag: OutputTag) -> Windows:
        """Return this with rows that are too late for all their windows sent to a side output.

        Parameters
        ----------
        output_tag : OutputTag

        Raises
        ------
        ConfigurationError
            If it is not an output tag.
        """
        return with_settings(self, late_tag=require_output_tag(output_tag, "side_output_late_data"))

    def accumulating(self: Windows) -> Windows:
        """Return this with windows that give their whole result each time that they fire; they do by themselves."""
        return with_settings(self, output_mode=OutputMode.ACCUMULATING)

    def retracting(self: Windows) -> Windows:
        """Return this with windows that withdraw their last result before they give another one.

        Windows that fire once, when they are full, and windows that an evictor removes rows from are refused.

        Results get a column ``row_kind``, Flink's ``RowKind`` in short: ``+I`` is the first result of a window. When it
        fires again, the last one comes once more as ``-U``, and the new one as ``+U``. When a session that has given a
        result becomes a part of another one, that result comes once more as ``-D``. What is not withdrawn are the final
        results.

        Another operator reads withdrawn rows as ordinary ones; before one take :meth:`delta`, or filter by
        ``row_kind``.

        Notes
        -----
        Flink's DataStream API does not have this; the marks are those of updates in its Table API.

        Examples
        --------
        >>> windowed.allowed_lateness(Time.hours(1)).retracting().aggregate(n=count())  # doctest: +SKIP
        """
        return with_settings(self, output_mode=OutputMode.RETRACTING)

    def delta(self: Windows) -> Windows:
        """Return this with windows that give only the difference to what they gave before.

        It is that of counts and sums; the differences of a window add up to its final result. A window that fires when
        nothing has come since the last time gives nothing.

        Another operator reads withdrawn rows of :meth:`retracting` windows as ordinary ones; before one take this, or
        filter by ``row_kind``.

        Notes
        -----
        Flink's DataStream API does not have this.

        Examples
        --------
        >>> windowed.allowed_lateness(Time.hours(1)).delta().aggregate(n=count())  # doctest: +SKIP
        """
        return with_settings(self, output_mode=OutputMode.DELTA)

    @overload
    def aggregate(self, **aggregates: Aggregate) -> DataStream: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: AnyWindowFunction | None = None,
        accumulator_type: Any = None,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream: ...

    def aggregate(
        self,
        aggregate_function: Any = None,
        window_function: Any = None,
        accumulator_type: Any = None,
        output_type: Any = None,
        *,
        side_outputs: Any = (),
        timestamp_column: Any = None,
        **aggregates: Any,
    ) -> DataStream:
        """Return a stream with one row per firing of a window: aggregates of columns, or what a function gives.

        Parameters
        ----------
        aggregate_function : AggregateFunction, optional
            Of the rows, which are ``flinkcore.common.Row``; it is called row by row.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Gets the one result of the aggregate function, and gives what goes out instead.
        accumulator_type : object
            As PyFlink asks for it; not used: accumulators are Python objects.
        output_type, side_outputs, timestamp_column
            As of :meth:`process`.
        **aggregates : Aggregate
            Instead of a function: output columns, from :mod:`flinkcore.datastream.aggregates`, which run over whole
            columns.

        Returns
        -------
        DataStream
            Of aggregates, the columns are: the keys, ``window_start``, ``window_end`` (null of windows without
            bounds), the aggregates in the order given, ``late_firing`` (bool: fired by a row, when the watermark had
            passed the window's end) and ``watermark`` (int64 ms: in force at the firing); of :meth:`retracting`
            windows also ``row_kind`` (string).

        Raises
        ------
        ConfigurationError
            If there is no aggregate, one is something else, or its name is taken by another output column; or if
            there are both aggregates and a function; or if the windows cannot give their results as they should.

        Examples
        --------
        >>> from flinkcore.datastream.aggregates import count, sum_
        >>> windowed.aggregate(clicks=count(), spent=sum_("price"))  # doctest: +SKIP
        """
        if aggregate_function is not None and not aggregates:
            if not isinstance(aggregate_function, AggregateFunction):
                raise ConfigurationError(
                    "aggregate takes an AggregateFunction, or aggregates of columns by name, such as "
                    f"aggregate(n=count()), not {aggregate_function!r}"
                )
            return self._of_functions(
                "aggregate", aggregate_function, window_function, output_type, side_outputs, timestamp_column
            )
        by_function = {
            "aggregate_function": aggregate_function,
            "window_function": window_function,
            "accumulator_type": accumulator_type,
            "output_type": output_type,
            "timestamp_column": timestamp_column,
            "side_outputs": side_outputs or None,
        }
        for name, value in by_function.items():
            if value is not None:
                raise ConfigurationError(
                    f"aggregate({name}=...) belongs to an AggregateFunction, but there is none"
                    f"{' beside aggregates of columns' if aggregates else ''}; no column can be named so"
                )
        if not aggregates:
            raise ConfigurationError("aggregate needs at least one: aggregate(n=count())")
        keys = self._stream._key_columns
        retracting = self._output_mode is OutputMode.RETRACTING
        taken = (*WINDOW_RESULT_COLUMNS, ROW_KIND) if retracting else WINDOW_RESULT_COLUMNS
        for key in keys:
            if key in taken:
                raise ConfigurationError(
                    f"the key column {key!r} has the name of a result column; rename it before key_by, with "
                    f"with_columns(new_name=pyarrow.compute.field({key!r}))"
                )
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise ConfigurationError(
                    f"aggregate({name}=...) takes an aggregate such as count() or sum_('price'), "
                    f"not {aggregate!r}"
                )
            if name in keys or name in taken:
                raise ConfigurationError(
                    f"an aggregate cannot be named {name!r}: results already have the columns "
                    f"{', '.join((*keys, *taken))}"
                )
        require_output_mode(
            self._output_mode, self._window_assigner, self._trigger, self._evictor, aggregates
        )
        return self._stream._then(
            WindowTransformation(
                self._stream._input(),
                self._window_assigner,
                self._allowed_lateness_ms,
                self._late_tag,
                tuple(aggregates.items()),
                self._trigger,
                self._output_mode,
                self._evictor,
            ),
        )

    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: AnyWindowFunction | None = None,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return a stream with what the rows of a window are reduced to, at each firing; it runs row by row.

        Parameters
        ----------
        reduce_function : ReduceFunction or callable
            Of two rows, which are ``flinkcore.common.Row``.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Gets the one reduced row, and gives what goes out instead.
        output_type : pyarrow.Schema or TypeInformation
            As of :meth:`process`; without a window function by default that of the rows.
        side_outputs, timestamp_column
            As of :meth:`process`.

        Raises
        ------
        ConfigurationError
            If a function is another one, or a type is none.
        """
        return self._of_functions(
            "reduce",
            as_reduce_function(reduce_function),
            window_function,
            output_type,
            side_outputs,
            timestamp_column,
        )

    def apply(
        self,
        window_function: AnyWindowFunction,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of a window, at each firing; as :meth:`process`."""
        return self._of_functions("apply", None, window_function, output_type, side_outputs, timestamp_column)

    def process(
        self,
        process_window_function: AnyWindowFunction,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of a window, at each firing; it runs row by row.

        Parameters
        ----------
        process_window_function : ProcessWindowFunction
            Rows are ``flinkcore.common.Row`` with the columns of the stream. Every parallel instance works on a copy.
        output_type : pyarrow.Schema or TypeInformation, optional
            As of :meth:`KeyedStream.process`.
        side_outputs : sequence of OutputTag
            Side outputs of the function that are wanted, as of :meth:`KeyedStream.process`. That of late rows is
            named by :meth:`side_output_late_data`; its rows are as they came.
        timestamp_column : str, optional
            Name of a column that results and the function's side outputs get after their own, with the largest
            timestamp of the window; null of windows without end.

        Raises
        ------
        ConfigurationError
            If the function is another one, or a type is none.

        Notes
        -----
        Follows ``pyflink.datastream.WindowedStream.process``.
        """
        return self._of_functions(
            "process", None, process_window_function, output_type, side_outputs, timestamp_column
        )

    def _of_functions(
        self,
        call: str,
        pre_aggregation: PreAggregation | None,
        window_function: AnyWindowFunction | None,
        output_type: Schema,
        side_outputs: Sequence[OutputTag],
        timestamp_column: str | None,
    ) -> DataStream:
        if self._output_mode is not OutputMode.ACCUMULATING:
            raise ConfigurationError(
                f"{self._output_mode.value} windows are those of aggregates of columns, such as aggregate(n=count()); "
                "a function gives what it gives"
            )
        if (pre_aggregation is None or window_function is not None) and not isinstance(
            window_function, self._window_function_types
        ):
            names = " or a ".join(kind.__name__ for kind in self._window_function_types)
            raise ConfigurationError(f"the function over these windows is a {names}, not {window_function!r}")
        assigner = self._window_assigner
        trigger = assigner.get_default_trigger(self._stream._environment)
        operation = WindowOperation(
            assigner,
            trigger if self._trigger is None else self._trigger,
            self._evictor,
            self._allowed_lateness_ms,
            self._late_tag,
            pre_aggregation,
            window_function,
        )
        if self._runs_over_log(operation, output_type):
            return self._stream._then(
                WindowProcessTransformation(
                    self._stream._input(), operation, output_type, tuple(side_outputs), timestamp_column, call
                )
            )
        refuse_columns_of_outputs(side_outputs, timestamp_column)
        if (
            output_type is None
            and window_function is None
            and not isinstance(pre_aggregation, AggregateFunction)
        ):
            output_type = self._stream.get_type()
        return self._stream._then(
            ElementWindowTransformation(self._stream._input(), operation, declared_type(output_type))
        )

    def _runs_over_log(self, operation: WindowOperation, output_type: Any) -> bool:
        """Whether the job can be one over an event log with columns, up to here."""
        if self._stream._key_selector is not None or StreamGraph(self._stream._transformation).needs_rows:
            return False
        gives_rows = operation.window_function is None and isinstance(
            operation.pre_aggregation, ReduceFunction
        )
        return is_schema(output_type) or (output_type is None and gives_rows)


class AllWindowedStream(WindowedStream):
    """A stream without keys, cut into windows that all rows share.

    The windows run in one partition, those of functions row by row. Parameters and errors of the calls are those of
    :class:`WindowedStream`, except that window functions are a :class:`ProcessAllWindowFunction` or an
    :class:`AllWindowFunction`; results have no key columns.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowedStream``.
    """

    _window_function_types: ClassVar[tuple[type, ...]] = (ProcessAllWindowFunction, AllWindowFunction)

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(KeyedStream(stream, ()), window_assigner)
