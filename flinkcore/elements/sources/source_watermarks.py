"""The event time of sources: timestamps of records, and watermarks per split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.execution_config import checked_auto_watermark_interval
from flinkcore.common.generators.supplied_generators import HeldGenerators, holder_name
from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import RelativeClock, WatermarkOutput
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import ReaderOutput, SourceOutput
from flinkcore.elements.sources.source_outputs import SourceOutputWithWatermarks, source_timestamp
from flinkcore.elements.sources.watermark_output_multiplexer import WatermarkOutputMultiplexer
from flinkcore.errors import LifecycleError, SchemaError
from flinkcore.operators.records.copies import copied_strategy
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer
from flinkcore.operators.timestamps_and_watermarks_operator import WatermarkEmitter


class WatermarkUpdateListener(Protocol):
    """Is notified of the watermarks and the idleness of a source and of its splits.

    Notes
    -----
    Flink's ``TimestampsAndWatermarks.WatermarkUpdateListener``.
    """

    def update_idle(self, is_idle: bool) -> None:
        """The source has turned idle, or active again."""

    def update_current_effective_watermark(self, watermark: int) -> None:
        """The source is about to emit this watermark, in ms since the epoch."""

    def update_current_split_watermark(self, split_id: str, watermark: int) -> None:
        """The watermark of a split has advanced to this, in ms since the epoch."""

    def update_current_split_idle(self, split_id: str, is_idle: bool) -> None:
        """A split was marked idle or active; may be repeated."""

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
            Takes the records, watermarks and statuses.
        listener : WatermarkUpdateListener
        """

    @abstractmethod
    def start_periodic_watermark_emits(self, first_ms: int | None = None) -> None:
        """Start periodic watermarks, at each auto-watermark interval from now."""

    @abstractmethod
    def stop_periodic_watermark_emits(self) -> None:
        """Stop periodic watermarks."""

    @abstractmethod
    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop the clocks of the idleness of some splits, and restart those of others."""


class NoOpTimestampsAndWatermarks(TimestampsAndWatermarks):
    """Batch execution: assigns timestamps, and drops watermarks and statuses.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.NoOpTimestampsAndWatermarks``.
    """

    def __init__(self, timestamp_assigner: TimestampAssigner, conversion: Conversion | None = None) -> None:
        self._timestamp_assigner = timestamp_assigner
        self._conversion = conversion

    def create_main_output(self, output: Output, listener: WatermarkUpdateListener) -> ReaderOutput[Any]:
        """Return an output that is also the output of each split."""
        return TimestampsOnlyOutput(output, self._timestamp_assigner, listener, self._conversion)

    def start_periodic_watermark_emits(self, first_ms: int | None = None) -> None:
        """Do nothing."""

    def stop_periodic_watermark_emits(self) -> None:
        """Do nothing."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Do nothing: no split becomes idle."""


class TimestampsOnlyOutput:
    """Emits records with timestamps, and nothing else.

    Notes
    -----
    Flink's ``NoOpTimestampsAndWatermarks.TimestampsOnlyOutput``.
    """

    def __init__(
        self,
        output: Output,
        timestamp_assigner: TimestampAssigner,
        listener: WatermarkUpdateListener,
        conversion: Conversion | None,
    ) -> None:
        self._output = output
        self._extract_timestamp = timestamp_assigner.extract_timestamp
        self._listener = listener
        self.conversion = conversion

    def collect(self, record: Any, timestamp_ms: int | None = None) -> None:
        """Emit a record with its timestamp; errors as of :meth:`SourceOutputWithWatermarks.collect`."""
        given = source_timestamp(timestamp_ms, record, None)
        self.emit(record if self.conversion is None else self.conversion(record), given)

    def emit(self, value: Any, given: int) -> None:
        """Emit a record of the declared type, given with the timestamp of the source, with its timestamp."""
        self._output.collect(StreamRecord(value, self._extract_timestamp(value, given)))

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
        """Notify the listener that the split has ended."""
        self._listener.split_finished(split_id)


