"""Windows that no clock ends: of a number of elements, and the global window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from flinkcore.common.typeinfo import Types
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    NeverTrigger,
    PurgingTrigger,
    Trigger,
)
from flinkcore.datastream.window.window_assigner import WindowAssigner
from flinkcore.datastream.window.window_settings import require_count
from flinkcore.datastream.window.windows import CountWindow, GlobalWindow

_TUMBLING_COUNT: Final = ValueStateDescriptor[int]("tumble-count-assigner", Types.LONG())
_SLIDING_COUNT: Final = ValueStateDescriptor[int]("slide-count-assigner", Types.LONG())


def _count_up(descriptor: ValueStateDescriptor[int], context: WindowAssigner.WindowAssignerContext) -> int:
    """Return how many elements the key had before, and count one more."""
    state = context.get_runtime_context().get_state(descriptor)
    count = state.value() or 0
    state.update(count + 1)
    return count


@dataclass(frozen=True)
class _CountWindows(WindowAssigner[Any, CountWindow]):
    window_size: int

    def __post_init__(self) -> None:
        require_count(type(self).__name__, "size", self.window_size)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        # It purges, since a full window gets no more elements.
        return PurgingTrigger(CountTrigger(self.window_size))

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Numbers the elements of each key, and puts each run of a number of them into a window.

    Parameters
    ----------
    window_size : int
        Number of elements, at least 1.

    Raises
    ------
    ConfigurationError
        If the size is below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountTumblingWindowAssigner``. A window that is not full never fires.
    Deliberate difference: a window that has fired is empty, where PyFlink keeps its elements for good.
    """

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Return windows of a number of elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        return [CountWindow(_count_up(_TUMBLING_COUNT, context) // self.window_size)]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.window_size})"

    @property
    def in_words(self) -> str:
        return f"windows of {self.window_size} elements"


@dataclass(frozen=True)
class CountSlidingWindowAssigner(_CountWindows):
    """Numbers the elements of each key; after every `window_slide` of them another window of `window_size` starts.

    Parameters
    ----------
    window_size, window_slide : int
        Numbers of elements, at least 1.

    Raises
    ------
    ConfigurationError
        If size or slide are below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.CountSlidingWindowAssigner``, which fires full windows only; Java's
    ``countWindow`` is global windows with triggers and evictors by count.
    """

    window_slide: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(type(self).__name__, "slide", self.window_slide)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Return overlapping windows of a number of elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        count = _count_up(_SLIDING_COUNT, context)
        last = count // self.window_slide
        beyond = max(-1, (count - self.window_size) // self.window_slide)
        return [CountWindow(number) for number in range(last, beyond, -1)]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.window_size}, {self.window_slide})"

    @property
    def in_words(self) -> str:
        return f"windows of {self.window_size} elements, every {self.window_slide}"


def count_assigner(size: int, slide: int) -> CountTumblingWindowAssigner | CountSlidingWindowAssigner:
    """Return windows of a number of elements; a slide of 0 means windows that do not overlap."""
    require_count("count_window", "slide", slide, least=0)
    return CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Puts all elements of a key into one window, which never ends: a trigger says when it fires.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindows``.
    """

    _default_trigger: Trigger[Any, Any] = field(default_factory=NeverTrigger, repr=False)

    @staticmethod
    def create() -> GlobalWindows:
        """Return global windows that never fire by themselves."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Return global windows that fire at the end of the input."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return self._default_trigger

    def is_event_time(self) -> bool:
        return False

    def __str__(self) -> str:
        return "GlobalWindows()"

    @property
    def in_words(self) -> str:
        return "the global window"
