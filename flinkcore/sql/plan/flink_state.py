"""State of an operator of a compiled plan as Flink keeps it: its uid, keys and accumulators."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from flinkcore.errors import CheckpointError, UnsupportedOperationError
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import LogicalType, type_of

SETTING: Final = "state in Flink"
"""Name of the setting in the description of a job."""

VALUE: Final = "value"
"""The result of an aggregate, null if it has none."""
OR_ZERO: Final = "or zero"
"""The result of an aggregate, 0 if it has none."""
EXTREME: Final = "extreme"
"""The least or greatest float of two aggregates: the first value, if it is NaN, or else the extreme of the others."""
ZERO: Final = "zero"
"""The result of an aggregate, which is never null: 0 without values."""
COUNTED: Final = "counted"
"""The number of values of a sum from which values are taken back."""
RETRACTED_EXTREME: Final = "retracted extreme"
"""The least or greatest value of those that were not taken back, with their number; a view has them."""
DISTINCT: Final = "distinct"
"""The number of distinct values, which are in a view."""
ROWS: Final = "rows"
"""The number of rows of a key whose rows are taken back."""
PRESENT: Final = "present"
"""A count that Flink adds to know which windows are empty; here no window without rows is kept."""

TUMBLE, HOP, CUMULATE, SESSION = "tumble", "hop", "cumulate", "session"
"""Kinds of windows."""

Columns: TypeAlias = tuple[tuple[str, LogicalType], ...]
"""Names of columns with their types."""


class Layout(str, Enum):
    """Form in which Flink keeps the rows of an operator."""

    ACCUMULATORS = "accumulators"
    LAST_ROW = "last row"
    FIRST_ROW = "first row"
    EMITTED_KEY = "emitted key"
    TOP_OF_INSERTS = "top rows of inserts"
    TOP_ROW = "top row"
    TOP_OF_UPDATES = "top rows of updates"
    RANKED_ROWS = "ranked rows"
    PENDING_ROWS = "pending rows"
    FRAME_ROWS = "rows of frames"
    SORTED_ROWS = "sorted rows"
    WINDOW_TOP = "top rows of windows"
    WINDOW_ROW = "row of windows"
    WINDOW_JOIN = "window join"
    INTERVAL_JOIN = "interval join"
    REGULAR_JOIN = "regular join"


_TRANSFORMATIONS: Final = {"limit": "rank"}
"""Names that transformations have in uids, of nodes of another name."""


@dataclass(frozen=True)
class AccumulatorField:
    """A field of an accumulator.

    Attributes
    ----------
    role : str
        Way in which it is made of the aggregates: `VALUE`, `OR_ZERO`, `EXTREME`, `ZERO`, `COUNTED`, `DISTINCT`,
        `RETRACTED_EXTREME`, `ROWS` or `PRESENT`.
    type : LogicalType
    aggregates : tuple of str
        Names of native aggregates.
    """

    role: str
    type: LogicalType
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True)
class ValuesView:
    """A view of an accumulator: the values of an argument.

    Attributes
    ----------
    state : str
        Name of its state in Flink.
    type : LogicalType
    aggregates : tuple of str
        Names of the native aggregates that take them, each with a condition of its own.
    is_counted : bool
        Whether values are taken back, so that Flink counts them.
    extreme : str
        ``min`` or ``max`` of an aggregate that chooses among them; empty of distinct values.
    """

    state: str
    type: LogicalType
    aggregates: tuple[str, ...]
    is_counted: bool
    extreme: str = ""


@dataclass(frozen=True)
class StateWindows:
    """Windows of an operator by event time.

    Attributes
    ----------
    kind : str
        `TUMBLE`, `HOP`, `CUMULATE` or `SESSION`.
    size_ms, slide_ms, offset_ms : int
        0 for sessions; the slide is the step of windows that cumulate.
    by_window : bool
        Whether Flink keeps accumulators by window, of a legacy group window, and not by slice.
    """

    kind: str
    size_ms: int = 0
    slide_ms: int = 0
    offset_ms: int = 0
    by_window: bool = False


@dataclass(frozen=True)
class FlinkState:
    """State of an operator of a compiled plan, as Flink's operator of the same node keeps it.

    Attributes
    ----------
    uid : str
        Such as ``5_group-aggregate``: the default of ``table.exec.uid.format``.
    kind : str
        Kind of the node.
    node : str
        Number and description of the node, for messages.
    keys : tuple of (str, LogicalType)
        Columns of the key with their types.
    fields : tuple of AccumulatorField
        Fields of accumulators, of an aggregate.
    views : tuple of ValuesView
        Views of the accumulators.
    windows : StateWindows or None
        Windows of the accumulators or rows.
    layout : Layout
    inputs : tuple of tuple of (str, LogicalType)
        Columns of the rows that are kept, by input.
    bounds : tuple of tuple of (int, str)
        Columns of each input that are bounds of its windows: number and ``window_start``, ``window_end`` or
        ``window_time``.
    computed : tuple of (str, int, str)
        Columns that are computed for aggregates: name, number of the column or -1, and form of the values.
    rowtimes : tuple of int
        Number of the time attribute of each input, if it matters.
    order : tuple of (int, bool, bool)
        Columns that order rows, by number, whether descending, and whether nulls come last.
    unique_keys : tuple of (tuple of int or None)
        Columns by which Flink finds a row of each input, by number, or None if by all of them. Without columns a key
        has one row.
    last_rank : int
        Highest rank of rows that are kept.
    outer : tuple of bool
        Whether Flink counts the matches of the rows of each input, of a join.
    left_alone : bool
        Whether rows of the first input come out alone, of a join.
    nulls_equal : bool
        Whether keys with nulls match each other, of a join.
    constants : tuple of (str, LogicalType)
        Columns with the constants of the node, of OVER.
    frame_rows, frame_ms : int or None
        Rows or ms of a bounded frame, of OVER.
    only_read : str
        Reason why the state is read from a savepoint, and not written, or an empty text.
    refusal : str
        Reason why the state cannot be exchanged with Flink, or an empty text.
    """

    uid: str
    kind: str
    node: str
    keys: Columns = ()
    fields: tuple[AccumulatorField, ...] = ()
    views: tuple[ValuesView, ...] = ()
    windows: StateWindows | None = None
    layout: Layout = Layout.ACCUMULATORS
    inputs: tuple[Columns, ...] = ()
    bounds: tuple[tuple[tuple[int, str], ...], ...] = ()
    computed: tuple[tuple[str, int, str], ...] = ()
    rowtimes: tuple[int, ...] = ()
    order: tuple[tuple[int, bool, bool], ...] = ()
    unique_keys: tuple[tuple[int, ...] | None, ...] = ()
    last_rank: int = 0
    outer: tuple[bool, ...] = ()
    left_alone: bool = False
    nulls_equal: bool = False
    constants: Columns = ()
    frame_rows: int | None = None
    frame_ms: int | None = None
    only_read: str = ""
    refusal: str = ""

    @classmethod
    def of(cls, node: PlanNode, **content: Any) -> FlinkState:
        """Return the state of a node; `content` has the other attributes."""
        uid = f"{node.id}_{_TRANSFORMATIONS.get(node.kind, node.kind)}"
        return cls(uid, node.kind, f"node {node.id} of the plan, {node.description}", **content)

    @classmethod
    def refused(cls, node: PlanNode) -> FlinkState:
        """Return the state of a node of which no layout is known."""
        return cls.of(node, refusal=f"the state of {node.kind} is not exchanged with Flink")

    @classmethod
    def expiring(cls, node: PlanNode) -> FlinkState:
        """Return the state of a node that has a time to live."""
        return cls.of(node, refusal="state that expires is not exchanged with Flink")

    @property
    def has_accumulators(self) -> bool:
        """Return whether it has accumulators, maybe beside rows."""
        return self.layout in (Layout.ACCUMULATORS, Layout.PENDING_ROWS, Layout.FRAME_ROWS)

    @property
    def is_in_one_task(self) -> bool:
        """Return whether Flink gives the operator one key group: without a key, except interval joins and sorts."""
        return not self.keys and self.layout not in (Layout.INTERVAL_JOIN, Layout.SORTED_ROWS)

    @property
    def has_watermark(self) -> bool:
        """Return whether Flink's operator keeps the watermark by which it knows late rows."""
        windows = self.windows
        return windows is not None and not windows.by_window and self.layout is not Layout.WINDOW_JOIN

    def to_text(self) -> str:
        """Return the state as text for the description of a job."""
        fields = [(each.role, str(each.type), each.aggregates) for each in self.fields]
        inputs = [_written(columns) for columns in self.inputs]
        windows = None if self.windows is None else self.windows.__dict__
        content = {"keys": _written(self.keys), "inputs": inputs, "fields": fields, "windows": windows}
        content["constants"] = _written(self.constants)
        content["views"] = [{**each.__dict__, "type": str(each.type)} for each in self.views]
        return json.dumps({**self.__dict__, **content})

    @classmethod
    def of_text(cls, text: str) -> FlinkState:
        """Return the state that `to_text` wrote.

        Raises
        ------
        CheckpointError
            If it is not such a text.
        """
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or set(content) != set(cls.__dataclass_fields__):
                raise ValueError("it has other parts")
            content["layout"] = Layout(content["layout"])
            if content["windows"] is not None:
                content["windows"] = StateWindows(**content["windows"])
            content |= {name: _read(content[name]) for name in ("keys", "constants")}
            content["inputs"] = tuple(map(_read, content["inputs"]))
            content["fields"] = tuple(
                AccumulatorField(role, type_of(kind), tuple(names)) for role, kind, names in content["fields"]
            )
            content["views"] = tuple(
                ValuesView(**{**each, "type": type_of(each["type"]), "aggregates": tuple(each["aggregates"])})
                for each in content["views"]
            )
            content["bounds"] = tuple(tuple(map(tuple, each)) for each in content["bounds"])
            content |= {name: tuple(map(tuple, content[name])) for name in ("order", "computed")}
            content |= {name: tuple(content[name]) for name in ("rowtimes", "outer")}
            content["unique_keys"] = tuple(
                None if each is None else tuple(each) for each in content["unique_keys"]
            )
            return cls(**content)
        except (ValueError, TypeError, KeyError, UnsupportedOperationError) as failure:
            raise CheckpointError(
                f"the description of an operator of a plan, {text!r:.80}, is not one of this version of flinkcore: "
                f"{failure}. Run the job again from its log"
            ) from failure

    @classmethod
    def of_job(cls, job: Mapping[str, Any], uid: str) -> FlinkState | None:
        """Return the state of an operator from the description of its job, or None if it is not one of a plan."""
        text = job.get(f"{uid}: {SETTING}", job.get(SETTING))
        return None if text is None else cls.of_text(text)


def _written(columns: Columns) -> list[tuple[str, str, str | None]]:
    return [(column, str(kind), kind.time_attribute) for column, kind in columns]


def _read(columns: Sequence[tuple[str, str, str | None]]) -> Columns:
    return tuple(
        (column, replace(type_of(kind), time_attribute=attribute)) for column, kind, attribute in columns
    )
