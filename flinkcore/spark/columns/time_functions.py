"""Functions of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.function_calls import (
    FunctionCall,
    Operands,
    SparkFunction,
    has_options,
    made,
)
from flinkcore.spark.columns.spark_values import SparkValue


def time_part(part: Callable[[Column], Column]) -> SparkFunction:
    """Return the function that returns a part of a time."""

    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (time,) = operands
        is_day = time.type == pa.date32() and part in (F.year, F.month, F.day)
        if not is_day and not _is_local(call, time):
            return None
        return made(part(time.column).cast("bigint"), pa.int64(), time)

    return of


def _is_local(call: FunctionCall, time: SparkValue) -> bool:
    """Return whether Spark gives the time on the clock that Arrow gives."""
    kind = time.type
    if not pa.types.is_timestamp(kind) or kind.unit not in ("s", "ms", "us"):
        return False
    return kind.tz is None or (kind.tz == "UTC" and call.settings.is_utc)


_TOKENS: Final = {"Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm"}
_BETWEEN_TOKENS: Final = frozenset("-/:. ")


def strftime(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Format a time, in patterns of digits."""
    (time,) = operands
    pattern = _spark_format(call.options["format"])
    if pattern is None or not _is_local(call, time) or not call.settings.has_new_formats:
        return None
    if not call.settings.is_utc:  # date_format casts times without a zone through the session's
        return None
    if not has_options(call, locale="C"):
        return None
    formatted = F.date_format(time.column, pattern)
    if "yyyy" in pattern:
        # Other years have a sign, or more digits, in one of both.
        year = F.year(time.column)
        digits = F.lpad(
            F.abs(year).cast("string"), F.greatest(F.length(F.abs(year).cast("string")), F.lit(4)), "0"
        )
        shown = F.concat(F.when(year < 0, F.lit("-")).otherwise(F.lit("")), digits)
        before, *rest = pattern.split("yyyy")
        parts: list[Column] = [F.date_format(time.column, before)] if before else []
        for each in rest:
            parts += [shown, *([F.date_format(time.column, each)] if each else [])]
        formatted = F.when(year.between(0, 9999), formatted).otherwise(F.concat(*parts))
    return made(formatted, pa.string(), time)


def _spark_format(pattern: str) -> str | None:
    """Return Spark's pattern of a format of times, or None if it may format otherwise."""
    found, rest = [], iter(pattern)
    for character in rest:
        if character == "%":
            token = _TOKENS.get(next(rest, ""))
            if token is None:
                return None
            found.append(token)
        elif character in _BETWEEN_TOKENS:
            found.append(character)
        else:
            return None
    return "".join(found) or None
