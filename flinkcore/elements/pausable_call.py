"""Calls that pause wherever they have given enough, in the midst of functions of the user's that they call."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import Context, copy_context
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore._internal.python.replay_threads import ReplayThreads

Given = TypeVar("Given")


class PausableCall(Generic[Given]):
    """Call that yields what it has made so far, and continues when more is requested.

    A generator pauses between calls of functions, not within one, which may give results without end. So the call runs
    in a thread of its own. That and the thread that takes what it gives never run at the same time.

    Notes
    -----
    The call must not refer to the generator: a generator without references ends the call.
    """

    def __init__(self) -> None:
        lock = Lock()
        self._lock = lock
        self._turn = InterruptibleCondition(lock)
        self._threads = ReplayThreads()
        self._threads.wake(lock, self._turn)
        self._given: list[Given] = []
        self._is_running = False
        self._failure: BaseException | None = None

    def run(self, call: Callable[[], None]) -> Generator[Given, None, None]:
        """Call, and yield each part that `give` gets meanwhile.

        Raises
        ------
        BaseException
            Error of the call.
        """
        with self._threads.stopped_on_error():
            self._is_running = True
            thread = self._threads.start("elements", partial(self._work, copy_context(), call))
            while self._has_given():
                yield self._given.pop()
                with self._lock:
                    self._is_running = True
                    self._turn.notify_all()
            thread.join()
        if self._failure is not None:
            raise self._failure

    def give(self, part: Given) -> None:
        """Hand over a part, from within the call, and pause until the next one is requested.

        Raises
        ------
        ReplayStoppedError
            If no more will be asked for.
        """
        with self._lock:
            self._given.append(part)
            self._is_running = False
            self._turn.notify_all()
            self._threads.check()  # who has stopped it before wakes it no more
            while not self._is_running:
                self._turn.wait()
                self._threads.check()

    def _has_given(self) -> bool:
        with self._lock:
            while self._is_running:
                self._turn.wait()
            return bool(self._given)

    def _work(self, context: Context, call: Callable[[], None]) -> None:
        try:
            context.run(call)
        except BaseException as failure:  # raised again in the thread that takes what is given
            self._failure = failure
        finally:
            with self._lock:
                self._is_running = False
                self._turn.notify_all()
