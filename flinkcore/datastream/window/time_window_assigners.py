"""What the time domain of windows says of them."""

from typing import Any

from flinkcore.datastream.window.event_time_trigger import EventTimeTrigger
from flinkcore.datastream.window.processing_time_trigger import ProcessingTimeTrigger
from flinkcore.datastream.window.time_window import TimeWindow
from flinkcore.datastream.window.trigger import Trigger
from flinkcore.datastream.window.window_assigner import WindowAssigner


class EventTimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """Assigns windows of event time."""

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return an EventTimeTrigger."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Return True."""
        return True


class ProcessingTimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """Assigns windows of processing time."""

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return a ProcessingTimeTrigger."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Return False."""
        return False
