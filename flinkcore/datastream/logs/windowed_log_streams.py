"""Streams of event logs that are cut into windows, by key or as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, overload

from flinkcore._internal.arrow.schemas import Schema
from flinkcore.common.output_tag import OutputTag
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
from flinkcore.datastream.graph.columnar_windows import (
    ROW_KIND,
    WINDOW_RESULT_COLUMNS,
    require_output_mode,
)
from flinkcore.datastream.graph.declared_type import (
    declared_type,
    gives_elements,
    named_outputs,
    with_settings,
)
from flinkcore.datastream.graph.element_transformations import ElementWindowTransformation
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.graph.top_rows import Rank, require_dedup_arguments, top_step
from flinkcore.datastream.graph.transformations import (
    TopTransformation,
    WindowProcessTransformation,
    WindowTransformation,
)
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import WindowAssigner
from flinkcore.datastream.window.window_operation import AnyWindowFunction, PreAggregation
from flinkcore.datastream.windowed_streams import Applied, Processed, Windows, WindowsOfStream
from flinkcore.errors import ArgumentTypeError, ConfigurationError


class _WindowedLog(WindowsOfStream[KeyedLogStream], Generic[Applied, Processed]):
    """Windows over the rows of a log, whose functions for `apply` and `process` are of these classes."""

    def __init__(self, stream: KeyedLogStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(stream, window_assigner)
        self._output_mode = OutputMode.ACCUMULATING

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
    def aggregate(self, **aggregates: Aggregate) -> LogStream: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: Applied | Processed | None = None,
        accumulator_type: Any = None,
        *,
        output_type: Schema,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: Applied | Processed | None,
        accumulator_type: Any,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: Applied | Processed | None = None,
        accumulator_type: Any = None,
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
    ) -> LogStream | DataStream:
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
        LogStream
            With aggregates, the columns are: the keys, ``window_start`` and ``window_end`` (null for windows without
            bounds), the aggregates in the order given, ``late_firing`` (bool: a late row fired the window) and
            ``watermark`` (int64 ms: in force at the firing; 2**63 - 1 at the end of the log, -2**63 before the first
            watermark, which no timestamp can hold); for :meth:`retracting` windows also ``row_kind`` (string).

        Raises
        ------
        ConfigurationError
            If there is no aggregate, one is not an Aggregate, or its name is that of another output column; if both
            aggregates and a function are given; or if the windows cannot be retracting or delta.

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
                    f"aggregate({name}=...) belongs to an AggregateFunction. Give one"
                    f"{' instead of aggregates of columns' if aggregates else ''}; no column can be named so"
                )
        if not aggregates:
            raise ConfigurationError("aggregate needs at least one: aggregate(n=count())")
        keys = self._stream._key.names
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

    def top(
        self,
        n: int,
        by: str | Sequence[str],
        *,
        descending: bool | Sequence[bool] = True,
        nulls_last: bool | Sequence[bool] | None = None,
        rank: Rank = "row_number",
        rank_column: str | None = "rank",
        skip: int = 0,
    ) -> LogStream:
        """Return the highest rows of each window when the watermark has reached its end; late rows are dropped.

        Results have the columns of the rows, ``window_start``, ``window_end`` and the rank. A row of several windows is
        late if the last one has fired.

        Parameters
        ----------
        n, by, descending, nulls_last, rank, rank_column, skip
            As of :meth:`KeyedLogStream.top`.

        Raises
        ------
        ConfigurationError
            If an argument is another one, or the windows have a trigger, an evictor or allowed lateness.

        Notes
        -----
        Flink SQL's window Top-N (``WindowRankOperator``), and its window deduplication. Windows of event time whose
        bounds follow from the time of a row alone: tumbling, sliding, cumulative and local ones.

        Examples
        --------
        >>> bids.key_by("auction").window(TumblingEventTimeWindows.of(Time.minutes(1))).top(
        ...     3, by="price"
        ... )  # doctest: +SKIP
        """
        self._require_plain("top")
        return self._stream._then(
            top_step(
                self._stream._input(),
                n,
                by,
                descending=descending,
                nulls_last=nulls_last,
                rank=rank,
                rank_column=rank_column,
                skip=skip,
                window=self._window_assigner,
                late_to=self._late_tag,
            )
        )

    def deduplicate(
        self, keep: Literal["first", "last"] = "first", by: Literal["event_time", "arrival"] = "event_time"
    ) -> LogStream:
        """Return one row of each window when the watermark has reached its end.

        Late rows are dropped, or go to the side output of :meth:`side_output_late_data`.

        Results have the columns of the rows, ``window_start`` and ``window_end``.

        Parameters
        ----------
        keep, by : str
            As of :meth:`KeyedLogStream.deduplicate`.

        Raises
        ------
        ConfigurationError
            As of :meth:`top`.

        Notes
        -----
        Flink SQL's window deduplication (``RowTimeWindowDeduplicateOperator``): of several rows with the same event
        time, the first one to arrive is the first, and the last one the last.
        """
        self._require_plain("deduplicate")
        require_dedup_arguments(keep, by)
        return self._stream._then(
            TopTransformation(
                self._stream._input(),
                "deduplicate",
                1,
                by_time=by == "event_time",
                latest_first=keep == "last",
                window=self._window_assigner,
                late_tag=self._late_tag,
            )
        )

    def _require_plain(self, call: str) -> None:
        """Check that windows fire once, at their end, and raise a ConfigurationError if not."""
        settings = {
            "a trigger": self._trigger,
            "an evictor": self._evictor,
            "allowed lateness": self._allowed_lateness_ms or None,
            "an output mode": None if self._output_mode is OutputMode.ACCUMULATING else self._output_mode,
        }
        for what, value in settings.items():
            if value is not None:
                raise ConfigurationError(
                    f"{call} takes windows that fire once, when the watermark has reached their end, and these have "
                    f"{what}: leave it out"
                )

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: None = None,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: Applied | Processed,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: Applied | Processed,
    ) -> DataStream: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: Applied | Processed | None = None,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return a stream with the reduction of the rows of a window, at each firing; it runs row by row.

        Parameters
        ----------
        reduce_function : ReduceFunction or callable
            From two rows to one, each a ``flinkcore.common.Row``.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Called with the reduced row; its results replace it.
        output_type : pyarrow.Schema, optional
            As of :meth:`process`; without a window function, by default the columns of the rows.
        side_outputs, timestamp_column
            As of :meth:`process`.

        Raises
        ------
        ConfigurationError
            If a function is of another class, or a type is not a schema.
        """
        return self._of_functions(
            "reduce",
            as_reduce_function(reduce_function),
            window_function,
            output_type,
            side_outputs,
            timestamp_column,
        )

    @overload
    def apply(
        self,
        window_function: Applied,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def apply(self, window_function: Applied) -> DataStream: ...

    def apply(
        self,
        window_function: Applied,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a WindowFunction for the rows of a window, at each firing; as :meth:`process`."""
        return self._of_functions("apply", None, window_function, output_type, side_outputs, timestamp_column)

    @overload
    def process(
        self,
        process_window_function: Processed,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def process(self, process_window_function: Processed) -> DataStream: ...

    def process(
        self,
        process_window_function: Processed,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a function for the rows of a window, at each firing; it runs row by row.

        Parameters
        ----------
        process_window_function : ProcessWindowFunction
            Rows are ``flinkcore.common.Row`` with the columns of the stream. Every subtask works on a copy.
        output_type : pyarrow.Schema, optional
            As of :meth:`KeyedLogStream.process`.
        side_outputs : sequence of OutputTag
            Side outputs of the function, as of :meth:`KeyedLogStream.process`. That of late rows is set by
            :meth:`side_output_late_data`; its rows are unchanged.
        timestamp_column : str, optional
            Name of an additional last column of results and of the function's side outputs, with the largest timestamp
            of the window; null for windows without end.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or a type is not a schema.

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
        output_type: Schema | None,
        side_outputs: Sequence[OutputTag],
        timestamp_column: str | None,
    ) -> LogStream | DataStream:
        if self._output_mode is not OutputMode.ACCUMULATING:
            raise ConfigurationError(
                f"{self._output_mode.value} windows are those of aggregates of columns, such as aggregate(n=count()); "
                "a function gives what it gives"
            )
        operation = self._operation(pre_aggregation, window_function)
        gives_rows = window_function is None and isinstance(pre_aggregation, ReduceFunction)
        if (output_type is not None or not gives_rows) and gives_elements(
            call, output_type, side_outputs, timestamp_column
        ):
            elements = self._stream.elements()
            return elements._then(
                ElementWindowTransformation(elements._input(), operation, declared_type(None))
            )
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


class WindowedLogStream(
    _WindowedLog[WindowFunction[Any, Any, Any, Any], ProcessWindowFunction[Any, Any, Any, Any]]
):
    """A keyed stream of a log cut into windows, to be aggregated; each call returns a new object.

    Notes
    -----
    The columnar counterpart of :class:`WindowedStream`.
    """

    _call = "window"
    _window_function_types = (ProcessWindowFunction, WindowFunction)


class AllWindowedLogStream(
    _WindowedLog[AllWindowFunction[Any, Any, Any], ProcessAllWindowFunction[Any, Any, Any]]
):
    """A stream of a log without keys, cut into windows that all rows share.

    The windows run in one partition, those of functions row by row. Parameters and errors of the calls are those of
    :class:`WindowedLogStream`, except that window functions are a :class:`ProcessAllWindowFunction` or an
    :class:`AllWindowFunction`; results have no key columns.

    Notes
    -----
    The columnar counterpart of :class:`AllWindowedStream`.
    """

    _call = "window_all"
    _window_function_types = (ProcessAllWindowFunction, AllWindowFunction)

    def __init__(self, stream: LogStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(KeyedLogStream(stream, KeyColumns()), window_assigner)
