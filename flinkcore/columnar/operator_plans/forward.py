"""The end of a job that ends with a log or a union, and steps over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorTables
from flinkcore.datastream.graph.transformations import ForwardTransformation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class Forward(OperatorPlan):
    """Emits rows as they come."""

    takes_rows_anywhere: ClassVar[bool] = True

    @classmethod
    def of(cls, step: ForwardTransformation) -> Forward:
        return cls()

    @property
    def function_name(self) -> str:
        return "the end of the job"

    @property
    def order_dependence(self) -> str | None:
        return None

    def check(self, events: pa.Schema) -> None:
        if not events.names:
            raise ConfigurationError("the rows of the job have no column: select some")

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the rows."""
        (events,) = inputs
        return events

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables()

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        return {"operator": "none"}
