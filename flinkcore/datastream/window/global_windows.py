"""One window per key, for all elements."""

from dataclasses import dataclass, field
from typing import Any

from flinkcore.datastream.window.end_of_stream_trigger import EndOfStreamTrigger
from flinkcore.datastream.window.global_window import GlobalWindow
from flinkcore.datastream.window.never_trigger import NeverTrigger
from flinkcore.datastream.window.trigger import Trigger
from flinkcore.datastream.window.window_assigner import WindowAssigner


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Puts all elements of a key into one window, which never ends: a trigger says when it fires.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindows``.
    """

    _default_trigger: Trigger[Any, Any] = field(default_factory=NeverTrigger, repr=False)

    @staticmethod
    def create() -> "GlobalWindows":
        """Return global windows that never fire by themselves."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> "GlobalWindows":
        """Return global windows that fire at the end of the input."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        """Return the one window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return a NeverTrigger, or an EndOfStreamTrigger."""
        return self._default_trigger

    def is_event_time(self) -> bool:
        """Return False: elements are never late."""
        return False

    def __str__(self) -> str:
        return "the global window"
