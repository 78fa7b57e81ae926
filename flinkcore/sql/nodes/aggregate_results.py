"""Results of aggregate calls, from the columns of native aggregates.

Where a native aggregate is not Flink's to the bit, the call becomes several of them, or the list of the values, from
which an expression computes the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.sql.expressions.decimals import added, fit_one, quotient
from flinkcore.sql.expressions.evaluation import column, numbers, truth, valid
from flinkcore.sql.expressions.numeric_casts import cast_number, wrapped_one
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.types.logical_types import INTEGERS, LogicalType, Root

_DOUBLE: Final = LogicalType(Root.DOUBLE)
_BIGINT: Final = LogicalType(Root.BIGINT)


@dataclass(frozen=True, eq=False)
class AggregateResult(ColumnExpression):
    """The result of a call, from the columns of native aggregates. Picklable.

    Attributes
    ----------
    call : AggregateCall
    given : LogicalType
        Type of the argument.
    parts : tuple of str
        Columns of the native aggregates.
    form : str
        Kind of computation: see `_RESULTS`.
    """

    call: AggregateCall
    given: LogicalType
    parts: tuple[str, ...]
    form: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(self.parts)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        found = _RESULTS[self.form](self, *(batch.column(name) for name in self.parts))
        wanted = self.call.type.arrow
        return found if found.type.equals(wanted) else found.cast(wanted)

    def __str__(self) -> str:
        return f"{self.call.name} of {', '.join(self.parts)}: {self.form}"


def _whole(result: AggregateResult, array: pa.Array) -> pa.Array:
    kind = result.call.type
    if kind.root in INTEGERS and pa.types.is_integer(array.type):
        return cast_number(array, _BIGINT, kind)
    if kind.root is Root.FLOAT:
        return cast_number(array, _DOUBLE, kind)
    return array


def _sum_or_zero(result: AggregateResult, array: pa.Array) -> pa.Array:
    return _whole(result, array.fill_null(pa.scalar(0).cast(array.type)))


def _mean(result: AggregateResult, total: pa.Array, count: pa.Array) -> pa.Array:
    kind = result.call.type
    if kind.root is Root.DECIMAL:
        return pa.array(
            [
                None if value is None else fit_one(quotient(value, Decimal(rows)), kind)
                for value, rows in zip(total.to_pylist(), count.to_pylist(), strict=True)
            ],
            kind.arrow,
        )
    if kind.root in INTEGERS:
        # The quotient is truncated, as in Java.
        means = pc.divide(total, pc.max_element_wise(count, pa.scalar(1, pa.int64())))
        return cast_number(means, _BIGINT, kind)
    is_valid = valid(total)
    # Flink adds the values to 0.0, so that the sum is never -0.0.
    floats = (numbers(total) + 0.0) / np.where(is_valid, numbers(count), 1)
    return cast_number(column(floats, is_valid, pa.float64()), _DOUBLE, kind)


def _moment(result: AggregateResult, variance: pa.Array, count: pa.Array) -> pa.Array:
    return column(numbers(variance) * numbers(count), valid(variance), pa.float64())


def _extreme(result: AggregateResult, first: pa.Array, extreme: pa.Array) -> pa.Array:
    is_nan = truth(pc.is_nan(first))
    return pc.if_else(pa.array(is_nan), first, extreme)


def _of_values(result: AggregateResult, values: pa.Array) -> pa.Array:
    made: Callable[[list[Any], AggregateResult], Any] = _OF_VALUES.get(result.call.name, _multiset)
    distinct = result.call.is_distinct
    found = []
    for each in values.to_pylist():
        wrapped = [value for value in each if value is not None]
        if wrapped and wrapped[0]["pane"] is not None:
            wrapped.sort(key=itemgetter("pane"))
        if result.call.name == "LISTAGG":
            found.append(_joined(wrapped, distinct))
            continue
        given = [value["value"] for value in wrapped]
        if result.call.ignores_nulls:
            given = [value for value in given if value is not None]
        found.append(made(list(dict.fromkeys(given)) if distinct else given, result))
    return pa.array(found, result.call.type.arrow)


def _joined(wrapped: list[dict[str, Any]], distinct: bool) -> str | None:
    """Return LISTAGG: each value but the first has its own separator before it."""
    given = [(each["separator"], each["value"]) for each in wrapped if each["value"] is not None]
    if distinct:
        given = list(dict.fromkeys(given))
    if not given:
        return None
    return str(given[0][1]) + "".join(f"{separator}{value}" for separator, value in given[1:])


def _sum_of(values: list[Any], result: AggregateResult) -> Any:
    kind = result.call.type
    if not values:
        return 0 if result.call.name == "$SUM0" else None
    if kind.root is Root.FLOAT:
        total = np.float32(0)
        for value in values:
            total = np.float32(total + np.float32(value))
        return float(total)
    if kind.root in INTEGERS:
        return wrapped_one(sum(values), kind)
    if kind.root is Root.DECIMAL:
        return reduce(lambda total, value: added(total, value, kind), values)
    return float(np.add.accumulate(values)[-1])


def _multiset(values: list[Any], result: AggregateResult) -> list[tuple[Any, int]]:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return list(counts.items())


_OF_VALUES: Final[dict[str, Callable[[list[Any], AggregateResult], Any]]] = {
    "SUM": _sum_of,
    "$SUM0": _sum_of,
    "COLLECT": _multiset,
    "ARRAY_AGG": lambda values, result: values or None,
    "FIRST_VALUE": lambda values, result: values[0] if values else None,
    "LAST_VALUE": lambda values, result: values[-1] if values else None,
}

OF_VALUES: Final = frozenset((*_OF_VALUES, "LISTAGG"))
"""Functions whose result is computed from the list of the values."""

_RESULTS: Final[dict[str, Callable[..., pa.Array]]] = {
    "given": lambda result, array: array,
    "as it is": _whole,
    "sum or zero": _sum_or_zero,
    "mean": _mean,
    "moment": _moment,
    "extreme": _extreme,
    "of values": _of_values,
}