class PausableRelativeClock:
    """A clock that can be paused, so that a split or source that may not be read does not turn idle.

    Pauses nest: the clock restarts when all have ended.

    Parameters
    ----------
    base_clock : callable
        Returns the time in ms since the epoch.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.util.PausableRelativeClock``.
    """

    def __init__(self, base_clock: RelativeClock) -> None:
        self._base_clock = base_clock
        self._blocked_ms = 0
        self._blocked_since_ms = 0
        self._pauses = 0

    def relative_time_ms(self) -> int:
        """Return the time of the base clock in ms, less the time that passed in pauses."""
        if self._pauses:
            return self._blocked_since_ms - self._blocked_ms
        return self._base_clock() - self._blocked_ms

    def pause(self) -> None:
        """Stop the clock, or add a pause to those that stop it."""
        if self._pauses == 0:
            self._blocked_since_ms = self._base_clock()
        self._pauses += 1

    def un_pause(self) -> None:
        """End one pause.

        Raises
        ------
        LifecycleError
            If the clock is not paused.
        """
        if self._pauses == 0:
            raise LifecycleError("the clock is not paused: each un_pause belongs to one pause")
        self._pauses -= 1
        if self._pauses == 0:
            self._blocked_ms += self._base_clock() - self._blocked_since_ms


class IdlenessManager:
    """Marks the underlying output idle only if neither the main output nor the split outputs are active.

    Most readers use only one of both. The generator of the unused one must neither mark the source idle nor keep it
    active: each output counts as idle until its first watermark.

    Parameters
    ----------
    underlying_output : WatermarkOutput
        Receives all watermarks, each `mark_active`, and `mark_idle` while both are idle.

    Attributes
    ----------
    main_output, split_local_output : WatermarkOutput

    Notes
    -----
    Flink's ``ProgressiveTimestampsAndWatermarks.IdlenessManager``.
    """

    def __init__(self, underlying_output: WatermarkOutput) -> None:
        self._underlying_output = underlying_output
        self.main_output = IdlenessAwareWatermarkOutput(self, underlying_output)
        self.split_local_output = IdlenessAwareWatermarkOutput(self, underlying_output)

    def maybe_mark_underlying_output_as_idle(self) -> None:
        """Mark the underlying output idle if both outputs are idle."""
        if self.main_output.is_idle and self.split_local_output.is_idle:
            self._underlying_output.mark_idle()


class IdlenessAwareWatermarkOutput:
    """One of the two outputs of an :class:`IdlenessManager`."""

    def __init__(self, manager: IdlenessManager, underlying_output: WatermarkOutput) -> None:
        self._manager = manager
        self._underlying_output = underlying_output
        self.is_idle = True

    def emit_watermark(self, watermark: Watermark) -> None:
        """Forward a watermark, and turn active."""
        self._underlying_output.emit_watermark(watermark)
        self.is_idle = False

    def mark_idle(self) -> None:
        """Turn idle, and the source with it if the other output is idle."""
        self.is_idle = True
        self._manager.maybe_mark_underlying_output_as_idle()

    def mark_active(self) -> None:
        """Turn active, and mark the underlying output active."""
        self.is_idle = False
        self._underlying_output.mark_active()


