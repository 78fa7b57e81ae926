"""OVER: aggregates of the rows before each row, positions of rows, and values of earlier rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.transformations import OverTransformation, Transformation
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.flink_states import over_state
from flinkcore.sql.nodes.group_aggregates import require_one_state
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.windows import is_range_of_processing_time
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import Literal, Rex, rex_of
from flinkcore.sql.plan.state_ttl import STATE_TTL
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, TEXTS, LogicalType, Root

_IN_PLACE_OF_NULL: Final[Mapping[Root, Any]] = {
    **dict.fromkeys((*INTEGERS, *FLOATS), -1),
    **dict.fromkeys(TEXTS, ""),
    Root.BOOLEAN: False,
}
"""Values that expressions of Flink read in place of nulls of LAG, if its default and so its type is not null."""

_POSITIONS: Final = ("ROW_NUMBER", "RANK", "DENSE_RANK")
"""Each is the number of rows up to a row: RANK and DENSE_RANK have no order in streams of Flink, and count all rows."""

_VERSION_OF_TIMERS: Final = 2
"""Version of unbounded OVER by rowtime with a timer for each timestamp, RowTimeUnboundedPrecedingOverFunctionV2."""

_COUNT: Final = AggregateCall("COUNT", (), -1, False, LogicalType(Root.BIGINT, False))


@dataclass(frozen=True)
class Frame:
    """A frame of each row, which ends with it.

    Attributes
    ----------
    rows, range_ms : int or None
        Rows or ms by which it goes back; with neither, it begins with the first row.
    unit : str
        "rows" or "range": rows of one time have one result.
    by : str
        "event_time" or "arrival".
    late_as_unbounded : bool
        Whether rows are late as those of unbounded frames.
    ttl_ms : int
        Time to live of a key's state, in ms; 0 if it never expires.
    expires_by_timer : bool
        Whether a timer clears the state.
    """

    rows: int | None
    range_ms: int | None
    unit: str
    by: str
    late_as_unbounded: bool = False
    ttl_ms: int = 0
    expires_by_timer: bool = False

    @classmethod
    def of(cls, node: PlanNode, spec: Mapping[str, Any], group: Mapping[str, Any], by: str) -> Frame:
        """Return the frame of a group of calls."""
        bound, is_rows = group["lowerBound"], group["isRows"]
        unit = "rows" if is_rows or by == "arrival" else "range"
        if bound["kind"] == "UNBOUNDED_PRECEDING":
            return cls(None, None, unit, by)
        if bound["kind"] != "BOUNDED_WINDOW" or not bound["isPreceding"]:
            raise node.refuse(
                "frames begin before the current row, in Flink, too",
                "Write ROWS BETWEEN 0 PRECEDING or RANGE BETWEEN INTERVAL '0' SECOND PRECEDING AND CURRENT ROW",
            )
        constant = rex_of(spec["constants"][bound["offset"]["inputIndex"] - spec["originalInputFields"]])
        assert isinstance(constant, Literal)
        back = int(constant.value)
        return cls(back, None, unit, by) if is_rows else cls(None, back, unit, by)

    @property
    def is_bounded(self) -> bool:
        """Return whether rows leave it."""
        return self.rows is not None or self.range_ms is not None

    def last_rows(self, n: int) -> Frame:
        """Return the last rows of this frame, which is unbounded."""
        return replace(self, rows=n - 1, late_as_unbounded=self.by == "event_time")

    def step(self, keyed: Transformation, aggregates: Mapping[str, Aggregate]) -> OverTransformation:
        """Return the step that adds aggregates of it to the rows of a stream by key."""
        return OverTransformation(
            keyed,
            self.rows,
            self.range_ms,
            self.unit,
            self.by,
            tuple(aggregates.items()),
            self.late_as_unbounded,
            ttl_ms=self.ttl_ms,
            expires_by_timer=self.expires_by_timer,
        )


@dataclass(frozen=True, eq=False)
class _Earlier(ColumnExpression):
    """The first value of a list that has a number of values, and otherwise a constant. Picklable."""

    column: str
    n_values: int
    default: Rex | None
    type: LogicalType
    in_place_of_null: Any = None

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.column])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        lists = batch.column(self.column)
        offsets = lists.offsets.to_numpy()
        is_full = np.diff(offsets) == self.n_values
        first = pa.array(offsets[:-1], mask=~is_full)
        found = pc.struct_field(lists.values, [0]).take(first).cast(self.type.with_nullable(True).arrow)
        if self.default is None:
            return found
        if self.in_place_of_null is not None:
            found = found.fill_null(pa.scalar(self.in_place_of_null).cast(found.type))
        constants = SqlExpression(self.default, (), "UTC").evaluate(batch).cast(found.type)
        return pc.if_else(pa.array(is_full), found, constants)

    def __str__(self) -> str:
        return f"the value {self.n_values - 1} rows before of {self.column}, or {self.default}"


@dataclass
class _Over:
    """The columns of a node while its operators are built.

    Each frame is an operator, which adds its aggregates to the rows of the one before.

    Attributes
    ----------
    program : Program
    node : PlanNode
    rows : Rows
        With the columns of the constants, and those that operators have added, after those of the input.
    """

    program: Program
    node: PlanNode
    rows: Rows

    def native(self, needed: str | None = None) -> NativeAggregates:
        """Return aggregates of the rows; functions of the user need a method."""
        return NativeAggregates(self.node, self.rows.columns, self.rows.types, is_running=True, needed=needed)

    def through(self, frame: Frame, native: NativeAggregates) -> Any:
        """Return the results of an operator over the rows."""
        partition = self.node.json["overSpec"]["partition"]["fields"]
        keyed = self.rows.keyed(partition, **native.arguments)
        return keyed._then(frame.step(keyed._input(), native.aggregates))

    def add(self, frame: Frame, call: AggregateCall, is_wrapped: bool = False) -> str:
        """Add the aggregate of a call, or the list of its values, as a column; return its name."""
        native = self.native()
        column: Any
        if is_wrapped:
            column = pc.field(native.wrapped(call))
        else:
            native.add(call)
            (column,) = native.results
        name = f"over#{self.node.id}-{len(self.rows.columns)}"
        stream = self.through(frame, native).select(*self.rows.columns, **{name: column})
        self.rows = replace(
            self.rows, stream=stream, columns=(*self.rows.columns, name), types=(*self.rows.types, call.type)
        )
        return name


def over_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row with aggregates of the rows before it."""
    rows.require_inserts(node, "Take rows that do not change, such as those of a table or a window aggregate")
    spec = node.json["overSpec"]
    (group,) = spec["groups"]
    fields = group["orderBy"]["fields"]
    if len(fields) != 1 or not fields[0]["isAscending"]:
        raise node.refuse("frames are ordered by a time, ascending", "Write ORDER BY the rowtime")
    order = fields[0]["index"]
    # Rows of a plan with a range of processing time have their arrival as timestamp.
    waits = rows.types[order].time_attribute != "PROCTIME" or is_range_of_processing_time(node)
    by = "event_time" if waits else "arrival"
    if by == "event_time":
        rows.require_time(node, order)
        if is_range_of_processing_time(node) and Frame.of(node, spec, group, by).range_ms == 0:
            raise node.refuse(
                "Flink forgets the rows of a range of no processing time before it emits them, and returns none",
                "Write INTERVAL '0.001' SECOND PRECEDING, or ROWS",
            )
    if group["upperBound"]["kind"] != "CURRENT_ROW":
        raise node.refuse("frames end with the current row", "Write AND CURRENT ROW")
    constants = [program.rex(node, each) for each in spec["constants"]]
    over = _Over(program, node, _with_constants(program, node, rows, constants))
    calls = [AggregateCall.of(written, program.functions) for written in group["aggCalls"]]
    frame = _expiring(program, node, Frame.of(node, spec, group, by), calls)
    for call in calls:
        if frame.ttl_ms and not frame.expires_by_timer:
            require_one_state(node, call, withdraws=False, is_of_frames=True)
        if call.function is not None and call.function.columns and not frame.is_bounded:
            raise node.refuse(
                f"the function {call.function.name} is vectorized, and Flink calls those for bounded frames alone",
                "Write an AggregateFunction with an accumulator, or ROWS BETWEEN ... PRECEDING AND CURRENT ROW",
            )
    earlier = {
        number: _earlier(over, call, frame, constants, len(rows.columns))
        for number, call in enumerate(calls)
        if call.name == "LAG"
    }
    native = over.native("retract" if frame.is_bounded else None)
    for number, call in enumerate(calls):
        if number not in earlier:
            native.add(replace(_COUNT, type=call.type) if call.name in _POSITIONS else call)
    results = iter(native.results)
    columns: list[Any] = [pc.field(name) for name in rows.columns]
    columns += [earlier[number] if number in earlier else next(results) for number in range(len(calls))]
    if not native.aggregates:
        native.add(_COUNT)  # for the rows alone
    size = None if frame.rows is None else frame.rows + 1
    n = len(rows.columns)
    added = zip(over.rows.columns[n : n + len(constants)], (each.type for each in constants), strict=True)
    state = over_state(node, rows, native, calls, tuple(added), size, frame.range_ms)
    return program.of_operator(node, over.through(frame, native), columns, times=rows.times, state=state)


