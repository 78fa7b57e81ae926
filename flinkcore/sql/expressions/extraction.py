"""EXTRACT: fields of dates and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.sql.expressions.casts import local_time
from flinkcore.sql.expressions.evaluation import Evaluation, column, function, integers, valid
from flinkcore.sql.expressions.time_arithmetic import per_milli, toward_zero
from flinkcore.sql.plan.rex import Literal, RexCall
from flinkcore.sql.types.logical_types import TIMESTAMPS, Root
from flinkcore.sql.types.times import MS_OF_DAY

Int64s = npt.NDArray[np.int64]


def _months(days: Int64s) -> Int64s:
    found: Int64s = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 1970 * 12
    return found


def _day_of(days: Int64s, unit: str) -> Int64s:
    first = (
        days.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)
    )
    found: Int64s = days - first + 1
    return found


def _iso(days: Int64s) -> tuple[Int64s, Int64s]:
    """Return year and number of the ISO week: that of its Thursday."""
    thursdays = days - (days + 3) % 7 + 3
    return _months(thursdays) // 12, (_day_of(thursdays, "Y") - 1) // 7 + 1


_OF_DAY: Final[dict[str, Callable[[Int64s], Int64s]]] = {
    "EPOCH": lambda days: days * 86_400,
    "YEAR": lambda days: _months(days) // 12,
    "QUARTER": lambda days: _months(days) % 12 // 3 + 1,
    "MONTH": lambda days: _months(days) % 12 + 1,
    "DAY": lambda days: _day_of(days, "M"),
    "DOW": lambda days: (days + 4) % 7 + 1,
    "ISODOW": lambda days: (days + 3) % 7 + 1,
    "DOY": lambda days: _day_of(days, "Y"),
    "WEEK": lambda days: _iso(days)[1],
    "DECADE": lambda days: _months(days) // 12 // 10,
    "CENTURY": lambda days: (_months(days) // 12 + 99) // 100,
    "MILLENNIUM": lambda days: (_months(days) // 12 + 999) // 1000,
    "ISOYEAR": lambda days: _iso(days)[0],
}
_OF_TIME: Final[dict[str, tuple[int, int]]] = {
    "HOUR": (3_600_000, 24),
    "MINUTE": (60_000, 60),
    "SECOND": (1000, 60),
    "MILLISECOND": (1, 1000),
}
"""Milliseconds of a field, and how many of it there are."""

_TIMES: Final = frozenset((Root.DATE, Root.TIME, *TIMESTAMPS))


def _known(call: RexCall) -> str | None:
    unit, kind = _unit(call), call.operands[1].type
    if kind.root in _TIMES and unit in _OF_TIME and kind.root is not Root.DATE:
        return None
    if kind.root in _TIMES and unit in _OF_DAY and kind.root is not Root.TIME:
        return None
    return f"EXTRACT({unit} FROM {kind}) is not supported"


def _unit(call: RexCall) -> Any:
    symbol = call.operands[0]
    return symbol.value if isinstance(symbol, Literal) else None


@function("EXTRACT", check=_known)
def extract(rows: Evaluation, call: RexCall) -> pa.Array:
    unit, kind = _unit(call), call.operands[1].type
    array = rows(call.operands[1])
    if kind.root is Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    values = integers(array)
    if kind.root in TIMESTAMPS:
        values = values // per_milli(kind)
    if unit == "EPOCH" and kind.root is not Root.DATE:
        found = toward_zero(values, 1000)
    elif unit in _OF_TIME:
        step, count = _OF_TIME[unit]
        found = toward_zero(np.fmod(values, step * count), step)
    else:
        found = _OF_DAY[unit](values if kind.root is Root.DATE else toward_zero(values, MS_OF_DAY))
    return column(found, valid(array), call.type.arrow)
