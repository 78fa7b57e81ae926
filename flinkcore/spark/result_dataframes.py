"""DataFrames that are given to an analysis, and names of their columns."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as f

from flinkcore.columnar.results.result import JobResult
from flinkcore.errors import ConfigurationError
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.logs.dataframe_log import quoted

_EPOCH: Final = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def dataframe_of(data: Any, name: str, for_user: bool = True) -> DataFrame:
    """Return a DataFrame, or that of a job's result.

    Parameters
    ----------
    data : DataFrame or JobResult
    name : str
        Name of the data in messages.
    for_user : bool
        Whether it is the user who runs it; see `portable`.

    Raises
    ------
    ConfigurationError
        If it is something else.
    """
    if isinstance(data, SparkResult):
        return data.dataframe(None, for_user)
    if isinstance(data, JobResult):
        return data.to_dataframe()
    if hasattr(data, "schema") and hasattr(data, "withColumn"):  # of Spark Connect, too
        return data
    raise ConfigurationError(
        f"{name} are a DataFrame of Spark, or a result of a job on Spark, not {type(data).__qualname__}; for Arrow "
        "tables take flinkcore.analysis"
    )


def utc_timestamp(name: str, kind: types.DataType) -> Column:
    """Return a column of timestamps as TIMESTAMP_NTZ in UTC, whatever the time zone of the session.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : pyspark.sql.types.DataType
        Its type: a timestamp with or without a zone.
    """
    column = quoted(name)
    if isinstance(kind, types.TimestampNTZType):
        return f.col(column)
    # A cast would take the session's time zone.
    return f.expr(f"{_EPOCH} + make_dt_interval(0, 0, 0, unix_micros({column}) * 0.000001BD)")
