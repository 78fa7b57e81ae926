"""Event time in batch execution: timestamps, and no watermark before the end."""

from collections.abc import Collection
from typing import Any

from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.output import Output
from flinkcore.runtime.sources.source_output import ReaderOutput, SourceOutput
from flinkcore.runtime.sources.source_output_with_watermarks import source_timestamp
from flinkcore.runtime.sources.timestamps_and_watermarks import (
    TimestampsAndWatermarks,
    WatermarkUpdateListener,
)


class NoOpTimestampsAndWatermarks(TimestampsAndWatermarks):
    """Gives records their timestamps, and drops every watermark and status.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.NoOpTimestampsAndWatermarks``.
    """

    def __init__(self, timestamp_assigner: TimestampAssigner) -> None:
        self._timestamp_assigner = timestamp_assigner

    def create_main_output(self, output: Output, listener: WatermarkUpdateListener) -> ReaderOutput[Any]:
        """Return an output that is that of each split, too."""
        return TimestampsOnlyOutput(output, self._timestamp_assigner)

    def start_periodic_watermark_emits(self) -> None:
        """Do nothing."""

    def stop_periodic_watermark_emits(self) -> None:
        """Do nothing."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Do nothing: no split becomes idle."""


class TimestampsOnlyOutput:
    """Emits records with their timestamps, and nothing else.

    Notes
    -----
    Flink's ``NoOpTimestampsAndWatermarks.TimestampsOnlyOutput``.
    """

    def __init__(self, output: Output, timestamp_assigner: TimestampAssigner) -> None:
        self._output = output
        self._timestamp_assigner = timestamp_assigner

    def collect(self, record: Any, timestamp_ms: int | None = None) -> None:
        """Give a record its timestamp and emit it.

        Raises
        ------
        DataError
            If the source or the assigner gives what is no timestamp.
        UserCodeError
            If the assigner raises.
        """
        timestamp = self._timestamp_assigner.extract_timestamp(
            record, source_timestamp(timestamp_ms, record, None)
        )
        self._output.collect(StreamRecord(record, timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        """Drop it."""

    def mark_idle(self) -> None:
        """Drop it."""

    def mark_active(self) -> None:
        """Drop it."""

    def create_output_for_split(self, split_id: str) -> SourceOutput[Any]:
        """Return this output."""
        return self

    def release_output_for_split(self, split_id: str) -> None:
        """Do nothing."""
