"""The rows of a node while a program is built: a stream whose columns have names of their own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow.compute as pc

from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.transformations import (
    DeduplicateTransformation,
    GroupAggregateTransformation,
    TopTransformation,
)
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ConfigurationError
from flinkcore.sql.expressions.functions import refusal_of
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.expressions.user_functions import UserFunctions
from flinkcore.sql.plan.column_names import NO_COLUMN, plain_name
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.flink_state import FlinkState
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall, rex_of
from flinkcore.sql.plan.state_ttl import ttls_of
from flinkcore.sql.types.logical_types import TIMESTAMPS, LogicalType, Root

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
    from flinkcore.sql.nodes.attached_windows import TableWindows

EMITTED_AT = "emitted at"
"""Column of the rows of operators for the time at which they were emitted, where the program asks for it."""

ARRIVAL: Final = "arrival#"
"""Column of the rows of logs for their arrival, where the program asks for it: their processing time."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a node.

    Attributes
    ----------
    stream : LogStream
    columns : tuple of str
        Names of its columns in the stream, by number: unique, and none of the log's or of an operator's results.
    types : tuple of LogicalType
        Their types.
    has_emitted_at : bool
        Whether the stream also has the column `EMITTED_AT`.
    of_windows : bool
        Whether they are results of windows, whose timestamp is the last millisecond of their window.
    changes : frozenset of str
        Kinds of changes beside ``+I`` that there may be; with any, the stream has the column ``row_kind``.
    times : frozenset of int
        Numbers of the columns that hold the timestamp of their row.
    windows : TableWindows or None
        Windows of a table function to which the rows belong; the columns of their bounds are not in the stream.
    has_arrival : bool
        Whether the stream also has the column `ARRIVAL`.
    arrivals : frozenset of int
        Numbers of the columns that hold the arrival of their row.
    """

    stream: LogStream
    columns: tuple[str, ...]
    types: tuple[LogicalType, ...]
    has_emitted_at: bool = False
    of_windows: bool = False
    changes: frozenset[str] = frozenset()
    times: frozenset[int] = frozenset()
    windows: TableWindows | None = None
    has_arrival: bool = False
    arrivals: frozenset[int] = frozenset()

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns beside those of the node that steps keep."""
        present = ((ROW_KIND, self.changes), (EMITTED_AT, self.has_emitted_at), (ARRIVAL, self.has_arrival))
        return tuple(name for name, is_present in present if is_present)

    @property
    def own_columns(self) -> list[str]:
        """Columns of the node that are in the stream, or the one that rows without columns have."""
        bounds = () if self.windows is None else self.windows.bounds
        return [name for number, name in enumerate(self.columns) if number not in bounds] or [NO_COLUMN]

    def require_inserts(self, node: PlanNode, instead: str) -> None:
        """Raise UnsupportedOperationError if a node that takes only new rows gets changes."""
        if self.changes:
            kinds = ", ".join(sorted(self.changes))
            raise node.refuse(f"its input has rows that are changed or withdrawn ({kinds})", instead)

    def require_time(self, node: PlanNode, number: int) -> None:
        """Raise UnsupportedOperationError if a column that a node takes as time is not the timestamp of the rows."""
        if number not in self.times:
            raise node.refuse(
                f"its time is the column {plain_name(self.columns[number])!r}, and rows of the step before have "
                "another timestamp",
                "Take the later one of two rowtimes, or write the step before into a table of its own",
            )

    def keyed(self, numbers: Sequence[int], **computed: Any) -> KeyedLogStream:
        """Return the stream by key, with the columns of the node and computed ones."""
        keys = list(dict.fromkeys(self.columns[number] for number in numbers))
        kinds = (ROW_KIND,) if self.changes else ()
        return by_key(self.stream.select(*self.own_columns, *kinds, **computed), keys)

    def refs(self) -> list[Rex]:
        """Return expressions that are the columns themselves."""
        return [InputRef(number, kind) for number, kind in enumerate(self.types)]


