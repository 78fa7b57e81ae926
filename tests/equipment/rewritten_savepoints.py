"""Savepoints that are read and written again: whatever Flink has put into them must be there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.savepoints import Savepoint, SavepointOperator
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.metadata import OperatorMetadata
from flinkcore.savepoints.operator_state import OperatorState
from flinkcore.savepoints.writing.savepoint_writer import (
    OperatorContent,
    SavepointWriter,
    operator_metadata,
    subtask_of_text,
    text_of_subtask,
)
from flinkcore.savepoints.writing.state_files import KeyedStateContent, OperatorStateContent


def rewrite(savepoint: Savepoint, path: Path, *, is_compressed: bool = False, parallelism: int = 0) -> None:
    """Write all states of a savepoint that was opened with ``exact=True`` again.

    Parameters
    ----------
    savepoint : Savepoint
    path : Path
        New directory.
    is_compressed : bool
    parallelism : int
        Number of subtasks, or 0 for as many as there were.
    """
    writer = SavepointWriter.begin(path, exact=True, is_compressed=is_compressed)
    contents = (
        content_of(each, min(parallelism or each.parallelism, each.max_parallelism))
        for each in savepoint.operators
        if each.states
    )
    writer.commit([written_operator(writer, content) for content in contents])


def written_operator(writer: SavepointWriter, content: OperatorContent) -> OperatorMetadata:
    """Write all subtasks of an operator, and send their handles as tasks do."""
    texts = [text_of_subtask(writer.subtask(content, index)) for index in range(content.parallelism)]
    return operator_metadata(content, [subtask_of_text(text) for text in texts])


def content_of(operator: SavepointOperator, parallelism: int) -> OperatorContent:
    keyed = [
        KeyedStateContent(name, state.keyed_types, state.batches)
        for name, state in operator.states.items()
        if isinstance(state, KeyedState)
    ]
    others = [state for state in operator.states.values() if isinstance(state, OperatorState)]
    subtasks = [[_part(state, index, parallelism) for state in others] for index in range(parallelism)]
    key = keyed[0].types.key if keyed else None
    return OperatorContent(
        operator.operator_id, operator.max_parallelism, parallelism, key, keyed, subtasks if others else ()
    )


def _part(state: OperatorState, index: int, parallelism: int) -> OperatorStateContent:
    rows = state.to_arrow()
    if state.key is None:
        own = pc.equal(rows["subtask"], index)
        if len(state.files) != parallelism:
            own = pa.array([row % parallelism == index for row in range(rows.num_rows)], pa.bool_())
        rows = rows.filter(own).drop_columns(["subtask"])
    batches = rows.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
    return OperatorStateContent(state.name, state.kind, state.key, state.value, batch)


def state_files(savepoint: Savepoint) -> Iterator[tuple[str, bytes]]:
    """Yield the files of keyed states with the id of the operator and the number of the subtask."""
    for operator in savepoint.operators:
        for subtask in operator.metadata.subtasks:
            for handle in subtask.keyed_states:
                with savepoint.directory.open(handle.stream, 1 << 30) as stream:
                    yield f"{operator.operator_id}/{subtask.index}", stream.read(0, stream.size)
