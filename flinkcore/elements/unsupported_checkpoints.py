"""Parts of jobs over single elements that no checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import Source
from flinkcore.datastream.graph.element_transformations import (
    KeyedTransformation,
    LegacySourceTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.transformations import PartitionTransformation
from flinkcore.elements.arrivals.restored_sources import reads_by_itself
from flinkcore.elements.tasks.stream_graph import StreamNode, is_of_log, is_source_node, strategy_of
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.operators.records.copies import copied_strategy

_KEYED: Final = (KeyedTransformation, PartitionTransformation)


def refuse_what_has_none(nodes: Sequence[StreamNode], configuration: ExecutionConfig) -> None:
    """Accept a job of which everything can be in a checkpoint; docs/checkpoints.md has the same list.

    Raises
    ------
    ConfigurationError
        If not; names what has none, and what to do.
    """
    if configuration.is_batch():
        raise _has_none("the execution mode BATCH", "set it to STREAMING")
    for node in nodes:
        if not node.collects:
            _refuse_step(node, configuration.get_clock() == "system")


def job_max_parallelism(nodes: Sequence[StreamNode], configuration: ExecutionConfig) -> int:
    """Return the number of key groups, which is the same for all operators of a checkpoint."""
    found = {
        node.max_parallelism
        for node in nodes
        if any(isinstance(edge.partition, _KEYED) for edges in node.inputs for edge in edges)
    }
    if len(found) > 1:
        raise _has_none(
            f"steps by key with different max_parallelism ({', '.join(map(str, sorted(found)))})",
            "set that of the environment instead",
        )
    return found.pop() if found else configuration.get_max_parallelism()


def _refuse_step(node: StreamNode, is_stopped_amid: bool) -> None:
    step = node.transformation
    if isinstance(step, SourceTransformation):
        if step.strategy is not None:
            refuse_source(node, step.source, step.strategy, is_stopped_amid)
    elif is_source_node(node) and not is_of_log(step) and not isinstance(step, LegacySourceTransformation):
        raise _has_none(
            f"{node.name}, a job over columns within one over single elements",
            "run it alone with its own checkpoints, and begin with what it gives",
        )
    strategy = strategy_of(step)
    if strategy is None:
        return
    if strategy.alignment_parameters is not None and is_of_log(step):
        raise _has_none(
            f"{node.name}, a log whose splits are aligned in a job over single elements: rows that wait would be lost",
            "leave with_watermark_alignment out, or let the job run over the columns of the log",
        )
    own = copied_strategy(strategy)
    try:
        generator = own.create_watermark_generator(lambda: 0)
        generator.restore_state(generator.snapshot_state())
    except UnsupportedOperationError as failure:
        raise _has_none(
            f"a watermark generator without snapshots ({failure})", "define snapshot_state and restore_state"
        ) from failure


def refuse_source(
    node: StreamNode, source: Source, strategy: WatermarkStrategy, is_stopped_amid: bool
) -> None:
    """Accept a source with splits if it can go on from where it is when the job stops."""
    if is_stopped_amid:
        if reads_by_itself(source) and source.split_serializer() is None:
            raise _has_none(
                f"{node.name}, a source with a reader of its own, whose splits no checkpoint can hold",
                "let it have a split_serializer()",
            )
        return
    if source.boundedness is not Boundedness.BOUNDED:
        raise _has_none(
            f"{node.name}, an unbounded source, which comes to no cut by itself",
            "run it on the system clock, or let its boundedness be BOUNDED if it ends by itself",
        )
    if strategy.alignment_parameters is not None:
        raise _has_none(
            f"{node.name}, a source whose splits are aligned: what a paused split has left would be lost",
            "run it on the system clock, or read an event log, whose splits may be aligned",
        )


def _has_none(what: str, remedy: str) -> ConfigurationError:
    """Return the error of a job with something that no checkpoint holds."""
    return ConfigurationError(
        f"there are no checkpoints of {what}: {remedy}, or leave restore_from and stop_with_checkpoint out"
    )
