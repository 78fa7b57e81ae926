"""PyFlink's ``pyflink.datastream`` names: environment, streams, windows and aggregates, as a graph only."""

from functools import partial
from typing import TYPE_CHECKING, Final

from flinkcore._internal.python.lazy_names import by_name, lazy_names
from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE, PARTITION
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.checkpoint_config import CheckpointConfig
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.data_stream import CloseableIterator, DataStream, DataStreamSink
from flinkcore.datastream.execution_mode import RuntimeExecutionMode
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    Function,
    JoinFunction,
    KeyedBatchProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ParallelSourceFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceContext,
    SourceFunction,
    WindowFunction,
)
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import (
    BatchTimerService,
    CoalescingTimerService,
    TimerService,
    coalesced_timestamp,
)

if TYPE_CHECKING:
    from flinkcore.datastream.async_data_stream import AsyncDataStream
    from flinkcore.datastream.checkpoint_storage import (
        CheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
    from flinkcore.datastream.interval_joins import IntervalJoin, IntervalJoined
    from flinkcore.datastream.logs.connected_log_streams import (
        BroadcastConnectedLogStream,
        ConnectedLogStreams,
    )
    from flinkcore.datastream.logs.interval_log_joins import IntervalLogJoin, IntervalLogJoined
    from flinkcore.datastream.logs.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
    from flinkcore.datastream.logs.log_rows import SideOutputLogStream
    from flinkcore.datastream.logs.log_stream import LogStream
    from flinkcore.datastream.logs.windowed_log_streams import AllWindowedLogStream, WindowedLogStream
    from flinkcore.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from flinkcore.datastream.state_backend import (
        EmbeddedRocksDBStateBackend,
        HashMapStateBackend,
        PredefinedOptions,
        StateBackend,
    )
    from flinkcore.datastream.window import (
        CountWindow,
        EventTimeSessionWindows,
        GlobalWindow,
        MergingWindowAssigner,
        SlidingEventTimeWindows,
        TimeWindow,
        Trigger,
        TriggerResult,
        TumblingEventTimeWindows,
        Window,
        WindowAssigner,
    )
    from flinkcore.datastream.windowed_streams import AllWindowedStream, WindowedStream

__all__ = [
    "FILE",
    "PARTITION",
    "Aggregate",
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedLogStream",
    "AllWindowedStream",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BatchTimerService",
    "BroadcastConnectedLogStream",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "CoalescingTimerService",
    "ConnectedLogStreams",
    "ConnectedStreams",
    "CountWindow",
    "DataStream",
    "DataStreamSink",
    "EmbeddedRocksDBStateBackend",
    "EventTimeSessionWindows",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "GlobalWindow",
    "HashMapStateBackend",
    "IntervalJoin",
    "IntervalJoined",
    "IntervalLogJoin",
    "IntervalLogJoined",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "JoinedStreams",
    "KeySelector",
    "KeyedBatchProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedLogStream",
    "KeyedProcessFunction",
    "KeyedStream",
    "LogStream",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputTag",
    "ParallelSourceFunction",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SideOutputLogStream",
    "SinkFunction",
    "SlidingEventTimeWindows",
    "SlotSharingGroup",
    "SourceContext",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TaggedUnion",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedLogStream",
    "WindowedStream",
    "coalesced_timestamp",
]

_MODULES: Final = by_name(
    {
        "async_data_stream": "AsyncDataStream",
        "checkpoint_storage": "CheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage",
        "connected_streams": "BroadcastConnectedStream BroadcastStream ConnectedStreams",
        "externalized_checkpoint_retention": "ExternalizedCheckpointRetention",
        "interval_joins": "IntervalJoin IntervalJoined",
        "logs.connected_log_streams": "BroadcastConnectedLogStream ConnectedLogStreams",
        "logs.interval_log_joins": "IntervalLogJoin IntervalLogJoined",
        "logs.joined_streams": "CoGroupedStreams JoinedStreams",
        "logs.keyed_log_stream": "KeyedLogStream",
        "logs.log_rows": "SideOutputLogStream",
        "logs.log_stream": "LogStream",
        "logs.windowed_log_streams": "AllWindowedLogStream WindowedLogStream",
        "slot_sharing_group": "MemorySize SlotSharingGroup",
        "state_backend": "EmbeddedRocksDBStateBackend HashMapStateBackend PredefinedOptions StateBackend",
        "window": "CountWindow EventTimeSessionWindows GlobalWindow MergingWindowAssigner "
        "SlidingEventTimeWindows TimeWindow Trigger TriggerResult TumblingEventTimeWindows Window "
        "WindowAssigner",
        "windowed_streams": "AllWindowedStream WindowedStream",
    }
)
"""Modules of the names that few programs use."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, partial(refuse_name, __name__))
