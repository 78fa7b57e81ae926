"""The source contexts that know event time: idleness, explicit watermarks, automatic watermarks."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService, ScheduledTimer
from flinkcore.runtime.sources.source_context import SourceContext

T = TypeVar("T")


class WatermarkContext(SourceContext[T]):
    """A context that finds out when its source is idle, and says so downstream.

    A check runs every `idle_timeout_ms`. It fails, which makes the source idle, if nothing was emitted since
    the check before it was scheduled: so an active source is found idle between one and two timeouts after
    its last element. The next element or watermark makes it active again.

    Parameters
    ----------
    output : Output
    processing_time_service : ProcessingTimeService
    checkpoint_lock : context manager
        Reentrant.
    idle_timeout_ms : int or None
        None: the source is idle only where it says so.

    Raises
    ------
    ConfigurationError
        If the timeout is not above zero.

    Notes
    -----
    Flink's ``StreamSourceContexts.WatermarkContext``. Deliberate difference: `close` takes the lock, and no timer is
    registered after it; in Flink one that runs meanwhile registers the next, which the task's timer service drops.
    """

    def __init__(
        self,
        output: Output,
        processing_time_service: ProcessingTimeService,
        checkpoint_lock: AbstractContextManager[Any],
        idle_timeout_ms: int | None,
    ) -> None:
        if idle_timeout_ms is not None and idle_timeout_ms < 1:
            raise ConfigurationError(f"the idle timeout must be at least 1 ms, it is {idle_timeout_ms} ms")
        self._output = output
        self._time_service = processing_time_service
        self._checkpoint_lock = checkpoint_lock
        self._idle_timeout_ms = idle_timeout_ms
        self._status = WatermarkStatus.ACTIVE
        self._next_check: ScheduledTimer | None = None
        self._fail_on_next_check = True
        self._closed = False
        self._schedule_next_check()

    def collect(self, element: T) -> None:
        """Emit an element without giving a timestamp."""
        with self._checkpoint_lock:
            self._note_activity()
            self._process_and_collect(element)

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Emit an element with its event time, in ms since the epoch."""
        with self._checkpoint_lock:
            self._note_activity()
            self._process_and_collect_with_timestamp(element, timestamp_ms)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, if this context takes it; if not, it does not count as activity either."""
        with self._checkpoint_lock:
            if self._allow_watermark(watermark):
                self._note_activity()
                self._process_and_emit_watermark(watermark)

    def mark_as_temporarily_idle(self) -> None:
        """State that nothing will come for a while."""
        with self._checkpoint_lock:
            self._emit_status(WatermarkStatus.IDLE)

    @property
    def checkpoint_lock(self) -> AbstractContextManager[Any]:
        """The lock under which elements and timers are handled."""
        return self._checkpoint_lock

    def close(self) -> None:
        """Cancel the idle check; one that runs or waits for the lock is the last, and has no effect."""
        with self._checkpoint_lock:
            self._closed = True
            self._cancel_next_check()

    @abstractmethod
    def _process_and_collect(self, element: T) -> None: ...

    @abstractmethod
    def _process_and_collect_with_timestamp(self, element: T, timestamp_ms: int) -> None: ...

    @abstractmethod
    def _allow_watermark(self, watermark: Watermark) -> bool: ...

    @abstractmethod
    def _process_and_emit_watermark(self, watermark: Watermark) -> None: ...

    def _emit_status(self, status: WatermarkStatus) -> None:
        if self._status is not status:
            self._output.emit_watermark_status(status)
            self._status = status

    def _cancel_next_check(self) -> None:
        # Kept though cancelled, as in Flink: activity does not schedule another check in its place.
        if self._next_check is not None:
            self._next_check.cancel()

    def _note_activity(self) -> None:
        self._emit_status(WatermarkStatus.ACTIVE)
        if self._next_check is not None:
            self._fail_on_next_check = False
        else:
            self._schedule_next_check()

    def _schedule_next_check(self) -> None:
        if self._idle_timeout_ms is not None and not self._closed:
            self._fail_on_next_check = True
            self._next_check = self._time_service.register_timer(
                self._time_service.current_processing_time() + self._idle_timeout_ms, self._check_idleness
            )

    def _check_idleness(self, _: int) -> None:
        with self._checkpoint_lock:
            if self._closed:
                return
            self._next_check = None
            if self._fail_on_next_check:
                self.mark_as_temporarily_idle()
            else:
                self._schedule_next_check()


class ManualWatermarkContext(WatermarkContext[T]):
    """Event time: timestamps and watermarks are those that the source gives.

    An element collected without a timestamp carries the one given last; none if none was given yet.

    Parameters
    ----------
    output, processing_time_service, checkpoint_lock, idle_timeout_ms
        As of :class:`WatermarkContext`.
    emit_progressive_watermarks : bool
        False: only the final watermark, 2**63 - 1, is passed on.

    Notes
    -----
    Flink's ``StreamSourceContexts.ManualWatermarkContext``, whose reused record keeps its timestamp.
    """

    def __init__(
        self,
        output: Output,
        processing_time_service: ProcessingTimeService,
        checkpoint_lock: AbstractContextManager[Any],
        idle_timeout_ms: int | None,
        emit_progressive_watermarks: bool,
    ) -> None:
        super().__init__(output, processing_time_service, checkpoint_lock, idle_timeout_ms)
        self._emit_progressive_watermarks = emit_progressive_watermarks
        self._last_timestamp_ms: int | None = None

    def _process_and_collect(self, element: T) -> None:
        self._output.collect(StreamRecord(element, self._last_timestamp_ms))

    def _process_and_collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._last_timestamp_ms = timestamp_ms
        self._output.collect(StreamRecord(element, timestamp_ms))

    def _allow_watermark(self, watermark: Watermark) -> bool:
        return self._emit_progressive_watermarks or watermark == Watermark.MAX_WATERMARK

    def _process_and_emit_watermark(self, watermark: Watermark) -> None:
        self._output.emit_watermark(watermark)


class AutomaticWatermarkContext(WatermarkContext[T]):
    """Ingestion time: the clock gives timestamps and watermarks, and what the source gives is ignored.

    Watermarks are multiples of the interval, so that those of all machines are. One is due each time that the
    clock is past the next multiple: at the ticks of a timer, or earlier, after an element that overtakes it.
    Of the source's own watermarks only the final one, 2**63 - 1, counts; none follows it.

    Parameters
    ----------
    output, processing_time_service, checkpoint_lock, idle_timeout_ms
        As of :class:`WatermarkContext`. A tick finds an idle source, too, sooner than the check does.
    watermark_interval_ms : int
        At least 1.

    Raises
    ------
    ConfigurationError
        If the interval or the timeout is not above zero.

    Notes
    -----
    Flink's ``StreamSourceContexts.AutomaticWatermarkContext``. As there, no watermark comes before the first
    millisecond of the epoch.
    """

    def __init__(
        self,
        output: Output,
        processing_time_service: ProcessingTimeService,
        checkpoint_lock: AbstractContextManager[Any],
        idle_timeout_ms: int | None,
        watermark_interval_ms: int,
    ) -> None:
        if watermark_interval_ms < 1:
            raise ConfigurationError(
                f"the watermark interval must be at least 1 ms, it is {watermark_interval_ms} ms: ingestion "
                "time needs automatic watermarks"
            )
        super().__init__(output, processing_time_service, checkpoint_lock, idle_timeout_ms)
        self._watermark_interval_ms = watermark_interval_ms
        self._next_watermark_ms = 0
        self._last_record_ms = MIN_TIMESTAMP
        self._next_tick = self._schedule_tick(processing_time_service.current_processing_time())

    def close(self) -> None:
        """Cancel the idle check and the ticks; none follows one that runs, and one that waits for the lock is void."""
        with self._checkpoint_lock:
            super().close()
            self._next_tick.cancel()

    def _process_and_collect(self, element: T) -> None:
        self._last_record_ms = self._time_service.current_processing_time()
        self._output.collect(StreamRecord(element, self._last_record_ms))
        # Sent before the tick, which will find it done.
        self._emit_if_past_next(self._last_record_ms)

    def _process_and_collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._process_and_collect(element)

    def _allow_watermark(self, watermark: Watermark) -> bool:
        return watermark == Watermark.MAX_WATERMARK and self._next_watermark_ms != MAX_TIMESTAMP

    def _process_and_emit_watermark(self, watermark: Watermark) -> None:
        self._next_watermark_ms = MAX_TIMESTAMP
        self._output.emit_watermark(watermark)
        self._next_tick.cancel()

    def _emit_if_past_next(self, now_ms: int) -> None:
        if now_ms > self._next_watermark_ms:
            watermark_ms = now_ms - now_ms % self._watermark_interval_ms
            self._next_watermark_ms = watermark_ms + self._watermark_interval_ms
            self._output.emit_watermark(Watermark(watermark_ms))

    def _schedule_tick(self, now_ms: int) -> ScheduledTimer:
        return self._time_service.register_timer(now_ms + self._watermark_interval_ms, self._tick)

    def _tick(self, _: int) -> None:
        now_ms = self._time_service.current_processing_time()
        with self._checkpoint_lock:
            if self._closed:
                return
            if self._status is WatermarkStatus.ACTIVE:
                if self._is_overdue(now_ms):
                    self.mark_as_temporarily_idle()
                    self._cancel_next_check()
                else:
                    self._emit_if_past_next(now_ms)
            if not self._closed:
                self._next_tick = self._schedule_tick(now_ms)

    def _is_overdue(self, now_ms: int) -> bool:
        # Before the first record Flink's difference overflows from the epoch on, and counts as none.
        elapsed_ms = now_ms - self._last_record_ms
        return self._idle_timeout_ms is not None and self._idle_timeout_ms < elapsed_ms <= MAX_TIMESTAMP
