"""Values of expressions over the rows of matches, which are gathered by number for many matches at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ops import Select
from flinkcore._internal.arrow.joined_batches import empty_batch
from flinkcore._native.aggregates import Accumulators
from flinkcore.datastream.graph.row_patterns import (
    MATCH_TIME,
    PatternExpression,
    RowOf,
    VariableAggregates,
)


class RowsOfRuns(Protocol):
    """Rows that are known by number."""

    def take(self, numbers: Int64s, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return rows in the given order; a negative number gives a row of nulls."""
        ...


class _NoRows:
    """Rows of which none is kept."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def take(self, numbers: Int64s, names: Sequence[str] | None = None) -> pa.RecordBatch:
        batch = empty_batch(self._schema)
        return batch if names is None else batch.select(list(names))


class PatternValues:
    """Evaluates expressions for matches, or rows that may become part of one.

    Parameters
    ----------
    expressions : sequence of PatternExpression
    schema : pyarrow.Schema
        Columns of the rows.

    Attributes
    ----------
    places : list of RowOf
        The rows that they read of each match.
    variables : list of str
        The variables of which they read all rows.
    """

    def __init__(self, expressions: Sequence[PatternExpression], schema: pa.Schema) -> None:
        self._expressions, self._schema = expressions, schema
        self.places: list[RowOf] = list(
            dict.fromkeys(column.row for each in expressions for column in each.columns)
        )
        self.variables: list[str] = list(
            dict.fromkeys(group.variable for each in expressions for group in each.aggregates)
        )
        self._selects = [
            Select((), ((str(number), each.expression),)) for number, each in enumerate(expressions)
        ]

    def types(self) -> list[pa.DataType]:
        """Return the types of the values."""
        nothing = np.empty((0, len(self.places)), np.int64), np.empty(0, np.int64)
        counts = np.empty((0, len(self.variables)), np.int64)
        found = self(_NoRows(self._schema), np.empty(0, np.int64), *nothing, counts)
        return [array.type for array in found]

    def __call__(
        self, kept: RowsOfRuns, times: Int64s, looked: Int64s | None, members: Int64s, counts: Int64s | None
    ) -> list[pa.Array]:
        """Return the values of each expression.

        Parameters
        ----------
        kept : RowsOfRuns
        times : int64 array (n,)
            Event times of the matches.
        looked, members, counts : arrays
            Numbers of rows, as `PatternMatcher.take_read` returns them.
        """
        n = len(times)
        columns: dict[str, pa.Array] = {}
        for number, place in enumerate(self.places):
            wanted = {
                column.name: column.column
                for each in self._expressions
                for column in each.columns
                if column.row == place
            }
            assert looked is not None
            rows = kept.take(np.ascontiguousarray(looked[:, number]), list(dict.fromkeys(wanted.values())))
            columns |= {name: rows.column(column) for name, column in wanted.items()}
        found = []
        for each, select in zip(self._expressions, self._selects, strict=True):
            time = pa.array(times)
            own = {**columns, MATCH_TIME: time if each.time_type is None else time.view(each.time_type)}
            for group in each.aggregates:
                assert counts is not None
                numbers, matches = _members_of(self.variables.index(group.variable), members, counts)
                own |= self._aggregated(group, kept, numbers, matches, n)
            batch = pa.RecordBatch.from_arrays(list(own.values()), list(own))
            found.append(select.apply(batch)[0].column(0))
        return found

    def _aggregated(
        self, group: VariableAggregates, kept: RowsOfRuns, numbers: Int64s, matches: Int64s, n: int
    ) -> dict[str, pa.Array]:
        """Return the results of the aggregates of a variable."""
        rows = kept.take(numbers, sorted(self._columns_of(group)) or self._schema.names[:1])
        arguments, _ = Select((), group.arguments).apply(rows)
        accumulators = Accumulators(arguments.schema, [aggregate.spec for _, aggregate in group.aggregates])
        accumulators.reserve(n)
        accumulators.update(arguments, matches.astype(np.uint32))
        accumulators.emit(np.arange(n, dtype=np.uint32))
        values = [pa.array(column) for column in accumulators.take("the rows of a match")]
        found = pa.RecordBatch.from_arrays(values, [name for name, _ in group.aggregates])
        results, _ = Select((), group.results).apply(found)
        return dict(zip(results.schema.names, results.columns, strict=True))

    @staticmethod
    def _columns_of(group: VariableAggregates) -> frozenset[str]:
        return PatternExpression(None, aggregates=(group,)).required_columns


def _members_of(group: int, members: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the rows of one of the variables, and for each the number of its match."""
    flat = counts.ravel()
    of_group = np.repeat(np.arange(len(flat)) % counts.shape[1], flat) == group
    matches = np.repeat(np.arange(len(flat)) // counts.shape[1], flat)
    return members[of_group], matches[of_group]
