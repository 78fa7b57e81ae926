"""PyFlink's ``pyflink.datastream.functions`` names: what a user derives a function from."""

from flinkcore.datastream.functions.aggregate_function import AggregateFunction
from flinkcore.datastream.functions.broadcast_process_function import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from flinkcore.datastream.functions.co_flat_map_function import CoFlatMapFunction
from flinkcore.datastream.functions.co_group_function import CoGroupFunction
from flinkcore.datastream.functions.co_map_function import CoMapFunction
from flinkcore.datastream.functions.co_process_function import CoProcessFunction
from flinkcore.datastream.functions.filter_function import FilterFunction
from flinkcore.datastream.functions.flat_map_function import FlatMapFunction
from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.function_calls import (
    FunctionOrCallable,
    function_call,
    function_name,
    require_function,
)
from flinkcore.datastream.functions.join_function import FlatJoinFunction, JoinFunction
from flinkcore.datastream.functions.key_selector import KeySelector, NullByteKeySelector
from flinkcore.datastream.functions.keyed_batch_process_function import (
    BatchResults,
    KeyedBatchProcessFunction,
)
from flinkcore.datastream.functions.keyed_co_process_function import KeyedCoProcessFunction
from flinkcore.datastream.functions.keyed_process_function import KeyedProcessFunction
from flinkcore.datastream.functions.keyed_state_store import KeyedStateStore
from flinkcore.datastream.functions.map_function import MapFunction
from flinkcore.datastream.functions.partitioner import Partitioner
from flinkcore.datastream.functions.process_function import ProcessFunction
from flinkcore.datastream.functions.process_join_function import ProcessJoinFunction
from flinkcore.datastream.functions.process_window_function import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
)
from flinkcore.datastream.functions.reduce_function import ReduceFunction, ReduceFunctionWrapper
from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.datastream.functions.sink_function import SinkFunction
from flinkcore.datastream.functions.source_function import SourceFunction
from flinkcore.datastream.functions.window_function import AllWindowFunction, WindowFunction

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "BaseBroadcastProcessFunction",
    "BatchResults",
    "BroadcastProcessFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionOrCallable",
    "JoinFunction",
    "KeySelector",
    "KeyedBatchProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "ReduceFunctionWrapper",
    "Results",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "WindowContext",
    "WindowFunction",
    "function_call",
    "function_name",
    "require_function",
]
