"""Calls of an AsyncFunction: coroutines in an asyncio loop, which has a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from time import monotonic
from typing import Any, Final

from flinkcore.datastream.functions import AsyncFunction, AsyncRetryStrategy
from flinkcore.errors import in_words
from flinkcore.operators.records.stream_elements import StreamRecord

CANCEL_SECONDS: Final = 5
"""So long calls that are cancelled may take to end; those that take longer are left behind."""


class AsyncCall:
    """The call for an element.

    Parameters
    ----------
    record : StreamRecord
        The element; nobody else changes it.
    deadline_s : float or None
        Time at which the call times out, on the monotonic clock, or None for never.

    Attributes
    ----------
    results : list or None
        None until the call is done, or if it has failed.
    failure : BaseException or None
        None until the call is done, or if it has results.
    failed_method : str
        The method of the function, or of its retry predicate, that has failed.
    is_done : bool
        Set last, in the thread of the loop.
    """

    __slots__ = ("deadline_s", "failed_method", "failure", "is_done", "record", "results")

    def __init__(self, record: StreamRecord[Any], deadline_s: float | None) -> None:
        self.record = record
        self.deadline_s = deadline_s
        self.results: list[Any] | None = None
        self.failure: BaseException | None = None
        self.failed_method = ""
        self.is_done = False


class AsyncCalls:
    """Calls a function for many elements at the same time.

    Parameters
    ----------
    function : AsyncFunction
        Is open before any call, and closed after all of them.
    strategy : AsyncRetryStrategy
    timeout_ms : int
        After so long a call is timed out; 0 or less: never.
    done : callable
        Called with each call that is done, in the thread of the loop.

    Notes
    -----
    PyFlink's ``AsyncFunctionRunner`` and ``RetryableResultHandler``. As there, a coroutine that is timed out runs on,
    and its result is dropped. Deliberate difference: `timeout` is called in the thread of the loop, too, so that it
    does not run at the same time as a coroutine. `open` and `close` are called in the thread of the job; `close` may
    run at the same time as a coroutine that has not ended :data:`CANCEL_SECONDS` after it was cancelled.
    """

    def __init__(
        self,
        function: AsyncFunction[Any, Any],
        strategy: AsyncRetryStrategy[Any],
        timeout_ms: int,
        done: Callable[[AsyncCall], None],
    ) -> None:
        self._function = function
        self._strategy = strategy
        predicate = strategy.get_retry_predicate()
        self._result_predicate = predicate.result_predicate()
        self._exception_predicate = predicate.exception_predicate()
        self._timeout_s = timeout_ms / 1000 if timeout_ms > 0 else None
        self._done = done
        self._loop = asyncio.new_event_loop()
        self._unfinished: set[AsyncCall] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._end = RuntimeError("the loop of the function's coroutines has ended")
        self._thread = Thread(
            target=partial(copy_context().run, self._run_loop), name="flinkcore-async", daemon=True
        )

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    def call(self, record: StreamRecord[Any]) -> AsyncCall:
        """Begin the call for an element, and return it."""
        deadline_s = None if self._timeout_s is None else monotonic() + self._timeout_s
        call = AsyncCall(record, deadline_s)
        self._unfinished.add(call)
        try:
            self._loop.call_soon_threadsafe(self._begin, call)
        except RuntimeError:  # the loop is closed; its thread fails the calls that it sees
            self._thread.join()
            if not call.is_done:
                self._fail(call, "async_invoke", self._end)
        return call

    def stop(self) -> None:
        """Cancel the calls that still run, and end the loop."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # the loop has just ended by itself
                self._loop.call_soon_threadsafe(self._begin_to_cancel)
            self._thread.join(CANCEL_SECONDS + 1)

    # ---- in the thread of the loop ----

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        cause = self._run_until_it_ends()
        ended_by_itself = not self._is_stopping
        if ended_by_itself:
            self._begin_to_cancel()
            self._run_until_it_ends()  # what has ended it also reaches the call that awaits it
        asyncio.set_event_loop(None)
        self._loop.close()
        if ended_by_itself:
            how = "was stopped" if cause is None else f"was ended by {in_words(cause)}"
            self._end = RuntimeError(f"the loop of the function's coroutines {how}")
            self._end.__cause__ = cause
            for call in list(self._unfinished):
                self._fail(call, "async_invoke", self._end)

    def _run_until_it_ends(self) -> BaseException | None:
        """Run the loop, and return what has ended it: SystemExit in another task than a call's, or in a callback."""
        try:
            self._loop.run_forever()
        except BaseException as cause:
            return cause
        return None

    def _begin(self, call: AsyncCall) -> None:
        if self._is_stopping:  # the loop ends before the coroutine could begin
            return
        timer = None
        if call.deadline_s is not None:  # the loop's clock is the monotonic one
            timer = self._loop.call_at(call.deadline_s, self._time_out, call)
        task = self._loop.create_task(self._attempts(call, timer))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, call))

    def _ended(self, call: AsyncCall, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and not call.is_done and not self._is_stopping:
            self._fail(call, "async_invoke", _as_failure(error))

    async def _attempts(self, call: AsyncCall, timer: asyncio.TimerHandle | None) -> None:
        attempts = 1
        while True:
            result, error = await self._attempt(call.record.value)
            if call.is_done:
                return
            if (
                call.deadline_s is not None and monotonic() >= call.deadline_s
            ):  # the coroutine held up the loop
                self._time_out(call)
                break
            try:
                delay_ms = self._retry_after_ms(result, error, attempts)
            except BaseException as failure:
                self._fail(call, "retry strategy", failure)
                break
            if delay_ms is None:
                if error is None:
                    self._complete(call, "async_invoke", result)
                else:
                    self._fail(call, "async_invoke", error)
                break
            await asyncio.sleep(max(0, delay_ms) / 1000)
            if call.is_done:
                return
            attempts += 1
        if timer is not None:
            timer.cancel()

    async def _attempt(self, value: Any) -> tuple[Any, BaseException | None]:
        try:
            return await self._function.async_invoke(value), None
        except asyncio.CancelledError as error:
            if self._is_stopping:
                raise
            return None, _as_failure(error)
        except GeneratorExit:  # the coroutine is closed
            raise
        except BaseException as error:  # SystemExit would end the loop
            return None, error

    def _retry_after_ms(self, result: Any, error: BaseException | None, attempts: int) -> int | None:
        """Return the time to wait before another attempt, or None for no further attempt."""
        if error is not None:
            of_error = self._exception_predicate
            is_reason = isinstance(error, Exception) and of_error is not None and of_error(error)
        else:
            of_result = self._result_predicate
            is_reason = result is not None and of_result is not None and of_result(result)
        if not is_reason or not self._strategy.can_retry(attempts):
            return None
        return self._strategy.get_backoff_time_millis(attempts)

    def _time_out(self, call: AsyncCall) -> None:
        if call.is_done:
            return
        try:
            results = self._function.timeout(call.record.value)
        except BaseException as failure:
            self._fail(call, "timeout", failure)
        else:
            self._complete(call, "timeout", results)

    def _complete(self, call: AsyncCall, method: str, results: Any) -> None:
        try:
            if isinstance(results, (str, bytes, bytearray, dict)) or not hasattr(results, "__iter__"):
                if isinstance(results, Coroutine):
                    results.close()
                what = "cannot be none" if results is None else f"should be of list type, not {results!r:.80}"
                raise TypeError(f"The result of AsyncFunction {what}. Return a list, which may be empty")
            call.results = list(results)
        except BaseException as failure:
            self._fail(call, method, failure)
        else:
            self._finish(call)

    def _fail(self, call: AsyncCall, method: str, failure: BaseException) -> None:
        call.failed_method, call.failure = method, failure
        self._finish(call)

    def _finish(self, call: AsyncCall) -> None:
        self._unfinished.discard(call)
        call.is_done = True
        self._done(call)

    def _begin_to_cancel(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._cancelling = self._loop.create_task(self._cancel())

    async def _cancel(self) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CANCEL_SECONDS)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


def _as_failure(error: BaseException) -> BaseException:
    """Return the failure of a coroutine that has ended with an error, distinct from a cancelled job."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    cancelled = RuntimeError("the coroutine was cancelled by what it awaits, or by another one")
    cancelled.__cause__ = error
    return cancelled
