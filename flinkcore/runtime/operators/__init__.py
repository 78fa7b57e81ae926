"""Operators that handle a stream element by element."""

from flinkcore.runtime.operators.input import Input, TwoInputs
from flinkcore.runtime.operators.stream_operator import (
    AbstractStreamOperator,
    OneInputStreamOperator,
    TwoInputStreamOperator,
)
from flinkcore.runtime.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator

__all__ = [
    "AbstractStreamOperator",
    "Input",
    "OneInputStreamOperator",
    "TimestampsAndWatermarksOperator",
    "TwoInputStreamOperator",
    "TwoInputs",
]
