"""The tasks of a job in one process: opened from its ends to its sources, closed from its sources to its ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from flinkcore.runtime.tasks.job_vertex import JobVertex, channel_place
from flinkcore.runtime.tasks.operator_setup import JobContext
from flinkcore.runtime.tasks.stream_graph import StreamEdge, StreamNode
from flinkcore.runtime.tasks.stream_task import StreamTask
from flinkcore.runtime.tasks.task_output import InputChannel


class JobTasks:
    """All tasks of a job; each leads straight into the next ones.

    Parameters
    ----------
    vertices : sequence of JobVertex
        Those that others read before them.
    job : JobContext
    """

    def __init__(self, vertices: Sequence[JobVertex], job: JobContext) -> None:
        self._vertices = vertices
        self._job = job
        self._tasks: dict[StreamNode, list[StreamTask]] = {}

    def open(self) -> None:
        """Make and open all tasks, from the ends of the job to its sources; those that fail are closed."""
        try:
            for vertex in reversed(self._vertices):
                opened = self._tasks[vertex.head] = list[StreamTask]()
                for index in range(vertex.parallelism):
                    task = StreamTask(vertex, index, self._job, self._channel)
                    task.open()
                    opened.append(task)
        except BaseException:
            self.cancel()
            raise

    def _channel(self, edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
        task = self._tasks[edge.target][target_index]
        return task.channel(*channel_place(edge, source_index, target_index))

    def tasks(self) -> list[StreamTask]:
        """Return all tasks, those first that others read."""
        return [task for vertex in self._vertices for task in self._tasks.get(vertex.head, ())]

    def close(self) -> None:
        """Close all; the first error counts."""
        failure: BaseException | None = None
        for task in self.tasks():
            try:
                task.close()
            except BaseException as raised:
                failure = failure or raised
        self._tasks = {}
        if failure is not None:
            raise failure

    def cancel(self) -> None:
        """Close all after a failure, which is what counts."""
        with suppress(Exception):
            self.close()
