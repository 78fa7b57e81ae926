"""Rows that become several: GROUPING SETS, UNNEST of collections, and the rows of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.expressions import ColumnExpression, RowExpansion
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.graph.table_lookups import with_empty
from flinkcore.datastream.graph.transformations import (
    ExpandTransformation,
    OperatorTransformation,
)
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.sql.expressions.evaluation import missing_function
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.expressions.user_functions import rows_of
from flinkcore.sql.nodes.rows import EMITTED_AT, Program, Rows, by_key
from flinkcore.sql.nodes.windows import SqlWindow, WindowBound, zone_of
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import Rex, RexCall, rex_of, shifted
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of

_COLLECTION: Final = "collection#"
_COPIED: Final = "copied#"
_PROJECTED: Final = "projected#"
_ROWS: Final = "rows#"
_COPIES: Final = "REPLICATE_ROWS"
_UNNEST: Final = {"UNNEST_ROWS": False, "UNNEST_ROWS_WITH_ORDINALITY": True}
"""Functions of UNNEST, and whether they number elements."""


@dataclass(frozen=True, eq=False)
class Elements(RowExpansion):
    """The elements of a collection of each row, each with the columns of the row. Picklable.

    Attributes
    ----------
    column : str
        Column of the collection: a list, or a map from elements to their numbers or to values.
    added : tuple of (str, LogicalType)
        Columns of an element.
    keeps_rows : bool
        Whether a row without elements is kept once, with nulls.
    numbered : bool
        Whether the last added column is the number of the element in the collection, from 1 on.
    repeated : bool
        Whether the collection is a multiset, whose values are how often an element is in it.
    """

    column: str
    added: tuple[tuple[str, LogicalType], ...]
    keeps_rows: bool = False
    numbered: bool = False
    repeated: bool = False

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.column])

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, kind.with_nullable(True).arrow) for name, kind in self.added]

    def expand(self, batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[Int64s, list[pa.Array]]]:
        collection = batch.column(self.column)
        if isinstance(collection, pa.MapArray):
            kind = pa.struct([("key", collection.type.key_type), ("value", collection.type.item_type)])
            collection = pa.ListArray.from_arrays(
                _offsets(collection),
                pa.StructArray.from_arrays([collection.keys, collection.items], fields=list(kind)),
                mask=collection.is_null() if collection.null_count else None,
            )
        rows: Int64s = pc.list_parent_indices(collection).to_numpy().astype(np.int64)
        elements = collection.flatten()
        n_columns = len(self.added) - self.numbered
        numbers = pa.array(np.arange(1, len(rows) + 1) - np.searchsorted(rows, rows), pa.int32())
        columns = [elements]
        if self._is_flat(elements.type, n_columns):
            if elements.null_count:  # Flink leaves out rows that are null
                present = elements.is_valid()
                rows, numbers = rows[present.to_numpy(zero_copy_only=False)], numbers.filter(present)
                elements = elements.filter(present)
            columns = elements.flatten()
        if self.repeated:
            times = columns[1].to_numpy()
            copies = pa.array(np.repeat(np.arange(len(rows)), times))
            rows, columns = np.repeat(rows, times), [columns[0].take(copies)]
            numbers = pa.array(np.arange(1, len(rows) + 1) - np.searchsorted(rows, rows), pa.int32())
            if self._is_flat(columns[0].type, n_columns):
                columns = columns[0].flatten()
        if self.numbered:
            columns.append(numbers)
        if self.keeps_rows:
            rows, columns = with_empty(rows, columns, 0, batch.num_rows)
        yield rows, [column.cast(field.type) for column, field in zip(columns, self.fields, strict=True)]

    def _is_flat(self, kind: pa.DataType, n_columns: int) -> bool:
        """Return whether the fields of an element are columns: those of a row, or key and value of a map."""
        return pa.types.is_struct(kind) and (self.repeated or kind.num_fields == n_columns)

    def __str__(self) -> str:
        names = ", ".join(f"{name}: {kind}" for name, kind in self.added)
        kept = ", or once without any" if self.keeps_rows else ""
        return f"each element of {self.column} as {names}{kept}"


@dataclass(frozen=True, eq=False)
class Copies(RowExpansion):
    """Copies of some columns of each row, so many times. Picklable.

    Attributes
    ----------
    times : str
        Column of how often a row is copied; not at all if it is negative.
    copied : tuple of str
        Columns that are copied.
    added : tuple of (str, LogicalType)
        The copies.
    """

    times: str
    copied: tuple[str, ...]
    added: tuple[tuple[str, LogicalType], ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.times, *self.copied])

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, kind.with_nullable(True).arrow) for name, kind in self.added]

    def expand(self, batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[Int64s, list[pa.Array]]]:
        times = pc.max_element_wise(batch.column(self.times), 0).to_numpy()
        rows: Int64s = np.repeat(np.arange(batch.num_rows), times)
        taken = pa.array(rows)
        yield rows, [batch.column(name).take(taken) for name in self.copied]

    def __str__(self) -> str:
        return f"{self.times} copies of {', '.join(self.copied)}"


@dataclass(frozen=True, eq=False)
class Projections(RowExpansion):
    """Each row once for each projection, as Flink's ExpandFunction does. Picklable.

    Attributes
    ----------
    projections : tuple of tuples of SqlExpression
        One or more, each with an expression for each added column.
    added : tuple of (str, LogicalType)
        The computed columns.
    """

    projections: tuple[tuple[SqlExpression, ...], ...]
    added: tuple[tuple[str, LogicalType], ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset().union(*(each.required_columns for row in self.projections for each in row))

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, kind.with_nullable(True).arrow) for name, kind in self.added]

    def expand(self, batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[Int64s, list[pa.Array]]]:
        n, n_projections = batch.num_rows, len(self.projections)
        rows: Int64s = np.repeat(np.arange(n), n_projections)
        places = pa.array(rows + np.tile(np.arange(n_projections) * n, n))
        columns = zip(*self.projections, strict=True)
        yield (
            rows,
            [
                pa.concat_arrays([each.evaluate(batch).cast(field.type) for each in column]).take(places)
                for column, field in zip(columns, self.fields, strict=True)
            ],
        )

    def __str__(self) -> str:
        rows = (", ".join(map(str, row)) for row in self.projections)
        return f"{', '.join(name for name, _ in self.added)}: {'; '.join(rows)}"


def _offsets(collection: pa.MapArray) -> pa.Array:
    """Return offsets into the keys and items of a map, which those of a slice leave as they are."""
    return pa.array(collection.offsets.to_numpy(), pa.int32())


def expanded(stream: LogStream, expansion: RowExpansion) -> LogStream:
    """Return the rows that an expansion makes of those of a stream."""
    return stream._then(ExpandTransformation(stream._transformation, expansion))


def expand(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row once for each projection: GROUPING SETS, CUBE, ROLLUP and split aggregates of DISTINCT."""
    projections = [[program.rex(node, each) for each in projection] for projection in node.json["projects"]]
    first, *others = (program.project(rows, node, projection) for projection in projections)
    if not others:
        return first
    if rows.windows is not None or not _may_be_several(rows):
        return replace(first, stream=first.stream.union(*(each.stream for each in others)))
    # A union would put all rows of one projection before those of the next one.
    kept = [name for name in rows.carried if name != EMITTED_AT]
    expressions = tuple(
        tuple(SqlExpression(rex, rows.columns, program.zone) for rex in projection)
        for projection in projections
    )
    added = tuple((f"{_PROJECTED}{number}", kind) for number, (_, kind) in enumerate(node.fields))
    results = expanded(rows.stream.select(*rows.columns, *kept), Projections(expressions, added))
    return program.of_operator(
        node,
        results,
        [pc.field(name) for name, _ in added],
        times=first.times,
        of_windows=rows.of_windows,
        changes=rows.changes,
    )


