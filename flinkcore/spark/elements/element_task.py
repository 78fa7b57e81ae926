"""A task of a job of single elements in a Python worker: messages in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flinkcore._internal.show.times import dated
from flinkcore.elements.arrivals.element_arrivals import OrderedArrivals, Origin
from flinkcore.elements.arrivals.job_clock import PlacedClock
from flinkcore.elements.arrivals.order_key import ChainCause, root_key
from flinkcore.elements.arrivals.task_sources import TaskSource
from flinkcore.elements.pausable_call import PausableCall
from flinkcore.elements.tasks.operator_setup import JobContext
from flinkcore.elements.tasks.stream_graph import StreamEdge, channel_place, is_async, source_indices
from flinkcore.elements.tasks.stream_task import StreamTask
from flinkcore.elements.tasks.task_output import InputChannel
from flinkcore.errors import InternalError, SourceError, UserCodeError
from flinkcore.operators.late_records import LateRecords
from flinkcore.operators.metrics.task_metrics import TaskMetric
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.records.stream_elements import StreamElement, StreamRecord
from flinkcore.spark.elements.messages import (
    LIMITS,
    PROGRAM,
    REPORTS,
    Message,
    MessageWriter,
    RunLimits,
    RunRow,
)
from flinkcore.spark.elements.shipped_job import ShippedJob

if TYPE_CHECKING:
    from flinkcore.checkpoint import OperatorPart
    from flinkcore.elements.async_levels import WaitingLine
    from flinkcore.elements.element_checkpoint import TaskCheckpoints
    from flinkcore.operators.async_wait_operator import AsyncElementQueue

RECORD: Final = 0
"""Kind of a message with a record of a task's first input; 1 for its second input."""

ELEMENT: Final = 2
"""Kind of a message with another element of a task's first input, and its channel; 3 for its second input."""

END: Final = 4
"""Kind of the last message of a channel."""

BARRIER: Final = 5
"""Kind of the last message of a task to another if the job stops with a checkpoint: channels do not end then, but also
a task that gets no elements has its part of the checkpoint."""

COLLECTED: Final = 0
"""Kind of a message with an element that the program collects."""

PRINTED: Final = 1
"""Kind of a message with a line of the program's standard output."""


@dataclass(frozen=True)
class TaskReport:
    """Report of a task that has ended.

    Attributes
    ----------
    task : int
    committables : tuple of (int, list)
        Committables of its sinks, each with the number of the sink's node.
    metrics : dict of str to TaskMetric
    parts : tuple of OperatorPart
        Parts that it has written of the checkpoint with which the job stops.
    late_records : tuple of (int, LateRecords)
        The late records of its operators that drop such, each with the number of the operator's node.
    """

    task: int
    committables: tuple[tuple[int, list[Any]], ...]
    metrics: dict[str, TaskMetric]
    parts: tuple[OperatorPart, ...]
    late_records: tuple[tuple[int, LateRecords], ...]


