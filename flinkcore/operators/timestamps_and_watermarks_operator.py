"""The operator that assigns timestamps to records and generates the watermarks of a stream."""

from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.element_calls import TimestampCall
from flinkcore.common.execution_config import checked_auto_watermark_interval
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import NoWatermarksGenerator, WatermarkGenerator
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.functions import RuntimeContext
from flinkcore.errors import SchemaError
from flinkcore.operators.records.copies import copied_strategy
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import (
    ElementCall,
    OneInputStreamOperator,
    refuse_before_open,
)
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer


class TimestampsAndWatermarksOperator(OneInputStreamOperator):
    """Assigns timestamps and generates watermarks by a strategy.

    A record is forwarded before the watermark that it causes. Periodic watermarks are emitted at processing-time ticks,
    the first an interval after `open`, each further one an interval after the clock's time at the tick before; and at
    `finish`. A watermark that does not advance is not emitted; one that does ends idleness.

    Statuses from upstream are ignored, and watermarks except for the last, 2**63 - 1.

    Parameters
    ----------
    watermark_strategy : WatermarkStrategy
        Copied at `open`, so that operators with the same strategy share no state of its timestamp assigner.
    output : Output
    processing_time_service : ProcessingTimeService
        Its clock also measures idleness.
    auto_watermark_interval_ms : int
        0: no ticks.
    emit_progressive_watermarks : bool
        False, for batch execution: the strategy's generator is not used; only the last watermark is forwarded.
    split : str or None
        The split of the records, named in errors.

    Raises
    ------
    ConfigurationError
        If the interval is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.TimestampsAndWatermarksOperator``. Legacy
    periodic and punctuated assigners run in it through adapters, as in 1.20. Deliberate differences: there is no
    backpressure, which stops the clock of idleness in Flink; `close` cancels the next tick, which in Flink is left to
    the task's timer service.
    """

    def __init__(
        self,
        watermark_strategy: WatermarkStrategy,
        output: Output,
        processing_time_service: ProcessingTimeService,
        auto_watermark_interval_ms: int,
        emit_progressive_watermarks: bool = True,
        split: str | None = None,
    ) -> None:
        super().__init__(output)
        interval_ms = checked_auto_watermark_interval(auto_watermark_interval_ms)
        self._watermark_strategy = watermark_strategy
        self._processing_time_service = processing_time_service
        self._watermark_interval_ms = interval_ms if emit_progressive_watermarks else 0
        self._emit_progressive_watermarks = emit_progressive_watermarks
        self._split = split
        self._watermark_output = WatermarkEmitter(output)
        self._process: ElementCall = refuse_before_open
        self._watermark_generator: WatermarkGenerator[Any] = NoWatermarksGenerator()
        self._tick: ScheduledTimer | None = None
        self._restored: tuple[Any, int | None] | None = None
        self._downtime_ms = 0

    @property
    def watermark_ms(self) -> int:
        """The last watermark that was emitted, in ms since the epoch; -2**63 before the first."""
        return self._watermark_output.watermark_ms

    @property
    def is_idle(self) -> bool:
        """Return whether the output is idle."""
        return self._watermark_output.is_idle

    def snapshot_state(self) -> tuple[Any, int, bool]:
        """Return what the generator holds, the last watermark, and whether the output is idle.

        Raises
        ------
        UnsupportedOperationError
            If the generator has no snapshots.
        """
        emitter = self._watermark_output
        return self._watermark_generator.snapshot_state(), emitter.watermark_ms, emitter.is_idle

    def restore_state(
        self, generator: Any, watermark_ms: int, is_idle: bool, next_tick_ms: int | None, downtime_ms: int = 0
    ) -> None:
        """Take what `snapshot_state` returned, and when the next tick is; before `open`.

        Parameters
        ----------
        generator, watermark_ms, is_idle
            From `snapshot_state`.
        next_tick_ms : int or None
            Time of the next tick, or None for an interval from now.
        downtime_ms : int
            Time for which the operator did not run, which does not count as idleness.

        Notes
        -----
        Flink's operator has no state, and its generator starts again.
        """
        self._restored = generator, next_tick_ms
        self._downtime_ms = downtime_ms
        self._watermark_output = WatermarkEmitter(self._output, watermark_ms, is_idle)

    def open(self, runtime_context: RuntimeContext | None = None) -> None:
        """Create assigner and generator, and schedule the first tick.

        Raises
        ------
        ConfigurationError
            If the strategy is for columns only.
        UserCodeError
            If its generator cannot be created, or the strategy cannot be copied.
        """
        strategy = copied_strategy(self._watermark_strategy)
        clock = self._processing_time_service.current_processing_time
        if self._emit_progressive_watermarks:
            relative, downtime_ms = self._processing_time_service.relative_time, self._downtime_ms
            activity_clock = (lambda: relative() - downtime_ms) if downtime_ms else relative
            self._watermark_generator = strategy.create_watermark_generator(activity_clock, self._split)
        self._process = TimestampCall(
            strategy.create_timestamp_assigner(clock, self._split).extract_timestamp,
            self._output.collect,
            self._watermark_generator.on_event,
            self._watermark_output,
        ).process
        next_tick_ms = None
        if self._restored is not None:
            held, next_tick_ms = self._restored
            self._refuse_other_state(strategy, held)
            self._watermark_generator.restore_state(held)
        if self._watermark_interval_ms > 0:
            self._schedule_tick(next_tick_ms)

    def _refuse_other_state(self, strategy: WatermarkStrategy, held: Any) -> None:
        """Accept what a generator is to be restored from if it is like what it holds; a user's knows by itself."""
        fresh = self._watermark_generator.snapshot_state()
        found = held
        if strategy.generator_supplier is not None:
            if strategy.idleness_ms is None:
                return
            fresh = fresh[1:]
            found = held[1:] if isinstance(held, list | tuple) and held else None
        if not _is_like(found, fresh):
            raise SchemaError(f"{held!r:.80} is not what the generator of {strategy} holds")

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._process(record)

    @property
    def element_call(self) -> ElementCall:
        return self._process

    def process_watermark(self, watermark: Watermark) -> None:
        """Forward the last watermark; ignore others."""
        if watermark.timestamp == MAX_TIMESTAMP:
            self._watermark_output.emit_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Ignore it: this operator has its own idleness."""

    def finish(self) -> None:
        """Let the generator emit a last watermark, at the end of the input."""
        self._watermark_generator.on_periodic_emit(self._watermark_output)

    def close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def _schedule_tick(self, tick_ms: int | None = None) -> None:
        if tick_ms is None:
            tick_ms = self._processing_time_service.current_processing_time() + self._watermark_interval_ms
        self._tick = self._processing_time_service.register_timer(tick_ms, self._on_processing_time)

    def _on_processing_time(self, timestamp_ms: int) -> None:
        self._watermark_generator.on_periodic_emit(self._watermark_output)
        if self._tick is not None:  # None if the watermark has led to the operator being closed
            self._schedule_tick()


def _is_like(value: Any, other: Any) -> bool:
    """Return whether a value has the types of another one, in the same places."""
    if isinstance(other, tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(other)
            and all(_is_like(*each) for each in zip(value, other, strict=True))
        )
    if type(other) is int:
        return type(value) is int and MIN_TIMESTAMP <= value <= MAX_TIMESTAMP
    return type(value) is type(other)


class WatermarkEmitter:
    """Forwards watermarks that advance and statuses that change.

    Parameters
    ----------
    output : Output
    watermark_ms : int
        The last watermark that was forwarded, in ms since the epoch; -2**63 before the first.
    is_idle : bool
        The last status that was forwarded.

    Notes
    -----
    Flink's ``TimestampsAndWatermarksOperator.WatermarkEmitter``.
    """

    def __init__(self, output: Output, watermark_ms: int = MIN_TIMESTAMP, is_idle: bool = False) -> None:
        self._output = output
        self._current_watermark = watermark_ms
        self._idle = is_idle

    @property
    def watermark_ms(self) -> int:
        """The last watermark that was forwarded, in ms since the epoch; -2**63 before the first."""
        return self._current_watermark

    @property
    def is_idle(self) -> bool:
        """The last status that was forwarded."""
        return self._idle

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark if it advances, after marking the output active."""
        if watermark.timestamp <= self._current_watermark:
            return
        self._current_watermark = watermark.timestamp
        self.mark_active()
        self._output.emit_watermark(watermark)

    def mark_idle(self) -> None:
        """Emit the status if the output was active."""
        if not self._idle:
            self._idle = True
            self._output.emit_watermark_status(WatermarkStatus.IDLE)

    def mark_active(self) -> None:
        """Emit the status if the output was idle."""
        if self._idle:
            self._idle = False
            self._output.emit_watermark_status(WatermarkStatus.ACTIVE)
