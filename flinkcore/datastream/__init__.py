"""PyFlink's ``pyflink.datastream`` names: environment, streams, windows and aggregates, as a graph only."""

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.all_windowed_stream import AllWindowedStream
from flinkcore.datastream.batch_timer_service import BatchTimerService
from flinkcore.datastream.coalesced_timers import CoalescingTimerService, coalesced_timestamp
from flinkcore.datastream.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    BroadcastProcessFunction,
    CoGroupFunction,
    CoProcessFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    KeyedBatchProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    WindowFunction,
)
from flinkcore.datastream.interval_join import IntervalJoin, IntervalJoined
from flinkcore.datastream.joined_streams import CoGroupedStreams, JoinedStreams
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.side_output_stream import SideOutputStream
from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
from flinkcore.datastream.tagged_union import TaggedUnion
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
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
from flinkcore.datastream.windowed_stream import WindowedStream

__all__ = [
    "FILE",
    "Aggregate",
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedStream",
    "BatchTimerService",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoProcessFunction",
    "CoalescingTimerService",
    "ConnectedStreams",
    "CountWindow",
    "DataStream",
    "EventTimeSessionWindows",
    "FlatJoinFunction",
    "Function",
    "GlobalWindow",
    "IntervalJoin",
    "IntervalJoined",
    "JoinFunction",
    "JoinedStreams",
    "KeyedBatchProcessFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MergingWindowAssigner",
    "OutputTag",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SideOutputStream",
    "SlidingEventTimeWindows",
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
    "WindowedStream",
    "coalesced_timestamp",
]
