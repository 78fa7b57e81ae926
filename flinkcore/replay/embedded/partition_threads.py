"""Threads of an embedded replay: one per partition, which between them also prepare what they process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_ulong, py_object, pythonapi
from dataclasses import dataclass
from threading import Condition, Lock, Thread, current_thread
from time import monotonic
from typing import Any, Generic, TypeVar

STEPS_AHEAD = 4

RESULTS_AHEAD = 64
"""So many results of a partition for a step wait for the other partitions; those of a long step are taken before."""

INTERRUPT_SECONDS = 0.4
"""So long an interrupt waits for threads to end by themselves, and so long again for those that it has interrupted."""

CANCEL_SECONDS = 30
"""So long an error, or who takes no more results, waits for threads to end before it interrupts them; as in Flink."""

Read = TypeVar("Read")
Prepared = TypeVar("Prepared")
Done = TypeVar("Done")


@dataclass(slots=True)
class _Step:
    done: list[list[Any]]
    undone: set[int]
    is_long: bool = False
    prepared: Any = None
    error: BaseException | None = None


_NO_MORE = object()
_TO_BE_READ = _Step([], set())


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
        self._conditions: list[Condition] = []
        self._threads: list[Thread] = []
        self._is_stopped = False

    def wake(self, *conditions: Condition) -> None:
        """Have threads that wait for these conditions woken when the replay stops."""
        self._conditions += conditions

    def start(self, thread: Thread) -> None:
        """Start a thread of the replay."""
        self._threads.append(thread)  # before an interrupt can come: from here on it may run
        thread.start()

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
                self._stop(INTERRUPT_SECONDS if _is_interrupt(error) else CANCEL_SECONDS)
            raise

    @contextmanager
    def closing(self, generator: Generator[Any, None, None]) -> Iterator[None]:
        """Close a generator with the block, if no thread that could not be ended is in it."""
        try:
            yield
        finally:
            if not (self._is_stopped and any(thread.is_alive() for thread in self._threads)):
                generator.close()

    def _stop(self, patience: float) -> None:
        self._is_stopped = True
        for condition in self._conditions:
            with condition:
                condition.notify_all()
        if sys.is_finalizing():  # daemons have ended then, and nothing tells that they have
            return
        with suppress(KeyboardInterrupt):  # of somebody who has lost patience
            self._join(patience)
        for thread in self._threads:
            if thread.ident is not None and thread.is_alive():
                pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread.ident), py_object(KeyboardInterrupt))
        self._join(INTERRUPT_SECONDS)

    def _join(self, seconds: float) -> None:
        end = monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:  # one that has not begun by now ends at once when it does
                thread.join(max(0, end - monotonic()))


def _is_interrupt(error: BaseException) -> bool:
    # A generator may be closed because of one.
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


class PartitionThreads(Generic[Read, Prepared, Done]):
    """Prepares steps, and processes each in every partition; a partition sees its steps in order.

    There is no thread for preparing: it would make one thread more than there are cores, and the one that the others
    wait for would be the one that waits for a core. The partition that is ahead prepares.

    Parameters
    ----------
    steps
        Read by one thread at a time.
    prepare
        Makes of a step what all partitions process; called from any thread, for several steps at once.
    process
        Called with the number of a partition and a prepared step, in that partition's thread. What it gives is gathered
        one by one: no more is asked for where too much waits to be taken, or once the replay has stopped.
    partitions
        Number of partitions and of threads.
    threads
        Those of the whole replay.
    """

    def __init__(
        self,
        steps: Iterator[Read],
        prepare: Callable[[Read], Prepared],
        process: Callable[[int, Prepared], Iterable[Done]],
        partitions: int,
        threads: ReplayThreads,
    ) -> None:
        self._steps_to_read: Iterator[Any] = steps
        self._prepare = prepare
        self._process = process
        self._partitions = partitions
        lock = Lock()
        self._changed = Condition(lock)
        self._done = Condition(lock)
        self._threads = threads
        threads.wake(self._changed, self._done)
        self._steps: dict[int, _Step] = {}
        self._read = 0
        self._given = 0
        self._reading = False
        self._ended = False

    def run(self) -> Iterator[tuple[Prepared, Sequence[Iterable[Done]]]]:
        """Give each step with what every partition made of it, in order; to be taken before the next step.

        Raises
        ------
        BaseException
            Whatever the first step to fail raised.
        """
        threads = [
            Thread(target=self._work, args=(partition,), name=f"flinkcore-{partition}", daemon=True)
            for partition in range(self._partitions)
        ]
        with self._threads.stopped_on_error():
            for thread in threads:
                self._threads.start(thread)
            while (step := self._next_done()) is not None:
                if step.error is not None:
                    raise step.error
                if step.is_long:
                    given = self._given - 1
                    yield step.prepared, [self._taken(step, number) for number in range(self._partitions)]
                    del self._steps[given]
                else:
                    yield step.prepared, step.done
            for thread in threads:
                thread.join()

    def _next_done(self) -> _Step | None:
        with self._changed:
            while True:
                self._threads.check()
                step = self._steps.get(self._given)
                if step is not None and (not step.undone or step.is_long or step.error is not None):
                    if not step.is_long:  # else some partition may not have come to it
                        del self._steps[self._given]
                    self._given += 1
                    self._changed.notify_all()
                    return step
                if step is None and self._ended:
                    return None
                self._done.wait()

    def _taken(self, step: _Step, partition: int) -> Iterator[Done]:
        """What a partition makes of a long step, as it comes."""
        done = step.done[partition]
        while True:
            with self._changed:
                self._threads.check()
                while not done and partition in step.undone and step.error is None:
                    self._done.wait()
                    self._threads.check()
                if step.error is not None:
                    raise step.error
                taken = done.copy()
                done.clear()
                self._changed.notify_all()
            if not taken:
                return
            yield from taken

    def _work(self, partition: int) -> None:
        at = 0
        with suppress(ReplayStoppedError, KeyboardInterrupt):
            while (step := self._await_step(at)) is not None:
                if step is _TO_BE_READ:
                    self._read_step()
                elif self._process_step(partition, step):
                    at += 1
                else:
                    return

    def _await_step(self, at: int) -> _Step | None:
        # The step of this number, or the one that is to be read first; None when all is done, or has failed.
        with self._changed:
            while True:
                self._threads.check()
                step = self._steps.get(at)
                if (self._ended and at == self._read) or (step and step.error):
                    return None
                ready = step is not None and step.prepared is not None
                in_flight = self._read - self._given
                may_read = (
                    not self._reading and not self._ended and in_flight < self._partitions + STEPS_AHEAD
                )
                if may_read and not (ready and self._read - at > 1):
                    self._reading = True
                    return _TO_BE_READ
                if ready:
                    return step
                self._changed.wait()

    def _read_step(self) -> None:
        partitions = range(self._partitions)
        step = _Step([[] for _ in partitions], set(partitions))
        try:
            read = next(self._steps_to_read, _NO_MORE)
        except BaseException as error:  # raised again in the thread that runs the replay
            step.error = error
            read = _NO_MORE
        with self._changed:
            self._reading = False
            self._ended = read is _NO_MORE
            if not self._ended or step.error is not None:
                self._steps[self._read] = step
                self._read += 1
            self._changed.notify_all()
            if self._ended:
                self._done.notify()
        if read is not _NO_MORE:
            self._prepare_step(step, read)

    def _prepare_step(self, step: _Step, read: Any) -> None:
        try:
            prepared = self._prepare(read)
        except BaseException as error:
            self._fail(step, error)
            return
        with self._changed:
            step.prepared = prepared
            self._changed.notify_all()

    def _process_step(self, partition: int, step: _Step) -> bool:
        try:
            for each in self._process(partition, step.prepared):
                self._gather(partition, step, each)
        except BaseException as error:
            self._fail(step, error)
            return False
        with self._changed:
            step.undone.remove(partition)
            if not step.undone or step.is_long:
                self._done.notify()
        return True

    def _gather(self, partition: int, step: _Step, result: Any) -> None:
        """Take in a result, and wait while there are too many."""
        done = step.done[partition]
        with self._changed:
            done.append(result)
            step.is_long = step.is_long or len(done) >= RESULTS_AHEAD
            if step.is_long:
                self._done.notify()
            self._threads.check()
            while len(done) >= RESULTS_AHEAD:
                self._changed.wait()
                self._threads.check()

    def _fail(self, step: _Step, error: BaseException) -> None:
        with self._changed:
            step.error = step.error or error
            self._changed.notify_all()
            self._done.notify()