class SourceWatermarks(NamedTuple):
    """State of a source's watermarks in a checkpoint.

    Attributes
    ----------
    generator : object
        State of the generator of the main output.
    is_main_idle, are_splits_idle : bool
        Whether these outputs are.
    watermark_ms : int
        The last watermark that the source has emitted; -2**63 before the first.
    is_idle : bool
        The last status that it has emitted.
    splits : list of list
        Id of each split, the state of its generator, its watermark, and whether it is idle.
    """

    generator: Any
    is_main_idle: bool
    are_splits_idle: bool
    watermark_ms: int
    is_idle: bool
    splits: list[list[Any]]

    @classmethod
    def of_elements(cls, elements: Sequence[Any]) -> SourceWatermarks | None:
        """Return the state of the elements of a checkpoint, or None if the source had none.

        Raises
        ------
        SchemaError
            If the elements are not those of such a state.
        """
        if not elements:
            return None
        if len(elements) == len(cls._fields):
            found = cls(*elements)
            flags = found.is_main_idle, found.are_splits_idle, found.is_idle
            if all(type(flag) is bool for flag in flags) and _is_time(found.watermark_ms):
                splits = [list(each) if isinstance(each, list | tuple) else [] for each in found.splits]
                if all(
                    len(each) == 4
                    and isinstance(each[0], str)
                    and _is_time(each[2])
                    and type(each[3]) is bool
                    for each in splits
                ):
                    return found._replace(splits=splits)
        raise SchemaError(f"it has {list(elements)!r:.80} in place of the watermarks of a source")


def _is_time(value: object) -> bool:
    return type(value) is int and MIN_TIMESTAMP <= value <= MAX_TIMESTAMP


class WatermarkToDataOutput(WatermarkEmitter):
    """Forwards watermarks that advance and statuses that change, and notifies a listener.

    Parameters
    ----------
    output : Output
    listener : WatermarkUpdateListener
        Notified of a watermark before the output, of a status after it.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.WatermarkToDataOutput``.
    """

    def __init__(self, output: Output, listener: WatermarkUpdateListener) -> None:
        super().__init__(output)
        self._listener = listener

    def restore(self, watermark_ms: int, is_idle: bool) -> None:
        """Go on after a watermark and a status; what reads an idle source hears of it again."""
        self._current_watermark = watermark_ms
        if is_idle:
            self.mark_idle()

    def emit_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp > self.watermark_ms:
            self._listener.update_current_effective_watermark(watermark.timestamp)
            super().emit_watermark(watermark)

    def mark_idle(self) -> None:
        was_idle = self.is_idle
        super().mark_idle()
        if not was_idle:
            self._listener.update_idle(True)

    def mark_active(self) -> None:
        was_idle = self.is_idle
        super().mark_active()
        if was_idle:
            self._listener.update_idle(False)


