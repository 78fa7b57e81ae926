"""What a plan says about operators: windows with aggregates, and user's functions over one stream or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX, Columns
from flinkcore._native.aggregates import Accumulators, are_shareable
from flinkcore._native.window_operator import WindowKernel
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.native_windows import window_kernel, window_timestamps
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.functions import KeyedBatchProcessFunction, KeyedProcessFunction
from flinkcore.datastream.graph.columnar_windows import ROW_KIND, WINDOW_RESULT_COLUMNS, columnar_trigger
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    Evictor,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.errors import ConfigurationError, SchemaError

if TYPE_CHECKING:
    from flinkcore.datastream.graph.transformations import TwoInputFunction


_WITH_BOUNDS = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
)
"""Windows over columns that have a start and an end, which are null in results of others."""


@dataclass(frozen=True)
class WindowAggregation:
    """Aggregates over the windows of each key.

    Attributes
    ----------
    window : WindowAssigner
    allowed_lateness_ms : int
    late_tag : OutputTag or None
        Where rows go that are late for all their windows; None: counted and dropped.
    aggregates : tuple of (str, Aggregate)
        Output names and aggregates.
    trigger : Trigger or None
        None: the one that the windows have by themselves.
    output_mode : OutputMode
        What a window gives when it fires again.
    evictor : Evictor or None
        What removes rows from windows when they fire.
    """

    window: WindowAssigner[Any, Any]
    allowed_lateness_ms: int
    late_tag: OutputTag | None
    aggregates: tuple[tuple[str, Aggregate], ...]
    trigger: Trigger[Any, Any] | None = None
    output_mode: OutputMode = OutputMode.ACCUMULATING
    evictor: Evictor[Any] | None = None

    @property
    def needs_event_time(self) -> bool:
        """Whether there must be watermarks for a window to fire."""
        return self.window.is_event_time() or not self.fires_by_count

    @property
    def fires_by_count(self) -> bool:
        """Whether windows fire by the number of their rows, whatever the watermark is."""
        trigger = columnar_trigger(self.window, self.trigger)
        return trigger is not None and trigger.name == "count"

    @property
    def columns(self) -> Columns:
        """Columns that the aggregates read."""
        read = [(aggregate.column, aggregate.by) for _, aggregate in self.aggregates]
        return frozenset(name for names in read for name in names if name is not None)

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        """Where late rows go; None: they are dropped."""
        return (self.late_tag,)

    @property
    def side_outputs(self) -> tuple[OutputTag, ...]:
        """That of late rows, if there is one."""
        return () if self.late_tag is None else (self.late_tag,)

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Timestamps whose windows have bounds of 64 bits."""
        lowest, highest = window_timestamps(self.window)
        trigger = columnar_trigger(self.window, self.trigger)
        if trigger is not None and trigger.name == "continuous_event_time":
            lowest = max(
                lowest, MIN_TIMESTAMP + 1
            )  # from the one that stands for none on, it would fire without end
        return lowest, highest

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        """The windows' bounds, and the columns of the firing."""
        return WINDOW_RESULT_COLUMNS if not self.is_retracting else (*WINDOW_RESULT_COLUMNS, ROW_KIND)

    @property
    def is_retracting(self) -> bool:
        """Whether a window withdraws its result before it gives another one."""
        return self.output_mode is OutputMode.RETRACTING

    def never_null(self, keys: Sequence[str]) -> frozenset[str]:
        """A key of one column, the window, if it has bounds, its firing, and counts."""
        counts = {name for name, aggregate in self.aggregates if aggregate.function == "count"}
        known = {"late_firing", "watermark", *counts}
        if isinstance(self.window, _WITH_BOUNDS):
            known.update(WINDOW_RESULT_COLUMNS)
        if self.is_retracting:
            known.add(ROW_KIND)
        # A part of a composite key may be null.
        return frozenset(known.union(keys if len(keys) == 1 else ()))

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        """Late rows are as they came."""
        return events

    def result_schema(self, events: pa.Schema, keys: Sequence[str], time_type: pa.DataType) -> pa.Schema:
        """Keys, bounds of the window, aggregates, and the columns of the firing."""
        _, accumulators = self.native(events)
        bound = bound_type(time_type)
        names = [name for name, _ in self.aggregates]
        types = [pa.array(column).type for column in accumulators.take()]
        return pa.schema(
            [
                *(pa.field(key, given_key_type(events.field(key).type)) for key in keys),
                ("window_start", bound),
                ("window_end", bound),
                *zip(names, types, strict=True),
                ("late_firing", pa.bool_()),
                ("watermark", pa.int64()),
                *([(ROW_KIND, pa.string())] if self.is_retracting else []),
            ]
        )

    def check(self, events: pa.Schema) -> None:
        """Check that there are the columns that aggregates read, and native windows of this kind."""
        for name, aggregate in self.aggregates:
            for column in (aggregate.column, aggregate.by):
                if column is not None:
                    require_column(column, events, f"{name} = {aggregate}")
        self.native(events)  # refuses what it cannot run

    def native(self, events: pa.Schema) -> tuple[WindowKernel, Accumulators]:
        """Return native windows and accumulators for one operator over events with these columns."""
        accumulators = Accumulators(events, [aggregate.spec for _, aggregate in self.aggregates])
        return self._kernel(shareable=are_shareable(accumulators)), accumulators

    def _kernel(self, shareable: bool) -> WindowKernel:
        # What is left in a window that every firing empties is the difference.
        return window_kernel(
            self.window,
            self.trigger,
            self.allowed_lateness_ms,
            self.evictor,
            shareable=shareable,
            purges=self.output_mode is OutputMode.DELTA,
        )


