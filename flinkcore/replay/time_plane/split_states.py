"""Where the operators of splits stand whose generators are called event by event, at the end of a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns

Int64s = npt.NDArray[np.int64]

_SHAPES = b"flinkcore.shapes"


@dataclass(frozen=True)
class SplitState:
    """The operator of one split.

    Parameters
    ----------
    generator : object
        What the generator holds; with an idleness what `WatermarksWithIdleness` does.
    unseen : bool
        Whether there were events since its last periodic call.
    watermark_ms : int
        The last watermark that it has emitted.
    is_idle : bool
        The last status that it has emitted.
    """

    generator: Any
    unseen: bool
    watermark_ms: int
    is_idle: bool


@dataclass(frozen=True)
class SplitStates:
    """The operators of some splits.

    Parameters
    ----------
    splits : sequence of int
        Numbers of the splits.
    states : sequence of SplitState
    """

    splits: Sequence[int]
    states: Sequence[SplitState]

    @classmethod
    def concatenate(cls, parts: Sequence[SplitStates]) -> SplitStates:
        """The operators of all parts, by number."""
        found = sorted(
            ((split, state) for part in parts for split, state in zip(part.splits, part.states, strict=True)),
            key=lambda entry: entry[0],
        )
        return cls([split for split, _ in found], [state for _, state in found])

    @property
    def generators(self) -> list[Any]:
        """What the generators hold."""
        return [state.generator for state in self.states]

    @property
    def columns(self) -> dict[str, Int64s]:
        """The rest, as columns of a `TimeCut`."""
        return {
            "unseen": np.array([state.unseen for state in self.states], np.int64),
            "watermark_ms": np.array([state.watermark_ms for state in self.states], np.int64),
            "operator_idle": np.array([state.is_idle for state in self.states], np.int64),
        }

    def to_ipc(self) -> bytes:
        """The states as an Arrow IPC stream.

        Raises
        ------
        SchemaError
            If a column cannot hold what a generator holds.
        """
        columns = TableColumns("the splits")
        columns.add_numbers("split", np.array(self.splits, np.int64), pa.int64())
        columns.add_values("generator", self.generators)
        for name, numbers in self.columns.items():
            columns.add_numbers(name, numbers, pa.int64())
        table = columns.table({})
        batch = table.batch.replace_schema_metadata({_SHAPES: json.dumps(dict(table.shapes))})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    @classmethod
    def from_ipc(cls, data: bytes) -> SplitStates:
        """The states that `to_ipc` wrote."""
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        table = CheckpointTable(batch, json.loads(batch.schema.metadata[_SHAPES]), {})
        unseen, watermarks, idle = (
            table.numbers(name, pa.int64()).tolist() for name in ("unseen", "watermark_ms", "operator_idle")
        )
        states = [
            SplitState(generator, bool(has_unseen), watermark_ms, bool(is_idle))
            for generator, has_unseen, watermark_ms, is_idle in zip(
                table.values("generator"), unseen, watermarks, idle, strict=True
            )
        ]
        return cls(table.numbers("split", pa.int64()).tolist(), states)
