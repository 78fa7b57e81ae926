"""The operator that reads a source: event time, alignment, and the end of the input."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Any, Generic

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.common.watermark_generators import RelativeClock
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import (
    InputStatus,
    ReaderOutput,
    SourceReader,
    SourceReaderContext,
    SplitT,
)
from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader
from flinkcore.elements.sources.source_outputs import Emit, SourceDataOutput, SourceOutputWithWatermarks
from flinkcore.elements.sources.source_watermarks import (
    NoOpTimestampsAndWatermarks,
    PausableRelativeClock,
    ProgressiveTimestampsAndWatermarks,
    SourceWatermarks,
    TimestampsAndWatermarks,
    TimestampsOnlyOutput,
)
from flinkcore.elements.sources.watermark_alignment import (
    SourceSplitMetrics,
    SplitAlignment,
    WatermarkSampler,
)
from flinkcore.errors import ConfigurationError, LifecycleError, UnsupportedOperationError, UserCodeError
from flinkcore.operators.metrics.gauges import TimerGauge, WatermarkGauge
from flinkcore.operators.metrics.latency import LatencyMarkerEmitter
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.copies import copied_strategy
from flinkcore.operators.records.output import Output
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer

ALLOW_UNALIGNED_SOURCE_SPLITS = "pipeline.watermark-alignment.allow-unaligned-source-splits"


class _OperatingMode(Enum):
    NOT_OPEN = "is not open yet"
    OUTPUT_NOT_INITIALIZED = "was not polled yet"
    READING = "reads"
    WAITING_FOR_ALIGNMENT = "waits for other sources"
    DATA_FINISHED = "has come to its end"
    CLOSED = "was closed"


class SourceOperator(Generic[SplitT]):
    """Polls a reader, and emits its records, watermarks and statuses.

    Periodic watermarks are emitted at processing-time ticks, the first an interval after `open`. At the end of the
    input the watermark 2**63 - 1 is emitted; an idle source is marked active before it.

    With watermark alignment, the operator reports its watermark once per update interval, from the first poll on: none
    before its first watermark, and 2**63 - 1 while it is idle. While its watermark of some intervals ago exceeds the
    maximum desired one it does not poll, and single splits are paused likewise.

    Parameters
    ----------
    reader_factory : callable
        ``Source.create_reader``.
    watermark_strategy : WatermarkStrategy
        Copied at `open`.
    output : Output
    processing_time_service : ProcessingTimeService
    auto_watermark_interval_ms : int
        0: no periodic watermarks.
    emit_progressive_watermarks : bool
        False, for batch execution: no generator is used, and only the last watermark is emitted.
    report_watermark : callable or None
        Takes reported watermarks (``SourceCoordinator.reporter``); required if, and only if, the strategy has
        alignment.
    allow_unaligned_source_splits : bool
        The setting ``pipeline.watermark-alignment.allow-unaligned-source-splits``: whether a reader that cannot pause
        splits may read on.
    watermark_buffer_size : int
        The setting ``pipeline.watermark-alignment.buffer-size``: the age of the compared watermarks in update
        intervals; 0: the latest.
    subtask_index, parallelism : int
        Index of the subtask, and the number of subtasks.
    conversion : callable, optional
        Conversion of each record to its declared type, before its timestamp is assigned.
    operator_id : str
        The source's name in latency markers.
    latency_tracking_interval_ms : int
        0: no latency markers.
    holds_end : bool
        Whether the end of the input waits for `end_input`.
    downtime_ms : int
        Time for which the source did not run before it was restored: the lead of its clock over that of idleness.

    Raises
    ------
    ConfigurationError
        If an interval or the buffer size is negative, or alignment lacks one of its two sides.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.SourceOperator`` as of 2.3, with what
    ``SourceOperatorStreamTask`` adds at the end of the input. Deliberate differences: `emit_next` polls once, where
    Flink continues until the task has other work; a split that is added twice is an error; alignment ends, and the end
    of the input is reported for it, with that poll, where Flink takes one more sample and reports with the one after
    it.
    """

    def __init__(
        self,
        reader_factory: Callable[[SourceReaderContext], SourceReader[Any, SplitT]],
        watermark_strategy: WatermarkStrategy,
        output: Output,
        processing_time_service: ProcessingTimeService,
        auto_watermark_interval_ms: int,
        *,
        emit_progressive_watermarks: bool = True,
        report_watermark: Callable[[int], None] | None = None,
        allow_unaligned_source_splits: bool = False,
        watermark_buffer_size: int = 3,
        subtask_index: int = 0,
        parallelism: int = 1,
        conversion: Conversion | None = None,
        operator_id: str = "source",
        latency_tracking_interval_ms: int = 0,
        holds_end: bool = False,
        downtime_ms: int = 0,
    ) -> None:
        if auto_watermark_interval_ms < 0 or latency_tracking_interval_ms < 0:
            raise ConfigurationError(
                "neither the auto-watermark interval nor the latency tracking interval can be negative; they are "
                f"{auto_watermark_interval_ms} ms and {latency_tracking_interval_ms} ms"
            )
        self._alignment = watermark_strategy.alignment_parameters
        if (self._alignment is None) != (report_watermark is None):
            raise ConfigurationError(
                "with_watermark_alignment and report_watermark belong together: "
                f"{'the strategy is not aligned' if self._alignment is None else 'the watermark goes nowhere'}"
            )
        self._reader_factory = reader_factory
        self._strategy = watermark_strategy
        self._output = SourceDataOutput(output)
        self._time_service = processing_time_service
        self._auto_watermark_interval_ms = auto_watermark_interval_ms
        self._emit_progressive_watermarks = emit_progressive_watermarks
        self._report_watermark = report_watermark
        self._allow_unaligned_source_splits = allow_unaligned_source_splits
        self._context = SourceReaderContext(
            processing_time_service.current_processing_time, subtask_index, parallelism
        )
        self._conversion = conversion
        self._operator_id = operator_id
        self._latency_tracking_interval_ms = latency_tracking_interval_ms
        self._holds_end = holds_end

        clock, relative = (
            processing_time_service.current_processing_time,
            processing_time_service.relative_time,
        )
        self._activity_clock: RelativeClock = (lambda: relative() - downtime_ms) if downtime_ms else relative
        self._splits = SplitAlignment(clock, watermark_buffer_size, self._pause_or_resume_splits)
        self._latest_watermark = WatermarkSampler(watermark_buffer_size)
        self._main_input_activity_clock = PausableRelativeClock(self._activity_clock)
        self._waiting = TimerGauge(clock)
        self._mode = _OperatingMode.NOT_OPEN
        self._idle = False
        self._splits_to_initialize_output: list[str] = []
        self._reader: SourceReader[Any, SplitT]
        self._event_time: TimestampsAndWatermarks
        self._main_output: ReaderOutput[Any]
        self._reports: ScheduledTimer | None = None
        self._latency_markers: LatencyMarkerEmitter | None = None

    def open(
        self,
        restored_splits: Sequence[SplitT] = (),
        restored_watermarks: SourceWatermarks | None = None,
        first_tick_ms: int | None = None,
    ) -> None:
        """Create and start the reader, and schedule the first tick.

        Parameters
        ----------
        restored_splits : sequence of splits
            To begin with, such as those from `snapshot_state`.
        restored_watermarks : SourceWatermarks, optional
            From `snapshot_watermarks`.
        first_tick_ms : int, optional
            When the first tick is; by default an interval from now.

        Raises
        ------
        LifecycleError
            If the operator was open before.
        UserCodeError
            If the strategy cannot be copied.
        """
        self._expect("be opened", _OperatingMode.NOT_OPEN)
        strategy = copied_strategy(self._strategy)
        if self._emit_progressive_watermarks:
            self._event_time = ProgressiveTimestampsAndWatermarks(
                strategy,
                self._time_service,
                self._auto_watermark_interval_ms,
                self._main_input_activity_clock,
                self._conversion,
                self._activity_clock,
            )
        else:
            self._event_time = NoOpTimestampsAndWatermarks(
                strategy.create_timestamp_assigner(self._time_service.current_processing_time),
                self._conversion,
            )
        self._reader = self._reader_factory(self._context)
        self._mode = _OperatingMode.OUTPUT_NOT_INITIALIZED
        if restored_splits:
            self.add_splits(restored_splits)
        self._reader.start()
        self._event_time.start_periodic_watermark_emits(first_tick_ms)
        if restored_watermarks is not None:
            assert isinstance(self._event_time, ProgressiveTimestampsAndWatermarks)
            self._initialize_main_output()
            self._event_time.restore_state(restored_watermarks)

    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Add splits to the reader, each with an output from now, or from the first poll on.

        Raises
        ------
        LifecycleError
            If a split is being read already, or the operator is not open.
        """
        self._expect("be given splits", *_OPEN)
        ids = [split.split_id for split in splits]
        for position, split_id in enumerate(ids):
            if split_id in self._splits or split_id in ids[:position]:
                raise LifecycleError(
                    f"the split {split_id!r} was added before and has not ended: reading it twice would emit its "
                    "records twice"
                )
        for split_id in ids:
            self._splits.add(split_id)
        if self._mode is _OperatingMode.OUTPUT_NOT_INITIALIZED:
            self._splits_to_initialize_output += ids
        else:
            self._create_output_for_splits(ids)
        self._reader.add_splits(splits)

    def notify_no_more_splits(self) -> None:
        """Note that no further split will be added.

        Raises
        ------
        LifecycleError
            If the operator is not open.
        """
        self._expect("be told that there are no more splits", *_OPEN)
        self._reader.notify_no_more_splits()

    def emit_next(self) -> InputStatus:
        """Poll the reader once, unless the source waits for alignment.

        Returns
        -------
        InputStatus
            ``NOTHING_AVAILABLE`` also while it waits; ``END_OF_INPUT`` at each call after the end.

        Raises
        ------
        LifecycleError
            If the operator is not open.
        UserCodeError
            If the reader returns no status.
        """
        if self._mode is not _OperatingMode.READING:
            if self._mode is _OperatingMode.DATA_FINISHED:
                return InputStatus.END_OF_INPUT
            self._expect("be polled", *_OPEN)
            if self._mode is _OperatingMode.WAITING_FOR_ALIGNMENT:
                return InputStatus.NOTHING_AVAILABLE
            self._initialize_main_output()
        status = self._reader.poll_next(self._main_output)
        if status is InputStatus.END_OF_INPUT:
            self._mode = _OperatingMode.DATA_FINISHED
            if not self._holds_end:
                self.end_input()
        elif not isinstance(status, InputStatus):
            raise UserCodeError(
                f"{type(self._reader).__name__}.poll_next gave {status!r}: it must return an InputStatus"
            )
        return status

    @property
    def is_at_end(self) -> bool:
        """Return whether the next poll is known to be the end."""
        return self._mode is _OperatingMode.DATA_FINISHED or self._reader.is_at_end

    def end_input(self) -> None:
        """Emit the last watermark: nothing follows."""
        self._mode = _OperatingMode.DATA_FINISHED
        self._stop_internal_services()
        self._output.end()
        if self._report_watermark is not None:
            self._report_watermark(MAX_TIMESTAMP)

    @property
    def turn(self) -> list[str]:
        """The splits that are left of a round, where they take turns."""
        return self._reader.turn if isinstance(self._reader, IteratorSourceReader) else []

    def has_left(self, count: int) -> bool:
        """Return whether a split has so many elements left; False for a reader of the source's own."""
        return isinstance(self._reader, IteratorSourceReader) and self._reader.has_left(count)

    @property
    def readable_splits(self) -> int:
        """The number of splits that have neither ended nor been paused."""
        return self._splits.readable_splits

    def only_split(self) -> tuple[IteratorSourceReader, Conversion | None, Emit] | None:
        """Return how the elements of the only split are read and emitted without polls.

        Returns
        -------
        (IteratorSourceReader, callable or None, callable) or None
            The reader, the conversion to the declared type, and what emits converted elements. None if there are
            several splits, or none; if they have a reader of the source's own; or with alignment.
        """
        reader = self._reader
        if (
            type(reader) is not IteratorSourceReader
            or self._alignment is not None
            or self.readable_splits != 1
        ):
            return None
        if self._mode is _OperatingMode.OUTPUT_NOT_INITIALIZED:
            self._initialize_main_output()
        (split_id,) = self._splits
        output = self._main_output.create_output_for_split(split_id)
        assert isinstance(output, SourceOutputWithWatermarks | TimestampsOnlyOutput)
        return reader, output.conversion, output.emit

    def snapshot_state(self, checkpoint_id: int) -> Sequence[SplitT]:
        """Return the splits at their current positions, for `open` of a restored operator.

        Raises
        ------
        LifecycleError
            If the operator is not open.
        """
        self._expect("take a snapshot", *_OPEN, _OperatingMode.DATA_FINISHED)
        return self._reader.snapshot_state(checkpoint_id)

    def snapshot_watermarks(self) -> tuple[tuple[int, bool], SourceWatermarks | None]:
        """Return the watermark and the status that were emitted last, and what `open` takes: None before any poll.

        Raises
        ------
        UnsupportedOperationError
            If a generator has no snapshots.
        """
        event_time = self._event_time
        assert isinstance(event_time, ProgressiveTimestampsAndWatermarks)
        return event_time.emitted, event_time.snapshot_state()

    def update_max_desired_watermark(self, max_watermark: int) -> None:
        """Read no further than a watermark, as far as the source and its splits can be paused.

        Parameters
        ----------
        max_watermark : int
            In ms since the epoch.

        Raises
        ------
        UnsupportedOperationError
            If a split must be paused, the reader cannot pause splits, and unaligned splits are not allowed.
        """
        self._splits.max_desired_watermark = max_watermark
        self._check_alignment()

    def close(self) -> None:
        """Stop all timers and close the reader; closing twice is not an error."""
        if self._mode is _OperatingMode.CLOSED:
            return
        was_open = self._mode is not _OperatingMode.NOT_OPEN
        self._mode = _OperatingMode.CLOSED
        self._output.refuse("the source was closed")
        if was_open:
            self._stop_internal_services()
            self._reader.close()

    # ---- metrics

    def register_metrics(self, group: TaskMetricGroup) -> None:
        """Register the watermark, the waiting time, and the metrics of the splits that were added, by Flink's names."""
        if self._alignment is not None:
            group.gauge("accumulatedAlignmentTimeMs", lambda: self.alignment_waiting_time_ms)
        for split_id, metrics in self.split_metrics.items():
            metrics.register(group.add_group("split", split_id).add_group("watermark"))

    @property
    def watermark_gauge(self) -> WatermarkGauge:
        """The last watermark that was emitted: that of the task."""
        return self._output.watermark_gauge

    @property
    def split_metrics(self) -> Mapping[str, SourceSplitMetrics]:
        """The metrics of all splits by id, including those that have ended."""
        return self._splits.metrics

    @property
    def is_waiting_for_alignment(self) -> bool:
        """Return whether the source waits for others."""
        return self._mode is _OperatingMode.WAITING_FOR_ALIGNMENT

    @property
    def alignment_waiting_time_ms(self) -> int:
        """Return how long the source has waited for others."""
        return self._waiting.accumulated_time_ms

    @property
    def max_desired_watermark(self) -> int:
        """Return how far the source may read, in ms since the epoch; 2**63 - 1 before the first announcement."""
        return self._splits.max_desired_watermark

    # ---- the WatermarkUpdateListener

    def update_idle(self, is_idle: bool) -> None:
        """Note whether the source is idle."""
        self._idle = is_idle

    def update_current_effective_watermark(self, watermark: int) -> None:
        """Note the watermark of the source, and wait if it is too far ahead."""
        self._latest_watermark.add_latest(watermark)
        self._check_source_alignment()

    def update_current_split_watermark(self, split_id: str, watermark: int) -> None:
        """Note the watermark of a split, and pause it if it is too far ahead."""
        self._splits.update_watermark(split_id, watermark)

    def update_current_split_idle(self, split_id: str, is_idle: bool) -> None:
        """Note whether a split is idle."""
        self._splits.update_idle(split_id, is_idle)

    def split_finished(self, split_id: str) -> None:
        """Drop a split."""
        self._splits.finished(split_id)

    # ----

    def _expect(self, what: str, *modes: _OperatingMode) -> None:
        if self._mode not in modes:
            raise LifecycleError(f"the source operator {self._mode.value}: it cannot {what}")

    def _initialize_main_output(self) -> None:
        if self._alignment is not None:
            interval_ms = self._alignment.update_interval_ms
            self._reports = self._time_service.schedule_with_fixed_delay(
                lambda _: self._sample_and_report_watermark(), interval_ms, interval_ms
            )
        self._main_output = self._event_time.create_main_output(self._output, self)
        if self._latency_tracking_interval_ms > 0:
            self._latency_markers = LatencyMarkerEmitter(
                self._time_service,
                self._output,
                self._latency_tracking_interval_ms,
                self._operator_id,
                self._context.subtask_index,
            )
        self._create_output_for_splits(self._splits_to_initialize_output)
        self._splits_to_initialize_output = []
        self._mode = _OperatingMode.READING

    def _create_output_for_splits(self, split_ids: Collection[str]) -> None:
        for split_id in split_ids:
            self._main_output.create_output_for_split(split_id)

    def _stop_internal_services(self) -> None:
        self._event_time.stop_periodic_watermark_emits()
        if self._latency_markers is not None:
            self._latency_markers.close()
        if self._reports is not None:
            self._reports.cancel()
        self._waiting.mark_end()
        self._splits.all_finished()

    def _sample_and_report_watermark(self) -> None:
        self._splits.sample()
        self._latest_watermark.sample()
        self._check_alignment()
        latest = self._latest_watermark.latest
        if self._report_watermark is not None and latest != MIN_TIMESTAMP:
            self._report_watermark(MAX_TIMESTAMP if self._idle else latest)

    def _check_alignment(self) -> None:
        self._check_source_alignment()
        self._splits.check()

    def _check_source_alignment(self) -> None:
        too_far = self._latest_watermark.oldest_sample > self._splits.max_desired_watermark
        if self._mode is _OperatingMode.READING and too_far:
            self._mode = _OperatingMode.WAITING_FOR_ALIGNMENT
            self._main_input_activity_clock.pause()
            self._waiting.mark_start()
        elif self._mode is _OperatingMode.WAITING_FOR_ALIGNMENT and not too_far:
            self._mode = _OperatingMode.READING
            self._main_input_activity_clock.un_pause()
            self._waiting.mark_end()

    def _pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> bool:
        try:
            self._reader.pause_or_resume_splits(splits_to_pause, splits_to_resume)
        except UnsupportedOperationError as unsupported:
            if self._allow_unaligned_source_splits:
                return False
            raise UnsupportedOperationError(
                f"the splits {list(splits_to_pause)} are beyond {self.max_desired_watermark}, the watermark that "
                f"alignment allows, but {type(self._reader).__name__} cannot pause single splits: implement its "
                f"pause_or_resume_splits, or set {ALLOW_UNALIGNED_SOURCE_SPLITS} to true"
            ) from unsupported
        self._event_time.pause_or_resume_splits(splits_to_pause, splits_to_resume)
        return True


_OPEN = (
    _OperatingMode.OUTPUT_NOT_INITIALIZED,
    _OperatingMode.READING,
    _OperatingMode.WAITING_FOR_ALIGNMENT,
)
