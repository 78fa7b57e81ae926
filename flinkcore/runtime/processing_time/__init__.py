"""The clock that processing-time timers and periodic watermarks run on."""

from flinkcore.runtime.processing_time.driven_processing_time_service import DrivenProcessingTimeService
from flinkcore.runtime.processing_time.processing_time_service import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
)
from flinkcore.runtime.processing_time.system_processing_time_service import SystemProcessingTimeService

__all__ = [
    "DrivenProcessingTimeService",
    "ProcessingTimeCallback",
    "ProcessingTimeService",
    "ScheduledTimer",
    "SystemProcessingTimeService",
]
