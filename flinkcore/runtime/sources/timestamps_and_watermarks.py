"""What makes the outputs of a reader, and who listens to their watermarks."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, Protocol

from flinkcore.runtime.output import Output
from flinkcore.runtime.sources.source_output import ReaderOutput


class WatermarkUpdateListener(Protocol):
    """Hears of the watermarks and the idleness of a source and of its splits.

    Notes
    -----
    Flink's ``TimestampsAndWatermarks.WatermarkUpdateListener``.
    """

    def update_idle(self, is_idle: bool) -> None:
        """The source has become idle, or active again."""

    def update_current_effective_watermark(self, watermark: int) -> None:
        """The source is about to emit this watermark, in ms since the epoch."""

    def update_current_split_watermark(self, split_id: str, watermark: int) -> None:
        """The watermark of a split has advanced to this, in ms since the epoch."""

    def update_current_split_idle(self, split_id: str, is_idle: bool) -> None:
        """A split was marked idle or active; may repeat itself."""

    def split_finished(self, split_id: str) -> None:
        """The output of a split is about to be released."""


class TimestampsAndWatermarks(ABC):
    """The event time of a source: timestamps of records, and watermarks.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.TimestampsAndWatermarks``.
    """

    @abstractmethod
    def create_main_output(self, output: Output, listener: WatermarkUpdateListener) -> ReaderOutput[Any]:
        """Return the output that the reader is given; once.

        Parameters
        ----------
        output : Output
            Gets the records, watermarks and statuses.
        listener : WatermarkUpdateListener
        """

    @abstractmethod
    def start_periodic_watermark_emits(self) -> None:
        """Let the generators emit at each auto-watermark interval from now."""

    @abstractmethod
    def stop_periodic_watermark_emits(self) -> None:
        """End that."""

    @abstractmethod
    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop the clock by which splits become idle, and let it go on for others."""
