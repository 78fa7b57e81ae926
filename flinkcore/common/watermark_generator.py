"""What a user implements to make watermarks: a generator, and the output it is given."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from flinkcore.common.watermark import Watermark

T = TypeVar("T", contravariant=True)


class WatermarkOutput(Protocol):
    """Where a generator puts watermarks and its idleness.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkOutput``.
    """

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark; one that does not advance is not news. Marks the output active, implicitly."""

    def mark_idle(self) -> None:
        """State that nothing will come for a while, so that nobody waits for this output's watermark."""

    def mark_active(self) -> None:
        """State that watermarks are to be waited for again."""


class WatermarkGenerator(ABC, Generic[T]):
    """Makes watermarks from the events of one split, at each event or periodically.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkGenerator``.
    """

    @abstractmethod
    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """See an event, and emit a watermark if the generator is punctuated.

        Parameters
        ----------
        event : object
        event_timestamp : int
            Event time in ms since the epoch.
        output : WatermarkOutput
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called once per auto-watermark interval of the (replay) clock; the place to emit if periodic.

        Parameters
        ----------
        output : WatermarkOutput
        """
