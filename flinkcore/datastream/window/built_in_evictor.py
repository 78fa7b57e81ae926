"""What Flink's own evictors have in common."""

from abc import abstractmethod

from flinkcore.datastream.window.evictor import Evictor, TimestampedValue
from flinkcore.datastream.window.window import Window


class BuiltInEvictor(Evictor[Window]):
    """Removes either before or after the window function."""

    do_evict_after: bool

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Remove elements, unless that is to be done after."""
        if not self.do_evict_after and elements:
            self._evict(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Remove elements, if that is to be done after."""
        if self.do_evict_after and elements:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue]) -> None:
        """Remove elements from a list that is not empty."""
