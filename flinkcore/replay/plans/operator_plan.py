"""What an operator's stages need to know of the plan that it belongs to."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from flinkcore.common.output_tag import OutputTag
from flinkcore.replay.plans.keyed_operator import KeyedOperator


class OperatorPlan(Protocol):
    """An operator, the rows that come to it, and their keys; picklable.

    A `ReplayPlan` is one, and so is each stage of a `JobPlan`.
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that make up the key."""

    @property
    def key_fields(self) -> list[pa.Field]:
        """Names and types of these columns."""

    @property
    def operator(self) -> KeyedOperator:
        """What is done with them."""

    @property
    def max_parallelism(self) -> int:
        """Number of key groups."""

    def data_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the operator."""

    def time_type(self) -> pa.DataType:
        """Return the Arrow type of the event time."""

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output."""