class ElementTask:
    """Runs a task of a job, and sends what it emits as messages.

    Parameters
    ----------
    job : ShippedJob
    number : int
        Number of the task.
    checkpoints : TaskCheckpoints, optional
        Checkpoints from which the task is restored, and which it writes when the job stops.
    limits : RunLimits
        Sizes of the runs of its messages.
    """

    def __init__(
        self,
        job: ShippedJob,
        number: int,
        checkpoints: TaskCheckpoints | None = None,
        limits: RunLimits = LIMITS,
    ) -> None:
        self._job = job
        self._checkpoints = checkpoints
        self._stop_ms = None if checkpoints is None else checkpoints.stop_ms
        self._origins: list[Origin] = []
        self._targets: dict[int, None] = {}
        self._number = number
        self._vertex = job.vertex_of_task(number)
        self._sending: PausableCall[list[RunRow]] = PausableCall()
        self._writer = writer = MessageWriter(self._sending.give, limits)
        self._place = b""
        self._line: WaitingLine | None = None
        if is_async(self._vertex.head):
            from flinkcore.elements.async_levels import WaitingLine  # loads asyncio

            self._line = WaitingLine(writer.move_to, lambda: None)
        self._clock = PlacedClock(
            job.start_ms, number, writer.move_to if self._line is None else self._move_to
        )
        if self._line is not None:
            writer.move_to(self._place)  # of what is emitted as the task opens, such as idleness
        if checkpoints is not None and checkpoints.clock is not None:
            self._clock.now_ms = checkpoints.clock.now_ms
        self._context = JobContext(
            job.configuration,
            self._clock.of_task,
            self._collect_of("".join(node.giver for node in self._vertex.nodes if node.collects)),
            copied_function,
            partial(writer.send, PROGRAM, PRINTED),
            serializes=True,
            has_checkpoint=checkpoints is not None,
            restored=None if checkpoints is None else checkpoints.subtasks(job.vertices),
            async_queue_of=self._async_queue_of,
            run_id=job.run_id,
        )
        self._task = StreamTask(
            self._vertex, number - self._vertex.first_task, self._context, self._channel_to
        )

    def _move_to(self, place: bytes) -> None:
        self._place = place

    def _async_queue_of(self, task: int, capacity: int, ordered: bool) -> AsyncElementQueue:
        from flinkcore.elements.async_levels import PlacedQueue

        assert self._line is not None
        return PlacedQueue(self._line, lambda: self._place, capacity)

    def _channel_to(self, edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
        channel = self._sending_to(edge, source_index, target_index)
        if self._line is None:
            return channel
        from flinkcore.elements.async_levels import in_line

        end = in_line(channel, self._line, lambda: self._place).end
        return InputChannel(channel.collect, channel.process, channel.number, end)

    def _sending_to(self, edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
        if edge.target.collects:
            return self._channel_to_program(edge.source.giver)
        target = self._job.vertex_of_head(edge.target).first_task + target_index
        self._targets[target] = None
        send = partial(self._writer.send, target)
        input_index, channel = channel_place(edge, source_index, target_index)
        giver = edge.source.giver

        def collect(record: StreamRecord[Any]) -> None:
            try:
                send(RECORD + input_index, record.value, record.timestamp)
            except UserCodeError as failure:
                raise _given_by(giver, failure) from failure

        def process(element: StreamElement[Any], number: int) -> None:
            send(ELEMENT + input_index, (number, element))

        return InputChannel(collect, process, channel, partial(send, END, (input_index, channel)))

    def _channel_to_program(self, giver: str) -> InputChannel:
        collect = self._collect_of(giver)
        return InputChannel(
            lambda record: collect(record.value), lambda element, number: None, 0, lambda: None
        )

    def _collect_of(self, giver: str) -> Callable[[Any], None]:
        """Return a function that sends elements to the program."""
        send = partial(self._writer.send, PROGRAM, COLLECTED)

        def collect(value: Any) -> None:
            try:
                send(value)
            except UserCodeError as failure:
                raise _given_by(giver, failure) from failure

        return collect

    def read(self, source: TaskSource, last_arrival_ms: int | None = None) -> Iterator[list[RunRow]]:
        """Read a source to its end, and yield what the task sends.

        Parameters
        ----------
        source : TaskSource
        last_arrival_ms : int, optional
            Arrival of its last element, if the job stops with a checkpoint, or None without elements.
        """
        return self._sending.run(partial(self._run, partial(self._read, source, last_arrival_ms)))

    def receive(self, messages: Iterator[Message]) -> Iterator[list[RunRow]]:
        """Process all messages to the task, which come in order, and yield what the task sends."""
        return self._sending.run(partial(self._run, partial(self._receive, messages)))

    def _run(self, process: Callable[[], None]) -> None:
        try:
            self._task.open()
            process()
            if self._stop_ms is not None:
                # Timers that are due at the time itself wait: more may arrive then.
                self._clock.fire_before(self._stop_ms)
                self._clock.now_ms = max(self._clock.now_ms, self._stop_ms)
            if self._line is not None:
                self._line.take_all()
            self._end()
        finally:
            with suppress(Exception):
                OrderedArrivals(self._origins).close()
            self._task.cancel()

    def _read(self, source: TaskSource, last_arrival_ms: int | None) -> None:
        self._origins = source.origins(self._task)
        if self._checkpoints is not None:
            self._checkpoints.check_goes_on(self._origins)
        arrivals = OrderedArrivals(self._origins, stops=self._stop_ms is not None)
        for _ in arrivals.emit_all(self._clock):
            pass
        if self._stop_ms is not None:
            found_ms = self._clock.now_ms if arrivals.last_origin >= 0 else None
            if found_ms != last_arrival_ms:
                raise SourceError(
                    f"the elements of {self._vertex.head.name} end at the arrival {_moment(found_ms)}, and when they "
                    f"were read before, to know when the job stops, at {_moment(last_arrival_ms)}. On Spark a job that "
                    "stops with a checkpoint reads its sources twice: let this one give the same each time, or run the "
                    "job in one process"
                )
            self._end_what_has_ended()

    def _end_what_has_ended(self) -> None:
        """Let the source end if more of it would have to arrive before the last element of all."""
        assert self._checkpoints is not None
        assert self._stop_ms is not None
        (origin,) = self._origins
        place, end_ms = origin.continuation, origin.next_arrival_ms
        if place is None or end_ms is None or place >= (self._stop_ms, self._checkpoints.stop_origin):
            return
        self._clock.fire_before(end_ms)
        self._clock.end(end_ms, origin.number)
        origin.emit()

    def _receive(self, messages: Iterator[Message]) -> None:
        inputs = [self._task.channel(number, 0) for number in range(len(self._vertex.head.inputs))]
        collects = [channel.collect for channel in inputs]
        record: StreamRecord[Any] = StreamRecord(None)
        receive, n_barriers = self._clock.receive, 0
        for key, kind, value, timestamp in messages:
            receive(key)
            if kind < ELEMENT:
                record.value = value
                record.timestamp = timestamp
                collects[kind](record)
            elif kind == END:
                self._task.end_channel(*value)
            elif kind == BARRIER:
                n_barriers += 1
            else:
                channel, element = value
                inputs[kind - ELEMENT].process(element, channel)
        is_complete = self._task.has_ended if self._stop_ms is None else n_barriers == len(self._senders())
        if not is_complete:
            raise InternalError(
                f"not all messages to task {self._number} ({self._vertex.head.name}) have come"
            )

    def _senders(self) -> set[int]:
        """Return the numbers of the tasks that send to this one."""
        first_task = {node: vertex.first_task for vertex in self._job.vertices for node in vertex.nodes}
        return {
            first_task[edge.source] + index
            for edges in self._vertex.head.inputs
            for edge in edges
            for index in source_indices(edge, self._task.index)
        }

    def _end(self) -> None:
        """Close the task, send its report, and give the last rows."""
        numbers = {node: number for number, node in enumerate(self._job.nodes)}
        prepared = dict(self._task.prepare_commit())
        parts: list[OperatorPart] = []
        if self._stop_ms is not None:
            assert self._checkpoints is not None
            source = self._origins[-1].snapshot(is_amid=False) if self._origins else None
            parts = self._checkpoints.write(self._task, self._job.vertices, source, prepared)
            self._writer.move_to(root_key(self._clock.now_ms, ChainCause.STOP, self._number))
            for target in self._targets:
                self._writer.send(target, BARRIER, None)
        late_records = tuple((numbers[node], late) for node, late in self._task.late_records())
        self._task.close()
        committables = tuple((numbers[node], given) for node, given in prepared.items())
        metrics = self._context.metrics.held()
        report = TaskReport(self._number, committables, metrics, tuple(parts), late_records)
        self._writer.send(REPORTS, 0, report)
        self._sending.give(self._writer.take())


def last_arrival_of(job: ShippedJob, number: int, source: TaskSource) -> int | None:
    """Return the arrival of the last element that a task of a source reads, or None."""
    opened: list[StreamTask] = []

    def source_alone() -> StreamTask:
        vertex = job.vertex_of_task(number)
        clock = PlacedClock(job.start_ms, number, lambda key: None)
        context = JobContext(job.configuration, clock.of_task, lambda element: None, copied_function)
        alone = replace(vertex, nodes=(replace(vertex.head, outputs=[]),))
        opened.append(StreamTask(alone, number - vertex.first_task, context, _no_channel))
        opened[0].open()
        return opened[0]

    try:
        return source.last_arrival_ms(source_alone)
    finally:
        for task in opened:
            task.cancel()


def _no_channel(edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
    raise InternalError("nothing reads a source that runs alone")


def _moment(arrival_ms: int | None) -> str:
    return "none" if arrival_ms is None else dated(arrival_ms, " ms")


def _given_by(giver: str, failure: UserCodeError) -> UserCodeError:
    """Return the error to raise where an element cannot be sent."""
    return UserCodeError(f"of what {giver} gave, {failure}")
