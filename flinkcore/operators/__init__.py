"""Operators that process a stream element by element."""

from flinkcore.runtime.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkcore.runtime.operators.stream_operator import (
    AbstractStreamOperator,
    Input,
    OneInputStreamOperator,
    TwoInputStreamOperator,
)
from flinkcore.runtime.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator

__all__ = [
    "AbstractStreamOperator",
    "BroadcastProcessOperator",
    "CoProcessOperator",
    "Input",
    "KeyedBroadcastProcessOperator",
    "KeyedCoProcessOperator",
    "KeyedProcessOperator",
    "OneInputStreamOperator",
    "ProcessOperator",
    "TimestampsAndWatermarksOperator",
    "TwoInputStreamOperator",
]
