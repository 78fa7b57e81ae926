"""Rows that become several: elements of collections, and rows of a table that is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.expressions import RowExpansion
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorTables, require_column
from flinkcore.datastream.graph.transformations import ExpandTransformation


@dataclass(frozen=True)
class Expansion(OperatorPlan):
    """Emits the rows that are made of each row, which have its columns and further ones.

    Attributes
    ----------
    expansion : RowExpansion
    """

    expansion: RowExpansion

    uid_prefix: ClassVar[str] = "expand"
    takes_rows_anywhere: ClassVar[bool] = True

    @classmethod
    def of(cls, step: ExpandTransformation) -> Expansion:
        return cls(step.expansion)

    @property
    def function_name(self) -> str:
        return "expand"

    @property
    def named_columns(self) -> frozenset[str]:
        return self.expansion.required_columns

    @property
    def order_dependence(self) -> str | None:
        return None

    def bound_to(self, inputs: Sequence[pa.Schema]) -> Expansion:
        return Expansion(self.expansion.bound_to(inputs[0]))

    def check(self, events: pa.Schema) -> None:
        bound = self.expansion.bound_to(events)
        for column in bound.required_columns:
            require_column(column, events, str(bound))

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the rows that the expansion does not read, and those that it adds."""
        (events,) = inputs
        added = self.expansion.fields
        names = {field.name for field in added}
        return pa.schema([*(field for field in events if field.name not in names), *added])

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables()

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        return {"operator": "rows made of each row", "expansion": str(self.expansion)}
