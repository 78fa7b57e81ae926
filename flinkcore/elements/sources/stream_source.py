"""The operator of a source function, which runs on a thread of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock, Thread
from typing import Any, Final

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    PacedSourceContext,
    SourceContext,
    SourceFunction,
    function_name,
)
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.elements.sources.source_contexts import LockedSourceContext, get_source_context
from flinkcore.elements.sources.source_outputs import SourceDataOutput
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    FlinkcoreError,
    LifecycleError,
    UserCodeError,
    in_words,
)
from flinkcore.operators.records.copies import detached
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.state import OperatorStateBackend, OperatorStateSnapshot
from flinkcore.operators.timers.processing_time import ProcessingTimeService

_LOG = logging.getLogger(__name__)

EMISSIONS_AHEAD: Final = 1024
"""Number of emissions that a function may be ahead of its job; after its cancellation, the number dropped."""

STOP_POLL_SECONDS: Final = 0.05
"""Interval at which a job that waits for a function to stop checks whether it has waited for too long."""

CANCELLATION_TIMEOUT_S: Final = 10.0
"""Time for which a job that ends waits for a cancelled function to return."""

Call = tuple[Callable[..., None], tuple[Any, ...]]
"""A method of a source context, and its arguments."""


class Emission:
    """Emission of a function at one time.

    Attributes
    ----------
    calls : list of Call
    has_elements : bool
        Whether there is more than watermarks and idleness.
    slept_ms : int
        Time for which the function slept before, in all, in ms.
    """

    __slots__ = ("calls", "has_elements", "slept_ms")

    def __init__(self, calls: list[Call], has_elements: bool, slept_ms: int) -> None:
        self.calls = calls
        self.has_elements = has_elements
        self.slept_ms = slept_ms


@contextmanager
def _named_failure(name: str, method: str, failures: type[BaseException] = Exception) -> Iterator[None]:
    """Raise a UserCodeError from what the method of a function raises; errors of flinkcore pass."""
    try:
        yield
    except FlinkcoreError:
        raise
    except failures as failure:
        raise UserCodeError(f"{name}.{method} failed: {in_words(failure)}") from failure


class _Cancelled(BaseException):
    """Ends the thread of a function that emits on and on although it was cancelled."""


class _EmissionQueue:
    """Queue of emissions from the thread of a function to that of the job."""

    def __init__(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake
        self._changed = InterruptibleCondition()
        self._emissions: list[Emission] = []
        self._cancelled = False
        self._stopping = False
        self._woken = False
        self._dropped = 0
        self.ended = False
        self.failure: BaseException | None = None

    def put(self, emission: Emission) -> None:
        """Add an emission; wait while there are too many. Once cancelled, drop some, then end the thread."""
        with self._changed:
            while len(self._emissions) >= EMISSIONS_AHEAD and not self._cancelled:
                self._changed.wait()
            if self._cancelled:
                self._dropped += 1
                if self._dropped > EMISSIONS_AHEAD:
                    raise _Cancelled
                return
            self._emissions.append(emission)
            if len(self._emissions) == 1:
                self._notify()

    def _notify(self) -> None:
        self._changed.notify()
        if self._wake is not None:
            self._wake()

    @property
    def is_available(self) -> bool:
        """Return whether `take` would not wait."""
        with self._changed:
            return self.ended or bool(self._emissions)

    def wait_cancelled(self, timeout_s: float) -> None:
        """Wait for a while, but no longer than until the function is cancelled."""
        with self._changed:
            self._changed.wait_for(lambda: self._cancelled or self._stopping, timeout_s)

    def stop_waiting(self) -> None:
        """Let a function that waits go on, so that it can return; its emissions are still taken."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    @property
    def has_ended(self) -> bool:
        """Return whether nothing follows what is there."""
        return self.ended or self._cancelled

    def _is_done_waiting(self) -> bool:
        return bool(self._emissions) or self.ended or self._cancelled or self._woken

    def wake(self) -> None:
        """Let `take` wait no longer."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def end(self, failure: BaseException | None) -> None:
        """Note that nothing follows."""
        with self._changed:
            self.ended, self.failure = True, failure
            self._notify()

    def cancel(self) -> None:
        """Take no further emissions."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def take(self, wait: bool) -> list[Emission]:
        """Return all emissions. Without any, wait for one, for the end or to be woken; only briefly during a stop."""
        with self._changed:
            if wait:
                timeout_s = STOP_POLL_SECONDS if self._stopping else None
                self._changed.wait_for(self._is_done_waiting, timeout_s)
                self._woken = False
            taken, self._emissions = self._emissions, []
            if len(taken) >= EMISSIONS_AHEAD:
                self._changed.notify()
            return taken


