"""Streams of single elements that are cut into windows, by key or as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, cast

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Interval, interval_ms
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
from flinkcore.datastream.graph.declared_type import declared_type, require_output_tag, with_settings
from flinkcore.datastream.graph.element_transformations import ElementWindowTransformation
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.stream import Stream
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

Keyed = TypeVar("Keyed", bound=Stream)
Applied = TypeVar("Applied", bound=AnyWindowFunction)
Processed = TypeVar("Processed", bound=AnyWindowFunction)
Windows = TypeVar("Windows", bound="WindowsOfStream[Any]")
Call = TypeVar("Call", bound=Callable[..., Any])


def _without_column_aggregates(aggregate: Call) -> Call:
    """Return a method of windows over single elements that refuses aggregates of columns."""

    @wraps(aggregate)
    def checked(windows: WindowsOfStream[Any], *given: Any, **named: Any) -> Any:
        if any(isinstance(each, Aggregate) for each in (*given, *named.values())):
            from flinkcore.datastream.wrong_calls import refuse_column_aggregates  # knows all streams

            refuse_column_aggregates(windows)
        return aggregate(windows, *given, **named)

    return cast("Call", checked)


class WindowsOfStream(Generic[Keyed]):
    """Windows over a stream, with what becomes of late elements."""

    _call: ClassVar[str]
    _window_function_types: ClassVar[tuple[type, ...]]

    def __init__(self, stream: Keyed, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._window_assigner = require_assigner(window_assigner, self._call)
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> NoReturn:
            from flinkcore.datastream.wrong_calls import refuse_call_of_windows  # knows all streams

            refuse_call_of_windows(self, name)

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

    def allowed_lateness(self: Windows, time_ms: Interval) -> Windows:
        """Return these windows with an allowed lateness, for which they stay open for late rows.

        Parameters
        ----------
        time_ms : Time, Duration, datetime.timedelta or int (ms)
            Not negative; a number is milliseconds. A late row fires its window again at once.

        Raises
        ------
        ConfigurationError
            If it is negative.
        """
        lateness_ms = interval_ms(time_ms, "allowed_lateness")
        if lateness_ms < 0:
            raise ConfigurationError(f"allowed_lateness cannot be negative, it is {lateness_ms} ms")
        return with_settings(self, allowed_lateness_ms=lateness_ms)

    def side_output_late_data(self: Windows, output_tag: OutputTag) -> Windows:
        """Return these windows with a side output for rows that are late for all their windows."""
        return with_settings(self, late_tag=require_output_tag(output_tag, "side_output_late_data"))

    def _operation(
        self, pre_aggregation: PreAggregation | None, window_function: AnyWindowFunction | None
    ) -> WindowOperation:
        """Return the windows with their functions; raise ArgumentTypeError for one of another class."""
        if (pre_aggregation is None or window_function is not None) and not isinstance(
            window_function, self._window_function_types
        ):
            names = " or a ".join(kind.__name__ for kind in self._window_function_types)
            raise ArgumentTypeError(f"the function over these windows is a {names}, not {window_function!r}")
        assigner = self._window_assigner
        trigger = assigner.get_default_trigger(self._stream._environment)
        return WindowOperation(
            assigner,
            trigger if self._trigger is None else self._trigger,
            self._evictor,
            self._allowed_lateness_ms,
            self._late_tag,
            pre_aggregation,
            window_function,
        )


class _Windowed(WindowsOfStream[KeyedStream], Generic[Applied, Processed]):
    """Windows over single elements, whose functions for `apply` and `process` are of these classes."""

    @_without_column_aggregates
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any],
        window_function: Applied | Processed | None = None,
        accumulator_type: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the result of an AggregateFunction at each firing of a window.

        Parameters
        ----------
        aggregate_function : AggregateFunction
            Called with each element.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Called with the result of the aggregate function; its results replace it.
        accumulator_type : TypeInformation, optional
            Accumulators are Python objects of any type; a savepoint for PyFlink has them in this one.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If a function is of another class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.WindowedStream.aggregate``. Aggregates of columns are those of windows over a log:
        :meth:`WindowedLogStream.aggregate`.
        """
        if not isinstance(aggregate_function, AggregateFunction):
            raise ArgumentTypeError(f"aggregate takes an AggregateFunction, not {aggregate_function!r}")
        return self._fired(
            self._operation(aggregate_function, window_function),
            output_type,
            declared_type(accumulator_type, "accumulator_type"),
        )

    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: Applied | Processed | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the reduction of the elements of a window, at each firing.

        Parameters
        ----------
        reduce_function : ReduceFunction or callable
            From two elements to one.
        window_function : ProcessWindowFunction or WindowFunction, optional
            Called with the reduced element; its results replace it.
        output_type : TypeInformation, optional
            Type of the results; without a window function, by default that of the elements.

        Raises
        ------
        ConfigurationError
            If a function is of another class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.WindowedStream.reduce``.
        """
        if output_type is None and window_function is None:
            output_type = self._stream._transformation.element_type
        return self._fired(self._operation(as_reduce_function(reduce_function), window_function), output_type)

    def apply(self, window_function: Applied, output_type: TypeInformation | None = None) -> DataStream:
        """Return the results of a WindowFunction for the elements of a window, at each firing; as :meth:`process`."""
        return self._fired(self._operation(None, window_function), output_type)

    def process(
        self, process_window_function: Processed, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Return the results of a function for the elements of a window, at each firing.

        Parameters
        ----------
        process_window_function : ProcessWindowFunction
            Every subtask works on a copy.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.WindowedStream.process``.
        """
        return self._fired(self._operation(None, process_window_function), output_type)

    def _fired(
        self,
        operation: WindowOperation,
        output_type: TypeInformation | None,
        accumulator_type: TypeInformation | None = None,
    ) -> DataStream:
        declared = declared_type(output_type)
        return self._stream._then(
            ElementWindowTransformation(self._stream._input(), operation, declared, accumulator_type)
        )


class WindowedStream(
    _Windowed[WindowFunction[Any, Any, Any, Any], ProcessWindowFunction[Any, Any, Any, Any]]
):
    """A keyed stream cut into windows, to be aggregated.

    Notes
    -----
    Follows ``pyflink.datastream.WindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    _call = "window"
    _window_function_types = (ProcessWindowFunction, WindowFunction)


class AllWindowedStream(_Windowed[AllWindowFunction[Any, Any, Any], ProcessAllWindowFunction[Any, Any, Any]]):
    """A stream without keys, cut into windows that all elements share.

    Parameters and errors of the calls are those of :class:`WindowedStream`, except that window functions are a
    :class:`ProcessAllWindowFunction` or an :class:`AllWindowFunction`.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowedStream``.
    """

    _call = "window_all"
    _window_function_types = (ProcessAllWindowFunction, AllWindowFunction)

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(KeyedStream(stream, ()), window_assigner)
