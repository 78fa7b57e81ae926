"""Operators that handle a stream element by element."""

from flinkcore.runtime.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator

__all__ = ["TimestampsAndWatermarksOperator"]
