"""Comparisons as Java's operators make them, of NaN and -0.0 too, and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.sql.expressions.decimals import MOST_DIGITS, as_decimals, narrow
from flinkcore.sql.expressions.evaluation import Evaluation, column, function, nulls, scalar
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.plan.rex import Bound, Literal, Rex, RexCall
from flinkcore.sql.types.logical_types import (
    FLOATS,
    INTEGERS,
    NESTED,
    NUMERIC,
    TEXTS,
    TIMESTAMPS,
    LogicalType,
    Root,
)

_KERNELS: Final[dict[str, Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_DOUBLE: Final = LogicalType(Root.DOUBLE)


def _comparable(call: RexCall) -> str | None:
    kinds = [operand.type for operand in call.operands]
    if NESTED & {kind.root for kind in kinds}:
        if call.name in ("=", "<>") and kinds[0].root is kinds[1].root:
            return None
        return f"{call.name} of {kinds[0]} is not supported: compare their fields"
    roots = {kind.root for kind in kinds} - {Root.NULL}
    families: tuple[frozenset[Root], ...] = (frozenset(NUMERIC), TEXTS, TIMESTAMPS)
    if len(roots) <= 1 or any(roots <= family for family in families):
        return None
    if roots <= {Root.BINARY, Root.VARBINARY} or roots <= {Root.DATE, *TIMESTAMPS}:
        return None
    return f"{call.name} of {' and '.join(map(str, kinds))} is not supported: cast one of them"


@function(*_KERNELS, state="pyarrow", check=_comparable)
def compare(rows: Evaluation, call: RexCall) -> pa.Array:
    if call.operands[0].type.root in NESTED:
        return _compare_nested(rows, call)
    values = _comparable_values(rows, *call.operands)
    left, right = (each[0] if len(each) < rows.num_rows else each for each in values)
    return _KERNELS[call.name](left, right)


def _compare_nested(rows: Evaluation, call: RexCall) -> pa.Array:
    left, right = (rows(operand).to_pylist() for operand in call.operands)
    if call.operands[0].type.root is Root.MAP:
        left, right = ([each if each is None else dict(each) for each in side] for side in (left, right))
    return pa.array(
        [
            None if a is None or b is None else (a == b) is (call.name == "=")
            for a, b in zip(left, right, strict=True)
        ],
        pa.bool_(),
    )


def _comparable_values(rows: Evaluation, *operands: Rex) -> list[pa.Array]:
    """Return values that compare as those of expressions: of decimals their digits, if they fit into 64 bits.

    A constant beside numbers may have one value for all rows.
    """
    kinds = [operand.type for operand in operands]
    roots = {kind.root for kind in kinds}
    if Root.DECIMAL in roots and not roots & FLOATS:
        most = max(kind.scale for kind in kinds)
        arrays = rows.brief(*operands)
        digits = [narrow(array, most) for array in arrays]
        if all(each is not None for each in digits):
            return [
                column(each, ~nulls(array), pa.int64())
                for each, array in zip(digits, arrays, strict=True)
                if each is not None
            ]
    if roots <= set(INTEGERS):
        return _in_common(rows.brief(*operands), kinds)
    return common(rows, *operands)


def common(rows: Evaluation, *operands: Rex) -> list[pa.Array]:
    """Return the values of expressions as one type, in which they are compared."""
    return _in_common([rows(operand) for operand in operands], [operand.type for operand in operands])


def _in_common(arrays: Sequence[pa.Array], kinds: Sequence[LogicalType]) -> list[pa.Array]:
    """Return values of such types as those of one type, in which they are compared."""
    roots = {kind.root for kind in kinds}
    if roots & FLOATS:
        return [
            cast_number(array, kind, _DOUBLE) if kind.root in NUMERIC else array
            for array, kind in zip(arrays, kinds, strict=True)
        ]
    if Root.DECIMAL in roots:
        wide = [as_decimals(array) for array in arrays]
        scale = max(array.type.scale for array in wide)
        return [array.cast(pa.decimal256(MOST_DIGITS, scale)) for array in wide]
    if len(roots & set(INTEGERS)) > 1:
        return [array.cast(pa.int64()) for array in arrays]
    if roots & TIMESTAMPS:
        unit = max((kind.unit for kind in kinds if kind.root in TIMESTAMPS), key=["ms", "us", "ns"].index)
        zone = next(array.type.tz for array in arrays if pa.types.is_timestamp(array.type))
        return [array.cast(pa.timestamp(unit, zone)) for array in arrays]
    return list(arrays)


@function("IS NOT DISTINCT FROM", "IS DISTINCT FROM", check=_comparable)
def distinct(rows: Evaluation, call: RexCall) -> pa.Array:
    left, right = (
        pa.repeat(each[0], rows.num_rows) if len(each) < rows.num_rows else each
        for each in _comparable_values(rows, *call.operands)
    )
    left_null, right_null = nulls(left), nulls(right)
    equal = pc.equal(left, right).fill_null(False).to_numpy(zero_copy_only=False)
    same = np.where(left_null | right_null, left_null & right_null, equal)
    return pa.array(same if call.name == "IS NOT DISTINCT FROM" else ~same)


@function("SEARCH")
def search(rows: Evaluation, call: RexCall) -> pa.Array:
    literal = call.operands[1]
    assert isinstance(literal, Literal)
    assert literal.sarg is not None
    kind = call.operands[0].type
    values = rows(call.operands[0])
    points: list[Any] = []
    others: list[Any] = []
    for lower, upper in literal.sarg.ranges:
        is_point = lower is not None and upper is not None and lower.value == upper.value
        (points if is_point else others).append((lower, upper))
    found = pa.repeat(pa.scalar(False), rows.num_rows)
    wanted = literal.type if kind.root in NUMERIC or kind.root in TEXTS else kind
    for lower, upper in others:
        inside = pa.repeat(pa.scalar(True), rows.num_rows)
        for bound, open_kernel, closed_kernel in ((lower, ">", ">="), (upper, "<", "<=")):
            if bound is not None:
                kernel = _KERNELS[closed_kernel if bound.is_closed else open_kernel]
                inside = pc.and_(inside, kernel(*_against(values, kind, bound, wanted)))
        found = pc.or_(found, inside)
    for lower, _ in points:
        assert lower is not None
        found = pc.or_(found, pc.equal(*_against(values, kind, lower, wanted)))
    null_as = literal.sarg.null_as
    is_null = pc.is_null(values)
    return pc.if_else(is_null, pa.scalar(null_as, pa.bool_()), found)


def _against(values: pa.Array, kind: LogicalType, bound: Bound, wanted: LogicalType) -> tuple[pa.Array, Any]:
    limit = scalar(bound.value, wanted)
    if kind.root in FLOATS:
        return values.cast(pa.float64()), pa.scalar(float(limit.as_py()))
    if Root.DECIMAL in (kind.root, wanted.root):
        wide = pa.decimal256(MOST_DIGITS, max(kind.scale, wanted.scale))
        return as_decimals(values).cast(wide), pa.scalar(limit.as_py(), wide)
    if kind.root in INTEGERS:
        return values.cast(pa.int64()), limit.cast(pa.int64())
    return values, limit
