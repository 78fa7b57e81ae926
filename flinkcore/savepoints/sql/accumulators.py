"""Accumulators of Flink SQL's aggregates as rows, from the results of native aggregates and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.savepoints.serializers.row_data import RowDataSerializer
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.plan.flink_state import (
    COUNTED,
    DISTINCT,
    EXTREME,
    OR_ZERO,
    PRESENT,
    RETRACTED_EXTREME,
    ROWS,
    ZERO,
    AccumulatorField,
)
from flinkcore.sql.types.logical_types import INTEGERS, LogicalType, Root

_WIDE: LogicalType = LogicalType(Root.BIGINT)
_VIEW: Final = b"\0"
"""Content of an accumulator in place of a view."""
_DOUBLE: LogicalType = LogicalType(Root.DOUBLE)
NO_SUM: Final = -0.0
"""Sum of floats before the first value."""


def rows_of_columns(serializer: RowDataSerializer, columns: Sequence[pa.Array], n_rows: int) -> pa.Array:
    """Return inserted rows with these fields."""
    casts = [column.cast(each.arrow) for column, each in zip(columns, serializer.fields, strict=True)]
    casts += [pa.repeat(pa.scalar(_VIEW), n_rows)] * serializer.n_views
    names = [*(f"f{number}" for number in range(len(casts))), "row_kind"]
    return pa.StructArray.from_arrays([*casts, pa.repeat(pa.scalar("+I"), n_rows)], names)


def accumulator_rows(
    serializer: RowDataSerializer,
    fields: Sequence[AccumulatorField],
    results: Mapping[str, pa.Array],
    n_rows: int,
) -> pa.Array:
    """Return the accumulators of Flink.

    Parameters
    ----------
    serializer : RowDataSerializer
    fields : sequence of AccumulatorField
    results : mapping of str to pyarrow.Array
        Results of the native aggregates.
    n_rows : int
    """
    columns = [
        _field(each, own.arrow, results, n_rows) for each, own in zip(fields, serializer.fields, strict=True)
    ]
    return rows_of_columns(serializer, columns, n_rows)


def _field(
    field: AccumulatorField, type: pa.DataType, results: Mapping[str, pa.Array], n_rows: int
) -> pa.Array:
    if field.role == PRESENT:
        return pa.array(np.ones(n_rows, np.int64))
    if field.role == COUNTED:
        return results[counted(field.aggregates[0])]
    if field.role == ROWS:
        return results[ROWS]
    columns = [results[name] for name in field.aggregates]
    if field.role == RETRACTED_EXTREME:
        (name,) = field.aggregates
        parts = [*columns, results[n_kept(name)], pa.repeat(pa.scalar(_VIEW), n_rows)]
        parts.append(pa.repeat(pa.scalar("+I"), n_rows))
        cast = [part.cast(each.type) for part, each in zip(parts, type, strict=True)]
        return pa.StructArray.from_arrays(cast, fields=list(type))
    if field.role == EXTREME:
        first, extreme = columns
        return pc.if_else(pc.fill_null(pc.is_nan(first), False), first, extreme)
    (column,) = columns
    if field.type.root in INTEGERS and pa.types.is_integer(column.type):
        column = cast_number(column, _WIDE, field.type)
    elif field.type.root is Root.FLOAT:
        column = cast_number(column, _DOUBLE, field.type)
    if field.role in (OR_ZERO, ZERO):
        column = column.fill_null(pa.scalar(0).cast(column.type))
    return column


def counted(aggregate: str) -> str:
    """Return the name of the number of values of a sum among results."""
    return f"{aggregate}: {COUNTED}"


def n_kept(aggregate: str) -> str:
    """Return the name of the number of different values of a least or greatest one among results."""
    return f"{aggregate}: {RETRACTED_EXTREME}"


@dataclass(frozen=True)
class AggregateValues:
    """Results of native aggregates.

    Attributes
    ----------
    results : dict of str to pyarrow.Array
        By the name of the aggregate.
    orders : dict of str to pyarrow.Array
        Columns by which aggregates such as ``min_by`` choose, by the name of the aggregate.
    counts : dict of str to pyarrow.Array
        Numbers of values of sums, where Flink has them, by the name of the aggregate.
    rows : pyarrow.Array or None
        Numbers of rows of keys whose rows are taken back.
    """

    results: dict[str, pa.Array]
    orders: dict[str, pa.Array]
    counts: dict[str, pa.Array]
    rows: pa.Array | None = None


def aggregate_values(fields: Sequence[AccumulatorField], accumulators: pa.Array) -> AggregateValues:
    """Return the results of native aggregates that accumulators of Flink hold."""
    found = AggregateValues({}, {}, {})
    for number, field in enumerate(fields):
        column = accumulators.field(number)
        if field.role in (PRESENT, DISTINCT):
            continue
        if field.role == RETRACTED_EXTREME:
            column = column.field(0)
        if field.role == ROWS:
            found = replace(found, rows=column)
        if field.role == COUNTED:
            (name,) = field.aggregates
            found.counts[name] = column
            found.results[name] = pc.if_else(pc.equal(column, 0), None, found.results[name])
            continue
        if field.role == OR_ZERO:
            # The count that follows says whether the sum is one of values.
            counts = found.counts[field.aggregates[0]] = accumulators.field(number + 1)
            column = pc.if_else(pc.equal(counts, 0), pa.scalar(None, column.type), column)
        for name in field.aggregates:
            found.results[name] = column
        if field.role == EXTREME:
            first, extreme = field.aggregates
            is_nan = pc.fill_null(pc.is_nan(column), False)
            there = pa.array(np.ones(len(column), np.int8))
            found.orders[first] = pc.if_else(column.is_valid(), there, pa.scalar(None, pa.int8()))
            comparable = pc.add(column, pa.scalar(0.0).cast(column.type))
            found.orders[extreme] = pc.if_else(is_nan, pa.scalar(None, column.type), comparable)
    return found


def float_sums(aggregates: AggregateContents) -> dict[int, str]:
    """Return the numbers of sums of floats among the aggregates, with their names."""
    return {
        number: name
        for number, (name, function, column, *_) in enumerate(aggregates.aggregates)
        if function == "sum" and pa.types.is_floating(aggregates.columns.field(column).type)
    }


def words_of_sums(
    fields: Sequence[AccumulatorField], accumulators: pa.Array, aggregates: AggregateContents
) -> dict[int, npt.NDArray[np.uint64]]:
    """Return Flink's sums of floats as native accumulators hold them, by the number of the aggregate.

    Last bits of a sum may be left when all values have been taken away: it continues from these.
    """
    sums: dict[str, pa.Array] = {}
    for number, field in enumerate(fields):
        for name in field.aggregates:
            sums.setdefault(name, accumulators.field(number))  # before the number of its values
    return {
        number: sums[name].cast(pa.float64()).fill_null(NO_SUM).to_numpy().view(np.uint64)
        for number, name in float_sums(aggregates).items()
        if name in sums
    }
