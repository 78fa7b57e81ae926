"""Rows of two streams, for an operator that is called row by row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.stages.process_output import ProcessOutput
from flinkcore.columnar.stages.row_operator import ProcessedRows, RowCall
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.operators.keys.element_rows import element_keys, element_rows
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.time_plane.total_order import Events


@dataclass
class TwoStreams:
    """Passes rows of two streams to an operator one by one.

    Parameters
    ----------
    inputs : ConnectedInputs
        Tells the rows apart.
    keys : tuple of list of str
        Key columns of each stream.
    max_parallelism : int
    output : ProcessOutput
    is_repeating : bool
        Whether the second stream is broadcast, and these are not the first key groups: its results come with those.

    Attributes
    ----------
    key : object
        Key of the current row.
    repeated : int
        Rows of the second stream so far, if this partition repeats them.
    """

    inputs: ConnectedInputs
    keys: tuple[list[str], list[str]]
    max_parallelism: int
    output: ProcessOutput
    is_repeating: bool
    key: Any = field(default=None, init=False)
    repeated: int = field(default=0, init=False)

    @classmethod
    def of(cls, context: StageContext, partition: int, output: ProcessOutput) -> TwoStreams:
        """Return the streams of an operator in a partition."""
        plan, inputs = context.plan, context.inputs
        assert inputs is not None
        first, second = plan.inputs
        keys = list(first.key.names), list(second.key.names)
        first_group, _ = context.key_group_range(partition)
        return cls(inputs, keys, plan.max_parallelism, output, second.is_broadcast and first_group > 0)

    def key_at_hand(self, element: Any) -> Any:
        """Return the key of the current row."""
        return self.key

    def called(self, process_element: Callable[[StreamRecord[Any]], None]) -> RowCall:
        """Return what processes a record by a call that asks for its key."""

        def call(key: Hashable, record: StreamRecord[Any]) -> None:
            self.key = key
            process_element(record)

        return call

    def rows(self, *calls: RowCall) -> Callable[[Events], ProcessedRows]:
        """Return the rows of both streams, each for its own call."""
        first, second = calls
        of_number = first, self._muted(second) if self.is_repeating else second

        def rows(events: Events) -> ProcessedRows:
            is_second = self.inputs.is_second(events)
            self.output.is_second = is_second
            numbers = is_second.tolist()
            if self.is_repeating:
                self.repeated += int(np.count_nonzero(is_second))
            batches = [
                self.inputs.batch_of(number, events.batch).filter(pa.array(is_second == bool(number)))
                for number in (0, 1)
            ]
            elements = [element_rows(batch) for batch in batches]
            keys = [self._keys_of(names, batch) for names, batch in zip(self.keys, batches, strict=True)]
            groups = self.inputs.key_groups(events, self.keys, self.max_parallelism)
            return (
                map(next, [elements[number] for number in numbers]),
                map(next, [keys[number] for number in numbers]),
                groups.tolist(),
                [of_number[number] for number in numbers],
            )

        return rows

    @staticmethod
    def _keys_of(names: list[str], batch: pa.RecordBatch) -> Iterator[Any]:
        return iter(element_keys(batch, names) if names else [None] * batch.num_rows)

    def _muted(self, call: RowCall) -> RowCall:
        def muted(key: Hashable, record: StreamRecord[Any]) -> None:
            self.output.is_muted = True
            try:
                call(key, record)
            finally:
                self.output.is_muted = False

        return muted

    def fates(self, processed: int) -> dict[str, int]:
        """Return how many of so many rows had which fate."""
        return {"processed": processed - self.repeated, "repeated": self.repeated}
