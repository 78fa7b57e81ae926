"""The clock that processing-time timers and periodic watermarks run on."""

from flinkcore.runtime.processing_time.driven_processing_time_service import DrivenProcessingTimeService
from flinkcore.runtime.processing_time.processing_time_service import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
)

__all__ = [
    "DrivenProcessingTimeService",
    "ProcessingTimeCallback",
    "ProcessingTimeService",
    "ScheduledTimer",
]
