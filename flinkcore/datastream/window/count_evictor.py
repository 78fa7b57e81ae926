"""Keeping the last elements."""

from dataclasses import dataclass

from flinkcore.datastream.window.built_in_evictor import BuiltInEvictor
from flinkcore.datastream.window.counts import require_count
from flinkcore.datastream.window.evictor import TimestampedValue


@dataclass(frozen=True)
class CountEvictor(BuiltInEvictor):
    """Keeps the last so many elements of a window.

    Parameters
    ----------
    max_count : int
        Not negative.
    do_evict_after : bool
        Whether elements are removed after the window function, and not before.

    Raises
    ------
    ConfigurationError
        If the count is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.CountEvictor``.
    """

    max_count: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        require_count("CountEvictor", "count", self.max_count, least=0)

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> "CountEvictor":
        """Return an evictor that keeps so many elements."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        surplus = len(elements) - self.max_count
        if surplus > 0:
            del elements[:surplus]
