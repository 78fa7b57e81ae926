"""Streams that are not keyed, cut into windows."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema
from flinkcore.common.time import Duration, Time
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ReduceFunction,
)
from flinkcore.datastream.functions.reduce_function import as_reduce_function
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.window import Evictor, Trigger, WindowAssigner
from flinkcore.datastream.windowed_stream import WindowedStream

SomeAllWindowFunction = AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any]


class _WindowsOfOneKey(WindowedStream):
    _window_function_types: ClassVar[tuple[type, ...]] = (ProcessAllWindowFunction, AllWindowFunction)


class AllWindowedStream:
    """A stream cut into windows that all rows share; they run in one partition, those of functions row by row.

    Parameters and errors of the calls are those of :class:`WindowedStream`, but for the window functions: they are a
    :class:`ProcessAllWindowFunction` or an :class:`AllWindowFunction`.

    Notes
    -----
    Follows ``pyflink.datastream.AllWindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._windows: WindowedStream = _WindowsOfOneKey(KeyedStream(stream, ()), window_assigner)

    def _of(self, windows: WindowedStream) -> "AllWindowedStream":
        changed = object.__new__(AllWindowedStream)
        changed._windows = windows
        return changed

    def trigger(self, trigger: Trigger[Any, Any]) -> "AllWindowedStream":
        """Return this with windows that fire when a trigger says so, instead of their own."""
        return self._of(self._windows.trigger(trigger))

    def evictor(self, evictor: Evictor[Any]) -> "AllWindowedStream":
        """Return this with windows that an evictor removes rows from when they fire."""
        return self._of(self._windows.evictor(evictor))

    def allowed_lateness(self, time_ms: int | Time | Duration) -> "AllWindowedStream":
        """Return this with windows that stay open for late rows."""
        return self._of(self._windows.allowed_lateness(time_ms))

    def side_output_late_data(self, output_tag: OutputTag) -> "AllWindowedStream":
        """Return this with rows that are too late for all their windows sent to a side output."""
        return self._of(self._windows.side_output_late_data(output_tag))

    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[Any, Any], Any],
        window_function: SomeAllWindowFunction | None = None,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return a stream with what the rows of a window are reduced to, at each firing."""
        return self._windows._of_functions(
            "reduce",
            as_reduce_function(reduce_function),
            window_function,
            output_type,
            side_outputs,
            timestamp_column,
        )

    def aggregate(
        self,
        aggregate_function: AggregateFunction[Any, Any, Any] | None = None,
        window_function: SomeAllWindowFunction | None = None,
        accumulator_type: Any = None,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
        **aggregates: Aggregate,
    ) -> DataStream:
        """Return a stream with aggregates of the rows of a window, at each firing.

        Aggregates of columns, such as ``n=count()``, run columnar; the results are as of
        :meth:`WindowedStream.aggregate`, without key columns.
        """
        windows: Any = self._windows
        result: DataStream = windows.aggregate(
            aggregate_function,
            window_function,
            accumulator_type,
            output_type,
            side_outputs=side_outputs,
            timestamp_column=timestamp_column,
            **aggregates,
        )
        return result

    def apply(
        self,
        window_function: AllWindowFunction[Any, Any, Any],
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of a window, at each firing."""
        return self._windows._of_functions(
            "apply", None, window_function, output_type, side_outputs, timestamp_column
        )

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[Any, Any, Any],
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of a window, at each firing."""
        return self._windows._of_functions(
            "process", None, process_window_function, output_type, side_outputs, timestamp_column
        )
