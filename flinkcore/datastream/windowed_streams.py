"""Streams that are cut into windows, by key or as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

from flinkcore._internal.arrow.schemas import Schema, is_schema
from flinkcore._internal.python.missing_features import refuse_stream_method
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from flinkcore.datastream.functions.reduce_function import as_reduce_function
from flinkcore.datastream.graph.columnar_windows import ROW_KIND, require_output_mode
from flinkcore.datastream.graph.declared_type import (
    declared_type,
    named_outputs,
    refuse_columns_of_outputs,
    require_output_tag,
    with_settings,
)
from flinkcore.datastream.graph.element_transformations import ElementWindowTransformation
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.graph.transformations import (
    StreamGraph,
    WindowProcessTransformation,
    WindowTransformation,
)
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.window import (
    Evictor,
    MergingWindowAssigner,
    Trigger,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.datastream.window.window_operation import AnyWindowFunction, PreAggregation
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

WINDOW_RESULT_COLUMNS: Final = ("window_start", "window_end", "late_firing", "watermark")
"""Columns of every window result beside the keys and the aggregates."""


Applied = TypeVar("Applied", bound=AnyWindowFunction)
Processed = TypeVar("Processed", bound=AnyWindowFunction)
Windows = TypeVar("Windows", bound="_Windows[Any, Any]")


class WindowsWithoutResultsError(ConfigurationError, AttributeError):
    """A call on windows that only the stream of their results has."""


class _Windows(Generic[Applied, Processed]):
    """Windows over a stream, whose functions for `apply` and `process` are of these classes."""

    _call: ClassVar[str]
    _window_function_types: ClassVar[tuple[type, ...]]

    def __init__(self, stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._window_assigner = require_assigner(window_assigner, self._call)
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None
        self._output_mode = OutputMode.ACCUMULATING

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(KeyedStream, name):
                raise WindowsWithoutResultsError(
                    f"{name} is of the results of windows: call aggregate(n=count()), or reduce, apply or process, "
                    "right before it"
                )
            refuse_stream_method(self, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stream!r}, {self._window_assigner.in_words})"

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """Return the declared type of the elements."""
        return self._stream._transformation.element_type

    def trigger(self: Windows, trigger: Trigger[Any, Any]) -> Windows:
        """Return these windows with another trigger than their own.

        Parameters
        ----------
        trigger : Trigger
            From :mod:`flinkcore.datastream.window`. Supported over columns: EventTimeTrigger, CountTrigger and
            ContinuousEventTimeTrigger, also within a PurgingTrigger.

        Raises
        ------
        ConfigurationError
            If it is not a trigger, or does not support windows that merge, as these do.

        Examples
        --------
        >>> windowed.trigger(PurgingTrigger.of(CountTrigger.of(100)))  # doctest: +SKIP
        """
        if not isinstance(trigger, Trigger):
            raise ArgumentTypeError(f"trigger takes one such as CountTrigger.of(10), not {trigger!r}")
        if isinstance(self._window_assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise ConfigurationError(
                f"{type(self._window_assigner).__name__} makes windows that merge, but {type(trigger).__name__} does "
                "not support merging"
            )
        return with_settings(self, trigger=trigger)

    def evictor(self: Windows, evictor: Evictor[Any]) -> Windows:
        """Return these windows with an evictor, which removes rows when a window fires.

        Parameters
        ----------
        evictor : Evictor
            From :mod:`flinkcore.datastream.window`. Supported over columns: a CountEvictor on global windows with a
            CountTrigger; others run row by row. Aggregates that depend on the order of rows, or collect them, are then
            kept once per overlapping firing: evictor count divided by trigger count.

        Raises
        ------
        ConfigurationError
            If it is not an evictor.

        Notes
        -----
        Java's ``WindowedStream.evictor``; PyFlink has none. Deliberate difference: an evictor that returns a list is an
        error, since it must change the list it is given.
        """
        if not isinstance(evictor, Evictor):
            raise ArgumentTypeError(f"evictor takes one such as CountEvictor.of(10), not {evictor!r}")
        return with_settings(self, evictor=evictor)

    def allowed_lateness(self: Windows, time_ms: int | Time | Duration) -> Windows:
        """Return these windows with an allowed lateness, for which they stay open for late rows.

        Parameters
        ----------
        time_ms : int, Time or Duration
            Not negative; a number is milliseconds. A late row fires its window again at once.

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
        """Return these windows with a side output for rows that are late for all their windows."""
        return with_settings(self, late_tag=require_output_tag(output_tag, "side_output_late_data"))

    def accumulating(self: Windows) -> Windows:
        """Return these windows with their whole result at each firing, which is the default."""
        return with_settings(self, output_mode=OutputMode.ACCUMULATING)

    def retracting(self: Windows) -> Windows:
        """Return these windows with retractions: they withdraw their last result before they emit another one.

        Windows that fire once, when they are full, and windows with an evictor are refused.

        Results have a column ``row_kind``, Flink's ``RowKind`` in short: ``+I`` for the first result of a window. When
        the window fires again, its last result is emitted once more as ``-U``, and the new one as ``+U``. When a
        session with a result is merged into another one, its result is emitted once more as ``-D``. The rows that are
        not withdrawn are the final results.

        Another operator reads withdrawn rows as ordinary ones: use :meth:`delta` before it, or filter by ``row_kind``.

        Notes
        -----
        Flink's DataStream API does not have this; the marks are those of updates in its Table API.

        Examples
        --------
        >>> windowed.allowed_lateness(Time.hours(1)).retracting().aggregate(n=count())  # doctest: +SKIP
        """
        return with_settings(self, output_mode=OutputMode.RETRACTING)

    def delta(self: Windows) -> Windows:
        """Return these windows with differences of counts and sums, which add up to the final result of a window.

        A window that fires without a row since its last firing emits nothing.

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
        window_function: Applied | Processed | None = None,
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
        """Return a stream with one row per firing of a window: aggregates of columns, or results of a function.

        Parameters
        ----------
        aggregate_function : AggregateFunction, optional
            Called with each row, a ``flinkcore.common.Row``.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Called with the result of the aggregate function; its results replace it.
        accumulator_type : object
            Accepted as in PyFlink, but not used: accumulators are Python objects.
        output_type, side_outputs, timestamp_column
            As of :meth:`process`.
        **aggregates : Aggregate
            Instead of a function: output columns, from :mod:`flinkcore.datastream.aggregates`, computed over whole
            columns.

        Returns
        -------
        DataStream
            With aggregates, the columns are: the keys, ``window_start`` and ``window_end`` (null for windows without
            bounds), the aggregates in the order given, ``late_firing`` (bool: a late row fired the window) and
            ``watermark`` (int64 ms: in force at the firing); for :meth:`retracting` windows also ``row_kind`` (string).

        Raises
        ------
        ConfigurationError
            If there is no aggregate, one is no Aggregate, or its name is taken by another output column; if there are
            both aggregates and a function; or if the windows cannot be retracting or delta.

        Examples
        --------
        >>> from flinkcore.datastream.aggregates import count, sum_
        >>> windowed.aggregate(clicks=count(), spent=sum_("price"))  # doctest: +SKIP
        """
        if aggregate_function is not None and not aggregates:
            if not isinstance(aggregate_function, AggregateFunction):
                raise ArgumentTypeError(
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
                raise ArgumentTypeError(
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
        window_function: Applied | Processed | None = None,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return a stream with the reduction of the rows of a window, at each firing; it runs row by row.

        Parameters
        ----------
        reduce_function : ReduceFunction or callable
            From two rows to one, each a ``flinkcore.common.Row``.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Called with the reduced row; its results replace it.
        output_type : pyarrow.Schema or TypeInformation
            As of :meth:`process`; without a window function, by default that of the rows.
        side_outputs, timestamp_column
            As of :meth:`process`.

        Raises
        ------
        ConfigurationError
            If a function is of another class, or a type is no type.
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
        window_function: Applied,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return the results of a WindowFunction for the rows of a window, at each firing; as :meth:`process`."""
        return self._of_functions("apply", None, window_function, output_type, side_outputs, timestamp_column)

    def process(
        self,
        process_window_function: Processed,
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return the results of a function for the rows of a window, at each firing; it runs row by row.

        Parameters
        ----------
        process_window_function : ProcessWindowFunction
            Rows are ``flinkcore.common.Row`` with the columns of the stream. Every subtask works on a copy.
        output_type : pyarrow.Schema or TypeInformation, optional
            As of :meth:`KeyedStream.process`.
        side_outputs : sequence of OutputTag
            Side outputs of the function, as of :meth:`KeyedStream.process`. That of late rows is set by
            :meth:`side_output_late_data`; its rows are unchanged.
        timestamp_column : str, optional
            Name of an additional last column of results and of the function's side outputs, with the largest timestamp
            of the window; null for windows without end.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or a type is no type.

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
            raise ArgumentTypeError(f"the function over these windows is a {names}, not {window_function!r}")
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
                    self._stream._input(),
                    operation,
                    output_type,
                    named_outputs(side_outputs),
                    timestamp_column,
                    call,
                )
            )
        refuse_columns_of_outputs(side_outputs, timestamp_column)
        if (
            output_type is None
            and window_function is None
            and not isinstance(pre_aggregation, AggregateFunction)
        ):
            output_type = self._stream._transformation.element_type
        return self._stream._then(
            ElementWindowTransformation(self._stream._input(), operation, declared_type(output_type))
        )

    def _runs_over_log(self, operation: WindowOperation, output_type: Any) -> bool:
        """Return whether the job up to here can run over the columns of an event log."""
        if self._stream._key_selector is not None or StreamGraph(self._stream._transformation).needs_rows:
            return False
        gives_rows = operation.window_function is None and isinstance(
            operation.pre_aggregation, ReduceFunction
        )
        return is_schema(output_type) or (output_type is None and gives_rows)


class WindowedStream(_Windows[WindowFunction[Any, Any, Any, Any], ProcessWindowFunction[Any, Any, Any, Any]]):
    """A keyed stream cut into windows, to be aggregated.

    Notes
    -----
    Follows ``pyflink.datastream.WindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    _call = "window"
    _window_function_types = (ProcessWindowFunction, WindowFunction)


class AllWindowedStream(_Windows[AllWindowFunction[Any, Any, Any], ProcessAllWindowFunction[Any, Any, Any]]):
    """A stream without keys, cut into windows that all rows share.

    The windows run in one partition, those of functions row by row. Parameters and errors of the calls are those of
    :class:`WindowedStream`, except that window functions are a :class:`ProcessAllWindowFunction` or an
    :class:`AllWindowFunction`; results have no key columns.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowedStream``.
    """

    _call = "window_all"
    _window_function_types = (ProcessAllWindowFunction, AllWindowFunction)

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(KeyedStream(stream, ()), window_assigner)