class _CheckpointLock:
    """A reentrant lock that hands over what was emitted when it is released."""

    def __init__(self, lock: AbstractContextManager[Any], on_release: Callable[[], None]) -> None:
        self._lock = lock
        self._on_release = on_release
        self.depth = 0

    def __enter__(self) -> _CheckpointLock:
        self._lock.__enter__()
        self.depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if self.depth == 1:
                self._on_release()
        finally:
            self.depth -= 1
            self._lock.__exit__(None, None, None)


class FunctionContext(PacedSourceContext[Any]):
    """The context that a function emits to; the job's thread makes the calls of the context that it wraps.

    Elements are converted to the declared type, and detached from what the function may change, when they are emitted.

    Parameters
    ----------
    target : SourceContext
    put : callable
        Takes the emissions.
    element_type : TypeInformation
    giver : str
        The name of the function in errors.
    wait : callable, optional
        Function that waits for so many seconds, or None if a sleep takes no time.

    Attributes
    ----------
    slept_ms : int
        Time for which the function has slept in all, in ms.
    """

    def __init__(
        self,
        target: SourceContext[Any],
        put: Callable[[Emission], None],
        element_type: TypeInformation,
        giver: str,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self._target = target
        self._wait = wait
        self._put = put
        self._conversion = element_type.conversion()
        self._changes = not element_type.is_immutable()
        self._giver = giver
        self._lock = RLock()
        self._checkpoint_lock = _CheckpointLock(self._lock, self._hand_over)
        self._calls: list[Call] = []
        self._has_elements = False
        self.slept_ms = 0
        self._closed = False

    def collect(self, element: Any) -> None:
        self._emit(True, self._target.collect, self._value(element))

    def collect_with_timestamp(self, element: Any, timestamp_ms: int) -> None:
        timestamp = as_timestamp(timestamp_ms)
        if timestamp is None:
            raise DataError(
                f"{self._giver} gave the timestamp {timestamp_ms!r} for the element {shown(element)}: an event time is "
                "an int of 64 bits, in milliseconds since the epoch"
            )
        self._emit(True, self._target.collect_with_timestamp, self._value(element), timestamp)

    def emit_watermark(self, watermark: Watermark) -> None:
        timestamp = as_timestamp(watermark.timestamp) if isinstance(watermark, Watermark) else None
        if timestamp is None:
            raise DataError(
                f"{self._giver} emitted {watermark!r}: a watermark is a Watermark of an int of 64 bits, in "
                "milliseconds since the epoch"
            )
        self._emit(False, self._target.emit_watermark, Watermark(timestamp))

    def mark_as_temporarily_idle(self) -> None:
        self._emit(False, self._target.mark_as_temporarily_idle)

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        return self._checkpoint_lock

    def sleep(self, duration_ms: int) -> None:
        duration = as_timestamp(duration_ms)
        if duration is None or duration < 0:
            raise ConfigurationError(
                f"sleep takes a whole number of milliseconds from 0 on, not {duration_ms!r}"
            )
        with self._lock:
            if self._checkpoint_lock.depth:
                raise LifecycleError(
                    f"{self._giver} sleeps while it holds the checkpoint lock, so that no timer could run: "
                    "release it first"
                )
            self.slept_ms += duration
        if self._wait is not None:
            self._wait(duration / 1000)

    def close(self) -> None:
        if not self._closed:
            self._emit(False, self._target.close)
            self._closed = True

    def _value(self, element: Any) -> Any:
        value = element if self._conversion is None else self._conversion(element)
        return detached(value, self._giver) if self._changes else value

    def _emit(self, is_element: bool, method: Callable[..., None], *arguments: Any) -> None:
        with self._lock:
            if self._closed:
                raise LifecycleError(f"{self._giver} closed its context: it cannot emit any more")
            if not self._checkpoint_lock.depth:
                self._put(Emission([(method, arguments)], is_element, self.slept_ms))
                return
            self._calls.append((method, arguments))
            self._has_elements |= is_element

    def _hand_over(self) -> None:
        if self._calls:
            emission = Emission(self._calls, self._has_elements, self.slept_ms)
            self._calls, self._has_elements = [], False
            self._put(emission)


class StreamSource:
    """Runs a source function, and emits its records, watermarks and statuses.

    The function runs on a thread of its own; what it emits is taken and emitted on the thread of the job, by
    :meth:`next_emission` and the calls of each :class:`Emission`.

    Parameters
    ----------
    function : SourceFunction
        Open.
    output : Output
    processing_time_service : ProcessingTimeService
    element_type : TypeInformation
        Declared type of the elements.
    time_characteristic : TimeCharacteristic
        Time characteristic of the job.
    auto_watermark_interval_ms : int
        Interval of automatic watermarks, in ingestion time.
    idle_timeout_ms : int or None
        As of :func:`get_source_context`.
    emit_progressive_watermarks : bool
        Likewise.
    wake : callable, optional
        On the system clock: called, in the function's thread, when there is an emission again, or the
        function has ended. A sleep of the function then takes its time. None on the arrival clock.
    restored_context : sequence, optional
        `snapshot_state` of the context from which this one resumes.
    downtime_ms : int
        Time for which the source did not run.

    Raises
    ------
    ConfigurationError
        As :func:`get_source_context` does.

    Notes
    -----
    Flink 1.20's ``org.apache.flink.streaming.api.operators.StreamSource`` with its ``SourceStreamTask``. Deliberate
    differences: the function emits ahead of the job, whose thread makes all calls; Flink has no idle timeout here.
    """

    def __init__(
        self,
        function: SourceFunction,
        output: Output,
        processing_time_service: ProcessingTimeService,
        element_type: TypeInformation,
        *,
        time_characteristic: TimeCharacteristic,
        auto_watermark_interval_ms: int,
        idle_timeout_ms: int | None = None,
        emit_progressive_watermarks: bool = True,
        wake: Callable[[], None] | None = None,
        restored_context: Sequence[int | None] | None = None,
        downtime_ms: int = 0,
    ) -> None:
        self._function = function
        self._name = function_name(function)
        self._output = SourceDataOutput(output)
        self._context = get_source_context(
            time_characteristic,
            processing_time_service,
            nullcontext(),
            self._output,
            watermark_interval_ms=auto_watermark_interval_ms,
            idle_timeout_ms=idle_timeout_ms,
            emit_progressive_watermarks=emit_progressive_watermarks,
        )
        if restored_context is not None:
            self._context.restore_state(restored_context, downtime_ms)
        queue = self._queue = _EmissionQueue(wake)
        self._function_context = FunctionContext(
            self._context, queue.put, element_type, self._name, None if wake is None else queue.wait_cancelled
        )
        self._thread: Thread | None = None
        self._wait_until_s: float | None = None
        self._stopped_until_s: float | None = None
        self._taken: list[Emission] = []  # the next one last

    @property
    def context(self) -> LockedSourceContext[Any]:
        """Return what its emissions go to."""
        return self._context

    @property
    def slept_ms(self) -> int:
        """Return how long the function has slept in all, in ms, once it has ended."""
        return self._function_context.slept_ms

    @property
    def is_available(self) -> bool:
        """Return whether `next_emission` would not wait; the first call starts the function's thread."""
        self._start()
        return bool(self._taken) or self._queue.is_available

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name=f"source function {self._name}", daemon=True)
            self._thread.start()

    def next_emission(self, wait: bool = True) -> Emission | None:
        """Return the next emission of the function; the first call starts its thread.

        Parameters
        ----------
        wait : bool, default True
            Whether to wait for it.

        Returns
        -------
        Emission or None
            None after the last one, and before the next one if it does not wait, was woken, or the function is to stop.

        Raises
        ------
        UserCodeError
            If the function has failed, once all that it emitted before was returned; errors of flinkcore are raised as
            they are.
        """
        self._start()
        if not self._taken:
            self._taken = self._queue.take(wait)[::-1]
        if self._taken:
            return self._taken.pop()
        failure = self._queue.failure
        if not wait or failure is None:
            return None
        with _named_failure(self._name, "run", BaseException):
            raise failure

    @property
    def has_ended(self) -> bool:
        """Return whether nothing follows."""
        return not self._taken and self._queue.has_ended

    def wake(self) -> None:
        """Let the thread of the job wait for the function no longer; may be called in any thread."""
        self._queue.wake()

    def peek(self, ahead: int) -> Emission | None:
        """Wait for the emission `ahead` after the next one; return it, or None if there is no such one or on a wake."""
        while len(self._taken) <= ahead:
            taken = self._queue.take(wait=True)
            if not taken:
                return None
            self._taken = taken[::-1] + self._taken
        return self._taken[-1 - ahead]

    def finish(self) -> None:
        """Emit the last watermark, 2**63 - 1, after the last emission."""
        self._context.close()
        self._output.end()

    def stop(self) -> bool:
        """Cancel the function unless it has ended; what it emits until it returns is still to be taken.

        Returns
        -------
        bool
            Whether it has begun: else it does not begin any more.
        """
        if self._thread is None:
            return False
        if not self._queue.ended and self._stopped_until_s is None:
            self._stopped_until_s = time.monotonic() + CANCELLATION_TIMEOUT_S
            with _named_failure(self._name, "cancel"):
                self._function.cancel()
            self._queue.stop_waiting()
        return True

    def check_stopped(self) -> None:
        """Raise a UserCodeError if the function has not returned for long although it was to stop."""
        if self._stopped_until_s is not None and time.monotonic() > self._stopped_until_s:
            raise UserCodeError(
                f"{self._name}.run did not return within {CANCELLATION_TIMEOUT_S:g} s after cancel(), so that there is "
                "no checkpoint. Let it return soon"
            )

    def cancel(self) -> None:
        """Cancel the function unless it has ended, without waiting for it; an error of its `cancel` is logged."""
        if self._thread is None:  # whoever starts it now finds that nothing comes
            self._queue.cancel()
        if self._thread is None or self._queue.ended or self._wait_until_s is not None:
            return
        self._wait_until_s = time.monotonic() + CANCELLATION_TIMEOUT_S
        try:
            self._function.cancel()
        except Exception:
            _LOG.exception("%s.cancel failed", self._name)
        finally:
            self._queue.cancel()

    def close(self) -> None:
        """Cancel the function unless it has ended, and wait until it returns, but not for ever."""
        self.cancel()
        if self._thread is None or self._wait_until_s is None:
            return
        self._thread.join(max(0.0, self._wait_until_s - time.monotonic()))
        if self._thread.is_alive():
            _LOG.warning(
                "%s.run did not return within %g s after cancel(); it goes on on a thread of its own",
                self._name,
                CANCELLATION_TIMEOUT_S,
            )

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._function.run(self._function_context)
        except _Cancelled:
            pass
        except BaseException as raised:  # a thread would swallow even SystemExit
            failure = raised
        self._queue.end(failure)


def initialize_states(
    function: CheckpointedFunction,
    store: OperatorStateBackend,
    states: Mapping[str, OperatorStateSnapshot] | None = None,
) -> None:
    """Let a function ask for its states, before it is opened.

    Parameters
    ----------
    function : CheckpointedFunction
    store : OperatorStateBackend
    states : mapping of str to OperatorStateSnapshot, optional
        States from which it resumes, or None at its beginning.

    Raises
    ------
    UserCodeError
        If the function fails; errors of flinkcore are raised as they are.
    """
    store.restore(states or {})
    with _named_failure(function_name(function), "initialize_state"):
        function.initialize_state(FunctionInitializationContext(states is not None, store))


def snapshot_states(
    function: CheckpointedFunction, store: OperatorStateBackend
) -> dict[str, OperatorStateSnapshot]:
    """Return the states of a function, as it brings them up to date.

    Parameters
    ----------
    function : CheckpointedFunction
    store : OperatorStateBackend
        Store that `initialize_states` was given.

    Raises
    ------
    UserCodeError
        If the function fails; errors of flinkcore are raised as they are.
    """
    with _named_failure(function_name(function), "snapshot_state"):
        function.snapshot_state(FunctionSnapshotContext(1))
    return store.snapshot()
