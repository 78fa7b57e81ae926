"""Windows of so many elements of a key."""

from dataclasses import dataclass
from typing import Any, Final

from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window.count_trigger import CountTrigger
from flinkcore.datastream.window.count_window import CountWindow
from flinkcore.datastream.window.counts import require_count
from flinkcore.datastream.window.purging_trigger import PurgingTrigger
from flinkcore.datastream.window.trigger import Trigger
from flinkcore.datastream.window.window_assigner import WindowAssigner

_TUMBLING_COUNT: Final[ValueStateDescriptor[int]] = ValueStateDescriptor("tumble-count-assigner")
_SLIDING_COUNT: Final[ValueStateDescriptor[int]] = ValueStateDescriptor("slide-count-assigner")


def _count_up(descriptor: ValueStateDescriptor[int], context: WindowAssigner.WindowAssignerContext) -> int:
    """Return how many elements the key had before, and count one more."""
    state = context.get_runtime_context().get_state(descriptor)
    count = state.value() or 0
    state.update(count + 1)
    return count


@dataclass(frozen=True)
class CountTumblingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Numbers the elements of each key, and puts every so many into a window.

    Parameters
    ----------
    window_size : int
        At least 1.

    Raises
    ------
    ConfigurationError
        If the size is below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountTumblingWindowAssigner``. A window that is not full never fires.
    Deliberate difference: a window that has fired is empty, where PyFlink keeps its elements for good.
    """

    window_size: int

    def __post_init__(self) -> None:
        require_count("CountTumblingWindowAssigner", "size", self.window_size)

    @staticmethod
    def of(window_size: int) -> "CountTumblingWindowAssigner":
        """Return windows of so many elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Return the window of the next element of the key."""
        return [CountWindow(_count_up(_TUMBLING_COUNT, context) // self.window_size)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return a CountTrigger of the size that purges, as no more elements come into a full window."""
        return PurgingTrigger(CountTrigger(self.window_size))

    def is_event_time(self) -> bool:
        """Return False: elements are never late."""
        return False

    def __str__(self) -> str:
        return f"windows of {self.window_size} elements"


@dataclass(frozen=True)
class CountSlidingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Numbers the elements of each key; at every so many a window of a size starts.

    Parameters
    ----------
    window_size, window_slide : int
        At least 1.

    Raises
    ------
    ConfigurationError
        If size or slide are below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountSlidingWindowAssigner``, which fires full windows only; Java's
    ``countWindow`` is global windows with triggers and evictors by count.
    """

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        require_count("CountSlidingWindowAssigner", "size", self.window_size)
        require_count("CountSlidingWindowAssigner", "slide", self.window_slide)

    @staticmethod
    def of(window_size: int, window_slide: int) -> "CountSlidingWindowAssigner":
        """Return windows of so many elements that start at every so many."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Return the windows of the next element of the key, the latest one first."""
        count = _count_up(_SLIDING_COUNT, context)
        last = count // self.window_slide
        beyond = max(-1, (count - self.window_size) // self.window_slide)
        return [CountWindow(number) for number in range(last, beyond, -1)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return a CountTrigger of the size that purges, as no more elements come into a full window."""
        return PurgingTrigger(CountTrigger(self.window_size))

    def is_event_time(self) -> bool:
        """Return False: elements are never late."""
        return False

    def __str__(self) -> str:
        return f"windows of {self.window_size} elements, every {self.window_slide}"
