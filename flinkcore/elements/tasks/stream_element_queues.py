"""The queues of an operator of an AsyncFunction on the system clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial

from flinkcore.elements.tasks.mailbox import TaskMailbox
from flinkcore.operators.async_calls import AsyncCall
from flinkcore.operators.async_wait_operator import MOST_WAITING, AsyncElementQueue, Emit


class _Waiting:
    """Waiting element or call, and whether it is ready."""

    __slots__ = ("emit", "is_call", "is_ready", "segment")

    def __init__(self, emit: Emit, is_call: bool) -> None:
        self.emit = emit
        self.is_call = is_call
        self.is_ready = not is_call
        self.segment: _Segment | None = None


class _Order(ABC):
    """In which order what is ready is emitted."""

    @abstractmethod
    def add(self, waiting: _Waiting) -> None:
        """Add what comes last."""

    @abstractmethod
    def make_ready(self, waiting: _Waiting) -> None:
        """Note that a call is done."""

    @abstractmethod
    def take_ready(self) -> _Waiting | None:
        """Remove and return what may be emitted next, or None."""


class OrderedStreamElementQueue(_Order):
    """As everything came.

    Notes
    -----
    Flink's ``OrderedStreamElementQueue``.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def add(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)

    def make_ready(self, waiting: _Waiting) -> None:
        waiting.is_ready = True

    def take_ready(self) -> _Waiting | None:
        return self._waiting.popleft() if self._waiting and self._waiting[0].is_ready else None


class _Segment:
    """Calls between two watermarks, or a watermark."""

    def __init__(self) -> None:
        self.n_running = 0
        self.ready: deque[_Waiting] = deque()


class UnorderedStreamElementQueue(_Order):
    """Calls as they are done, but none on the other side of a watermark, or of what else is not a call.

    Notes
    -----
    Flink's ``UnorderedStreamElementQueue``.
    """

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])

    def add(self, waiting: _Waiting) -> None:
        if waiting.is_call:
            waiting.segment = segment = self._segments[-1]
            segment.n_running += 1
            return
        between = _Segment()
        between.ready.append(waiting)
        self._segments += [between, _Segment()]

    def make_ready(self, waiting: _Waiting) -> None:
        assert waiting.segment is not None
        waiting.segment.n_running -= 1
        waiting.segment.ready.append(waiting)

    def take_ready(self) -> _Waiting | None:
        segments = self._segments
        while len(segments) > 1 and not (segments[0].ready or segments[0].n_running):
            segments.popleft()
        return segments[0].ready.popleft() if segments[0].ready else None


class MailboxQueue(AsyncElementQueue):
    """The queue of an operator on the system clock: calls that are done send mail to the thread of the job.

    Parameters
    ----------
    mailbox : TaskMailbox
        Mailbox of the operator's task.
    capacity : int
        So many calls are in the queue at most.
    ordered : bool
        Whether the results come in the order of the elements.
    """

    def __init__(self, mailbox: TaskMailbox, capacity: int, ordered: bool) -> None:
        self._mailbox = mailbox
        self._capacity = capacity
        self._order: _Order = OrderedStreamElementQueue() if ordered else UnorderedStreamElementQueue()
        self._calls: dict[AsyncCall, _Waiting] = {}
        self._n_calls = 0
        self._n_others = 0

    def make_room(self) -> None:
        self._run_mail_until(lambda: self._n_calls < self._capacity)

    def add_call(self, call: AsyncCall, emit: Emit) -> None:
        waiting = self._calls[call] = _Waiting(emit, is_call=True)
        self._n_calls += 1
        self._order.add(waiting)

    def add_other(self, emit: Emit) -> None:
        self._run_mail_until(lambda: self._n_others < MOST_WAITING)
        self._n_others += 1
        self._order.add(_Waiting(emit, is_call=False))
        self._emit_ready()

    def done(self, call: AsyncCall) -> None:
        self._mailbox.put(partial(self._done, call))

    def finish(self) -> None:
        self._run_mail_until(lambda: self._n_calls == 0)

    def _run_mail_until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self._mailbox.wait()
            self._mailbox.run()

    def _done(self, call: AsyncCall) -> None:
        waiting = self._calls.pop(call)
        if call.failure is not None:  # fails the job at once, whoever has waited longer
            waiting.emit()
        self._order.make_ready(waiting)
        self._emit_ready()

    def _emit_ready(self) -> None:
        while (waiting := self._order.take_ready()) is not None:
            if waiting.is_call:
                self._n_calls -= 1
            else:
                self._n_others -= 1
            waiting.emit()
