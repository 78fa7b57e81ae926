"""Values of expressions in each row, as columns of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.spark_types import SparkSchema

_YEARS_OF_PYTHON_US: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)


@dataclass(frozen=True)
class SparkValue:
    """The value of an expression in each row.

    Attributes
    ----------
    column : pyspark.sql.Column
    type : pyarrow.DataType
        Type that Arrow gives it; Spark's is that of `SparkSchema`.
    failing : frozenset of str
        Parts of the expression that are an error for some values.
    constant : pyarrow.Scalar or None
        The value, if it is a constant.
    """

    column: Column
    type: pa.DataType
    failing: frozenset[str] = frozenset()
    constant: pa.Scalar | None = None

    @property
    def plain_type(self) -> pa.DataType:
        """The type with Spark's unit of time."""
        return pa.timestamp("us", self.type.tz) if pa.types.is_timestamp(self.type) else self.type

    def fails_no_sooner(self, first: SparkValue) -> bool:
        """Return whether it can be computed where it is needed, and not for all rows, once another one is computed.

        Arrow computes all operands for all rows, and Spark computes the later ones of a condition or choice only where
        they count.
        """
        return self.failing <= first.failing


def spark_type(arrow_type: pa.DataType) -> Any:
    """Return the type of Spark with the values of a type of Arrow; a SchemaError if Spark lacks it."""
    return SparkSchema(pa.schema([("", arrow_type)])).struct_type[0].dataType


def constant_value(constant: pa.Scalar) -> SparkValue | None:
    """Return a constant, or None where Python has no such value."""
    kind, types = constant.type, pa.types
    column: Column
    if types.is_null(kind):
        column = F.lit(None)
    elif not (
        types.is_boolean(kind)
        or types.is_signed_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or (types.is_timestamp(kind) and kind.unit in ("s", "ms", "us"))
    ):
        return None
    elif not constant.is_valid:
        column = F.lit(None).cast(spark_type(kind))
    elif types.is_timestamp(kind):
        us = constant.value * {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit]
        least, most = _YEARS_OF_PYTHON_US
        if not least <= us <= most:
            return None
        column = F.timestamp_micros(F.lit(us).cast("bigint"))
        if kind.tz is None:
            text = pa.scalar(us, pa.timestamp("us")).as_py().isoformat(" ")
            column = F.lit(text).cast("timestamp_ntz")
    else:
        column = F.lit(constant.as_py()).cast(spark_type(kind))
    return SparkValue(column, kind, constant=constant)


def raised_if(fails: Column, message: str, otherwise: Column) -> Column:
    """Return a column that is an error of a row for which a condition is true."""
    return F.when(fails, F.raise_error(F.lit(message))).otherwise(otherwise)
