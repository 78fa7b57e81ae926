"""The watermarks of a source whose splits each make their own."""

from __future__ import annotations

from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.operators import OneInputStreamOperator, TimestampsAndWatermarksOperator
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.tasks.stream_input_processor import StreamOneInputProcessor
from flinkcore.runtime.tasks.task_output import ElementCall, TaskOutput


class SourceHead(OneInputStreamOperator):
    """Passes on what the valve of a source's splits emits.

    Parameters
    ----------
    output : TaskOutput
        Of the source.
    """

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._output.collect(record)


class SplitOutput:
    """The output of a split's operator: a channel of the source's valve.

    Parameters
    ----------
    collect : callable
        Takes the records.
    valve : StreamOneInputProcessor
    channel : int
    """

    def __init__(self, collect: ElementCall, valve: StreamOneInputProcessor, channel: int) -> None:
        self.collect = collect
        self._valve = valve
        self._channel = channel

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Nobody reads it."""

    def emit_watermark(self, watermark: Watermark) -> None:
        """Let the valve have a watermark."""
        self._valve.process_element(watermark, self._channel)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Let the valve have a status."""
        self._valve.process_element(status, self._channel)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Let the valve pass a latency marker on."""
        self._valve.process_element(latency_marker, self._channel)


class SplitWatermarks:
    """The operators of timestamps and watermarks of a source's splits, one each, merged by a valve.

    Parameters
    ----------
    strategy : WatermarkStrategy
    split_names : list of str or None
        Of the splits, for messages.
    output : TaskOutput
        Of the source.
    clock : ProcessingTimeService
    interval_ms : int
        The auto-watermark interval.
    collect : callable, optional
        Takes the records instead of the output.
    is_batch : bool
        Whether there is no watermark before the last.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        split_names: list[str | None],
        output: TaskOutput,
        clock: ProcessingTimeService,
        interval_ms: int,
        collect: ElementCall | None = None,
        is_batch: bool = False,
    ) -> None:
        valve = StreamOneInputProcessor(SourceHead(output), max(1, len(split_names)))
        self._operators = [
            TimestampsAndWatermarksOperator(
                strategy,
                SplitOutput(collect or output.collect, valve, channel),
                clock,
                interval_ms,
                emit_progressive_watermarks=not is_batch,
                split=name,
            )
            for channel, name in enumerate(split_names)
        ]
        for operator in self._operators:
            operator.open()

    def process(self, split: int) -> ElementCall:
        """Return what takes the records of a split."""
        return self._operators[split].process_element

    def finish(self, split: int) -> None:
        """Let a split end: it does not hold the others back any more."""
        operator = self._operators[split]
        operator.process_watermark(Watermark(MAX_TIMESTAMP))
        operator.finish()
        operator.close()

    def close(self) -> None:
        """Cancel what is scheduled."""
        for operator in self._operators:
            operator.close()
