"""ROUND, TRUNCATE, FLOOR and CEIL of numbers and times."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.sql.expressions.casts import instants, local_time
from flinkcore.sql.expressions.decimals import EXACT, fit_one
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    by_row,
    column,
    function,
    integers,
    numbers,
    valid,
)
from flinkcore.sql.expressions.numeric_casts import wrapped_one
from flinkcore.sql.expressions.time_arithmetic import per_milli, toward_zero
from flinkcore.sql.plan.rex import Literal, RexCall
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, NUMERIC, TIMESTAMPS, LogicalType, Root
from flinkcore.sql.types.times import MS_OF_DAY

_UNITS_MS: Final = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": MS_OF_DAY}
_CUT_AS: Final = LogicalType(Root.DECIMAL, precision=38, scale=18)
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120}


def _places(value: Any, places: int, mode: str) -> Decimal:
    """Return a number rounded at a decimal place, exactly."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} cannot be rounded")
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -places:
        return exact
    return exact.quantize(Decimal(1).scaleb(-places, EXACT), mode, EXACT)


@function("ROUND", "TRUNCATE")
def round_(rows: Evaluation, call: RexCall) -> pa.Array:
    mode = ROUND_HALF_UP if call.name == "ROUND" else ROUND_DOWN
    arrays = [rows(operand) for operand in call.operands]
    kind = call.type

    is_cut = call.name == "TRUNCATE" and kind.root in FLOATS

    def of_row(value: Any, places: int = 0) -> Any:
        if is_cut:
            decimal = fit_one(_places(value, _CUT_AS.scale, ROUND_HALF_UP), _CUT_AS)
            if decimal is None:
                raise ValueError(f"{value} is beyond {_CUT_AS}, as which Flink truncates it")
            value = decimal
        rounded = _places(value, places, mode)
        if kind.root is Root.DECIMAL:
            return fit_one(rounded, kind)
        if kind.root in FLOATS:
            return float(rounded) + 0.0  # no decimal is -0.0
        return wrapped_one(int(rounded), kind)

    if call.operands[0].type.root is Root.FLOAT:
        arrays[0] = arrays[0].cast(pa.float64())
    return by_row(rows, call, of_row, *arrays, fails=True)


def _unit(call: RexCall) -> str | None:
    operand = call.operands[0].type.root
    if len(call.operands) == 1:
        return None if operand in NUMERIC else f"{call.name} of {call.operands[0].type} needs a unit"
    symbol = call.operands[1]
    unit = symbol.value if isinstance(symbol, Literal) else None
    if operand not in (Root.DATE, Root.TIME, *TIMESTAMPS):
        return f"{call.name} of {call.operands[0].type} to {unit} is not supported"
    if unit in _UNITS_MS or unit in _MONTHS or unit == "WEEK":
        return None
    return f"{call.name} to {unit} is not supported"


@function("FLOOR", "CEIL", check=_unit)
def floor(rows: Evaluation, call: RexCall) -> pa.Array:
    array = rows(call.operands[0])
    if len(call.operands) == 2:
        return _of_time(rows, call, array)
    root = call.operands[0].type.root
    if root in INTEGERS:
        return array
    if root is Root.DECIMAL:
        mode = ROUND_FLOOR if call.name == "FLOOR" else ROUND_CEILING
        return by_row(rows, call, lambda value: fit_one(_places(value, 0, mode), call.type), array)
    rounded = np.floor(numbers(array)) if call.name == "FLOOR" else np.ceil(numbers(array))
    return column(rounded, valid(array), call.type.arrow)


def _of_time(rows: Evaluation, call: RexCall, array: pa.Array) -> pa.Array:
    symbol, kind = call.operands[1], call.operands[0].type
    assert isinstance(symbol, Literal)
    if kind.root is Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    values, is_valid = integers(array), valid(array)
    unit = MS_OF_DAY if kind.root is Root.DATE else 1
    if kind.root in TIMESTAMPS:
        unit = per_milli(kind)
        millis = values // unit
    else:
        millis = values * unit
    floors = _floor(millis, symbol.value)
    if call.name == "CEIL":
        of_days = symbol.value not in _UNITS_MS
        reached = toward_zero(millis, MS_OF_DAY) * MS_OF_DAY if of_days else millis
        is_exact = floors == reached
        if symbol.value == "DECADE" or (kind.root is Root.DATE and symbol.value == "DAY"):
            is_exact &= False  # Flink takes the next one then, too
        floors = np.where(is_exact, floors, _next(floors, symbol.value))
    found = (
        floors // MS_OF_DAY if kind.root is Root.DATE else floors * (unit if kind.root in TIMESTAMPS else 1)
    )
    result = column(found, is_valid, array.type)
    return instants(result, rows.zone) if kind.root is Root.TIMESTAMP_LTZ else result


def _floor(millis: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64]
    if unit in _UNITS_MS:
        step = _UNITS_MS[unit]
        found = millis // step * step
        return found
    days = toward_zero(millis, MS_OF_DAY)
    if unit == "WEEK":  # weeks begin on Sundays; 1970-01-01 is a Thursday
        found = (days - (days + 4) % 7) * MS_OF_DAY
        return found
    step = _MONTHS[unit]
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    first = (months + 1970 * 12) // step * step - 1970 * 12
    found = _first_day(first) * MS_OF_DAY
    return found


def _first_day(months: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return found


def _next(floors: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    if unit in _UNITS_MS:
        return floors + _UNITS_MS[unit]
    if unit == "WEEK":
        return floors + 7 * MS_OF_DAY
    months = (floors // MS_OF_DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return _first_day(months + _MONTHS[unit]) * MS_OF_DAY
