"""A function called for the rows of two streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.operator_plan import OperatorTables
from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.datastream.graph.transformations import (
    BroadcastTransformation,
    FunctionTransformation,
    PartitionTransformation,
)
from flinkcore.datastream.state import MapStateDescriptor

if TYPE_CHECKING:
    from flinkcore.datastream.graph.transformations import TwoInputFunction


@dataclass(frozen=True)
class ConnectedProcess(UserProcess):
    """A function called for the rows of two streams.

    Attributes
    ----------
    function
        Every partition works on a copy.
    is_keyed : bool
        Whether the first stream, and unless it is broadcast the second, has a key; if not, there is one partition.
    broadcast_states : tuple of MapStateDescriptor or None
        States of a second stream that is broadcast, or None if it is not broadcast.
    """

    function: TwoInputFunction
    is_keyed: bool = True
    broadcast_states: tuple[MapStateDescriptor[Any, Any], ...] | None = None

    @classmethod
    def of(cls, step: FunctionTransformation) -> ConnectedProcess:
        first, second = step.inputs()
        return cls(
            step.function,
            step.output_type,
            step.tags,
            step.timestamp_column,
            is_keyed=isinstance(first, PartitionTransformation),
            broadcast_states=second.descriptors if isinstance(second, BroadcastTransformation) else None,
        )

    @property
    def is_broadcast(self) -> bool:
        """Return whether all rows of the second stream go to every partition."""
        return self.broadcast_states is not None

    @property
    def tables(self) -> OperatorTables:
        keyed = (TableKind.TIMERS, TableKind.KEYED_STATE) if self.is_keyed else ()
        broadcast = (TableKind.OPERATOR_STATE,) if self.broadcast_states else ()
        return OperatorTables((*keyed[:1], *broadcast), (*keyed, *broadcast))

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        second = ", of which the second is broadcast" if self.is_broadcast else ""
        return {"operator": f"process function of two streams{second}"}
