"""Dates and times plus intervals, and differences of two times."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.sql.expressions.evaluation import Evaluation, column, integers, valid
from flinkcore.sql.plan.rex import Rex, RexCall
from flinkcore.sql.types.logical_types import INTERVALS, TIMESTAMPS, LogicalType, Root
from flinkcore.sql.types.times import MS_OF_DAY

Int64s = npt.NDArray[np.int64]


def per_milli(kind: LogicalType) -> int:
    """Return how many units of a timestamp's column a millisecond has."""
    return {"ms": 1, "us": 1_000, "ns": 1_000_000}[kind.unit]


def toward_zero(values: Int64s, step: int) -> Int64s:
    """Return quotients as Java divides: days and fields of times before 1970 are those that Flink returns."""
    found: Int64s = np.where(values < 0, -(-values // step), values // step)
    return found


def plus_months(days: Int64s, months: Any) -> Int64s:
    """Return days moved by months, at most to the last day of the month."""
    day = days.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    within = (day - month.astype("datetime64[D]")).astype(np.int64)
    moved = month + np.asarray(months).astype("timedelta64[M]")
    last = ((moved + np.timedelta64(1, "M")).astype("datetime64[D]") - moved.astype("datetime64[D]")).astype(
        np.int64
    ) - 1
    found: Int64s = moved.astype("datetime64[D]").astype(np.int64) + np.minimum(within, last)
    return found


def plus_interval(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return a date, time or timestamp plus or minus an interval."""
    time, interval = call.operands
    if time.type.root in INTERVALS:
        time, interval = interval, time
    arrays = rows(time), rows(interval)
    amounts = integers(arrays[1]) * (-1 if call.name == "-" else 1)
    values, is_valid = integers(arrays[0]), valid(*arrays)
    return column(_moved(values, amounts, time.type, interval.type, call.type), is_valid, call.type.arrow)


def _moved(
    values: Int64s, amounts: Int64s, time: LogicalType, interval: LogicalType, wanted: LogicalType
) -> Int64s:
    if interval.root is Root.INTERVAL_MONTHS:
        if time.root is Root.DATE:
            return plus_months(values, amounts)
        per_day = MS_OF_DAY * per_milli(time)
        days = values // per_day
        return plus_months(days, amounts) * per_day + (values - days * per_day)
    if time.root is Root.DATE:
        if wanted.root is Root.DATE:
            return values + amounts // MS_OF_DAY
        return (values * MS_OF_DAY + amounts) * per_milli(wanted)
    if time.root is Root.TIME:
        found: Int64s = np.mod(values + amounts, MS_OF_DAY)
        return found
    moved = values * (per_milli(wanted) // per_milli(time)) if time.unit != wanted.unit else values
    return moved + amounts * per_milli(wanted)


def milliseconds(rows: Evaluation, rex: Rex) -> tuple[Int64s, pa.Array]:
    """Return dates, times or timestamps in milliseconds, and their column."""
    array = rows(rex)
    values = integers(array)
    if rex.type.root is Root.DATE:
        values = values * MS_OF_DAY
    elif rex.type.root in TIMESTAMPS:
        values = values // per_milli(rex.type)
    return values, array


def minus_times(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return the difference of two times, in months or milliseconds."""
    (left, left_column), (right, right_column) = (milliseconds(rows, operand) for operand in call.operands)
    found = left - right
    if call.type.root is Root.INTERVAL_MONTHS:
        found = months_between(left, right)
    return column(found, valid(left_column, right_column), call.type.arrow)


def months_between(left: Int64s, right: Int64s) -> Int64s:
    """Return the whole months from one time to another, in milliseconds, toward zero."""
    left_days, right_days = left // MS_OF_DAY, right // MS_OF_DAY
    months = left_days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) - right_days.astype(
        "datetime64[D]"
    ).astype("datetime64[M]").astype(np.int64)
    reached = plus_months(right_days, months) * MS_OF_DAY + (right - right_days * MS_OF_DAY)
    found: Int64s = months - ((months > 0) & (reached > left)) + ((months < 0) & (reached < left))
    return found