class ProgressiveTimestampsAndWatermarks(TimestampsAndWatermarks):
    """Streaming execution: the main output and the output of each split have their own watermark generator.

    The watermark of the splits is the least of those that are not idle. It is not compared with that of the main
    output: either is emitted if it advances. At a tick the generators of splits emit first, then that of the main
    output.

    Parameters
    ----------
    watermark_strategy : WatermarkStrategy
        Gives each output an assigner and a generator.
    processing_time_service : ProcessingTimeService
        Schedules the ticks. Its clock measures idleness; of a split, without the time that it was paused.
    auto_watermark_interval_ms : int
        0: no ticks.
    main_input_activity_clock : PausableRelativeClock
        Measures the idleness of the main output.
    conversion : callable, optional
        Conversion of each record to its declared type.
    activity_clock : callable, optional
        Measures the idleness of splits, in ms; by default the clock of the service.

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
        conversion: Conversion | None = None,
        activity_clock: RelativeClock | None = None,
    ) -> None:
        self._strategy = watermark_strategy
        self._time_service = processing_time_service
        self._activity_clock = activity_clock or processing_time_service.relative_time
        self._interval_ms = checked_auto_watermark_interval(auto_watermark_interval_ms)
        self._main_clock = main_input_activity_clock
        self._conversion = conversion
        self._split_outputs: SplitLocalOutputs | None = None
        self._main_output: StreamingReaderOutput | None = None
        self._emitter: WatermarkToDataOutput | None = None
        self._idleness: IdlenessManager | None = None
        self._tick: ScheduledTimer | None = None

    def create_main_output(self, output: Output, listener: WatermarkUpdateListener) -> ReaderOutput[Any]:
        """Return the output that the reader is given.

        Raises
        ------
        LifecycleError
            If it was created before.
        ConfigurationError
            If the strategy is for columns only.
        UserCodeError
            If its generator cannot be created.
        """
        if self._main_output is not None:
            raise LifecycleError("the main output was created before: a reader has one")
        self._emitter = WatermarkToDataOutput(output, listener)
        self._idleness = idleness = IdlenessManager(self._emitter)
        held = HeldGenerators()
        self._split_outputs = SplitLocalOutputs(
            output,
            idleness.split_local_output,
            listener,
            self._strategy,
            self._time_service,
            self._activity_clock,
            held,
            self._conversion,
        )
        self._main_output = StreamingReaderOutput(
            output,
            idleness.main_output,
            self._strategy,
            self._time_service.current_processing_time,
            self._main_clock,
            self._split_outputs,
            held,
            self._conversion,
        )
        return self._main_output

    def start_periodic_watermark_emits(self, first_ms: int | None = None) -> None:
        """Start periodic watermarks, unless the interval is 0; starting twice is a LifecycleError."""
        if self._tick is not None:
            raise LifecycleError("periodic watermarks were started before")
        if self._interval_ms > 0:
            delay_ms = self._interval_ms
            if first_ms is not None:
                delay_ms = first_ms - self._time_service.current_processing_time()
            self._tick = self._time_service.schedule_with_fixed_delay(self._emit, delay_ms, self._interval_ms)

    @property
    def emitted(self) -> tuple[int, bool]:
        """The last watermark and the last status that were emitted; -2**63, and active, before the first."""
        emitter = self._emitter
        return (MIN_TIMESTAMP, False) if emitter is None else (emitter.watermark_ms, emitter.is_idle)

    def snapshot_state(self) -> SourceWatermarks | None:
        """Return what `restore_state` of another one takes; None before there is a main output.

        Raises
        ------
        UnsupportedOperationError
            If a generator has no snapshots.
        """
        main, splits, idleness = self._main_output, self._split_outputs, self._idleness
        if main is None or splits is None or idleness is None:
            return None
        return SourceWatermarks(
            main.snapshot_generator(),
            idleness.main_output.is_idle,
            idleness.split_local_output.is_idle,
            *self.emitted,
            splits.snapshot_state(),
        )

    def restore_state(self, state: SourceWatermarks) -> None:
        """Go on from a snapshot, with the outputs of its splits; after `create_main_output`."""
        assert self._main_output is not None
        assert self._split_outputs is not None
        assert self._idleness is not None
        assert self._emitter is not None
        self._main_output.restore_generator(state.generator)
        self._idleness.main_output.is_idle = state.is_main_idle
        self._idleness.split_local_output.is_idle = state.are_splits_idle
        self._split_outputs.restore_state(state.splits)
        self._emitter.restore(state.watermark_ms, state.is_idle)

    def stop_periodic_watermark_emits(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        if self._split_outputs is None:
            raise LifecycleError("splits cannot be paused before the main output is created")
        self._split_outputs.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def _emit(self, _: int) -> None:
        if self._split_outputs is not None:
            self._split_outputs.emit_periodic_watermark()
        if self._main_output is not None:
            self._main_output.emit_periodic_watermark()


class StreamingReaderOutput(SourceOutputWithWatermarks):
    """The main output of a reader, which creates the outputs of its splits.

    Notes
    -----
    Flink's ``ProgressiveTimestampsAndWatermarks.StreamingReaderOutput``.
    """

    def __init__(
        self,
        output: Output,
        watermark_output: WatermarkOutput,
        strategy: WatermarkStrategy,
        clock: RelativeClock,
        activity_clock: PausableRelativeClock,
        split_local_outputs: SplitLocalOutputs,
        held_generators: HeldGenerators,
        conversion: Conversion | None,
    ) -> None:
        strategy = copied_strategy(strategy)
        super().__init__(
            output,
            watermark_output,
            watermark_output,
            strategy.create_timestamp_assigner(clock),
            strategy.create_watermark_generator(activity_clock.relative_time_ms, held=held_generators),
            conversion=conversion,
        )
        self._split_local_outputs = split_local_outputs

    def create_output_for_split(self, split_id: str) -> SourceOutput[Any]:
        """Return the output of a split, which the first call creates."""
        return self._split_local_outputs.create_output_for_split(split_id)

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split that has ended; its watermark counts until the next tick or watermark."""
        self._split_local_outputs.release_output_for_split(split_id)


