"""Outputs of stages: batches of results and of side outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from flinkcore._internal.arrow.batch_bytes import cut
from flinkcore._internal.arrow.column_ops import ColumnOp, apply_ops
from flinkcore._internal.arrow.joined_batches import empty_batch
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.common.output_tag import OutputTag


@dataclass(frozen=True)
class StageOutput:
    """Batches of the results (`tag` is None) or of a side output."""

    tag: OutputTag | None
    batches: list[pa.RecordBatch]

    @classmethod
    def no_results(cls, schema: pa.Schema) -> StageOutput:
        """Return a batch of no rows, with the columns of the results."""
        return cls(None, [empty_batch(schema)])

    @property
    def tag_id(self) -> str | None:
        """Name of the side output; None for the results."""
        return None if self.tag is None else self.tag.tag_id


def behind_steps(
    outputs: Iterable[StageOutput], ops: Sequence[ColumnOp], batch_bytes: int
) -> Iterator[StageOutput]:
    """Outputs of an operator as they leave it, in batches of at most so many bytes.

    The results of the last operator are what the steps that follow make of them.
    """
    for output in outputs:
        batches: Iterable[pa.RecordBatch] = output.batches
        if output.tag is None and ops:
            made = (apply_ops(ops, batch)[0] for batch in batches)
            batches = (batch for batch in made if batch.num_rows)
        if batches:
            for batch in batches:
                yield StageOutput(output.tag, list(cut(batch, batch_bytes)))
        else:
            yield output


@dataclass(frozen=True)
class PlacedOutput(StageOutput):
    """Results of an operator for the next one: they have no other batches."""

    events: PlacedEvents
