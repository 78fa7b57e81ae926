"""The rows of a node while a program is built: a stream whose columns have names of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.sql.expressions.functions import refusal_of
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, Rex, rex_of
from flinkcore.sql.types.logical_types import LogicalType

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

EMITTED_AT = "emitted at"
"""Column of the rows of operators for the time at which they were emitted, where the program asks for it."""


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
    """

    stream: LogStream
    columns: tuple[str, ...]
    types: tuple[LogicalType, ...]
    has_emitted_at: bool = False
    of_windows: bool = False

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns beside those of the node that steps keep."""
        return (EMITTED_AT,) if self.has_emitted_at else ()

    def refs(self) -> list[Rex]:
        """Return expressions that are the columns themselves."""
        return [InputRef(number, kind) for number, kind in enumerate(self.types)]


@dataclass(eq=False)
class Program:
    """A program while it is built from a plan.

    Attributes
    ----------
    environment : StreamExecutionEnvironment
    tables : mapping
        Log of each table, by its name or its identifier.
    settings : mapping of str to str
        Settings of Flink SQL that are not in the plan.
    emitted_at : str or None
        Column of the results for the time at which they were emitted.
    has_event_time : bool
        Whether an operator of the plan needs watermarks.
    """

    environment: StreamExecutionEnvironment
    tables: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)
    emitted_at: str | None = None
    has_event_time: bool = True

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        zone = self.settings.get("table.local-time-zone", "UTC")
        return "UTC" if zone == "default" else zone

    def rex(self, node: PlanNode, written: Mapping[str, Any]) -> Rex:
        """Return an expression of a node that runs; raise UnsupportedOperationError for any other."""
        found = rex_of(written)
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
        stream, zone = rows.stream, self.zone
        if condition is not None:
            stream = stream.filter(SqlExpression(condition, rows.columns, zone))
        names = unique_names(node)
        expressions = {
            name: SqlExpression(rex, rows.columns, zone) for name, rex in zip(names, projection, strict=True)
        }
        kinds = tuple(kind for _, kind in node.fields)
        stream = stream.select(*rows.carried, **expressions)
        return Rows(stream, names, kinds, rows.has_emitted_at, rows.of_windows)

    def of_operator(self, stream: LogStream, columns: Sequence[str], types: Sequence[LogicalType]) -> Rows:
        """Return the rows of an operator, which follow right after it."""
        if self.emitted_at is not None:
            stream = stream.with_emitted_at(EMITTED_AT)
        return Rows(stream, tuple(columns), tuple(types), self.emitted_at is not None)


def unique_names(node: PlanNode) -> tuple[str, ...]:
    """Return names of a node's columns in streams: that in the plan, and the number of node and column.

    Columns of the log and of the results of operators then have other names, whatever those in the plan are.
    """
    return tuple(
        f"{re.sub(r'[^0-9A-Za-z_]', '_', name)}#{node.id}.{number}".replace(".", "_")
        for number, name in enumerate(node.names)
    )
