"""The operator that gives records their event time and makes the watermarks of a stream."""

from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.timestamp_assigner import NO_TIMESTAMP, TimestampAssigner
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import NoWatermarksGenerator, WatermarkGenerator
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.functions import RuntimeContext
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.copied_strategy import copied_strategy
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService, ScheduledTimer


class TimestampsAndWatermarksOperator(OneInputStreamOperator):
    """Assigns timestamps and makes watermarks, by a strategy.

    A record is forwarded before the watermark that it causes. Periodic watermarks are made at processing-time
    ticks: the first an interval after `open`, each next one an interval after the clock's time at the tick before,
    be it late; and at `finish`. A watermark that does not advance is not emitted, so a generator that goes
    backwards has no effect until it has caught up; one that does advance ends idleness.

    Watermarks from upstream are ignored but for the last, 2**63 - 1, and so are statuses.

    Parameters
    ----------
    watermark_strategy : WatermarkStrategy
        Copied, so that operators that share a strategy share no state of its timestamp assigner.
    output : Output
    processing_time_service : ProcessingTimeService
        Its clock is also what idleness is measured by.
    auto_watermark_interval_ms : int
        0: no ticks.
    emit_progressive_watermarks : bool
        False, for batch execution: the strategy's generator is not used, and only the last watermark passes.
    split : str or None
        Whose records they are, for error messages.
    latency_stats : LatencyStats or None
        Measures the latency markers that come by.

    Raises
    ------
    ConfigurationError
        If the interval is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.TimestampsAndWatermarksOperator``. It is the periodic
    and the punctuated operator of before, too: those assigners run in it through adapters, as in 1.20.
    Deliberate differences: there is no backpressure, which stops the clock of Flink's idleness; `close` cancels
    the next tick, which in Flink is left to the task's timer service.
    """

    def __init__(
        self,
        watermark_strategy: WatermarkStrategy,
        output: Output,
        processing_time_service: ProcessingTimeService,
        auto_watermark_interval_ms: int,
        emit_progressive_watermarks: bool = True,
        split: str | None = None,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(output, latency_stats)
        if auto_watermark_interval_ms < 0:
            raise ConfigurationError(
                f"the auto-watermark interval cannot be negative, it is {auto_watermark_interval_ms} ms"
            )
        self._watermark_strategy = watermark_strategy
        self._processing_time_service = processing_time_service
        self._watermark_interval_ms = auto_watermark_interval_ms if emit_progressive_watermarks else 0
        self._emit_progressive_watermarks = emit_progressive_watermarks
        self._split = split
        self._watermark_output = WatermarkEmitter(output)
        self._timestamp_assigner: TimestampAssigner
        self._watermark_generator: WatermarkGenerator[Any] = NoWatermarksGenerator()
        self._tick: ScheduledTimer | None = None

    def open(self, runtime_context: RuntimeContext | None = None) -> None:
        """Make assigner and generator, and schedule the first tick; before anything is processed.

        Raises
        ------
        ConfigurationError
            If the strategy cannot handle elements one by one.
        UserCodeError
            If its generator cannot be made, or the strategy not be copied.
        """
        strategy = copied_strategy(self._watermark_strategy)
        self._timestamp_assigner = strategy.create_timestamp_assigner(self._split)
        if self._emit_progressive_watermarks:
            self._watermark_generator = strategy.create_watermark_generator(
                self._processing_time_service.current_processing_time, self._split
            )
        if self._watermark_interval_ms > 0:
            self._schedule_tick()

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Set the record's timestamp and forward it, then show it to the generator.

        Raises
        ------
        UserCodeError
            If the strategy's assigner or generator raises.
        DataError
            If the assigner gives no timestamp.
        """
        previous = NO_TIMESTAMP if record.timestamp is None else record.timestamp
        value = record.value  # what comes next may reuse the record
        timestamp = self._timestamp_assigner.extract_timestamp(value, previous)
        record.timestamp = timestamp
        self._output.collect(record)
        self._watermark_generator.on_event(value, timestamp, self._watermark_output)

    def process_watermark(self, watermark: Watermark) -> None:
        """Forward the last watermark; ignore others."""
        if watermark.timestamp == MAX_TIMESTAMP:
            self._watermark_output.emit_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Ignore it: this operator has its own idleness."""

    def finish(self) -> None:
        """Emit the watermark that is due, at the end of the input."""
        self._watermark_generator.on_periodic_emit(self._watermark_output)

    def close(self) -> None:
        """Cancel the next tick."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def _schedule_tick(self) -> None:
        now = self._processing_time_service.current_processing_time()
        self._tick = self._processing_time_service.register_timer(
            now + self._watermark_interval_ms, self._on_processing_time
        )

    def _on_processing_time(self, timestamp_ms: int) -> None:
        self._watermark_generator.on_periodic_emit(self._watermark_output)
        if self._tick is not None:  # else what the watermark led to has closed the operator
            self._schedule_tick()


class WatermarkEmitter:
    """Passes on the watermarks and statuses that are news.

    Parameters
    ----------
    output : Output
    watermark_ms : int
        The last one that it has passed on; -2**63 if there was none.
    is_idle : bool
        Whether it has told that the output is idle.

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
        """The last watermark that it has passed on; -2**63 if there was none."""
        return self._current_watermark

    @property
    def is_idle(self) -> bool:
        """Whether it has told that the output is idle."""
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