class WholeRows:
    """What operators have in common that take rows as they are: all columns, at any time."""

    @property
    def needs_event_time(self) -> bool:
        """False: they can do without watermarks."""
        return False

    @property
    def columns(self) -> Columns:
        """All: what becomes of them is not known."""
        return None

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        """Where late elements go, of each stream if there are two; None: they are dropped."""
        return ()

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """All timestamps."""
        return MIN_TIMESTAMP, MAX_TIMESTAMP

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        """None is known to be one."""
        return ()

    def never_null(self, keys: Sequence[str]) -> frozenset[str]:
        """None is known to be one."""
        return frozenset()


@dataclass(frozen=True)
class UserProcess(WholeRows):
    """A function called for each row.

    Attributes
    ----------
    function : object
        Every partition works on a copy.
    output_type : pyarrow.Schema
    tags : tuple of OutputTag
        Side outputs that are wanted, with their schemas.
    timestamp_column : str or None
        Column of all outputs for the timestamps of the records.
    """

    function: Any
    output_type: pa.Schema
    tags: tuple[OutputTag, ...] = ()
    timestamp_column: str | None = None

    @property
    def function_name(self) -> str:
        """The function's class, for messages."""
        return type(self.function).__qualname__

    @property
    def gives_windows(self) -> bool:
        """Whether results are of windows, whose ends are their timestamps."""
        return False

    @property
    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Those of late elements, if there are such, and those that are wanted."""
        return (*(tag for tag in self.late_tags if tag is not None), *self.tags)

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        """The schema of the tag, and the timestamps."""
        schema = next(tag.type_info for tag in self.tags if tag == output_tag)
        return self._with_timestamps(schema, time_type)

    def result_schema(self, events: pa.Schema, keys: Sequence[str], time_type: pa.DataType) -> pa.Schema:
        """The declared columns, and the timestamps."""
        return self._with_timestamps(self.output_type, time_type)

    def _with_timestamps(self, schema: pa.Schema, time_type: pa.DataType) -> pa.Schema:
        if self.timestamp_column is None:
            return schema
        return schema.append(pa.field(self.timestamp_column, bound_type(time_type)))

    def check(self, events: pa.Schema) -> None:
        """Check that there are columns to make rows of."""
        if not events.names:
            raise ConfigurationError("a function gets rows, but there is no column left: select some")


@dataclass(frozen=True)
class KeyedProcess(UserProcess):
    """A function called for the rows and the timers of each key."""

    function: KeyedProcessFunction


@dataclass(frozen=True)
class BatchProcess(UserProcess):
    """A function called for batches of rows and of timers of many keys."""

    function: KeyedBatchProcessFunction


@dataclass(frozen=True)
class Forward(WholeRows):
    """Rows as they come, at the end of a job that ends with a log or a union, and steps over columns."""

    @property
    def function_name(self) -> str:
        """What takes the rows, for messages."""
        return "the end of the job"

    @property
    def side_outputs(self) -> tuple[OutputTag, ...]:
        """None."""
        return ()

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        """Rows as they came; there is no such output."""
        return events

    def result_schema(self, events: pa.Schema, keys: Sequence[str], time_type: pa.DataType) -> pa.Schema:
        """The columns of the rows."""
        return events

    def check(self, events: pa.Schema) -> None:
        """Check that there are columns."""
        if not events.names:
            raise ConfigurationError("the rows of the job have no column: select some")


class OverWindows:
    """What functions over windows of one stream and of two have in common."""

    function: WindowOperation

    @property
    def function_name(self) -> str:
        """The class of the function that gives the results, for messages."""
        return self.function.function_names[-1]

    @property
    def gives_windows(self) -> bool:
        return True

    @property
    def needs_event_time(self) -> bool:
        """Whether the windows do."""
        return self.function.assigner.is_event_time()

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Timestamps whose windows have bounds of 64 bits, as far as the timestamp alone decides."""
        return window_timestamps(self.function.assigner)


