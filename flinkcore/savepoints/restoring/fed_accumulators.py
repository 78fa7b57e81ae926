"""Accumulators of native aggregates, fed with results that Flink's accumulators hold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns
from flinkcore.errors import DataError


def fed_accumulators(
    contents: AggregateContents,
    values: Mapping[str, pa.Array],
    entries: npt.NDArray[np.uint32],
    n: int,
    what: str,
    *,
    orders: Mapping[str, pa.Array] | None = None,
    runs: bool = False,
    retracts: bool = False,
) -> dict[str, pa.Array]:
    """Return the columns of `n` accumulators, some of which have results.

    Parameters
    ----------
    contents : AggregateContents
    values : mapping of str to pyarrow.Array
        Results by the name of the aggregate, a row for each of `entries`.
    entries : numpy.ndarray of uint32
        Numbers of the accumulators that have results.
    n : int
    what : str
        Names the state in messages.
    orders : mapping of str to pyarrow.Array, optional
        Columns by which aggregates such as ``min_by`` choose, by the name of the aggregate.
    runs, retracts : bool
        As of `Accumulators`.

    Raises
    ------
    DataError
        If a result is not of the type of its aggregate.
    """
    found: dict[str, pa.Array] = {}
    every = np.arange(n, dtype=np.uint32)
    touched = np.zeros(n, np.uint8)
    for number, (name, function, column, by, percentage) in enumerate(contents.aggregates):
        own = pa.int64() if column is None else contents.columns.field(column).type
        type = _fed_type(function, own)
        read = "value" if column is None and function == "count" else column
        fields = [(read or "value", type)]
        if by is not None:
            fields.append((by, contents.columns.field(by).type))
        spec = (function, column, by, percentage)
        accumulators = Accumulators(pa.schema(fields), [spec], runs=runs, retracts=retracts)
        accumulators.reserve(n)
        counts = np.zeros(n, np.uint64)
        if name in values:
            fed = _cast(what, name, values[name], type)
            if function == "count":
                counts[entries] = fed.to_numpy().astype(np.uint64)
            else:
                columns = [fed, *([] if orders is None or by is None else [orders[name].cast(fields[1][1])])]
                batch = pa.RecordBatch.from_arrays(columns, [each for each, _ in fields])
                accumulators.update(RecordBatch(batch, any_type=True), entries)
        for part, array in accumulator_columns(accumulators, every).items():
            if part == "touched":
                touched |= array.to_numpy()
            else:
                found[f"{number}.{part.partition('.')[2]}"] = array
        if function == "count" and name in values:
            found[f"{number}.words"] = pa.array(counts)
            touched[entries] = 1
    return {"touched": pa.array(touched), **found}


def _cast(what: str, name: str, value: pa.Array, type: pa.DataType) -> pa.Array:
    try:
        return value.cast(type)
    except (pa.ArrowException, ValueError) as failure:
        raise DataError(
            f"{what} has a value of {value.type}, which cannot be that of the aggregate {name!r} ({type}): {failure}"
        ) from None


def _fed_type(function: str, own: pa.DataType) -> pa.DataType:
    """Return the type of a column from which an aggregate takes its own results: sums are wider than what they add."""
    if function == "count":
        return pa.int64()
    if function == "sum" and pa.types.is_signed_integer(own):
        return pa.int64()
    if function == "sum" and pa.types.is_unsigned_integer(own):
        return pa.uint64()
    if function == "sum" and pa.types.is_floating(own):
        return pa.float64()
    if function == "sum" and pa.types.is_decimal(own):
        return pa.decimal128(38, own.scale)
    return own