class SplitLocalOutputs:
    """The outputs of splits, each with a generator of its own, combined by a multiplexer.

    To release, pause or resume a split without an output is a LifecycleError.

    Parameters
    ----------
    record_output : Output
    watermark_output : WatermarkOutput
        Receives the combined watermarks and idleness.
    listener : WatermarkUpdateListener
    strategy : WatermarkStrategy
    processing_time_service : ProcessingTimeService
    activity_clock : callable
        Measures idleness, in ms.
    held_generators : HeldGenerators
        The generators of the main output and of the splits.
    conversion : callable or None
        Conversion of each record to its declared type.

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
        activity_clock: RelativeClock,
        held_generators: HeldGenerators,
        conversion: Conversion | None,
    ) -> None:
        self._record_output = record_output
        self._multiplexer = WatermarkOutputMultiplexer(watermark_output)
        self._listener = listener
        self._strategy = strategy
        self._time_service = processing_time_service
        self._activity_clock = activity_clock
        self._held_generators = held_generators
        self._conversion = conversion
        self._local_outputs: dict[str, SourceOutputWithWatermarks] = {}
        self._activity_clocks: dict[str, PausableRelativeClock] = {}

    def create_output_for_split(self, split_id: str) -> SourceOutput[Any]:
        """Return the output of a split, which the first call creates."""
        previous = self._local_outputs.get(split_id)
        if previous is not None:
            return previous
        clock = PausableRelativeClock(self._activity_clock)
        strategy = copied_strategy(self._strategy)  # assigners may have state, too
        assigner = strategy.create_timestamp_assigner(self._time_service.current_processing_time, split_id)
        generator = strategy.create_watermark_generator(
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
            self._conversion,
        )
        self._local_outputs[split_id] = output
        self._activity_clocks[split_id] = clock
        return output

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split, which from now on refuses everything."""
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

    def snapshot_state(self) -> list[list[Any]]:
        """Return of each split its id, what its generator holds, its watermark, and whether it is idle."""
        return [
            [split_id, output.snapshot_generator(), *self._multiplexer.output_state(split_id)]
            for split_id, output in self._local_outputs.items()
        ]

    def restore_state(self, splits: Sequence[Sequence[Any]]) -> None:
        """Create the outputs of the splits of a snapshot, which go on from there."""
        for split_id, generator, watermark_ms, is_idle in splits:
            self.create_output_for_split(split_id)
            self._local_outputs[split_id].restore_generator(generator)
            self._multiplexer.restore_output(split_id, watermark_ms, is_idle)

    def emit_periodic_watermark(self) -> None:
        """Let each generator emit, then emit the combined watermark once."""
        for output in self._local_outputs.values():
            output.emit_periodic_watermark()
        self._multiplexer.on_periodic_emit()

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop the clocks of some splits, and restart those of others."""
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
    """Notifies the listener of a source of one split's watermarks."""

    def __init__(self, split_id: str, listener: WatermarkUpdateListener) -> None:
        self._split_id = split_id
        self._listener = listener

    def on_watermark_update(self, watermark: int) -> None:
        self._listener.update_current_split_watermark(self._split_id, watermark)

    def on_idle_update(self, idle: bool) -> None:
        self._listener.update_current_split_idle(self._split_id, idle)