def _expiring(program: Program, node: PlanNode, frame: Frame, calls: Sequence[AggregateCall]) -> Frame:
    """Return a frame whose keys expire as the setting says: not a range of time, whose rows leave by themselves."""
    (ttl_ms,) = program.ttls(node)
    by_timer = frame.is_bounded or frame.by == "event_time"
    # KeyedProcessFunctionWithCleanupState sets no timer for a time to live of 1 ms.
    if not ttl_ms or frame.range_ms is not None or (by_timer and ttl_ms == 1):
        return frame
    if frame.by == "event_time":
        expiring = f"its state expires ({STATE_TTL.key()})"
        if not frame.is_bounded and node.json.get("unboundedOverVersion", 1) != _VERSION_OF_TIMERS:
            raise node.refuse(
                f"{expiring}, which is supported for plans with table.exec.unbounded-over.version = 2",
                "Compile the plan with that setting, or run it without the time to live",
            )
        if any(call.name == "LAG" for call in calls):
            raise node.refuse(
                f"{expiring}, which is not supported for LAG by a rowtime", "Run the plan without the setting"
            )
    return replace(frame, ttl_ms=ttl_ms, expires_by_timer=by_timer)


def _with_constants(program: Program, node: PlanNode, rows: Rows, constants: Sequence[Rex]) -> Rows:
    """Return rows with a column for each constant, after their own."""
    if not constants:
        return rows
    names = [f"constant#{node.id}-{number}" for number in range(len(constants))]
    added = {
        name: SqlExpression(constant, rows.columns, program.zone)
        for name, constant in zip(names, constants, strict=True)
    }
    return replace(
        rows,
        stream=rows.stream.select(*rows.columns, **added),
        columns=(*rows.columns, *names),
        types=(*rows.types, *(constant.type for constant in constants)),
        has_emitted_at=False,
    )


def _earlier(
    over: _Over, call: AggregateCall, frame: Frame, constants: Sequence[Rex], n_columns: int
) -> ColumnExpression:
    """Return the value of LAG: the first one of a frame of as many rows, which is a list."""
    value, *rest = call.arguments
    offset = 1
    given = [constants[number - n_columns] if number >= n_columns else None for number in rest]
    if given:
        if not isinstance(given[0], Literal):
            raise over.node.refuse("LAG by a column is not supported", "Write a number of rows")
        offset = int(given[0].value)
    if len(given) > 1 and given[1] is None:
        raise over.node.refuse("LAG with a column as default is not supported", "Write COALESCE after it")
    if offset < 0:
        raise over.node.refuse(f"LAG by {offset} rows is not supported", "Write a number of rows before")
    column = over.add(frame.last_rows(offset + 1), replace(call, arguments=(value,)), is_wrapped=True)
    in_place_of_null = None
    if not call.type.nullable and any(reader.kind == "calc" for reader in over.node.readers):
        in_place_of_null = _IN_PLACE_OF_NULL.get(call.type.root)
    default = given[1] if len(given) > 1 else None
    return _Earlier(column, offset + 1, default, call.type, in_place_of_null)
