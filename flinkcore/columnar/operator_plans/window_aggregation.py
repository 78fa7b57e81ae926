"""Aggregates over the windows of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final

import pyarrow as pa

from flinkcore._native.aggregates import Accumulators, are_shareable, inexact_merges
from flinkcore._native.window_operator import WindowKernel
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.aggregate_contents import CONTENTS
from flinkcore.columnar.operator_plans.native_windows import (
    WindowsByTime,
    slide_of,
    window_kernel,
    window_timestamps,
)
from flinkcore.columnar.operator_plans.operator_plan import (
    OperatorPlan,
    OperatorTables,
    OperatorWindows,
    bound_type,
    require_column,
)
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.columnar.operator_plans.window_contents import WindowContents, WindowTable, shown_beginning
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.columnar_windows import (
    ROW_KIND,
    WINDOW_RESULT_COLUMNS,
    columnar_trigger,
    require_columnar,
)
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.graph.transformations import WindowTransformation
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)

_OF_THE_ORDER: Final = frozenset(("first", "last", "collect", "min_by", "max_by"))

_WITH_BOUNDS: Final = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
    EventTimeSessionWindows,
)
"""Windows over columns that have a start and an end, which are null in results of others."""


@dataclass(frozen=True)
class WindowAggregation(OperatorPlan):
    """Aggregates over the windows of each key.

    Attributes
    ----------
    window : WindowAssigner
    allowed_lateness_ms : int
    late_tag : OutputTag or None
        Side output of rows that are late for all their windows, or None if they are counted and dropped.
    aggregates : tuple of (str, Aggregate)
        Output names and aggregates.
    trigger : Trigger or None
        Trigger of the windows, or None for their default one.
    output_mode : OutputMode
        Form of the result when a window fires again.
    evictor : Evictor or None
        Removes rows from windows when they fire, or None.
    savepoint_watermark_ms : int or None
        Watermark of the operator of Flink in whose savepoint the first windows are, each key of which has its own
        timer; None if they are in none.
    """

    window: WindowAssigner[Any, Any]
    allowed_lateness_ms: int
    late_tag: OutputTag | None
    aggregates: tuple[tuple[str, Aggregate], ...]
    trigger: Trigger[Any, Any] | None = None
    output_mode: OutputMode = OutputMode.ACCUMULATING
    evictor: Evictor[Any] | None = None
    savepoint_watermark_ms: int | None = None

    uid_prefix: ClassVar[str] = "window"
    takes_null_keys: ClassVar[bool] = True

    @classmethod
    def of(cls, step: WindowTransformation) -> WindowAggregation:
        # Before watermarks are asked for, which would not help windows of another kind.
        require_columnar(step.assigner, step.trigger, step.evictor)
        return cls(
            step.assigner,
            step.allowed_lateness_ms,
            step.late_tag,
            step.aggregates,
            step.trigger,
            step.output_mode,
            step.evictor,
        )

    @property
    def function_name(self) -> str:
        return "aggregate"

    @property
    def needs_event_time(self) -> bool:
        return self.window.is_event_time() or not self.fires_by_count

    @property
    def order_dependence(self) -> str | None:
        if not self.window.is_event_time():
            return "windows of another kind than event time"
        if self.trigger is not None or self.evictor is not None:
            return "triggers and evictors"
        if self.output_mode is not OutputMode.ACCUMULATING:
            return "windows that fire again"
        ordered = [str(aggregate) for _, aggregate in self.aggregates if aggregate.function in _OF_THE_ORDER]
        return f"the aggregate {ordered[0]}" if ordered else None

    @property
    def gives_firings(self) -> bool:
        return True

    @property
    def fires_by_count(self) -> bool:
        trigger = columnar_trigger(self.window, self.trigger)
        return trigger is not None and trigger.name == "count"

    @property
    def columns(self) -> frozenset[str]:
        read = [(aggregate.column, aggregate.by) for _, aggregate in self.aggregates]
        return frozenset(name for names in read for name in names if name is not None)

    def columns_read(self, events: pa.Schema, keys: Sequence[str]) -> list[str]:
        """Return the columns of rows that keys and aggregates read, in the order of the rows."""
        read = self.columns.union(keys)
        return [name for name in events.names if name in read]

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return (self.late_tag,)

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
        return WINDOW_RESULT_COLUMNS if not self.is_retracting else (*WINDOW_RESULT_COLUMNS, ROW_KIND)

    @property
    def is_retracting(self) -> bool:
        return self.output_mode is OutputMode.RETRACTING

    def never_null(self, key: str | None) -> frozenset[str]:
        counts = {name for name, aggregate in self.aggregates if aggregate.function == "count"}
        known = {"late_firing", "watermark", *counts}
        if isinstance(self.window, _WITH_BOUNDS):
            known.update(WINDOW_RESULT_COLUMNS)
        if self.is_retracting:
            known.add(ROW_KIND)
        return frozenset(known if key is None else {*known, key})

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """Keys, bounds of the window, aggregates, and the columns of the firing."""
        (events,) = inputs
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
        for name, aggregate in self.aggregates:
            for column in (aggregate.column, aggregate.by):
                if column is not None:
                    require_column(column, events, f"{name} = {aggregate}")
        self.native(events)  # refuses what it cannot run

    @property
    def has_windows(self) -> bool:
        return True

    @property
    def windows(self) -> OperatorWindows:
        return OperatorWindows(self.window, self.trigger, self.allowed_lateness_ms)

    @property
    def local_windows(self) -> LocalEventTimeWindows | None:
        return self.window if isinstance(self.window, LocalEventTimeWindows) else None

    def partial_windows(self, events: pa.Schema, key: KeyColumns) -> PartialWindows | str:
        if not key.names:
            return "events have no key"
        if self.least_watermark_ms != MIN_TIMESTAMP:
            return "windows begin with the watermark of a savepoint"
        kernel, accumulators = self.native(events)
        if not kernel.takes_partials or not isinstance(self.window, WindowsByTime):
            return "it is done for tumbling windows, and those that share slices, which fire at their end"
        inexact = inexact_merges(accumulators)
        if inexact:
            name, aggregate = self.aggregates[inexact[0]]
            return f"{name} = {aggregate} depends on every event's place in the order"
        return PartialWindows(self, events, key)

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables((TableKind.WINDOWS,), (TableKind.WINDOWS,))

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        elsewhere = {"late_tag", "aggregates", "savepoint_watermark_ms"}
        if self.evictor is None:
            elsewhere.add("evictor")
        own = tuple(each.name for each in fields(self) if each.name not in elsewhere)
        aggregates = ", ".join(
            f"{name} = {aggregate}"
            + "".join(
                f", {column}: {events.field(column).type}"
                for column in (aggregate.column, aggregate.by)
                if column
            )
            for name, aggregate in self.aggregates
        )
        return {
            "operator": "aggregates over windows",
            **shown_settings(self, own),
            "aggregates": aggregates,
            **shown_beginning(self.savepoint_watermark_ms),
            CONTENTS: self._contents(events).to_text(),
        }

    def beginning_with_savepoint(self, watermark_ms: int) -> WindowAggregation:
        return replace(self, savepoint_watermark_ms=watermark_ms)

    def window_table(self, inputs: Sequence[pa.Schema]) -> WindowTable:
        (events,) = inputs
        return WindowTable(self._contents(events), self.native(events)[0].name)

    def _contents(self, events: pa.Schema) -> WindowContents:
        trigger = columnar_trigger(self.window, self.trigger)
        size_ms = slide_ms = 0
        if isinstance(self.window, TumblingEventTimeWindows | SlidingEventTimeWindows):
            size_ms, slide_ms = self.window.size_ms, slide_of(self.window)
        return WindowContents(
            tuple((name, *aggregate.spec) for name, aggregate in self.aggregates),
            pa.schema([events.field(name) for name in events.names if name in self.columns]),
            size_ms,
            slide_ms,
            self.allowed_lateness_ms,
            "other" if trigger is None or self.evictor is not None else trigger.name,
            0 if trigger is None else trigger.every,
            trigger is not None and trigger.purges,
            isinstance(self.window, GlobalWindows),
            self.output_mode is not OutputMode.ACCUMULATING,
        )

    def native(self, events: pa.Schema) -> tuple[WindowKernel, Accumulators]:
        """Return native windows and accumulators for one operator over events with these columns."""
        accumulators = Accumulators(events, [aggregate.spec for _, aggregate in self.aggregates])
        return self._kernel(shareable=are_shareable(accumulators)), accumulators

    def _kernel(self, shareable: bool) -> WindowKernel:
        # A window that every firing empties holds just the difference to the firing before.
        return window_kernel(
            self.window,
            self.trigger,
            self.allowed_lateness_ms,
            self.evictor,
            shareable=shareable,
            purges=self.output_mode is OutputMode.DELTA,
            has_timers=self.savepoint_watermark_ms is not None,
        )


def given_key_type(key_type: pa.DataType) -> pa.DataType:
    """Return the type of a column of keys in results: of a struct, fields may be null that never are in the log."""
    if not pa.types.is_struct(key_type):
        return key_type
    return pa.struct([(field.name, given_key_type(field.type)) for field in key_type])
