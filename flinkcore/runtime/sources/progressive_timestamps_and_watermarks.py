"""Event time in streaming execution: timestamps, and watermarks per split as the source is read."""

from collections.abc import Collection
from typing import Any

from flinkcore.common.supplied_generators import HeldGenerators, holder_name
from flinkcore.common.watermark_generators import WatermarkOutput
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService, ScheduledTimer
from flinkcore.runtime.sources.idleness_manager import IdlenessManager
from flinkcore.runtime.sources.pausable_relative_clock import PausableRelativeClock
from flinkcore.runtime.sources.source_output import ReaderOutput, SourceOutput
from flinkcore.runtime.sources.source_output_with_watermarks import SourceOutputWithWatermarks
from flinkcore.runtime.sources.timestamps_and_watermarks import (
    TimestampsAndWatermarks,
    WatermarkUpdateListener,
)
from flinkcore.runtime.sources.watermark_to_data_output import WatermarkToDataOutput
from flinkcore.runtime.watermark_output_multiplexer import WatermarkOutputMultiplexer


class ProgressiveTimestampsAndWatermarks(TimestampsAndWatermarks):
    """Gives the main output and the output of each split a generator, and combines their watermarks.

    The watermark of the splits is the least of those that are not idle. That of the main output is not compared
    with it: each is emitted as it comes, if it advances. Generators of splits emit first at a tick, then that of
    the main output.

    Parameters
    ----------
    watermark_strategy : WatermarkStrategy
        Its assigner is one for all outputs, its generator one for each.
    processing_time_service : ProcessingTimeService
        Schedules the ticks. Its clock is what idleness is measured by, for a split without the time that it was
        paused.
    auto_watermark_interval_ms : int
        0: no ticks.
    main_input_activity_clock : PausableRelativeClock
        What the idleness of the main output is measured by.

    Raises
    ------
    ConfigurationError
        If the interval is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.ProgressiveTimestampsAndWatermarks``, as of 2.3.
    """

    def __init__(
        self,
        watermark_strategy: WatermarkStrategy,
        processing_time_service: ProcessingTimeService,
        auto_watermark_interval_ms: int,
        main_input_activity_clock: PausableRelativeClock,
    ) -> None:
        if auto_watermark_interval_ms < 0:
            raise ConfigurationError(
                f"the auto-watermark interval cannot be negative, it is {auto_watermark_interval_ms} ms"
            )
        self._strategy = watermark_strategy
        self._time_service = processing_time_service
        self._interval_ms = auto_watermark_interval_ms
        self._main_clock = main_input_activity_clock
        self._split_outputs: SplitLocalOutputs | None = None
        self._main_output: StreamingReaderOutput | None = None
        self._tick: ScheduledTimer | None = None

    def create_main_output(self, output: Output, listener: WatermarkUpdateListener) -> ReaderOutput[Any]:
        """Return the output that the reader is given.

        Raises
        ------
        LifecycleError
            If there is one already.
        ConfigurationError
            If the strategy cannot handle elements one by one.
        UserCodeError
            If its generator cannot be made.
        """
        if self._main_output is not None:
            raise LifecycleError("the main output was made before: a reader has one")
        idleness = IdlenessManager(WatermarkToDataOutput(output, listener))
        held = HeldGenerators()
        self._split_outputs = SplitLocalOutputs(
            output, idleness.split_local_output, listener, self._strategy, self._time_service, held
        )
        self._main_output = StreamingReaderOutput(
            output, idleness.main_output, self._strategy, self._main_clock, self._split_outputs, held
        )
        return self._main_output

    def start_periodic_watermark_emits(self) -> None:
        """Let the generators emit at each interval from now, unless the interval is 0.

        Raises
        ------
        LifecycleError
            If they do already.
        """
        if self._tick is not None:
            raise LifecycleError("periodic watermarks were started before")
        if self._interval_ms > 0:
            self._tick = self._time_service.schedule_with_fixed_delay(
                self._emit, self._interval_ms, self._interval_ms
            )

    def stop_periodic_watermark_emits(self) -> None:
        """Cancel the ticks."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop the clock by which splits become idle, and let it go on for others.

        Raises
        ------
        LifecycleError
            If a split has no output.
        """
        if self._split_outputs is None:
            raise LifecycleError("splits cannot be paused before the main output is made")
        self._split_outputs.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def _emit(self, _: int) -> None:
        if self._split_outputs is not None:
            self._split_outputs.emit_periodic_watermark()
        if self._main_output is not None:
            self._main_output.emit_periodic_watermark()