def _may_be_several(rows: Rows) -> bool:
    """Return whether an event may lead to several of the rows: changes, or results of an operator."""
    steps = rows.stream._transformation.in_order()
    return bool(rows.changes) or any(isinstance(step, OperatorTransformation) for step in steps)


def correlate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row with the rows of a table function: the elements of a collection (UNNEST), or copies (ALL)."""
    written = _of_row(node.json["functionCall"])
    call = rex_of(written)
    assert isinstance(call, RexCall)
    kinds = [kind for _, kind in node.fields]
    own = len(rows.columns)
    added = tuple((f"element#{number}", kind) for number, kind in enumerate(kinds[own:]))
    operands = [program.rex(node, each) for each in written["operands"]]
    function = program.functions.find(call.name) if call.is_of_catalog else None
    keeps_rows = node.json["joinType"] == "LEFT"
    expansion: Elements | Copies
    if call.name == _COPIES:  # of INTERSECT ALL and EXCEPT ALL
        names = [f"{_COPIED}{number}" for number in range(len(operands))]
        arguments = dict(zip(names, operands, strict=True))
        expansion = Copies(names[0], tuple(names[1:]), added)
    else:
        if function is not None:
            collection: Rex = rows_of(function, replace(call, operands=tuple(operands)), tuple(kinds[own:]))
        elif call.name in _UNNEST:
            collection = operands[0]
        elif call.is_of_catalog:
            raise node.refuse(missing_function(call.name))
        else:
            raise node.refuse(
                f"the table function {call.name} is not supported", "Compute the rows before they are read"
            )
        arguments = {_COLLECTION: collection}
        is_multiset = collection.type.root is Root.MULTISET
        expansion = Elements(_COLLECTION, added, keeps_rows, _UNNEST.get(call.name, False), is_multiset)
    computed = {name: SqlExpression(each, rows.columns, program.zone) for name, each in arguments.items()}
    kept = [name for name in rows.carried if name != EMITTED_AT]
    before = rows.stream.select(*rows.columns, *kept, **computed)
    columns: list[Any] = [*map(pc.field, rows.columns), *(pc.field(name) for name, _ in added)]
    results = expanded(before, expansion)
    found = program.of_operator(
        node, results, columns, times=rows.times, of_windows=rows.of_windows, changes=rows.changes
    )
    condition = node.json.get("condition")
    if condition is None:
        return found
    if keeps_rows:
        raise node.refuse(
            "a LEFT JOIN with a condition is not supported", "Write ON TRUE, and filter after it"
        )
    return program.project(found, node, found.refs(), shifted(program.rex(node, condition), own))


def _of_row(written: Any) -> Any:
    """Return an expression over a correlated row as one over the columns of the input, which may have other names."""
    if isinstance(written, list):
        return [_of_row(each) for each in written]
    if not isinstance(written, Mapping):
        return written
    if written.get("kind") == "FIELD_ACCESS" and written["expr"].get("kind") == "CORREL_VARIABLE":
        fields = _fields_of(written["expr"]["type"])
        number = [name for name, _ in fields].index(written["name"])
        return {"kind": "INPUT_REF", "inputIndex": number, "type": fields[number][1]}
    return {key: _of_row(value) for key, value in written.items()}


def _fields_of(row: Any) -> list[tuple[str, Any]]:
    """Return the fields of a row as the plan writes their types."""
    if isinstance(row, Mapping):
        return [(each["name"], each["fieldType"]) for each in row["fields"]]
    return [(name, str(kind)) for name, kind in type_of(row).children]


@dataclass(frozen=True, eq=False)
class _WholeRow(ColumnExpression):
    """The columns of a row as one; picklable."""

    columns: tuple[str, ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(self.columns)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        arrays = [batch.column(name) for name in self.columns]
        return pa.StructArray.from_arrays(arrays, [f"f{number}" for number in range(len(arrays))])

    def __str__(self) -> str:
        return f"[{', '.join(self.columns)}]"


def session_rows(
    program: Program, node: PlanNode, rows: Rows, window: SqlWindow, partition: Sequence[int]
) -> Rows:
    """Return the rows of each session of a partition when it ends, with its start, end and time."""
    rows.require_inserts(node, "Take rows that do not change, such as those of a table")
    rows.require_time(node, window.rowtime)
    if program.by_arrival:
        raise node.refuse(
            "rows of sessions of processing time are not supported", "Group by window_start and window_end"
        )
    keys = list(dict.fromkeys(rows.columns[number] for number in partition))
    before = rows.stream.select(*keys, **{_ROWS: _WholeRow(rows.columns)})
    windowed = by_key(before, keys).window(window.assigner)
    sessions = window.of_clock(windowed.aggregate(**{_ROWS: collect(_ROWS)}))
    added = tuple((f"row#{number}", kind) for number, kind in enumerate(rows.types))
    results = expanded(sessions.select("window_start", "window_end", _ROWS), Elements(_ROWS, added))
    zone = zone_of(program, node)
    bounds = [
        WindowBound(column, kind, minus, zone, window.is_instant, window.clock)
        for (column, minus), (_, kind) in zip(
            (("window_start", 0), ("window_end", 0), ("window_end", 1)), node.fields[-3:], strict=True
        )
    ]
    columns: list[Any] = [*(pc.field(name) for name, _ in added), *bounds]
    return program.of_operator(node, results, columns, times=(len(columns) - 1,), of_windows=True)
