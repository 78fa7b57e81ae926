"""The watermarks of a source whose splits each make their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.elements.sources.source_watermarks import PausableRelativeClock
from flinkcore.elements.tasks.stream_input_processor import StreamOneInputProcessor
from flinkcore.elements.tasks.task_output import ElementCall, TaskOutput
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator
from flinkcore.operators.timers.processing_time import (
    ProcessingTimeCallback,
    ProcessingTimeService,
    ScheduledTimer,
)
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator


class SplitClock(ProcessingTimeService):
    """The clock of a source as the operator of a split knows it: while the split is paused, it does not turn idle.

    Parameters
    ----------
    clock : ProcessingTimeService
        Clock of the source.
    """

    def __init__(self, clock: ProcessingTimeService) -> None:
        super().__init__()
        self._clock = clock
        self._pausable = PausableRelativeClock(clock.relative_time)
        self.pause = self._pausable.pause
        self.resume = self._pausable.un_pause

    def current_processing_time(self) -> int:
        return self._clock.current_processing_time()

    def relative_time(self) -> int:
        return self._pausable.relative_time_ms()

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        return self._clock.register_timer(timestamp_ms, callback)


class SourceHead(OneInputStreamOperator):
    """Passes on what the valve of a source's splits emits.

    Parameters
    ----------
    output : TaskOutput
        Output of the source.
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


class SplitWatermark(NamedTuple):
    """State of the operator of a split.

    Attributes
    ----------
    generator : object
        State of its generator.
    watermark_ms : int
        Its last watermark, in ms since the epoch.
    is_idle : bool
    channel : (int, bool)
        Its watermark and idleness in the valve.
    """

    generator: Any
    watermark_ms: int
    is_idle: bool
    channel: tuple[int, bool]


class RestoredSplits(NamedTuple):
    """State from which the splits of a source resume.

    Attributes
    ----------
    splits : list of SplitWatermark or None
        State of each split; None for a new split, which holds the watermark back where it is.
    watermark_ms : int
        The last watermark of all, in ms since the epoch.
    next_tick_ms : int
        When the operators emit next.
    """

    splits: list[SplitWatermark | None]
    watermark_ms: int
    next_tick_ms: int

    @property
    def is_idle(self) -> bool:
        """Return whether all splits were idle, of which there was one at least."""
        known = [split for split in self.splits if split is not None]
        return bool(known) and all(is_idle for _, is_idle in (split.channel for split in known))


class SplitWatermarks:
    """The operators of timestamps and watermarks of a source's splits, one each, merged by a valve.

    Parameters
    ----------
    strategy : WatermarkStrategy
    split_names : list of str or None
        Names of the splits, for messages.
    output : TaskOutput
        Output of the source.
    clock : ProcessingTimeService
    interval_ms : int
        The auto-watermark interval.
    collect : callable, optional
        Takes the records instead of the output.
    is_batch : bool
        Whether there is no watermark before the last.
    restored : RestoredSplits, optional
        State from which the operators and the valve resume, or None at their beginning.
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
        restored: RestoredSplits | None = None,
    ) -> None:
        self._valve = valve = StreamOneInputProcessor(SourceHead(output), max(1, len(split_names)))
        is_aligned = strategy.alignment_parameters is not None
        clocks = [SplitClock(clock) if is_aligned else clock for _ in split_names]
        self._clocks = [each for each in clocks if isinstance(each, SplitClock)]
        self._operators = [
            TimestampsAndWatermarksOperator(
                strategy,
                SplitOutput(collect or output.collect, valve, channel),
                clocks[channel],
                interval_ms,
                emit_progressive_watermarks=not is_batch,
                split=name,
            )
            for channel, name in enumerate(split_names)
        ]
        if restored is not None:
            self._restore(restored)
        for operator in self._operators:
            operator.open()

    def _restore(self, restored: RestoredSplits) -> None:
        channels = [
            (restored.watermark_ms, False) if split is None else split.channel for split in restored.splits
        ]
        self._valve.restore(channels or [(restored.watermark_ms, False)], restored.watermark_ms)
        for operator, split in zip(self._operators, restored.splits, strict=True):
            if split is not None:
                operator.restore_state(
                    split.generator, split.watermark_ms, split.is_idle, restored.next_tick_ms
                )

    @property
    def is_idle(self) -> bool:
        """Return whether all splits are."""
        return all(is_idle for _, is_idle in self._valve.state()[0])

    @property
    def current(self) -> list[tuple[int, bool]]:
        """The last watermark of each split, in ms since the epoch, and whether it is idle."""
        return [(operator.watermark_ms, operator.is_idle) for operator in self._operators]

    def pause(self, split: int) -> None:
        """Let a split of aligned ones not turn idle until `resume`."""
        self._clocks[split].pause()

    def resume(self, split: int) -> None:
        """Let the time go on by which a split turns idle."""
        self._clocks[split].resume()

    def snapshot(self) -> tuple[list[SplitWatermark], int]:
        """Return where the operators of the splits stand, and the last watermark of all.

        Raises
        ------
        UnsupportedOperationError
            If a generator has no snapshots.
        """
        channels, watermark_ms = self._valve.state()
        splits = [
            SplitWatermark(*operator.snapshot_state(), channel)
            for operator, channel in zip(self._operators, channels, strict=False)
        ]
        return splits, watermark_ms

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
