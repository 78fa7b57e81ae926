"""The contexts that source functions emit to, by the time characteristic of the job."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn, TypeVar

from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import SourceContext
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.errors import ConfigurationError, LifecycleError, SchemaError
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer

T = TypeVar("T")


class LockedSourceContext(SourceContext[T]):
    """A context with a lock that is held during each emission.

    Parameters
    ----------
    checkpoint_lock : context manager
        Reentrant.
    """

    def __init__(self, checkpoint_lock: AbstractContextManager[Any]) -> None:
        self._checkpoint_lock = checkpoint_lock

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        return self._checkpoint_lock

    def close(self) -> None:
        """End the emission, and cancel all timers; closing twice is not an error."""

    @property
    def watermark_ms(self) -> int:
        """The last watermark that it has emitted; -2**63 before the first."""
        return MIN_TIMESTAMP

    @property
    def is_idle(self) -> bool:
        """Return whether its source is."""
        return False

    def snapshot_state(self) -> list[int | None]:
        """Return what `restore_state` of another context of the kind takes."""
        return []

    def restore_state(self, state: Sequence[int | None], downtime_ms: int = 0) -> None:
        """Go on where another context was, before anything is emitted; an idle source is announced as idle again.

        Parameters
        ----------
        state : sequence of int or None
        downtime_ms : int
            Time for which the source did not run, which does not count as idleness.
        """


class ClosedContext(LockedSourceContext[T]):
    """The context of a source that was closed: it reports its position, and refuses everything else.

    Parameters
    ----------
    open_context : LockedSourceContext
        Context that is about to be closed. A source that resumes from a checkpoint after its end resumes from there.
    """

    def __init__(self, open_context: LockedSourceContext[T]) -> None:
        super().__init__(open_context.get_checkpoint_lock())
        self._watermark_ms = open_context.watermark_ms
        self._is_idle = open_context.is_idle
        self._state = open_context.snapshot_state()

    @property
    def watermark_ms(self) -> int:
        return self._watermark_ms

    @property
    def is_idle(self) -> bool:
        return self._is_idle

    def snapshot_state(self) -> list[int | None]:
        return self._state

    def collect(self, element: T) -> None:
        """Raise a LifecycleError, like all other methods that emit."""
        self._refuse("an element")

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._refuse(f"an element at {dated(timestamp_ms, ' ms')}")

    def emit_watermark(self, watermark: Watermark) -> None:
        self._refuse(f"the watermark {dated(watermark.timestamp)}")

    def mark_as_temporarily_idle(self) -> None:
        self._refuse("its idleness")

    def _refuse(self, what: str) -> NoReturn:
        raise LifecycleError(f"the source context was closed already: the source cannot emit {what} any more")


class SwitchingOnCloseContext(LockedSourceContext[T]):
    """Passes everything to a nested context until it is closed, and then refuses what is emitted.

    Notes
    -----
    Flink's ``StreamSourceContexts.SwitchingOnClose``. Flink's checkpoints have nothing of it; here a closed one still
    reports its position.
    """

    def __init__(self, nested: LockedSourceContext[T]) -> None:
        super().__init__(nested.get_checkpoint_lock())
        self._nested = nested

    @property
    def watermark_ms(self) -> int:
        return self._nested.watermark_ms

    @property
    def is_idle(self) -> bool:
        return self._nested.is_idle

    def snapshot_state(self) -> list[int | None]:
        return self._nested.snapshot_state()

    def restore_state(self, state: Sequence[int | None], downtime_ms: int = 0) -> None:
        self._nested.restore_state(state, downtime_ms)

    def collect(self, element: T) -> None:
        self._nested.collect(element)

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._nested.collect_with_timestamp(element, timestamp_ms)

    def emit_watermark(self, watermark: Watermark) -> None:
        self._nested.emit_watermark(watermark)

    def mark_as_temporarily_idle(self) -> None:
        self._nested.mark_as_temporarily_idle()

    def close(self) -> None:
        """Close the nested context; from now on all methods that emit raise a LifecycleError."""
        with self._checkpoint_lock:
            closed = ClosedContext(self._nested)  # its timers are part of where it was
            self._nested.close()
            self._nested = closed


class WatermarkContext(LockedSourceContext[T]):
    """A context that detects idleness of its source, and emits the status.

    A check runs every `idle_timeout_ms`, and makes the source idle if nothing was emitted since it was scheduled: so a
    source turns idle between one and two timeouts after its last element. The next element or watermark makes it active
    again.

    Parameters
    ----------
    output : Output
    processing_time_service : ProcessingTimeService
    checkpoint_lock : context manager
        Reentrant.
    idle_timeout_ms : int or None
        Time without elements after which the source is idle, or None if it is idle only when it states so.

    Raises
    ------
    ConfigurationError
        If the timeout is not above zero.

    Notes
    -----
    Flink's ``StreamSourceContexts.WatermarkContext``. Deliberate difference: `close` takes the lock, and no timer
    is registered after it; in Flink a running timer may register the next one, which the task's timer service drops.
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
        super().__init__(checkpoint_lock)
        self._output = output
        self._time_service = processing_time_service
        self._idle_timeout_ms = idle_timeout_ms
        self._status = WatermarkStatus.ACTIVE
        self._watermark_ms = MIN_TIMESTAMP
        self._next_check: ScheduledTimer | None = None
        self._next_check_ms: int | None = None
        self._fail_on_next_check = True
        self._closed = False
        self._schedule_next_check()

    def collect(self, element: T) -> None:
        with self._checkpoint_lock:
            self._note_activity()
            self._process_and_collect(element)

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        with self._checkpoint_lock:
            self._note_activity()
            self._process_and_collect_with_timestamp(element, timestamp_ms)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, if this context accepts it; otherwise it is not an activity either."""
        with self._checkpoint_lock:
            if self._allow_watermark(watermark):
                self._note_activity()
                self._process_and_emit_watermark(watermark)

    def mark_as_temporarily_idle(self) -> None:
        with self._checkpoint_lock:
            self._emit_status(WatermarkStatus.IDLE)

    def close(self) -> None:
        """Cancel the idle check; one that is waiting for the lock has no effect."""
        with self._checkpoint_lock:
            self._closed = True
            self._cancel_next_check()

    @property
    def watermark_ms(self) -> int:
        return self._watermark_ms

    @property
    def is_idle(self) -> bool:
        return self._status is WatermarkStatus.IDLE

    def snapshot_state(self) -> list[int | None]:
        """Return watermark and idleness, whether there was a check, when the next one is, and whether it would fail."""
        has_check = self._next_check is not None
        return [
            self._watermark_ms,
            int(self.is_idle),
            int(has_check),
            self._next_check_ms,
            int(self._fail_on_next_check),
        ]

    def restore_state(self, state: Sequence[int | None], downtime_ms: int = 0) -> None:
        watermark_ms, is_idle, has_check, next_check_ms, fails = state
        assert watermark_ms is not None
        self._watermark_ms = watermark_ms
        self._cancel_next_check()
        if is_idle:
            self._emit_status(WatermarkStatus.IDLE)
        if next_check_ms is not None:
            self._check_at(next_check_ms + downtime_ms)
        elif not has_check:
            self._next_check = None
        self._fail_on_next_check = bool(fails)

    def _emit(self, watermark: Watermark) -> None:
        self._watermark_ms = watermark.timestamp
        self._output.emit_watermark(watermark)

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
        # The reference is kept, as in Flink: activity does not schedule another check.
        if self._next_check is not None:
            self._next_check.cancel()
            self._next_check_ms = None

    def _note_activity(self) -> None:
        self._emit_status(WatermarkStatus.ACTIVE)
        if self._next_check is not None:
            self._fail_on_next_check = False
        else:
            self._schedule_next_check()

    def _schedule_next_check(self) -> None:
        if self._idle_timeout_ms is not None and not self._closed:
            self._fail_on_next_check = True
            self._check_at(self._time_service.current_processing_time() + self._idle_timeout_ms)

    def _check_at(self, time_ms: int) -> None:
        self._next_check_ms = time_ms
        self._next_check = self._time_service.register_timer(time_ms, self._check_idleness)

    def _check_idleness(self, _: int) -> None:
        with self._checkpoint_lock:
            if self._closed:
                return
            self._next_check = self._next_check_ms = None
            if self._fail_on_next_check:
                self.mark_as_temporarily_idle()
            else:
                self._schedule_next_check()


class ManualWatermarkContext(WatermarkContext[T]):
    """Event time: timestamps and watermarks are those of the source.

    An element collected without a timestamp carries the last one that was given, if any.

    Parameters
    ----------
    output, processing_time_service, checkpoint_lock, idle_timeout_ms
        As of :class:`WatermarkContext`.
    emit_progressive_watermarks : bool
        False: only the final watermark, 2**63 - 1, is emitted.

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

    def snapshot_state(self) -> list[int | None]:
        return [*super().snapshot_state(), self._last_timestamp_ms]

    def restore_state(self, state: Sequence[int | None], downtime_ms: int = 0) -> None:
        *before, self._last_timestamp_ms = state
        super().restore_state(before, downtime_ms)

    def _process_and_collect(self, element: T) -> None:
        self._output.collect(StreamRecord(element, self._last_timestamp_ms))

    def _process_and_collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._last_timestamp_ms = timestamp_ms
        self._output.collect(StreamRecord(element, timestamp_ms))

    def _allow_watermark(self, watermark: Watermark) -> bool:
        return self._emit_progressive_watermarks or watermark == Watermark.MAX_WATERMARK

    def _process_and_emit_watermark(self, watermark: Watermark) -> None:
        self._emit(watermark)


