"""Fields and views of the accumulators that Flink has for the aggregate calls of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.function_aggregates import WindowResult
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.plan.flink_state import (
    COUNTED,
    DISTINCT,
    EXTREME,
    OR_ZERO,
    PRESENT,
    RETRACTED_EXTREME,
    ROWS,
    VALUE,
    ZERO,
    AccumulatorField,
    ValuesView,
)
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, TEXTS, LogicalType, Root

Exchanged: TypeAlias = tuple[tuple[AccumulatorField, ...], tuple[ValuesView, ...], str]
"""Fields and views of an accumulator, and why it cannot be exchanged, or an empty text."""

_BIGINT: Final = LogicalType(Root.BIGINT)
_STRING: Final = LogicalType(Root.VARCHAR, precision=2**31 - 1)

_EXCHANGED: Final = frozenset(
    (
        *(("COUNT", "as it is"), ("SUM", "as it is"), ("$SUM0", "sum or zero"), ("AVG", "mean")),
        *((name, form) for name in ("MIN", "MAX") for form in ("as it is", "extreme")),
    )
)
"""Calls whose accumulators in Flink hold what the native aggregates do."""

_IN_VIEWS: Final = frozenset(
    (*INTEGERS, *FLOATS, *TEXTS, Root.BOOLEAN, Root.DATE, Root.DECIMAL, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
)
"""Types of arguments whose views are exchanged."""

_TAKEN_BACK: Final = ("COUNT", "SUM", "$SUM0", "AVG")
"""Those that do so if values are taken back; Flink's others have views of all values."""


def accumulator_fields(
    native: NativeAggregates, taken_back: Sequence[bool] = (), *, count: str | None = None
) -> Exchanged:
    """Return the fields and views of the accumulator that Flink has, and why it cannot be exchanged, if so.

    Parameters
    ----------
    native : NativeAggregates
    taken_back : sequence of bool
        For each call, whether Flink's aggregate can take values back; by default none can.
    count : str, optional
        Role of the ``COUNT(*)`` that Flink adds to calls without one: `PRESENT`, as for windows that may be empty, or
        `ROWS`, if rows are withdrawn.

    Notes
    -----
    ``AggregateUtil.transformToStreamAggregateInfoList``, and the buffers of ``SumAggFunction``,
    ``SumWithRetractAggFunction``, ``Sum0AggFunction``, ``CountAggFunction``, ``RowNumberAggFunction``,
    ``AvgAggFunction``, ``MinAggFunction`` and ``MaxAggFunction``.
    """
    fields: list[AccumulatorField] = []
    distinct: dict[tuple[int, ...], ValuesView] = {}
    extremes: list[ValuesView] = []
    for number, result in enumerate(native.results):
        if isinstance(result, WindowResult):
            return _refused(
                f"the accumulators of the function {result.calls.name} are not exchanged with Flink"
            )
        call = result.call
        type = _STRING if call.type.root in (Root.CHAR, Root.VARCHAR) else call.type.with_nullable(True)
        can_take_back = bool(taken_back) and taken_back[number]
        if call.is_distinct and call.name == "COUNT" and result.given.root in _IN_VIEWS:
            shared = distinct.get(call.arguments)
            # Flink's aggregates of windows that may be empty can take values back, and never do.
            is_counted = can_take_back or count == PRESENT
            if shared is not None and is_counted:
                return _refused(
                    "of rows that are withdrawn and of HOP, the accumulators of one COUNT(DISTINCT) of an argument are "
                    "exchanged with Flink, and not those of several with conditions"
                )
            names = (*(() if shared is None else shared.aggregates), *result.parts)
            state = f"distinctAcc_{len(distinct)}" if shared is None else shared.state
            distinct[call.arguments] = ValuesView(state, result.given, names, is_counted)
            fields.append(AccumulatorField(DISTINCT, type, result.parts))
            continue
        if call.is_distinct or (call.name, result.form) not in _EXCHANGED:
            what, instead = call.name, ""
            if call.is_distinct:
                what, instead = f"{call.name}(DISTINCT)", f"; those of {call.name} over SELECT DISTINCT are"
            return _refused(
                f"the accumulators of {what} of {result.given} are not exchanged with Flink{instead}"
            )
        is_extreme = call.name in ("MIN", "MAX") and result.form == "as it is"
        if is_extreme and can_take_back and result.given.root in _IN_VIEWS:
            own = call.type.with_nullable(True)
            fields.append(AccumulatorField(RETRACTED_EXTREME, own, result.parts))
            extremes.append(ValuesView(f"agg{number}$map", own, result.parts, True, call.name.lower()))
            continue
        if call.name not in _TAKEN_BACK and (can_take_back or native.withdraws):
            return _refused(
                f"the accumulators of {call.name} of {result.given} over rows that are withdrawn are not exchanged "
                "with Flink"
            )
        if call.name == "AVG":
            total, n_values = result.parts
            fields.append(AccumulatorField(OR_ZERO, _sum_type(result.given), (total,)))
            fields.append(AccumulatorField(VALUE, _BIGINT, (n_values,)))
        else:
            role = {"extreme": EXTREME, "sum or zero": ZERO}.get(result.form, VALUE)
            if count == ROWS and _is_count_of_rows(call):
                role = ROWS
            fields.append(AccumulatorField(role, type, result.parts))
            if can_take_back and call.name == "SUM":
                fields.append(AccumulatorField(COUNTED, _BIGINT, result.parts))
    calls = [result.call for result in native.results if not isinstance(result, WindowResult)]
    if count is not None and not any(map(_is_count_of_rows, calls)):
        fields.append(AccumulatorField(count, _BIGINT))
    return tuple(fields), (*extremes, *distinct.values()), ""


def _refused(reason: str) -> Exchanged:
    return (), (), reason


def _is_count_of_rows(call: AggregateCall) -> bool:
    return call.name == "COUNT" and not call.arguments and call.filter < 0


def _sum_type(given: LogicalType) -> LogicalType:
    """Return the type of the sum in the accumulator of AVG."""
    if given.root is Root.DECIMAL:
        return LogicalType(Root.DECIMAL, precision=38, scale=given.scale)
    return LogicalType(Root.DOUBLE) if given.root in FLOATS else _BIGINT
