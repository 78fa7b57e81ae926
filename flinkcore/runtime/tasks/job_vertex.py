"""Chains of operators, each run by tasks of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkcore.runtime.tasks.stream_graph import StreamEdge, StreamNode


@dataclass(frozen=True, eq=False)
class JobVertex:
    """Operators that call each other directly, the head first; a task runs one subtask of each.

    Attributes
    ----------
    nodes : tuple of StreamNode
        Those that others read before them. All but the first read one of these.
    first_task : int
        Number of its first task: tasks of a job are numbered through, those that others read before them.
    level : int
        How many other vertices lie on the longest way from a source to it.

    Notes
    -----
    Flink's ``JobVertex``.
    """

    nodes: tuple[StreamNode, ...]
    first_task: int
    level: int

    @property
    def head(self) -> StreamNode:
        """The operator that others' elements come to."""
        return self.nodes[0]

    @property
    def parallelism(self) -> int:
        """How many tasks there are."""
        return self.head.parallelism

    @property
    def tasks(self) -> range:
        """Numbers of its tasks."""
        return range(self.first_task, self.first_task + self.parallelism)

    def channels(self, index: int) -> int:
        """Return how many channels lead to a task, by its index in the vertex."""
        return sum(len(source_indices(edge, index)) for edges in self.head.inputs for edge in edges)


def job_vertices(nodes: Sequence[StreamNode]) -> list[JobVertex]:
    """Return the chains of a job, those that others read before them.

    Parameters
    ----------
    nodes : sequence of StreamNode
        All of a job, those that others read before them.

    Notes
    -----
    What Flink's ``StreamingJobGraphGenerator`` makes of a stream graph.
    """
    chains: dict[StreamNode, list[StreamNode]] = {}
    head_of: dict[StreamNode, StreamNode] = {}
    for node in nodes:
        chained = [edge for edges in node.inputs for edge in edges if edge.chained]
        head = head_of[node] = head_of[chained[0].source] if chained else node
        chains.setdefault(head, []).append(node)
    vertices: list[JobVertex] = []
    levels: dict[StreamNode, int] = {}
    first_task = 0
    for head, chain in chains.items():
        before = [levels[head_of[edge.source]] for edges in head.inputs for edge in edges]
        levels[head] = max(before, default=-1) + 1
        vertices.append(JobVertex(tuple(chain), first_task, levels[head]))
        first_task += head.parallelism
    return vertices


def source_indices(edge: StreamEdge, target_index: int) -> range:
    """Return the subtasks of an edge's source that lead to a subtask of its target.

    Notes
    -----
    Flink's distribution patterns: all to all, or pointwise.
    """
    sources, targets = edge.source.parallelism, edge.target.parallelism
    if not edge.is_pointwise:
        return range(sources)
    if sources >= targets:
        return range(target_index * sources // targets, (target_index + 1) * sources // targets)
    first = target_index * sources // targets
    return range(first, first + 1)


def channel_place(edge: StreamEdge, source_index: int, target_index: int) -> tuple[int, int]:
    """Return the input of the target that an edge leads to, and the channel there of a subtask of its source."""
    for input_index, edges in enumerate(edge.target.inputs):
        channel = 0
        for other in edges:
            indices = source_indices(other, target_index)
            if other is edge:
                return input_index, channel + indices.index(source_index)
            channel += len(indices)
    raise AssertionError(f"{edge} leads nowhere")