class AutomaticWatermarkContext(WatermarkContext[T]):
    """Ingestion time: timestamps and watermarks are those of the clock, and the source's are ignored.

    Watermarks are multiples of the interval, so that they are the same on all machines. One is due each time that the
    clock has passed the next multiple: at the ticks of a timer, or earlier, after an element. Of the source's own
    watermarks only the final one, 2**63 - 1, counts; none follows it.

    Parameters
    ----------
    output, processing_time_service, checkpoint_lock, idle_timeout_ms
        As of :class:`WatermarkContext`. A tick, too, detects idleness, earlier than the check.
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

    def snapshot_state(self) -> list[int | None]:
        own = self._next_watermark_ms, self._last_record_ms, self._next_tick_ms
        return [*super().snapshot_state(), *own]

    def restore_state(self, state: Sequence[int | None], downtime_ms: int = 0) -> None:
        *before, next_watermark_ms, last_record_ms, next_tick_ms = state
        super().restore_state(before, downtime_ms)
        assert next_watermark_ms is not None
        assert last_record_ms is not None
        assert next_tick_ms is not None
        self._next_watermark_ms = next_watermark_ms
        self._last_record_ms = last_record_ms + (downtime_ms if last_record_ms != MIN_TIMESTAMP else 0)
        self._next_tick.cancel()
        if next_watermark_ms != MAX_TIMESTAMP:
            self._next_tick = self._schedule_tick(next_tick_ms + downtime_ms - self._watermark_interval_ms)

    def close(self) -> None:
        """Cancel the idle check and the ticks; one that is waiting for the lock has no effect."""
        with self._checkpoint_lock:
            super().close()
            self._next_tick.cancel()

    def _process_and_collect(self, element: T) -> None:
        self._last_record_ms = self._time_service.current_processing_time()
        self._output.collect(StreamRecord(element, self._last_record_ms))
        # Emitted before the tick, which then has nothing to do.
        self._emit_if_past_next(self._last_record_ms)

    def _process_and_collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        self._process_and_collect(element)

    def _allow_watermark(self, watermark: Watermark) -> bool:
        return watermark == Watermark.MAX_WATERMARK and self._next_watermark_ms != MAX_TIMESTAMP

    def _process_and_emit_watermark(self, watermark: Watermark) -> None:
        self._next_watermark_ms = MAX_TIMESTAMP
        self._emit(watermark)
        self._next_tick.cancel()

    def _emit_if_past_next(self, now_ms: int) -> None:
        if now_ms > self._next_watermark_ms:
            watermark_ms = now_ms - now_ms % self._watermark_interval_ms
            self._next_watermark_ms = watermark_ms + self._watermark_interval_ms
            self._emit(Watermark(watermark_ms))

    def _schedule_tick(self, now_ms: int) -> ScheduledTimer:
        self._next_tick_ms = now_ms + self._watermark_interval_ms
        return self._time_service.register_timer(self._next_tick_ms, self._tick)

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
        # Before the first record Flink's difference overflows, and is not overdue.
        elapsed_ms = now_ms - self._last_record_ms
        return self._idle_timeout_ms is not None and self._idle_timeout_ms < elapsed_ms <= MAX_TIMESTAMP


class NonTimestampContext(LockedSourceContext[T]):
    """Processing time: elements carry no timestamps; those of the source, watermarks and idleness are ignored.

    Notes
    -----
    Flink's ``StreamSourceContexts.NonTimestampContext``.
    """

    def __init__(self, checkpoint_lock: AbstractContextManager[Any], output: Output) -> None:
        super().__init__(checkpoint_lock)
        self._output = output

    def collect(self, element: T) -> None:
        with self._checkpoint_lock:
            self._output.collect(StreamRecord(element))

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Emit an element without the timestamp."""
        self.collect(element)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Do nothing."""

    def mark_as_temporarily_idle(self) -> None:
        """Do nothing."""


_STATES: Final = {
    TimeCharacteristic.ProcessingTime: (),
    TimeCharacteristic.EventTime: (0, 0, 0, None, 0, None),
    TimeCharacteristic.IngestionTime: (0, 0, 0, None, 0, 0, 0, 0),
}
"""States of contexts; None stands for what may be None."""


def checked_context_state(
    state: Sequence[Any], time_characteristic: TimeCharacteristic
) -> tuple[int | None, ...]:
    """Return what a checkpoint has of the context of a source function.

    Raises
    ------
    SchemaError
        If it is not a state of a context of this time characteristic.
    """
    expected = _STATES[time_characteristic]
    if len(state) != len(expected) or any(
        type(value) is not int or not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP
        for value, kind in zip(state, expected, strict=True)
        if kind is not None or value is not None
    ):
        raise SchemaError(f"it has {list(state)!r:.80} in place of a source in {time_characteristic.name}")
    return tuple(state)


def get_source_context(
    time_characteristic: TimeCharacteristic,
    processing_time_service: ProcessingTimeService,
    checkpoint_lock: AbstractContextManager[Any],
    output: Output,
    *,
    watermark_interval_ms: int,
    idle_timeout_ms: int | None = None,
    emit_progressive_watermarks: bool = True,
) -> LockedSourceContext[Any]:
    """Return the context of a source function; once closed, it raises a LifecycleError for what is emitted.

    Parameters
    ----------
    time_characteristic : TimeCharacteristic
        EventTime: :class:`ManualWatermarkContext`; IngestionTime: :class:`AutomaticWatermarkContext`;
        ProcessingTime: :class:`NonTimestampContext`.
    processing_time_service : ProcessingTimeService
        Runs idle checks and automatic watermarks.
    checkpoint_lock : context manager
        Held during each emission; reentrant, such as ``threading.RLock()``.
    output : Output
    watermark_interval_ms : int
        Interval of automatic watermarks; ignored by other characteristics.
    idle_timeout_ms : int or None, default None
        Time without elements after which a source is idle; with None it is idle only when it states so.
    emit_progressive_watermarks : bool, default True
        False, as for batch execution: only the final watermark is emitted.

    Raises
    ------
    ConfigurationError
        If the interval or the timeout is not above zero, or ingestion time is asked for without progressive
        watermarks.

    Notes
    -----
    Flink 1.20's ``StreamSourceContexts.getSourceContext``; None stands for its timeout of -1.
    """
    context: LockedSourceContext[Any]
    if time_characteristic is TimeCharacteristic.EventTime:
        context = ManualWatermarkContext(
            output, processing_time_service, checkpoint_lock, idle_timeout_ms, emit_progressive_watermarks
        )
    elif time_characteristic is TimeCharacteristic.IngestionTime:
        if not emit_progressive_watermarks:
            raise ConfigurationError(
                "ingestion time is not available without progressive watermarks. Use event time or processing "
                "time, or let progressive watermarks be emitted"
            )
        context = AutomaticWatermarkContext(
            output, processing_time_service, checkpoint_lock, idle_timeout_ms, watermark_interval_ms
        )
    elif time_characteristic is TimeCharacteristic.ProcessingTime:
        context = NonTimestampContext(checkpoint_lock, output)
    else:
        raise ConfigurationError(
            f"a time characteristic is one of TimeCharacteristic, not {time_characteristic!r}"
        )
    return SwitchingOnCloseContext(context)
