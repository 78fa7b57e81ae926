"""PyFlink's ``pyflink.datastream.functions`` names: what a user derives a function from."""

from typing import NoReturn

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.datastream.functions.async_functions import (
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from flinkcore.datastream.functions.checkpointed_function import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from flinkcore.datastream.functions.element_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    SinkFunction,
)
from flinkcore.datastream.functions.function import (
    Function,
    FunctionOrCallable,
    Results,
    function_call,
    function_name,
    require_function,
)
from flinkcore.datastream.functions.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from flinkcore.datastream.functions.keyed_batch_process_function import (
    BatchResults,
    KeyedBatchProcessFunction,
    RowResults,
)
from flinkcore.datastream.functions.process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from flinkcore.datastream.functions.reduce_function import (
    AggregateFunction,
    ReduceFunction,
    ReduceFunctionWrapper,
)
from flinkcore.datastream.functions.runtime_context import KeyedStateStore, RuntimeContext
from flinkcore.datastream.functions.source_functions import (
    PacedSourceContext,
    ParallelSourceFunction,
    SourceContext,
    SourceFunction,
)
from flinkcore.datastream.functions.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
    WindowFunction,
)
from flinkcore.datastream.timerservice import TimerService

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BatchResults",
    "BroadcastProcessFunction",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionOrCallable",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBatchProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "NullByteKeySelector",
    "PacedSourceContext",
    "ParallelSourceFunction",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "ReduceFunctionWrapper",
    "Results",
    "RowResults",
    "RuntimeContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "WindowContext",
    "WindowFunction",
    "function_call",
    "function_name",
    "require_function",
]


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
