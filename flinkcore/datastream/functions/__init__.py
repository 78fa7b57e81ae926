"""PyFlink's ``pyflink.datastream.functions`` names: what a user derives a function from."""

from flinkcore.datastream.functions.aggregate_function import AggregateFunction
from flinkcore.datastream.functions.broadcast_process_function import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from flinkcore.datastream.functions.co_group_function import CoGroupFunction
from flinkcore.datastream.functions.co_process_function import CoProcessFunction
from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.join_function import FlatJoinFunction, JoinFunction
from flinkcore.datastream.functions.keyed_batch_process_function import (
    BatchResults,
    KeyedBatchProcessFunction,
)
from flinkcore.datastream.functions.keyed_co_process_function import KeyedCoProcessFunction
from flinkcore.datastream.functions.keyed_process_function import KeyedProcessFunction
from flinkcore.datastream.functions.keyed_state_store import KeyedStateStore
from flinkcore.datastream.functions.process_function import ProcessFunction
from flinkcore.datastream.functions.process_join_function import ProcessJoinFunction
from flinkcore.datastream.functions.process_window_function import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
)
from flinkcore.datastream.functions.reduce_function import ReduceFunction, ReduceFunctionWrapper
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.functions.window_function import AllWindowFunction, WindowFunction

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "BaseBroadcastProcessFunction",
    "BatchResults",
    "BroadcastProcessFunction",
    "CoGroupFunction",
    "CoProcessFunction",
    "FlatJoinFunction",
    "Function",
    "JoinFunction",
    "KeyedBatchProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "ReduceFunctionWrapper",
    "Results",
    "RuntimeContext",
    "WindowContext",
    "WindowFunction",
]
