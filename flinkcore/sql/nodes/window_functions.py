"""Window table functions: each row once for each of its windows, with the windows' columns.

Where only operators of windows read the rows, these assign them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.sql.expressions.casts import local_time
from flinkcore.sql.expressions.evaluation import column, integers, valid
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.expressions.time_arithmetic import per_milli
from flinkcore.sql.nodes.attached_windows import TableWindows, are_assigned_later
from flinkcore.sql.nodes.expansions import session_rows
from flinkcore.sql.nodes.rows import Program, Rows, unique_names
from flinkcore.sql.nodes.windows import window_of, zone_of
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


@dataclass(frozen=True, eq=False)
class WindowColumn(ColumnExpression):
    """A column of the window of a row; picklable.

    Attributes
    ----------
    rowtime : str
    given : LogicalType
        Type of the rowtime.
    window : WindowOfRow
    name : str
        "start", "end", "time", or "holds" for a condition: whether the row is in the window.
    type : LogicalType
    zone : str
    """

    rowtime: str
    given: LogicalType
    window: WindowOfRow
    name: str
    type: LogicalType
    zone: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.rowtime])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        array = batch.column(self.rowtime)
        times, is_valid = integers(array) // per_milli(self.given), valid(array)
        starts, ends = self.window.bounds(times)
        if self.name == "holds":
            return pa.array(is_valid & (ends > times))
        found = np.asarray({"start": starts, "end": ends, "time": ends - 1}[self.name])
        if self.given.root is Root.TIMESTAMP_LTZ and self.type.root is Root.TIMESTAMP:
            return local_time(column(found, is_valid, pa.timestamp("ms", "UTC")), self.zone).cast(
                self.type.arrow
            )
        return column(found * per_milli(self.type), is_valid, self.type.arrow)

    def __str__(self) -> str:
        window = self.window
        shape = f"{window.size_ms} ms, each {window.step_ms} ms from {window.offset_ms} ms"
        return f"{self.name} of the window of {self.rowtime}: {shape}, {window.earlier} before the last"


def window_table_function(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row once for each of its windows, with their start, end and time."""
    windowing = node.json["windowing"]
    found = window_of(program, node, windowing)
    assigner = found.assigner
    if isinstance(assigner, TumblingEventTimeWindows):
        shape = (assigner.size_ms, assigner.size_ms, assigner.offset_ms)
    elif isinstance(assigner, SlidingEventTimeWindows):
        shape = (assigner.size_ms, assigner.slide_ms, assigner.offset_ms)
    elif isinstance(assigner, CumulativeEventTimeWindows):
        shape = (assigner.size_ms, assigner.step_ms, assigner.offset_ms)
    else:
        return session_rows(
            program, node, rows, found, windowing["window"].get("partition_key_indices") or ()
        )
    bounds = dict(zip(range(len(rows.columns), len(node.fields)), _BOUNDS, strict=True))
    if are_assigned_later(node, bounds):
        rows.require_time(node, found.rowtime)
        columns = (*rows.columns, *unique_names(node)[-len(bounds) :])
        kinds = tuple(kind for _, kind in node.fields)
        return replace(rows, columns=columns, types=kinds, windows=TableWindows(found, bounds))
    return _spread(program, node, rows, shape, isinstance(assigner, CumulativeEventTimeWindows))


def _spread(
    program: Program, node: PlanNode, rows: Rows, shape: tuple[int, int, int], is_cumulate: bool
) -> Rows:
    """Return each row once for each of its windows of this size, step and offset in ms."""
    windowing = node.json["windowing"]
    rowtime, zone = windowing["timeAttributeIndex"], zone_of(program, node)
    names = unique_names(node)
    kinds = [kind for _, kind in node.fields]
    streams = []
    for earlier in range(-(-shape[0] // shape[1])):
        window = WindowOfRow(*shape, earlier, is_cumulate)

        def of_window(name: str, kind: LogicalType, window: WindowOfRow = window) -> WindowColumn:
            return WindowColumn(rows.columns[rowtime], rows.types[rowtime], window, name, kind, zone)

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