def by_key(stream: LogStream, keys: Sequence[str]) -> KeyedLogStream:
    """Return a stream by columns in which null is a key like others; without any, all rows have the same key."""
    return stream.key_by(*keys, null_keys=True) if keys else KeyedLogStream(stream, KeyColumns())


@dataclass(eq=False)
class Tables:
    """The logs that stand for tables.

    Attributes
    ----------
    logs : mapping of str to log
        By the name of the table, or its identifier.
    arrivals : mapping of str to str
        Columns with the arrivals of logs that are paths, by name of the table.
    reads_paths : bool
        Whether the path of a table of the connector ``filesystem`` is its log, where none is given.
    asked : dict of str to bool
        Names of the tables that plans have read, and whether a log was given.
    """

    logs: Mapping[str, Any]
    arrivals: Mapping[str, str] = field(default_factory=dict)
    reads_paths: bool = False
    asked: dict[str, bool] = field(default_factory=dict)

    def log_of(self, names: Sequence[str], options: Mapping[str, str]) -> Any:
        """Return the log of a table, by its names and the options of its connector, or None."""
        for name in names:
            if name in self.logs:
                self.asked[name] = True
                return self.logs[name]
        self.asked[names[0]] = False
        return options.get("path") if self.reads_paths and options.get("connector") == "filesystem" else None

    def check_read(self) -> None:
        """Raise ConfigurationError if a log was given for a table that no plan has read."""
        for name in self.logs:
            if not self.asked.get(name):
                known = ", ".join(self.asked) or "none"
                raise ConfigurationError(
                    f"a log is given for the table {name}, which is not read; read are {known}. Name one of these"
                )


_OFFSET: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")


def zone_named(zone: str) -> str:
    """Return the name by which Python and Arrow know a time zone of Flink's setting, such as ``GMT-08:00``.

    Raises
    ------
    ConfigurationError
        If it is not known, or is an offset with minutes, or one that no place on Earth has.
    """
    match = _OFFSET.fullmatch(zone)
    if match is None:
        try:
            return ZoneInfo(zone).key
        except (ZoneInfoNotFoundError, ValueError):
            raise ConfigurationError(
                f"table.local-time-zone={zone} is not a known time zone. Give the name of a region, such as "
                "Europe/Berlin, or an offset such as GMT-08:00"
            ) from None
    hours = int(match[1] + match[2])
    if int(match[3] or 0) or not -12 <= hours <= 14:
        raise ConfigurationError(
            f"table.local-time-zone={zone} is not supported: offsets are whole hours from GMT-12:00 to GMT+14:00. "
            "Give the name of a region, such as Asia/Kolkata"
        )
    return f"Etc/GMT{-hours:+}" if hours else "UTC"  # names of Etc have the sign of POSIX


def zone_of(settings: Mapping[str, str]) -> str:
    """Return the time zone of a session with such settings; errors are those of `zone_named`."""
    zone = settings.get("table.local-time-zone", "UTC")
    return "UTC" if zone == "default" else zone_named(zone)


_OF_CHANGES: Final = (DeduplicateTransformation, GroupAggregateTransformation, TopTransformation)
"""Steps that leave ``-U`` out by themselves, before they gather the rows of their results."""


