"""Keeping the elements that are like the last one."""

from dataclasses import dataclass

from flinkcore.datastream.window.built_in_evictor import BuiltInEvictor
from flinkcore.datastream.window.delta_function import Delta, delta_call
from flinkcore.datastream.window.evictor import TimestampedValue


@dataclass(frozen=True)
class DeltaEvictor(BuiltInEvictor):
    """Removes the elements that differ from the last one to arrive by a threshold or more.

    Parameters
    ----------
    threshold : float
    delta_function : DeltaFunction or callable
        Of an element and the last one.
    do_evict_after : bool
        Whether elements are removed after the window function, and not before.

    Raises
    ------
    ConfigurationError
        If the function is none.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.evictors.DeltaEvictor``.
    """

    threshold: float
    delta_function: Delta
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        delta_call("DeltaEvictor", self.delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta, do_evict_after: bool = False) -> "DeltaEvictor":
        """Return an evictor with a threshold."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> None:
        delta = delta_call("DeltaEvictor", self.delta_function)
        last = elements[-1].value
        elements[:] = [element for element in elements if not delta(element.value, last) >= self.threshold]
