"""Joins with tables that are looked up: FOR SYSTEM_TIME AS OF a processing time.

A table without arrivals has one content, in which each row finds its matches. Of a log with arrivals, a row finds the
version of its key that has arrived last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.table_lookups import TableLookup
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.sql.expressions.evaluation import truth
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.nodes.expansions import expanded
from flinkcore.sql.nodes.lookup_versions import IS_OF_ROWS, OfVersion, with_latest_versions
from flinkcore.sql.nodes.messages import has_changes
from flinkcore.sql.nodes.rows import EMITTED_AT, Program, Rows
from flinkcore.sql.nodes.scans import ScannedColumn, event_log_of, log_of_table
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall, rex_of, shifted
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of

_BOOLEAN: Final = LogicalType(Root.BOOLEAN)
_PRESENT: Final = "present version#"


@dataclass(frozen=True)
class _Lookup:
    """Table, keys and conditions of a lookup.

    Attributes
    ----------
    keys : mapping of int to int
        Columns of the table that equal columns of the rows.
    constants : mapping of int to Literal
        Columns of the table that equal constants.
    columns : tuple of (str, LogicalType)
        Columns of the table, before its projection.
    projection : tuple of Rex
        Expressions over the table that come to the results.
    before : Rex or None
        Condition on a row, without which it finds nothing.
    filter : tuple of Rex
        Conditions on the table.
    after : Rex or None
        Condition on a row and the projected columns.
    keeps_rows : bool
        Whether a row that finds nothing is kept once, with nulls.
    """

    keys: Mapping[int, int]
    constants: Mapping[int, Literal]
    columns: tuple[tuple[str, LogicalType], ...]
    projection: tuple[Rex, ...]
    before: Rex | None
    filter: tuple[Rex, ...]
    after: Rex | None
    keeps_rows: bool

    @classmethod
    def of(cls, program: Program, node: PlanNode) -> _Lookup:
        """Return the lookup of a node."""
        written = node.json

        def optional(name: str) -> Rex | None:
            condition = written.get(name)
            return None if condition is None else program.rex(node, condition)

        columns, pushed = _columns_of(program, node)
        keys = {int(number): key for number, key in written["lookupKeys"].items()}
        kept = written.get("projectionOnTemporalTable")
        projection = (
            tuple(InputRef(number, kind) for number, (_, kind) in enumerate(columns))
            if kept is None
            else tuple(program.rex(node, each) for each in kept)
        )
        condition = optional("filterOnTemporalTable")
        return cls(
            {number: key["index"] for number, key in keys.items() if key["type"] == "FieldRef"},
            {number: _literal(key["literal"]) for number, key in keys.items() if key["type"] == "Constant"},
            columns,
            projection,
            optional("preFilterCondition"),
            (*pushed, *(() if condition is None else (condition,))),
            optional("joinCondition"),
            written["joinType"] == "LEFT",
        )

    @property
    def conditions(self) -> list[Rex]:
        """Conditions on the columns of the table."""
        equal = [
            RexCall("=", (InputRef(number, self.columns[number][1]), literal), _BOOLEAN)
            for number, literal in self.constants.items()
        ]
        return [*self.filter, *equal]


def _literal(written: Mapping[str, Any]) -> Literal:
    found = rex_of(written)
    assert isinstance(found, Literal)
    return found


def _columns_of(
    program: Program, node: PlanNode
) -> tuple[tuple[tuple[str, LogicalType], ...], tuple[Rex, ...]]:
    """Return the columns of the table that a node looks up, by their names in its log, and the conditions on them."""
    source = node.json["temporalTable"]["lookupTableSource"]
    columns = type_of(node.json["temporalTable"]["outputType"]).children
    pushed: list[Rex] = []
    abilities = {each["type"]: each for each in source.get("abilities") or ()}
    for name, ability in abilities.items():
        if name == "FilterPushDown":
            pushed += [program.rex(node, each) for each in ability["predicates"]]
        elif name == "ReadingMetadata" and ability["metadataKeys"]:
            raise node.refuse(
                "metadata columns of a table that is looked up are not supported", "Leave them out"
            )
        elif name not in ("ProjectPushDown", "ReadingMetadata"):
            raise node.refuse(
                f"{name} of a table that is looked up is not supported", "Compile the plan again"
            )
    names = list(abilities)
    if pushed and "ProjectPushDown" in names[names.index("FilterPushDown") :]:
        raise node.refuse(
            "a filter was pushed into the table that is looked up before its projection",
            "Filter after the join",
        )
    return columns, tuple(pushed)


def lookup_join(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return rows with those of a table that they find by their keys."""
    lookup = _Lookup.of(program, node)
    if node.json.get("upsertMaterialize"):
        raise node.refuse(
            "lookups of changed rows that keep what they have found are not supported",
            "Look up rows that do not change",
        )
    table = node.json["temporalTable"]["lookupTableSource"]["table"]
    log = log_of_table(program, table)
    scanned = [ScannedColumn(name, kind.with_nullable(True)) for name, kind in lookup.columns]
    found = event_log_of(log)
    if found is None or found.arrival is None:
        return _in_content(program, node, rows, lookup, log, scanned)
    return _in_versions(program, node, rows, lookup, log, scanned)


# ---- tables without arrivals


