"""Threads of an embedded replay: one per partition, which between them also prepare what they process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Lock
from typing import Any, Generic, TypeVar

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore._internal.python.replay_threads import ReplayThreads
from flinkcore._internal.values.memory_limits import BATCH_BYTES

STEPS_AHEAD = 4

RESULTS_AHEAD = 64
"""So many results of a partition for a step wait for the other partitions; those of a long step are taken before."""

Read = TypeVar("Read")
Prepared = TypeVar("Prepared")
Done = TypeVar("Done")


@dataclass(slots=True)
class _Step:
    done: list[list[Any]]
    undone: set[int]
    nbytes: int = 0
    done_bytes: list[int] = field(default_factory=list)
    is_long: bool = False
    prepared: Any = None
    error: BaseException | None = None


_NO_MORE = object()
_TO_BE_READ = _Step([], set())


def _weightless(taken: Any) -> int:
    return 0


class PartitionThreads(Generic[Read, Prepared, Done]):
    """Prepares steps, and processes each in every partition; a partition sees its steps in order.

    No thread is only for preparing: it would be one more than there are cores, and the one that the others
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
        Threads of the whole replay.
    weigh
        Returns how much memory a step, or a result, takes.
    most_bytes
        No further step is read while those that are not done yet take so much; and a partition waits while its results
        that wait take so much.
    """

    def __init__(
        self,
        steps: Iterator[Read],
        prepare: Callable[[Read], Prepared],
        process: Callable[[int, Prepared], Iterable[Done]],
        partitions: int,
        threads: ReplayThreads,
        weigh: Callable[[Any], int] = _weightless,
        most_bytes: int = BATCH_BYTES,
    ) -> None:
        self._steps_to_read: Iterator[Any] = steps
        self._prepare = prepare
        self._process = process
        self._partitions = partitions
        self._lock = lock = Lock()
        self._changed = Condition(lock)
        self._done = InterruptibleCondition(lock)
        self._threads = threads
        self._weigh = weigh
        self._most_bytes = most_bytes
        self._held_bytes = 0
        threads.wake(lock, self._changed, self._done)
        self._steps: dict[int, _Step] = {}
        self._read = 0
        self._given = 0
        self._reading = False
        self._ended = False

    def run(self) -> Iterator[tuple[Prepared, Sequence[Iterable[Done]]]]:
        """Yield each step with what every partition made of it, in order; to be taken before the next step.

        Raises
        ------
        BaseException
            Whatever the first step to fail raised.
        """
        with self._threads.stopped_on_error():
            threads = [
                self._threads.start(str(partition), partial(self._work, partition))
                for partition in range(self._partitions)
            ]
            while (step := self._next_done()) is not None:
                if step.error is not None:
                    raise step.error
                if step.is_long:
                    given = self._given - 1
                    yield step.prepared, [self._taken(step, number) for number in range(self._partitions)]
                    with self._lock:
                        self._forget(given)
                        self._changed.notify_all()
                else:
                    yield step.prepared, step.done
            for thread in threads:
                thread.join()

    def _next_done(self) -> _Step | None:
        with self._lock:
            while True:
                self._threads.check()
                step = self._steps.get(self._given)
                if step is not None and (not step.undone or step.is_long or step.error is not None):
                    if not step.is_long:  # else some partition may not have come to it
                        self._forget(self._given)
                    self._given += 1
                    self._changed.notify_all()
                    return step
                if step is None and self._ended:
                    return None
                self._done.wait()

    def _forget(self, given: int) -> None:
        self._held_bytes -= self._steps.pop(given).nbytes

    def _taken(self, step: _Step, partition: int) -> Iterator[Done]:
        """Yield what a partition makes of a long step, as it comes."""
        done = step.done[partition]
        while True:
            with self._lock:
                self._threads.check()
                while not done and partition in step.undone and step.error is None:
                    self._done.wait()
                    self._threads.check()
                if step.error is not None:
                    raise step.error
                if not done:
                    return
                result = done.pop(0)
                step.done_bytes[partition] -= self._weigh(result)
                if (
                    len(done) == RESULTS_AHEAD // 2 or not done
                ):  # a thread that waits is to have something to do
                    self._changed.notify_all()
            yield result

    def _work(self, partition: int) -> None:
        at = 0
        while (step := self._await_step(at)) is not None:
            if step is _TO_BE_READ:
                self._read_step()
            elif self._process_step(partition, step):
                at += 1
            else:
                return

    def _await_step(self, at: int) -> _Step | None:
        # The step of this number, or the one that is to be read first; None when all is done, or has failed.
        with self._lock:
            while True:
                self._threads.check()
                step = self._steps.get(at)
                if (self._ended and at == self._read) or (step and step.error):
                    return None
                ready = step is not None and step.prepared is not None
                in_flight = self._read - self._given
                may_read = (
                    not self._reading
                    and not self._ended
                    and in_flight < self._partitions + STEPS_AHEAD
                    and self._held_bytes < self._most_bytes
                )
                if may_read and not (ready and self._read - at > 1):
                    self._reading = True
                    return _TO_BE_READ
                if ready:
                    return step
                self._changed.wait()

    def _read_step(self) -> None:
        partitions = range(self._partitions)
        step = _Step([[] for _ in partitions], set(partitions), done_bytes=[0 for _ in partitions])
        try:
            read = next(self._steps_to_read, _NO_MORE)
        except BaseException as error:  # raised again in the thread that runs the replay
            step.error = error
            read = _NO_MORE
        with self._lock:
            self._reading = False
            self._ended = read is _NO_MORE
            if not self._ended or step.error is not None:
                step.nbytes = 0 if self._ended else self._weigh(read)
                self._held_bytes += step.nbytes
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
        with self._lock:
            step.prepared = prepared
            self._changed.notify_all()

    def _process_step(self, partition: int, step: _Step) -> bool:
        try:
            for each in self._process(partition, step.prepared):
                self._gather(partition, step, each)
        except BaseException as error:
            self._fail(step, error)
            return False
        with self._lock:
            step.undone.remove(partition)
            if not step.undone or step.is_long:
                self._done.notify()
        return True

    def _gather(self, partition: int, step: _Step, result: Any) -> None:
        """Take in a result, and wait while there are too many."""
        done, nbytes = step.done[partition], step.done_bytes
        with self._lock:
            done.append(result)
            nbytes[partition] += self._weigh(result)
            step.is_long = step.is_long or self._are_enough(len(done), nbytes[partition])
            if step.is_long:
                self._done.notify()
            self._threads.check()
            while self._are_enough(len(done), nbytes[partition]):
                self._changed.wait()
                self._threads.check()

    def _are_enough(self, results: int, nbytes: int) -> bool:
        return results >= RESULTS_AHEAD or nbytes >= self._most_bytes

    def _fail(self, step: _Step, error: BaseException) -> None:
        with self._lock:
            step.error = step.error or error
            self._changed.notify_all()
            self._done.notify()
