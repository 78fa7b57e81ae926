"""The threads of a replay, which end together: those that do not end by themselves are interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Condition, Lock, Thread, current_thread
from time import monotonic
from typing import Any

PATIENCE_SECONDS = 0.4
"""So long an interrupt waits for threads to end by themselves."""

CANCEL_SECONDS = 30
"""So long an error, or who takes no more results, waits for that; as in Flink."""

INTERRUPT_SECONDS = 0.2
"""So long one that was interrupted may take to end before it is interrupted again."""

INTERRUPTS = 2
"""So often threads are interrupted before they are left behind, where they are interrupted now and then."""

MOST_INTERRUPT_SECONDS = 10


def cores_here() -> int:
    """Return how many threads run at once on this machine."""
    return os.cpu_count() or 1


class ReplayStoppedError(Exception):
    """Raised in the threads of a replay that ends early: nobody takes their results any more."""


class ReplayThreads:
    """All threads of a replay, those of every operator: where it ends early they end together.

    The threads of an operator wait for those of the operator before, and run it: none of them can be ended alone.

    Notes
    -----
    Like Flink's ``TaskCanceler``, which interrupts a task that does not end by itself.
    """

    def __init__(self) -> None:
        self._conditions: list[tuple[AbstractContextManager[Any], Sequence[Condition]]] = []
        self._threads: list[Thread] = []
        self._interruptible: set[Thread] = set()
        self._interrupted: set[Thread] = set()
        self._interrupts = Lock()
        self._is_stopped = False

    def wake(self, lock: AbstractContextManager[Any], *conditions: Condition) -> None:
        """Have threads that wait for these conditions woken when the replay stops.

        Their lock is to be entered by itself: an interrupt may come during the entry of a condition, which is in
        Python.
        """
        self._conditions.append((lock, conditions))

    def start(self, name: str, work: Callable[[], None]) -> Thread:
        """Start a thread of the replay, which ends when it is interrupted, or when `work` raises ReplayStoppedError."""
        thread = Thread(target=self._run, args=(work,), name=f"flinkcore-{name}", daemon=True)
        self._threads.append(thread)  # before an interrupt can come: from here on it may run
        self._interruptible.add(thread)
        thread.start()
        return thread

    def _run(self, work: Callable[[], None]) -> None:
        try:
            with suppress(ReplayStoppedError, KeyboardInterrupt):
                work()
            self._end_interrupts()
        except KeyboardInterrupt:
            self._end_interrupts()

    def _end_interrupts(self) -> None:
        """Let no interrupt come any more: in what Python does to end a thread it would be reported."""
        thread = current_thread()
        with self._interrupts:
            self._interruptible.discard(thread)
            if thread in self._interrupted:
                _raise_in(thread, None)

    def check(self) -> None:
        """Raise ReplayStoppedError if the replay has been stopped."""
        if self._is_stopped:
            raise ReplayStoppedError

    @contextmanager
    def stopped_on_error(self) -> Iterator[None]:
        """Stop the replay if the block does not come to its end, unless it runs in a thread of the replay itself.

        An error in such a thread reaches the one that takes the results in its turn: after those before it.
        """
        try:
            yield
        except BaseException as error:
            if current_thread() not in self._threads:
                self.stop(PATIENCE_SECONDS if _is_interrupt(error) else CANCEL_SECONDS)
            raise

    @contextmanager
    def closing(self, generator: Generator[Any, None, None]) -> Iterator[None]:
        """Close a generator with the block, if no thread that could not be ended is in it."""
        try:
            yield
        finally:
            if not (self._is_stopped and any(thread.is_alive() for thread in self._threads)):
                generator.close()

    def stop(self, patience: float) -> None:
        """Stop the replay, wait so many seconds for its threads to end by themselves, and then interrupt them."""
        self._is_stopped = True
        for lock, conditions in self._conditions:
            with lock:
                for condition in conditions:
                    condition.notify_all()
        if sys.is_finalizing():  # daemons have ended then, and are not marked as ended
            return
        with suppress(KeyboardInterrupt):  # of somebody who has lost patience
            self._join(patience)
        if self._interrupt(INTERRUPTS):
            Thread(target=self._interrupt, name="flinkcore-interrupts", daemon=True).start()

    def _interrupt(self, times: int | None = None) -> list[Thread]:
        """Interrupt threads until they have ended, or so many times; return those that run on.

        An interrupt of a thread during a callback of a weak reference, or a finalizer, is only reported, and lost.
        """
        seconds = INTERRUPT_SECONDS
        while (running := self._running()) and times != 0:
            with self._interrupts:
                for thread in self._interruptible.intersection(running):
                    self._interrupted.add(thread)
                    _raise_in(thread, KeyboardInterrupt)
            self._join(seconds)
            if times is None:
                seconds = min(2 * seconds, MOST_INTERRUPT_SECONDS)
            else:
                times -= 1
        return running

    def _running(self) -> list[Thread]:
        # One that has not begun by now ends at once when it does.
        return [thread for thread in self._threads if thread.ident is not None and thread.is_alive()]

    def _join(self, seconds: float) -> None:
        end = monotonic() + seconds
        for thread in self._running():
            thread.join(max(0, end - monotonic()))


def _raise_in(thread: Thread, error: type[BaseException] | None) -> None:
    """Raise an error in a thread as soon as it runs Python code, or withdraw an error if it is None."""
    assert thread.ident is not None
    from ctypes import c_ulong, py_object, pythonapi  # only threads that do not end by themselves need it

    pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread.ident), None if error is None else py_object(error))


def _is_interrupt(error: BaseException) -> bool:
    # A generator may be closed because of one.
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)
