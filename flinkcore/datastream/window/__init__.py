"""PyFlink's ``pyflink.datastream.window`` names: windows, their assigners, triggers and evictors."""

from typing import TYPE_CHECKING, Final

from flinkcore._internal.python.lazy_names import by_name, lazy_names

if TYPE_CHECKING:
    from flinkcore.datastream.window.count_windows import (
        CountSlidingWindowAssigner,
        CountTumblingWindowAssigner,
        GlobalWindows,
    )
    from flinkcore.datastream.window.delta_function import DeltaFunction
    from flinkcore.datastream.window.evictors import (
        CountEvictor,
        DeltaEvictor,
        Evictor,
        TimeEvictor,
        TimestampedValue,
    )
    from flinkcore.datastream.window.local_time_windows import LocalEventTimeWindows
    from flinkcore.datastream.window.session_windows import (
        DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows,
        EventTimeSessionWindows,
        ProcessingTimeSessionWindows,
        SessionWindowTimeGapExtractor,
    )
    from flinkcore.datastream.window.time_windows import (
        CumulativeEventTimeWindows,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
    )
    from flinkcore.datastream.window.triggers import (
        ContinuousEventTimeTrigger,
        ContinuousProcessingTimeTrigger,
        CountTrigger,
        DeltaTrigger,
        EndOfStreamTrigger,
        EventTimeTrigger,
        NeverTrigger,
        ProcessingTimeoutTrigger,
        ProcessingTimeTrigger,
        PurgingTrigger,
        Trigger,
        TriggerResult,
    )
    from flinkcore.datastream.window.window_assigner import (
        MergingWindowAssigner,
        WindowAssigner,
        WindowStagger,
    )
    from flinkcore.datastream.window.window_operation import WindowOperation
    from flinkcore.datastream.window.windows import (
        CountWindow,
        CountWindowSerializer,
        GlobalWindow,
        GlobalWindowSerializer,
        TimeWindow,
        TimeWindowSerializer,
        Window,
    )

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
    "LocalEventTimeWindows",
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

_MODULES: Final = by_name(
    {
        "count_windows": "CountSlidingWindowAssigner CountTumblingWindowAssigner GlobalWindows",
        "delta_function": "DeltaFunction",
        "evictors": "CountEvictor DeltaEvictor Evictor TimeEvictor TimestampedValue",
        "local_time_windows": "LocalEventTimeWindows",
        "session_windows": "DynamicEventTimeSessionWindows DynamicProcessingTimeSessionWindows "
        "EventTimeSessionWindows ProcessingTimeSessionWindows SessionWindowTimeGapExtractor",
        "time_windows": "CumulativeEventTimeWindows SlidingEventTimeWindows SlidingProcessingTimeWindows "
        "TumblingEventTimeWindows TumblingProcessingTimeWindows",
        "triggers": "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountTrigger DeltaTrigger "
        "EndOfStreamTrigger EventTimeTrigger NeverTrigger ProcessingTimeoutTrigger "
        "ProcessingTimeTrigger PurgingTrigger Trigger TriggerResult",
        "window_assigner": "MergingWindowAssigner WindowAssigner WindowStagger",
        "window_operation": "WindowOperation",
        "windows": "CountWindow CountWindowSerializer GlobalWindow GlobalWindowSerializer TimeWindow "
        "TimeWindowSerializer Window",
    }
)
"""Modules of the names: most programs need few of them."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES)
