"""Window table functions: each row once for each of its windows, with the windows' columns.

Where only operators of windows read the rows, these assign them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.sql.expressions.casts import local_time
from flinkcore.sql.expressions.evaluation import column, integers, valid
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.expressions.time_arithmetic import per_milli
from flinkcore.sql.nodes.attached_windows import TableWindows, are_assigned_later
from flinkcore.sql.nodes.expansions import session_rows
from flinkcore.sql.nodes.rows import Program, Rows, unique_names
from flinkcore.sql.nodes.windows import SqlWindow, window_of, zone_of
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import LogicalType, Root

_BOUNDS: Final = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class WindowOfRow:
    """One of the windows of a row: the one that ends last, or one that ends earlier.

    Attributes
    ----------
    size_ms, step_ms, offset_ms : int
        Size of the windows, distance of their ends, and offset.
    earlier : int
        Number of steps by which it ends before the last window of the row.
    is_cumulate : bool
        Whether all windows of a row begin together.
    """

    size_ms: int
    step_ms: int
    offset_ms: int
    earlier: int
    is_cumulate: bool

    def bounds(self, times_ms: Any) -> tuple[Any, Any]:
        """Return starts and ends in ms; the end is not after the time where a row has no such window."""
        if self.is_cumulate:
            starts = (times_ms - self.offset_ms) // self.size_ms * self.size_ms + self.offset_ms
            return starts, starts + self.size_ms - self.earlier * self.step_ms
        last = (times_ms - self.offset_ms) // self.step_ms * self.step_ms + self.offset_ms
        starts = last - self.earlier * self.step_ms
        return starts, starts + self.size_ms


def windows_of_row(
    assigner: TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows,
) -> list[WindowOfRow]:
    """Return the windows that a row may be in, the one that ends last first."""
    is_cumulate = isinstance(assigner, CumulativeEventTimeWindows)
    step_ms = assigner.size_ms
    if isinstance(assigner, CumulativeEventTimeWindows):
        step_ms = assigner.step_ms
    elif isinstance(assigner, SlidingEventTimeWindows):
        step_ms = assigner.slide_ms
    size_ms, offset_ms = assigner.size_ms, assigner.offset_ms
    return [
        WindowOfRow(size_ms, step_ms, offset_ms, earlier, is_cumulate)
        for earlier in range(-(-size_ms // step_ms))
    ]


@dataclass(frozen=True, eq=False)
class WindowMillis(ColumnExpression):
    """A bound of the window of a row in ms, or whether the row is in the window; picklable.

    Attributes
    ----------
    rowtime : str
    given : LogicalType
        Type of the rowtime.
    window : WindowOfRow
    name : str
        "start", "end", or "holds" for a condition: whether the row is in the window. Only then its bounds are right.
    """

    rowtime: str
    given: LogicalType
    window: WindowOfRow
    name: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.rowtime])

    def times(self, batch: pa.RecordBatch) -> Int64s:
        """Return the times in ms by which windows are cut."""
        return integers(batch.column(self.rowtime)) // per_milli(self.given)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        times = self.times(batch)
        starts, ends = self.window.bounds(times)
        if self.name == "holds":
            return pa.array(valid(batch.column(self.rowtime)) & (ends > times))
        return pa.array(starts if self.name == "start" else ends, pa.int64())

    def __str__(self) -> str:
        window = self.window
        shape = f"{window.size_ms} ms, each {window.step_ms} ms from {window.offset_ms} ms"
        return f"{self.name} of the window of {self.rowtime}: {shape}, {window.earlier} before the last"


@dataclass(frozen=True, eq=False)
class WindowColumn(WindowMillis):
    """A column of the window of a row; picklable.

    Attributes
    ----------
    name : str
        As of `WindowMillis`, or "time", the last ms of the window.
    type : LogicalType
    zone : str
    clock : LocalClock or None
        Clock by whose local times the windows are cut.
    """

    type: LogicalType
    zone: str
    clock: LocalClock | None = None

    def times(self, batch: pa.RecordBatch) -> Int64s:
        times = super().times(batch)
        return times if self.clock is None else self.clock.local(times)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        if self.name == "holds":
            return super().evaluate(batch)
        is_valid = valid(batch.column(self.rowtime))
        starts, ends = self.window.bounds(self.times(batch))
        found = np.asarray({"start": starts, "end": ends, "time": ends - 1}[self.name])
        if self.clock is not None:
            found = self.clock.first_instants(found) if self.type.root is Root.TIMESTAMP_LTZ else found
            return column(found * per_milli(self.type), is_valid, self.type.arrow)
        if self.given.root is Root.TIMESTAMP_LTZ and self.type.root is Root.TIMESTAMP:
            return local_time(column(found, is_valid, pa.timestamp("ms", "UTC")), self.zone).cast(
                self.type.arrow
            )
        return column(found * per_milli(self.type), is_valid, self.type.arrow)


def window_table_function(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row once for each of its windows, with their start, end and time."""
    windowing = node.json["windowing"]
    found = window_of(program, node, windowing)
    assigner = found.assigner
    if not isinstance(
        assigner, TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
    ):
        return session_rows(
            program, node, rows, found, windowing["window"].get("partition_key_indices") or ()
        )
    bounds = dict(zip(range(len(rows.columns), len(node.fields)), _BOUNDS, strict=True))
    if are_assigned_later(node, bounds):
        rows.require_time(node, found.rowtime)
        columns = (*rows.columns, *unique_names(node)[-len(bounds) :])
        kinds = tuple(kind for _, kind in node.fields)
        return replace(rows, columns=columns, types=kinds, windows=TableWindows(found, bounds))
    return _spread(program, node, rows, found, windows_of_row(assigner))


def _spread(
    program: Program, node: PlanNode, rows: Rows, found: SqlWindow, windows: list[WindowOfRow]
) -> Rows:
    """Return each row once for each of these windows that it is in."""
    windowing = node.json["windowing"]
    rowtime, zone = windowing["timeAttributeIndex"], zone_of(program, node)
    names = unique_names(node)
    kinds = [kind for _, kind in node.fields]
    streams = []
    for window in windows:

        def of_window(name: str, kind: LogicalType, window: WindowOfRow = window) -> WindowColumn:
            return WindowColumn(
                rows.columns[rowtime], rows.types[rowtime], window, name, kind, zone, found.clock
            )

        columns: list[ColumnExpression] = [
            SqlExpression(rex, rows.columns, program.zone) for rex in rows.refs()
        ]
        columns += [
            of_window(name, kind) for name, kind in zip(("start", "end", "time"), kinds[-3:], strict=True)
        ]
        stream = rows.stream.filter(of_window("holds", LogicalType(Root.BOOLEAN)))
        streams.append(stream.select(*rows.carried, **dict(zip(names, columns, strict=True))))
    first, *others = streams
    stream = first.union(*others) if others else first
    return replace(rows, stream=stream, columns=names, types=tuple(kinds), of_windows=False)
