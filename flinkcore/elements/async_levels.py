"""The order of a job whose AsyncFunctions wait for results, on the arrival clock.

The results of an element are emitted where a map would emit them: in the job's order, in the place of the element. But
the job continues with later elements meanwhile, so that calls run at the same time. So the steps after an async step
are a level of its own, with a clock of its own that lags behind. Levels are numbered by the async steps on the longest
path from a source to them. What a level sends to a later one waits in a line, each element with its place in the order,
and the later level takes it in its turn, once the call that it waits for is done::

    level 0    source ── map ──┬── async step         the clock shows 12
                               │       │
    line       (9, call) (9, record) (10, call) (10, watermark) (12, call)
                               │       │
    level 1                    └── union ── window     the clock shows 8

Elements are taken from a line independently of the time that calls take: they are taken when there is no room
for others, and at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition
from typing import Final

from flinkcore.elements.arrivals.job_clock import JobClock, PlacedClock, TaskClock
from flinkcore.elements.tasks.stream_graph import JobVertex, StreamEdge, StreamNode, is_async
from flinkcore.elements.tasks.task_output import InputChannel
from flinkcore.operators.async_calls import AsyncCall
from flinkcore.operators.async_wait_operator import MOST_WAITING, AsyncElementQueue, Emit
from flinkcore.operators.records.stream_elements import StreamElement, StreamRecord

CHECK_SECONDS: Final = 0.05
"""So often a thread that waits for a call looks whether the job is to stop, and can be interrupted."""


class WaitingLine:
    """Line of actions of a level, in its order.

    Parameters
    ----------
    move_to : callable
        Lets the level show the place of what is taken.
    check : callable
        Raises an error if the job is to stop.
    """

    def __init__(self, move_to: Callable[[bytes], None], check: Callable[[], None]) -> None:
        self._move_to = move_to
        self._check = check
        self._waiting: deque[tuple[bytes, Emit, AsyncCall | None]] = deque()
        self._n_others = 0
        self._changed = Condition()

    def add(self, place: bytes, emit: Emit, call: AsyncCall | None = None) -> None:
        """Add what comes last; with a call, its results are what is emitted."""
        if call is None:
            while self._n_others >= MOST_WAITING:
                self.take()
            self._n_others += 1
        self._waiting.append((place, emit, call))

    def take(self) -> None:
        """Let what comes first happen, once its call is done."""
        place, emit, call = self._waiting.popleft()
        if call is None:
            self._n_others -= 1
        elif not call.is_done:
            with self._changed:
                while not call.is_done:
                    self._check()
                    self._changed.wait(CHECK_SECONDS)
        self._move_to(place)
        emit()

    def take_all(self) -> None:
        """Let everything happen."""
        while self._waiting:
            self.take()

    def done(self, call: AsyncCall) -> None:
        """Note that a call is done; may be called in any thread."""
        with self._changed:
            self._changed.notify_all()


class PlacedQueue(AsyncElementQueue):
    """The queue of one async step, in the line of the level after it.

    Parameters
    ----------
    line : WaitingLine
    place : callable
        Returns the place in the order of what the step gets now.
    capacity : int
        So many of its calls are in the line at most.
    """

    def __init__(self, line: WaitingLine, place: Callable[[], bytes], capacity: int) -> None:
        self._line = line
        self._place = place
        self._capacity = capacity
        self._n_calls = 0

    def make_room(self) -> None:
        while self._n_calls >= self._capacity:
            self._line.take()

    def add_call(self, call: AsyncCall, emit: Emit) -> None:
        self._n_calls += 1
        self._line.add(self._place(), partial(self._emit, emit), call)

    def _emit(self, emit: Emit) -> None:
        self._n_calls -= 1
        emit()

    def add_other(self, emit: Emit) -> None:
        self._line.add(self._place(), emit)

    def done(self, call: AsyncCall) -> None:
        self._line.done(call)

    def finish(self) -> None:
        """Do nothing: the end of the output waits in the line, too."""


class _Level:
    """A level: its clock, the place of what it does, and the line of what comes to it."""

    def __init__(self, start_ms: int, check: Callable[[], None]) -> None:
        self.place = b""
        self.clock = PlacedClock(start_ms, 0, self._move_to)
        self.line = WaitingLine(self.clock.receive, check)

    def _move_to(self, place: bytes) -> None:
        self.place = place


class AsyncLevels:
    """The levels of a job in one process.

    Parameters
    ----------
    vertices : sequence of JobVertex
        Each after those that it reads.
    start_ms : int
        When the job starts, or its first run did.
    now_ms : int
        Initial time of the clocks.
    check : callable
        Raises an error if the job is to stop.
    """

    def __init__(
        self, vertices: Sequence[JobVertex], start_ms: int, now_ms: int, check: Callable[[], None]
    ) -> None:
        self._level_of: dict[StreamNode, int] = {}
        self._of_task: dict[int, int] = {}
        for vertex in vertices:
            sources = [edge.source for edges in vertex.head.inputs for edge in edges]
            level = max((self._level_of[source] + is_async(source) for source in sources), default=0)
            self._level_of.update(dict.fromkeys(vertex.nodes, level))
            self._of_task.update(dict.fromkeys(vertex.tasks, level))
        count = 1 + max(level + is_async(node) for node, level in self._level_of.items())
        self._levels = [_Level(start_ms, check) for _ in range(count)]
        for made in self._levels:
            made.clock.now_ms = now_ms

    @property
    def clock(self) -> JobClock:
        """The clock that sources move."""
        return self._levels[0].clock

    def clock_of_task(self, task: int) -> TaskClock:
        """Return the clock of task `task`; numbers other than tasks of the job are at the level of sources."""
        return self._levels[self._of_task.get(task, 0)].clock.of_task(task)

    def queue_of(self, task: int, capacity: int) -> PlacedQueue:
        """Return the queue of an async step's task, whose results are in the order of the elements."""
        number = self._of_task[task]
        level = self._levels[number]
        return PlacedQueue(self._levels[number + 1].line, lambda: level.place, capacity)

    def placed_channel(self, edge: StreamEdge, channel: InputChannel) -> InputChannel:
        """Return the channel by which a level sends to another; within a level the same one."""
        first, last = self._level_of[edge.source], self._level_of[edge.target]
        if is_async(edge.source):
            later = self._sending(channel, first + 1, last)
            end = self._sending(channel, first, last).end
            return InputChannel(later.collect, later.process, later.number, end)
        return self._sending(channel, first, last)

    def _sending(self, channel: InputChannel, first: int, last: int) -> InputChannel:
        for number in range(last, first, -1):
            sender, line = self._levels[number - 1], self._levels[number].line
            channel = in_line(channel, line, lambda sender=sender: sender.place)  # type: ignore[misc]
        return channel

    def take_all(self) -> None:
        """Let all that waits happen."""
        for level in self._levels:
            level.line.take_all()

    def catch_up(self) -> None:
        """Let all that waits happen, and the clocks of all levels show the time of the first one."""
        place = self._levels[0].place
        for level in self._levels[1:]:
            level.line.take_all()
            level.clock.receive(place)


def in_line(channel: InputChannel, line: WaitingLine, place: Callable[[], bytes]) -> InputChannel:
    """Return a channel whose elements, and end, wait in a line."""

    def collect(record: StreamRecord[object]) -> None:
        line.add(place(), partial(channel.collect, StreamRecord(record.value, record.timestamp)))

    def process(element: StreamElement[object], number: int) -> None:
        line.add(place(), partial(channel.process, element, number))

    def end() -> None:
        line.add(place(), channel.end)

    return InputChannel(collect, process, channel.number, end)
