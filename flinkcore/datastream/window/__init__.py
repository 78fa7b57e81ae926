"""PyFlink's ``pyflink.datastream.window`` names: windows, their assigners, triggers and evictors."""

from flinkcore.datastream.window.continuous_event_time_trigger import ContinuousEventTimeTrigger
from flinkcore.datastream.window.continuous_processing_time_trigger import ContinuousProcessingTimeTrigger
from flinkcore.datastream.window.count_evictor import CountEvictor
from flinkcore.datastream.window.count_trigger import CountTrigger
from flinkcore.datastream.window.count_window import CountWindow
from flinkcore.datastream.window.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from flinkcore.datastream.window.cumulative_windows import CumulativeEventTimeWindows
from flinkcore.datastream.window.delta_evictor import DeltaEvictor
from flinkcore.datastream.window.delta_function import DeltaFunction
from flinkcore.datastream.window.delta_trigger import DeltaTrigger
from flinkcore.datastream.window.end_of_stream_trigger import EndOfStreamTrigger
from flinkcore.datastream.window.event_time_trigger import EventTimeTrigger
from flinkcore.datastream.window.evictor import Evictor, TimestampedValue
from flinkcore.datastream.window.global_window import GlobalWindow
from flinkcore.datastream.window.global_windows import GlobalWindows
from flinkcore.datastream.window.never_trigger import NeverTrigger
from flinkcore.datastream.window.processing_time_trigger import ProcessingTimeTrigger
from flinkcore.datastream.window.processing_timeout_trigger import ProcessingTimeoutTrigger
from flinkcore.datastream.window.purging_trigger import PurgingTrigger
from flinkcore.datastream.window.session_gap import SessionWindowTimeGapExtractor
from flinkcore.datastream.window.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from flinkcore.datastream.window.sliding_windows import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from flinkcore.datastream.window.time_evictor import TimeEvictor
from flinkcore.datastream.window.time_window import TimeWindow
from flinkcore.datastream.window.trigger import Trigger, TriggerResult
from flinkcore.datastream.window.tumbling_windows import (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkcore.datastream.window.window import Window
from flinkcore.datastream.window.window_assigner import MergingWindowAssigner, WindowAssigner
from flinkcore.datastream.window.window_operation import WindowOperation
from flinkcore.datastream.window.window_serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from flinkcore.datastream.window.window_stagger import WindowStagger

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "CumulativeEventTimeWindows",
    "DeltaEvictor",
    "DeltaFunction",
    "DeltaTrigger",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EndOfStreamTrigger",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
    "WindowOperation",
    "WindowStagger",
]
