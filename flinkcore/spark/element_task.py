"""A task of a job that runs element by element, in a process of its own: messages in, messages out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any

from flinkcore.errors import FlinkcoreError
from flinkcore.replay.elements.element_arrivals import OrderedArrivals
from flinkcore.replay.elements.placed_clock import PlacedClock
from flinkcore.replay.elements.task_sources import TaskSource
from flinkcore.replay.stages.copied_function import copied_function
from flinkcore.runtime.elements import StreamElement, StreamRecord
from flinkcore.runtime.task_metrics import TaskMetric
from flinkcore.runtime.tasks.job_vertex import channel_place
from flinkcore.runtime.tasks.operator_setup import JobContext
from flinkcore.runtime.tasks.stream_graph import StreamEdge
from flinkcore.runtime.tasks.stream_task import StreamTask
from flinkcore.runtime.tasks.task_output import InputChannel
from flinkcore.spark.element_messages import PROGRAM, REPORTS, Message, MessageWriter, RunRow
from flinkcore.spark.shipped_job import ShippedJob


class ToTask(IntEnum):
    """Kinds of messages to a task: records and other elements of its first and second input, or a channel's end."""

    FIRST_RECORD = 0
    SECOND_RECORD = 1
    FIRST_ELEMENT = 2
    SECOND_ELEMENT = 3
    END = 4


class ToProgram(IntEnum):
    """Kinds of messages to the program: what it collects, and lines of its standard output."""

    COLLECTED = 0
    PRINTED = 1


@dataclass(frozen=True)
class TaskReport:
    """What a task tells of itself when it has done its work.

    Attributes
    ----------
    task : int
    committables : tuple of (int, list)
        What is to be committed, with the number of the sink's node.
    metrics : dict of str to TaskMetric
    """

    task: int
    committables: tuple[tuple[int, list[Any]], ...]
    metrics: dict[str, TaskMetric]


class ElementTask:
    """A task that sends what it emits as messages.

    Parameters
    ----------
    job : ShippedJob
    number : int
        Of the task.
    """

    def __init__(self, job: ShippedJob, number: int) -> None:
        self._job = job
        self._number = number
        self._vertex = job.vertex_of_task(number)
        self._writer = writer = MessageWriter()
        self._clock = PlacedClock(job.start_ms, writer.move_to)
        self._context = JobContext(
            job.configuration,
            self._clock.of_task,
            partial(writer.send, PROGRAM, ToProgram.COLLECTED),
            copied_function,
            partial(writer.send, PROGRAM, ToProgram.PRINTED),
            serializes=True,
        )
        self._task = StreamTask(
            self._vertex, number - self._vertex.first_task, self._context, self._channel_to
        )

    def _channel_to(self, edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
        send = partial(self._writer.send, self._job.vertex_of_head(edge.target).first_task + target_index)
        input_index, channel = channel_place(edge, source_index, target_index)
        record_kind = (ToTask.FIRST_RECORD, ToTask.SECOND_RECORD)[input_index]
        element_kind = (ToTask.FIRST_ELEMENT, ToTask.SECOND_ELEMENT)[input_index]

        def collect(record: StreamRecord[Any]) -> None:
            send(record_kind, record.value, record.timestamp)

        def process(element: StreamElement[Any], number: int) -> None:
            send(element_kind, (number, element))

        return InputChannel(collect, process, channel, partial(send, ToTask.END, None))

    def read(self, source: TaskSource) -> Iterator[list[RunRow]]:
        """Read a source to its end; yield what is sent."""
        try:
            self._task.open()
            task = self._task
            arrivals = OrderedArrivals(source.origins(task.source_output, task.clock, task.end_source))
            try:
                for _ in arrivals.emit_all(self._clock):
                    if self._writer.is_full:
                        yield self._writer.take()
            finally:
                arrivals.close()
            yield self._done()
        finally:
            self._task.cancel()

    def receive(self, messages: Iterator[Message]) -> Iterator[list[RunRow]]:
        """Deal with all messages to the task, which come in order; yield what is sent."""
        try:
            self._task.open()
            for _ in self._received(messages):
                if self._writer.is_full:
                    yield self._writer.take()
            if not self._task.has_ended:
                raise FlinkcoreError(
                    f"not all channels of task {self._number} ({self._vertex.head.name}) have ended; this is a defect "
                    "of flinkcore, the result must not be used"
                )
            yield self._done()
        finally:
            self._task.cancel()

    def _received(self, messages: Iterator[Message]) -> Iterator[None]:
        inputs = [self._task.channel(number, 0) for number in range(len(self._vertex.head.inputs))]
        collects = [channel.collect for channel in inputs]
        record: StreamRecord[Any] = StreamRecord(None)
        receive = self._clock.receive
        for key, kind, value, timestamp in messages:
            receive(key)
            if kind <= ToTask.SECOND_RECORD:
                record.value, record.timestamp = value, timestamp
                collects[kind](record)
            elif kind == ToTask.END:
                self._task.end_channel()
            else:
                channel, element = value
                inputs[kind - ToTask.FIRST_ELEMENT].process(element, channel)
            yield

    def _done(self) -> list[RunRow]:
        """Close the task, and tell the driver what it has to know."""
        numbers = {node: number for number, node in enumerate(self._job.nodes)}
        prepared = self._task.prepare_commit()
        self._task.close()
        committables = tuple((numbers[node], given) for node, given in prepared)
        report = TaskReport(self._number, committables, self._context.metrics.held())
        self._writer.send(REPORTS, 0, report)
        return self._writer.take()
