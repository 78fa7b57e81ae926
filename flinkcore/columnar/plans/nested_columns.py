"""Columns for the nested fields that the steps of a job name, such as ``payload.after.user_id``.

Names are looked up here, once, when the job is planned. A field of a log's own column becomes a column of the log
(`EventLog.fields`), so that reading takes that field alone; one of a column that a step or an operator has computed
becomes a computed column right before the step that names it. Everything after the plan knows columns only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import (
    HIDDEN_PREFIX,
    ColumnOp,
    Select,
    WithColumns,
    output_schema,
)
from flinkcore._internal.arrow.nested_fields import nested_field
from flinkcore.log.event_log import EventLog

Ops = tuple[ColumnOp, ...]


class NestedColumns:
    """Adds columns for nested fields to a chain of ops, in their order.

    Parameters
    ----------
    schema : pyarrow.Schema
        Input of the first op.
    log : EventLog, optional
        Log whose columns these are; None if they are results of an operator.

    Attributes
    ----------
    ops : list of ColumnOp
        The ops so far.
    fields : tuple of str
        Fields that the log gives as columns.
    """

    def __init__(self, schema: pa.Schema, log: EventLog | None = None) -> None:
        self.ops: list[ColumnOp] = []
        self.fields: tuple[str, ...] = () if log is None else log.fields
        self._schema = schema
        self._log = log
        self._computed: set[str] = set()
        self._hidden = set(self.fields)
        """Columns that fields have been given, and that the rows of the end have only if they are named there."""
        self._outdated: set[str] = set()
        """Hidden columns whose struct a later step has replaced."""

    def add(self, ops: Iterable[ColumnOp]) -> None:
        """Add ops, each after the columns that it names."""
        for op in ops:
            self.use(op.required_columns or ())
            self.ops.append(op)
            computed = {name for name, _ in op.expressions} if isinstance(op, Select | WithColumns) else set()
            self._computed |= computed
            self._hidden -= computed.union(op.names if isinstance(op, Select) else ())
            self._outdated |= {
                name for name in self._hidden if any(name.startswith(f"{column}.") for column in computed)
            }

    def use(self, names: Iterable[str]) -> None:
        """Let the rows have columns of these names from here on, as far as they have such fields."""
        for name in sorted(name for name in names if "." in name):
            given = output_schema(self.ops, self._schema)
            own = self._hidden - self._outdated
            if name in own.intersection(given.names):
                continue
            found = nested_field(pa.schema([each for each in given if each.name not in self._hidden]), name)
            if found is None:
                continue
            self._hidden.add(name)
            self._outdated.discard(name)
            log = None if found.column in self._computed else self._log
            if log is None or name in log.source.schema.names:
                self.ops.append(WithColumns(((name, pc.field(found.column, *found.path)),)))
                continue
            if name not in self.fields:
                self.fields = (*self.fields, name)
                self._schema = self._schema.append(pa.field(name, found.type))
            self.ops = [
                replace(op, names=(*op.names, name))
                if isinstance(op, Select) and name not in op.names
                else op
                for op in self.ops
            ]

    def end(self, named: Iterable[str]) -> None:
        """Let the rows have the columns that users expect: fields only if they are named here."""
        self.use(named)
        if not self._hidden:
            return
        names = output_schema(self.ops, self._schema).names
        left = self._hidden.difference(named)
        if left.intersection(names):
            shown = [name for name in names if not name.startswith(HIDDEN_PREFIX) and name not in left]
            self.ops.append(Select(tuple(shown)))


def with_nested_columns(ops: Sequence[ColumnOp], schema: pa.Schema, named: Iterable[str] = ()) -> Ops:
    """Return ops over results of an operator with the columns that they, and what takes the rows, name.

    Parameters
    ----------
    ops : sequence of ColumnOp
    schema : pyarrow.Schema
        Input of the first op.
    named : iterable of str
        Columns that what takes the rows names.
    """
    columns = NestedColumns(schema)
    columns.add(ops)
    columns.end(named)
    return tuple(columns.ops)