def _in_content(
    program: Program,
    node: PlanNode,
    rows: Rows,
    lookup: _Lookup,
    log: LogStream,
    scanned: Sequence[ScannedColumn],
) -> Rows:
    """Return rows with the rows of a table that they find; the table is read now."""
    names = tuple(f"table#{number}" for number in range(len(scanned)))
    content = log.select(**dict(zip(names, scanned, strict=True))).to_arrow().combine_chunks()
    columns = [column.combine_chunks() for column in content.columns]
    table = pa.RecordBatch.from_arrays(columns, list(names))
    for condition in lookup.conditions:
        table = table.filter(pa.array(truth(SqlExpression(condition, names, program.zone).evaluate(table))))
    own = len(rows.columns)
    kinds = [kind for _, kind in node.fields[own:]]
    added = tuple(f"found#{node.id}-{number}" for number in range(len(kinds)))
    projected = [
        SqlExpression(rex, names, program.zone).evaluate(table).cast(kind.with_nullable(True).arrow)
        for rex, kind in zip(lookup.projection, kinds, strict=True)
    ]
    found_rows = TableLookup(
        str(node.json["temporalTable"]["lookupTableSource"]["table"]["identifier"]),
        table.select([names[number] for number in lookup.keys]),
        pa.RecordBatch.from_arrays(projected, list(added)),
        table.num_rows,
        tuple(rows.columns[number] for number in lookup.keys.values()),
        _over(program, lookup.before, rows.columns),
        _over(program, lookup.after, (*rows.columns, *added)),
        lookup.keeps_rows,
    )
    kept = [name for name in rows.carried if name != EMITTED_AT]
    results = expanded(rows.stream.select(*rows.columns, *kept), found_rows)
    return program.of_operator(
        node,
        results,
        [*map(pc.field, rows.columns), *map(pc.field, added)],
        times=rows.times,
        of_windows=rows.of_windows,
        changes=rows.changes,
    )


def _over(program: Program, rex: Rex | None, names: tuple[str, ...]) -> ColumnExpression | None:
    return None if rex is None else SqlExpression(rex, names, program.zone)


# ---- logs with arrivals


@dataclass(frozen=True, eq=False)
class _WhereFound(ColumnExpression):
    """A column that is null where a row has found nothing; picklable."""

    inner: ColumnExpression
    condition: ColumnExpression

    @property
    def required_columns(self) -> frozenset[str]:
        return self.inner.required_columns | self.condition.required_columns

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        # Flink computes the columns of rows alone that meet the conditions of the table: others could fail.
        is_found = truth(self.condition.evaluate(batch))
        found = self.inner.evaluate(batch.filter(pa.array(is_found)))
        return found.take(pa.array(np.cumsum(is_found) - 1, mask=~is_found))

    def __str__(self) -> str:
        return f"{self.inner} where {self.condition}"


def _in_versions(
    program: Program,
    node: PlanNode,
    rows: Rows,
    lookup: _Lookup,
    log: LogStream,
    scanned: Sequence[ScannedColumn],
) -> Rows:
    """Return rows with the version of their key that has arrived last."""
    table = node.json["temporalTable"]["lookupTableSource"]["table"]
    schema = table["resolvedTable"]["schema"]
    unique = (schema.get("primaryKey") or {}).get("columns") or []
    numbers = {name: number for number, (name, _) in enumerate(lookup.columns)}
    if not unique or any(numbers.get(name) not in lookup.keys for name in unique):
        raise node.refuse(
            "its log has arrivals, so that its rows are versions, and the join does not name all of a PRIMARY KEY",
            "Declare the key and join by it, or give the log without arrival=, for one content at all times",
        )
    if program.has_event_time:
        raise node.refuse(
            "its log has arrivals, and an operator of the plan needs watermarks, which a table that is looked up does "
            "not have",
            "Give the log without arrival=, for one content at all times, or write the join into a table of its own",
        )
    names = tuple(f"table#{number}" for number in range(len(scanned)))
    columns = dict(zip(names, scanned, strict=True))
    options = table["resolvedTable"].get("options") or {}
    stream = with_latest_versions(
        rows,
        {names[numbers[name]]: rows.columns[lookup.keys[numbers[name]]] for name in unique},
        log,
        columns,
        ROW_KIND if has_changes(options) else None,
    )
    own = len(rows.columns)
    read = (*rows.columns, *names, _PRESENT)
    conditions: list[Rex] = [InputRef(len(read) - 1, _BOOLEAN)]
    # A null key has no versions: it has found those of rows whose key is null, too.
    conditions += [
        RexCall(
            "=",
            (InputRef(index, rows.types[index]), InputRef(own + number, lookup.columns[number][1])),
            _BOOLEAN,
        )
        for number, index in lookup.keys.items()
    ]
    conditions += [shifted(each, own) for each in lookup.conditions]
    if lookup.before is not None:
        conditions.append(lookup.before)
    projected = [shifted(each, own) for each in lookup.projection]
    if lookup.after is not None:
        conditions.append(_replaced(lookup.after, own, projected))
    condition = SqlExpression(
        reduce(lambda left, right: RexCall("AND", (left, right), _BOOLEAN), conditions), read, program.zone
    )
    version = (_PRESENT, *names)
    results: list[Any] = [
        OfVersion(_WhereFound(SqlExpression(each, read, program.zone), condition), version)
        for each in projected
    ]
    return program.of_operator(
        node,
        stream,
        [*map(pc.field, rows.columns), *results],
        times=rows.times,
        changes=rows.changes,
        only=IS_OF_ROWS if lookup.keeps_rows else OfVersion(condition, version),
    )


def _replaced(rex: Rex, own: int, projected: Sequence[Rex]) -> Rex:
    """Return an expression over rows and projected columns as one over rows and all columns of the table."""
    if isinstance(rex, InputRef):
        return rex if rex.index < own else projected[rex.index - own]
    if isinstance(rex, RexCall):
        return replace(rex, operands=tuple(_replaced(each, own, projected) for each in rex.operands))
    return rex
