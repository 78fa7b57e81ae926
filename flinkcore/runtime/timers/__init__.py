"""Timers of keyed operators: services by name, each with an event-time and a processing-time queue."""

from flinkcore.runtime.timers.internal_time_service_manager import InternalTimeServiceManager
from flinkcore.runtime.timers.internal_timer import InternalTimer, Triggerable
from flinkcore.runtime.timers.internal_timer_service import InternalTimerService
from flinkcore.runtime.timers.internal_timers_snapshot import InternalTimersSnapshot
from flinkcore.runtime.timers.simple_timer_service import SimpleTimerService

__all__ = [
    "InternalTimeServiceManager",
    "InternalTimer",
    "InternalTimerService",
    "InternalTimersSnapshot",
    "SimpleTimerService",
    "Triggerable",
]
