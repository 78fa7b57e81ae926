"""Spark DataFrames as logs: their columns, and what Spark computes of them before the replay."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import to_arrow_schema

from flinkcore.datastream.transformations import LogData
from flinkcore.replay.log.column_ops import COMPUTED_PREFIX
from flinkcore.replay.log.plain_columns import plain_schema

# Spark 4 and later require a time zone for timestamps; their values do not depend on it.
_SCHEMA_ZONE: Final = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


class DataFrameLog(LogData):
    """A DataFrame as the data of an `EventLogSource`: as Arrow data it has columns, but no rows.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
    """

    def __init__(self, dataframe: Any) -> None:
        self.dataframe = dataframe

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return log_schema(self.dataframe).empty_table().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return f"Spark DataFrame[{', '.join(self.dataframe.columns)}]"

    @property
    def order(self) -> str:
        return "Spark's order"

    def filter(self, condition: Any) -> DataFrameLog | None:
        """Return the log with the rows for which a condition of Spark, or one as text, is true."""
        if not isinstance(condition, str) and not is_spark_column(condition):
            return None
        return DataFrameLog(self.dataframe.filter(condition))

    def with_columns(self, expressions: Mapping[str, Any]) -> DataFrameLog | None:
        """Return the log with columns of Spark, new or in the place of others."""
        if not all(map(is_spark_column, expressions.values())):
            return None
        return DataFrameLog(self.dataframe.withColumns(dict(expressions)))

    def with_column_of(self, setting: str, expression: Any) -> tuple[DataFrameLog, str]:
        """Return the log with the column that a setting names by `F.col` or computes, and that column's name.

        Parameters
        ----------
        setting : str
            "timestamp", "arrival" or "split".
        expression : pyspark.sql.Column
        """
        (name,) = self.dataframe.select(expression).columns
        if str(expression) == f"Column<'{name}'>" and not self._is_constant(expression, name):
            return self, name
        computed = f"{COMPUTED_PREFIX}{setting}: {name}"
        return DataFrameLog(self.dataframe.withColumns({computed: expression})), computed

    def _is_constant(self, expression: Any, name: str) -> bool:
        """Return whether an expression written as a name is a literal, which has a value without that column, too."""
        try:
            return bool(self.dataframe.drop(name).select(expression).columns)
        except AnalysisException:
            return False


def is_spark_column(value: object) -> bool:
    """Return whether it is a column expression of Spark, with or without Connect."""
    kind = type(value)
    return kind.__name__ == "Column" and kind.__module__.startswith("pyspark.sql.")


def log_schema(dataframe: Any) -> pa.Schema:
    """Return the schema of a Spark DataFrame as it comes to Python."""
    return plain_schema(to_arrow_schema(dataframe.schema, **_SCHEMA_ZONE))