@dataclass(eq=False)
class Program:
    """A program while it is built from a plan.

    Attributes
    ----------
    environment : StreamExecutionEnvironment
    tables : Tables
    settings : mapping of str to str
        Settings of Flink SQL that are not in the plan.
    emitted_at : str or None
        Column of the results for the time at which they were emitted.
    has_event_time : bool
        Whether an operator of the plan needs watermarks.
    by_arrival : bool
        Whether the time of the plan's windows is the processing time: rows then have their arrival as timestamp.
    reads_arrivals : bool
        Whether rows of logs need the column `ARRIVAL`.
    functions : UserFunctions
        Functions of the user.
    expires : bool
        Whether state of a node has a time to live, by the arrivals of rows.
    has_one_clock : bool
        Whether logs without rows follow the processing time of the others.
    """

    environment: StreamExecutionEnvironment
    tables: Tables
    settings: Mapping[str, str] = field(default_factory=dict)
    emitted_at: str | None = None
    has_event_time: bool = True
    by_arrival: bool = False
    reads_arrivals: bool = False
    functions: UserFunctions = field(default_factory=lambda: UserFunctions(None))
    expires: bool = False
    has_one_clock: bool = False

    def ttls(self, node: PlanNode) -> tuple[int, ...]:
        """Return the times to live of a node's states, in ms; 0 for none."""
        return ttls_of(node, self.settings)

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        return zone_of(self.settings)

    def rex(self, node: PlanNode, written: Mapping[str, Any], rows: Rows | None = None) -> Rex:
        """Return an expression of a node that runs; raise UnsupportedOperationError for any other.

        Parameters
        ----------
        node : PlanNode
        written : mapping
            As the plan writes it.
        rows : Rows, optional
            Rows of a calc, whose expressions may be the processing time.
        """
        found = self.functions.bind(rex_of(written))
        if rows is not None:
            found = _with_arrivals(node, found, rows)
        reason = refusal_of(found)
        if reason is not None:
            raise node.refuse(reason)
        return found

    def project(
        self,
        rows: Rows,
        node: PlanNode,
        projection: Sequence[Rex],
        condition: Rex | None = None,
    ) -> Rows:
        """Return rows with the columns of a node, computed from those of its input.

        Parameters
        ----------
        rows : Rows
        node : PlanNode
            Names and types of the columns are those of its output.
        projection : sequence of Rex
        condition : Rex, optional
            Only rows for which it is true are kept, before the columns are computed.
        """
        stream, zone, windows = rows.stream, self.zone, rows.windows
        read = (*rows.columns, ARRIVAL) if rows.has_arrival else rows.columns
        arrivals = rows.arrivals | ({len(rows.columns)} if rows.has_arrival else set())
        times = rows.times | (arrivals if self.by_arrival else frozenset())
        passed = {number: rex.index for number, rex in enumerate(projection) if isinstance(rex, InputRef)}
        if windows is not None:
            windows = windows.projected(passed)
        if condition is not None:
            stream = stream.filter(SqlExpression(condition, read, zone))
        names = unique_names(node)
        expressions: dict[str, Any] = {
            name: SqlExpression(rex, read, zone)
            for number, (name, rex) in enumerate(zip(names, projection, strict=True))
            if windows is None or number not in windows.bounds
        }
        if not expressions:
            expressions[NO_COLUMN] = pc.scalar(0)
        return replace(
            rows,
            stream=stream.select(*rows.carried, **expressions),
            columns=names,
            types=tuple(kind for _, kind in node.fields),
            times=frozenset(number for number, rex in enumerate(projection) if _is_time(rex, times)),
            windows=windows,
            arrivals=frozenset(number for number, rex in enumerate(projection) if _is_time(rex, arrivals)),
        )

    def of_operator(
        self,
        node: PlanNode,
        stream: LogStream,
        expressions: Sequence[Any],
        *,
        times: Collection[int] = (),
        of_windows: bool = False,
        changes: Collection[str] = (),
        only: Any = None,
        state: FlinkState | None = None,
    ) -> Rows:
        """Return the rows of an operator, with the columns of its node.

        Parameters
        ----------
        node : PlanNode
        stream : LogStream
            The operator's results.
        expressions : sequence of expressions
            The columns of the node, from those of the results.
        times, of_windows, changes
            As of `Rows`. If there are changes, the results have the column ``row_kind``; ``-U`` are left out if the
            node has none.
        only : expression, optional
            Condition on the operator's results.
        state : FlinkState, optional
            State of Flink's operator, if it can be exchanged.
        """
        if state is not None and any(self.ttls(node)):
            state = FlinkState.expiring(node)
        stream._transformation.settings.flink_state = (state or FlinkState.refused(node)).to_text()
        kinds = frozenset(changes)
        without_update_before = "-U" in kinds and not node.json.get("generateUpdateBefore", True)
        if without_update_before:
            kinds -= {"-U"}
            if isinstance(stream._transformation, _OF_CHANGES):
                stream._transformation.settings.update_before = without_update_before = False
        names = unique_names(node)
        if self.emitted_at is not None:
            stream = stream.with_emitted_at(EMITTED_AT)
        if only is not None:
            stream = stream.filter(only)
        if without_update_before:
            stream = stream.filter(pc.field(ROW_KIND) != "-U")
        rows = Rows(
            stream,
            names,
            tuple(kind for _, kind in node.fields),
            self.emitted_at is not None,
            of_windows,
            kinds,
            frozenset(times),
        )
        selected = stream.select(*rows.carried, **dict(zip(names, expressions, strict=True)))
        return replace(rows, stream=selected)


