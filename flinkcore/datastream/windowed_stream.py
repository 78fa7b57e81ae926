"""Keyed streams cut into windows."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema, is_schema
from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.declared_type import declared_type, refuse_columns_of_outputs
from flinkcore.datastream.element_transformations import ElementWindowTransformation
from flinkcore.datastream.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from flinkcore.datastream.functions.reduce_function import as_reduce_function
from flinkcore.datastream.output_mode import ROW_KIND, OutputMode, require_output_mode
from flinkcore.datastream.transformations import (
    StreamGraph,
    WindowProcessTransformation,
    WindowTransformation,
)
from flinkcore.datastream.window import (
    Evictor,
    MergingWindowAssigner,
    Trigger,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.datastream.window.window_operation import AnyWindowFunction, PreAggregation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

WINDOW_RESULT_COLUMNS: Final = ("window_start", "window_end", "late_firing", "watermark")
"""Columns of every window result beside the keys and the aggregates."""


SomeWindowFunction = WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]


class WindowedStream:
    """A keyed stream cut into windows, to be aggregated.

    Notes
    -----
    Follows ``pyflink.datastream.WindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    _window_function_types: ClassVar[tuple[type, ...]] = (ProcessWindowFunction, WindowFunction)

    def __init__(self, stream: "KeyedStream", window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None
        self._output_mode = OutputMode.ACCUMULATING

    def _with(self, **settings: Any) -> "WindowedStream":
        changed = copy(self)
        for name, value in settings.items():
            setattr(changed, f"_{name}", value)
        return changed

    def get_execution_environment(self) -> "StreamExecutionEnvironment":
        """Return the environment that the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """Return the declared type of the elements."""
        return self._stream.get_type()

    def trigger(self, trigger: Trigger[Any, Any]) -> "WindowedStream":
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
        return self._with(trigger=trigger)

    def evictor(self, evictor: Evictor[Any]) -> "WindowedStream":
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
        return self._with(evictor=evictor)

    def allowed_lateness(self, time_ms: int | Time | Duration) -> "WindowedStream":
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
        return self._with(allowed_lateness_ms=lateness_ms)

    def side_output_late_data(self, output_tag: OutputTag) -> "WindowedStream":
        """Return this with rows that are too late for all their windows sent to a side output.

        Parameters
        ----------
        output_tag : OutputTag

        Raises
        ------
        ConfigurationError
            If it is not an output tag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(
                f"side_output_late_data takes an OutputTag, such as OutputTag('late'), not {output_tag!r}"
            )
        return self._with(late_tag=output_tag)

    def accumulating(self) -> "WindowedStream":
        """Return this with windows that give their whole result each time that they fire; they do by themselves."""
        return self._with(output_mode=OutputMode.ACCUMULATING)

    def retracting(self) -> "WindowedStream":
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
        return self._with(output_mode=OutputMode.RETRACTING)

    def delta(self) -> "WindowedStream":
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
        return self._with(output_mode=OutputMode.DELTA)

    @overload
    def aggregate(self, **aggregates: Aggregate) -> DataStream: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: SomeWindowFunction | None = None,
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
        window_function: SomeWindowFunction | None = None,
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
        window_function: WindowFunction[Any, Any, Any, Any],
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of a window, at each firing; as :meth:`process`."""
        return self._of_functions("apply", None, window_function, output_type, side_outputs, timestamp_column)

    def process(
        self,
        process_window_function: ProcessWindowFunction[Any, Any, Any, Any],
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
