"""Calls of functions of Arrow, and what of a session determines their values in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column

from flinkcore.spark.columns.spark_values import SparkValue


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the session on which values of Spark's functions depend.

    Attributes
    ----------
    is_ansi : bool
        Whether arithmetic that overflows is an error.
    is_utc : bool
        Whether the session's time zone is UTC.
    has_new_formats : bool
        Whether times are formatted in the proleptic Gregorian calendar.
    """

    is_ansi: bool
    is_utc: bool
    has_new_formats: bool

    @classmethod
    def of(cls, spark: Any) -> SessionSettings:
        """Return those of a session."""
        conf = spark.conf
        return cls(
            is_ansi=conf.get("spark.sql.ansi.enabled") == "true",
            is_utc=conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "Z", "GMT", "+00:00"),
            has_new_formats=conf.get("spark.sql.legacy.timeParserPolicy", "EXCEPTION") != "LEGACY",
        )


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function of Arrow.

    Attributes
    ----------
    text : str
        The call, as messages show it.
    options : dict
        Options by their names; of a cast the type is under "to_type".
    settings : SessionSettings
    """

    text: str
    options: Mapping[str, Any]
    settings: SessionSettings


Operands = Sequence[SparkValue]
SparkFunction = Callable[[FunctionCall, Operands], SparkValue | None]
"""From a call and its operands to the value; None where Spark's may differ."""


def failing_of(*operands: SparkValue) -> frozenset[str]:
    """Return the parts of operands that are an error for some values."""
    return frozenset[str]().union(*(operand.failing for operand in operands))


def made(column: Column, arrow_type: pa.DataType, *operands: SparkValue) -> SparkValue:
    """Return a value that fails where its operands do."""
    return SparkValue(column, arrow_type, failing_of(*operands))


def has_options(call: FunctionCall, **expected: Any) -> bool:
    """Return whether the options of a call are these, as far as it has them."""
    return all(call.options.get(name, value) == value for name, value in expected.items())
