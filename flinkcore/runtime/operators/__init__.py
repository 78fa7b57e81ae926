"""Operators that handle a stream element by element."""

from flinkcore.runtime.operators.broadcast_process_operator import BroadcastProcessOperator
from flinkcore.runtime.operators.co_process_operator import CoProcessOperator
from flinkcore.runtime.operators.input import Input, TwoInputs
from flinkcore.runtime.operators.interval_join_operator import IntervalJoinOperator
from flinkcore.runtime.operators.keyed_broadcast_process_operator import KeyedBroadcastProcessOperator
from flinkcore.runtime.operators.keyed_co_process_operator import KeyedCoProcessOperator
from flinkcore.runtime.operators.keyed_process_operator import KeyedProcessOperator
from flinkcore.runtime.operators.process_operator import ProcessOperator
from flinkcore.runtime.operators.stream_operator import (
    AbstractStreamOperator,
    OneInputStreamOperator,
    TwoInputStreamOperator,
)
from flinkcore.runtime.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator

__all__ = [
    "AbstractStreamOperator",
    "BroadcastProcessOperator",
    "CoProcessOperator",
    "Input",
    "IntervalJoinOperator",
    "KeyedBroadcastProcessOperator",
    "KeyedCoProcessOperator",
    "KeyedProcessOperator",
    "OneInputStreamOperator",
    "ProcessOperator",
    "TimestampsAndWatermarksOperator",
    "TwoInputStreamOperator",
    "TwoInputs",
]
