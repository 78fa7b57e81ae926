"""The clock that processing-time timers and periodic watermarks run on."""

from flinkcore.runtime.processing_time.processing_time_service import ProcessingTimeService, ScheduledTimer

__all__ = ["ProcessingTimeService", "ScheduledTimer"]
