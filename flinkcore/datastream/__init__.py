"""PyFlink's ``pyflink.datastream`` names: environment, streams, windows and aggregates, as a graph only."""

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream, KeyedStream, SideOutputStream, WindowedStream
from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

__all__ = [
    "FILE",
    "Aggregate",
    "DataStream",
    "EventTimeSessionWindows",
    "KeyedStream",
    "OutputTag",
    "SideOutputStream",
    "SlidingEventTimeWindows",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TumblingEventTimeWindows",
    "WindowAssigner",
    "WindowedStream",
]
