"""A driven clock that writes down what it is asked for, as golden traces do."""

from equipment.recorders import Recorder

from flinkcore.operators.timers.processing_time import (
    DrivenProcessingTimeService,
    ProcessingTimeCallback,
    ScheduledTimer,
)


class _TracedTimer:
    def __init__(self, timer: ScheduledTimer, recorder: Recorder, timestamp_ms: int) -> None:
        self._timer = timer
        self._recorder = recorder
        self._timestamp_ms = timestamp_ms

    def cancel(self) -> bool:
        cancelled = self._timer.cancel()
        if cancelled:
            self._recorder.add("physical", op="cancel", time=self._timestamp_ms)
        return cancelled

    @property
    def is_cancelled(self) -> bool:
        return self._timer.is_cancelled

    @property
    def is_done(self) -> bool:
        return self._timer.is_done


class TracedProcessingTimeService(DrivenProcessingTimeService):
    """Records who registers, cancels and fires one-shot timers."""

    def __init__(self, start_ms: int, recorder: Recorder) -> None:
        super().__init__(start_ms)
        self._recorder = recorder

    def register_timer(self, timestamp_ms: int, callback: ProcessingTimeCallback) -> ScheduledTimer:
        def fire(timestamp: int) -> None:
            self._recorder.add("physical", op="fire", time=timestamp)
            callback(timestamp)

        self._recorder.add("physical", op="register", time=timestamp_ms)
        return _TracedTimer(super().register_timer(timestamp_ms, fire), self._recorder, timestamp_ms)
