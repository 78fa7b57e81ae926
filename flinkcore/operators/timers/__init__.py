"""Timers of keyed operators: services by name, each with an event-time and a processing-time queue. Private."""

from flinkcore.operators.timers.function_timer_services import SimpleTimerService
from flinkcore.operators.timers.internal_timer_service import (
    InternalTimer,
    InternalTimerService,
    InternalTimeServiceManager,
    Triggerable,
)
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot

__all__ = [
    "InternalTimeServiceManager",
    "InternalTimer",
    "InternalTimerService",
    "InternalTimersSnapshot",
    "SimpleTimerService",
    "Triggerable",
]