class StreamingReaderOutput(SourceOutputWithWatermarks):
    """The main output of a reader, and the maker of outputs for its splits.

    Notes
    -----
    Flink's ``ProgressiveTimestampsAndWatermarks.StreamingReaderOutput``.
    """

    def __init__(
        self,
        output: Output,
        watermark_output: WatermarkOutput,
        strategy: WatermarkStrategy,
        activity_clock: PausableRelativeClock,
        split_local_outputs: "SplitLocalOutputs",
        held_generators: HeldGenerators,
    ) -> None:
        super().__init__(
            output,
            watermark_output,
            watermark_output,
            strategy.create_timestamp_assigner(),
            strategy.create_watermark_generator(activity_clock.relative_time_ms, held=held_generators),
        )
        self._split_local_outputs = split_local_outputs

    def create_output_for_split(self, split_id: str) -> SourceOutput[Any]:
        """Return the output of a split, a new one at the first call and the same at each call after it."""
        return self._split_local_outputs.create_output_for_split(split_id)

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split that has ended; its watermark lets go at the next tick or watermark.

        Raises
        ------
        LifecycleError
            If the split has no output.
        """
        self._split_local_outputs.release_output_for_split(split_id)


class SplitLocalOutputs:
    """The outputs of splits, each with a generator of its own, combined by a multiplexer.

    Parameters
    ----------
    record_output : Output
    watermark_output : WatermarkOutput
        Gets the combined watermarks and idleness.
    listener : WatermarkUpdateListener
    strategy : WatermarkStrategy
    processing_time_service : ProcessingTimeService
    held_generators : HeldGenerators
        That of the main output, and those of the splits.

    Notes
    -----
    Flink's ``ProgressiveTimestampsAndWatermarks.SplitLocalOutputs``.
    """

    def __init__(
        self,
        record_output: Output,
        watermark_output: WatermarkOutput,
        listener: WatermarkUpdateListener,
        strategy: WatermarkStrategy,
        processing_time_service: ProcessingTimeService,
        held_generators: HeldGenerators,
    ) -> None:
        self._record_output = record_output
        self._multiplexer = WatermarkOutputMultiplexer(watermark_output)
        self._listener = listener
        self._strategy = strategy
        self._time_service = processing_time_service
        self._held_generators = held_generators
        self._local_outputs: dict[str, SourceOutputWithWatermarks] = {}
        self._activity_clocks: dict[str, PausableRelativeClock] = {}

    def create_output_for_split(self, split_id: str) -> SourceOutput[Any]:
        """Return the output of a split, a new one at the first call and the same at each call after it."""
        previous = self._local_outputs.get(split_id)
        if previous is not None:
            return previous
        clock = PausableRelativeClock(self._time_service.current_processing_time)
        assigner = self._strategy.create_timestamp_assigner(split_id)
        generator = self._strategy.create_watermark_generator(
            clock.relative_time_ms, split_id, self._held_generators
        )
        self._multiplexer.register_new_output(split_id, _SplitListener(split_id, self._listener))
        output = SourceOutputWithWatermarks(
            self._record_output,
            self._multiplexer.get_immediate_output(split_id),
            self._multiplexer.get_deferred_output(split_id),
            assigner,
            generator,
            split_id,
        )
        self._local_outputs[split_id] = output
        self._activity_clocks[split_id] = clock
        return output

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split; it refuses what is emitted to it from now on.

        Raises
        ------
        LifecycleError
            If the split has no output.
        """
        output = self._local_outputs.get(split_id)
        if output is None:
            raise LifecycleError(
                f"the split {split_id!r} has no output that could be released: none was created, or it was released "
                "before"
            )
        self._listener.split_finished(split_id)
        del self._local_outputs[split_id]
        self._multiplexer.unregister_output(split_id)
        del self._activity_clocks[split_id]
        self._held_generators.release(holder_name(split_id))
        output.release()

    def emit_periodic_watermark(self) -> None:
        """Let each generator emit, then combine what they emitted, once."""
        for output in self._local_outputs.values():
            output.emit_periodic_watermark()
        self._multiplexer.on_periodic_emit()

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop the clocks of some splits, and let those of others go on.

        Raises
        ------
        LifecycleError
            If a split has no output.
        """
        for split_id in splits_to_pause:
            self._clock(split_id).pause()
        for split_id in splits_to_resume:
            self._clock(split_id).un_pause()

    def _clock(self, split_id: str) -> PausableRelativeClock:
        clock = self._activity_clocks.get(split_id)
        if clock is None:
            raise LifecycleError(f"the split {split_id!r} has no output: it cannot be paused or resumed")
        return clock


class _SplitListener:
    """Tells the listener of a source which split it is."""

    def __init__(self, split_id: str, listener: WatermarkUpdateListener) -> None:
        self._split_id = split_id
        self._listener = listener

    def on_watermark_update(self, watermark: int) -> None:
        self._listener.update_current_split_watermark(self._split_id, watermark)

    def on_idle_update(self, idle: bool) -> None:
        self._listener.update_current_split_idle(self._split_id, idle)