@dataclass(frozen=True)
class WindowProcess(OverWindows, UserProcess):
    """Functions called for the rows of each key and window.

    Attributes
    ----------
    function : WindowOperation
    output_type : pyarrow.Schema or None
        None: that of the rows, until `of_rows` says which that is.
    """

    function: WindowOperation

    def of_rows(self, events: pa.Schema) -> WindowProcess:
        """Return this with the type of its results, where rows come with these columns."""
        return self if self.output_type is not None else replace(self, output_type=events)

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return (self.function.late_tag,)

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        if output_tag == self.function.late_tag:
            return events
        return super().side_output_schema(output_tag, events, time_type)


@dataclass(frozen=True)
class ConnectedProcess(UserProcess):
    """A function called for the rows of two streams.

    Attributes
    ----------
    function
        Every partition works on a copy.
    is_keyed : bool
        Whether the first stream, and unless it is broadcast the second, has a key; if not, there is one partition.
    broadcast_states : tuple of MapStateDescriptor or None
        Of a second stream that is broadcast; None: it is not.
    """

    function: TwoInputFunction
    is_keyed: bool = True
    broadcast_states: tuple[MapStateDescriptor[Any, Any], ...] | None = None

    @property
    def unites_inputs(self) -> bool:
        """Whether the watermark is that of a union of both streams, and not that of an operator with two inputs."""
        return False

    @property
    def is_broadcast(self) -> bool:
        """Whether all rows of the second stream go to every partition."""
        return self.broadcast_states is not None


@dataclass(frozen=True)
class IntervalJoinProcess(ConnectedProcess):
    """A function called for the pairs of rows of a key whose timestamps are close.

    Attributes
    ----------
    function : IntervalJoinOperation
    """

    function: IntervalJoinOperation

    @property
    def function_name(self) -> str:
        return type(self.function.function).__qualname__

    @property
    def needs_event_time(self) -> bool:
        """True: without watermarks, everything would wait until the end."""
        return True

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return self.function.left_late_tag, self.function.right_late_tag

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """All but the one that stands for none."""
        return MIN_TIMESTAMP + 1, MAX_TIMESTAMP

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        if output_tag in self.late_tags:
            return ConnectedInputs.own_schema(self.late_tags.index(output_tag), events)
        return super().side_output_schema(output_tag, events, time_type)


@dataclass(frozen=True)
class WindowJoinProcess(OverWindows, ConnectedProcess):
    """A function called for what two streams have in each window of a key.

    Attributes
    ----------
    function : WindowOperation
    """

    function: WindowOperation

    @property
    def unites_inputs(self) -> bool:
        return True


KeyedOperator: TypeAlias = WindowAggregation | UserProcess | Forward
"""What a stage does with the rows of each key; picklable.

All have what the planner asks for: `columns` are those of the events that it reads besides the keys (None: all);
`needs_event_time`: it cannot do without watermarks; `timestamp_range`: the lowest and the highest timestamp in ms, as
others make bad rows; `repeating_columns`: those of its results, besides the keys, that have few values for their rows;
`never_null`: those that no row of the results has null in, as far as their schema does not say it;
`side_outputs`, and the schemas of results and side outputs, where events come with these columns, keys and type of
time; `check` raises a SchemaError or ConfigurationError if it cannot run over events with these columns.
"""


def given_key_type(key_type: pa.DataType) -> pa.DataType:
    """Return the type of a column of keys in results: of a struct, fields may be null that never are in the log."""
    if not pa.types.is_struct(key_type):
        return key_type
    return pa.struct([(field.name, given_key_type(field.type)) for field in key_type])


def bound_type(time_type: pa.DataType) -> pa.DataType:
    """Return the type of timestamps in results, such as the bounds of windows: of ms, or int64 where times are so."""
    return pa.timestamp("ms", time_type.tz) if pa.types.is_timestamp(time_type) else pa.int64()


def require_column(column: str, schema: pa.Schema, what: str) -> None:
    """Check that there is a column.

    Raises
    ------
    SchemaError
        If not; names what wants it.
    """
    if column not in schema.names:
        known = ", ".join(name for name in schema.names if not name.startswith(HIDDEN_PREFIX))
        raise SchemaError(f"{what}: there is no column {column!r}; columns: {known or 'none'}")