OF_ARRIVALS: Final = (
    *(
        "CURRENT_DATE",
        "CURRENT_ROW_TIMESTAMP",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "LOCALTIME",
        "LOCALTIMESTAMP",
    ),
    *("NOW", "PROCTIME"),
)
"""Functions of the clock, which Flink's streams compute for each row: where nothing comes before, its arrival."""

_INSTANT: Final = LogicalType(Root.TIMESTAMP_LTZ, precision=3)


def _with_arrivals(node: PlanNode, rex: Rex, rows: Rows) -> Rex:
    """Return an expression that reads processing times as columns; null, if nothing reads them but operators."""
    if isinstance(rex, Literal):
        return rex
    kind = replace(rex.type, time_attribute=None)
    if isinstance(rex, InputRef):
        return InputRef(rex.index, kind) if rex.type.time_attribute == "PROCTIME" else rex
    if rex.name == "PROCTIME":
        if rows.has_arrival:
            return InputRef(len(rows.columns), kind)
        return Literal(None, kind.with_nullable(True))
    if rex.name in OF_ARRIVALS and rows.has_arrival:
        arrival = InputRef(len(rows.columns), _INSTANT)
        return arrival if kind.root is Root.TIMESTAMP_LTZ else RexCall("CAST", (arrival,), kind)
    operands = tuple(_with_arrivals(node, each, rows) for each in rex.operands)
    if rex.name != "PROCTIME_MATERIALIZE":
        return replace(rex, operands=operands)
    (time,) = operands
    if isinstance(time, InputRef) and (time.index in rows.arrivals or time.index == len(rows.columns)):
        return time
    raise node.refuse(
        "the processing time of its rows is not known",
        "Give the log of the table with its arrivals, from_event_log(..., arrival=...), and read PROCTIME() before "
        "the first operator",
    )


def _is_time(rex: Rex, times: Collection[int]) -> bool:
    """Return whether an expression is one of these columns, perhaps without the mark that it is a rowtime."""
    if (
        isinstance(rex, RexCall)
        and rex.name == "CAST"
        and rex.type.root in TIMESTAMPS
        and rex.type.precision >= 3
    ):
        (inner,) = rex.operands
        return isinstance(inner, InputRef) and inner.type.root is rex.type.root and inner.index in times
    return isinstance(rex, InputRef) and rex.index in times


def unique_names(node: PlanNode) -> tuple[str, ...]:
    """Return names of a node's columns in streams: that in the plan, and the number of node and column.

    Columns of the log and of the results of operators then have other names, whatever those in the plan are.
    """
    return tuple(
        f"{re.sub(r'[^0-9A-Za-z_]', '_', name)}#{node.id}.{number}".replace(".", "_")
        for number, name in enumerate(node.names)
    )
