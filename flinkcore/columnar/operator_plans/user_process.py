"""Operators that call functions of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorTables, bound_type
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.transformations import FunctionTransformation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class UserProcess(OperatorPlan):
    """An operator that calls a function of the user's, which has keyed state and timers.

    Attributes
    ----------
    function : object
        Every partition works on a copy.
    output_type : pyarrow.Schema
    tags : tuple of OutputTag
        Side outputs that are wanted, with their schemas.
    timestamp_column : str or None
        Column of all outputs for the timestamps of the records.
    """

    calls_functions: ClassVar[bool] = True

    function: Any
    output_type: pa.Schema
    tags: tuple[OutputTag, ...] = ()
    timestamp_column: str | None = None

    @classmethod
    def of(cls, step: FunctionTransformation) -> UserProcess:
        return cls(step.function, step.output_type, step.tags, step.timestamp_column)

    @property
    def function_name(self) -> str:
        return type(self.function).__qualname__

    @property
    def order_dependence(self) -> str | None:
        return "functions"

    def check(self, events: pa.Schema) -> None:
        if not events.names:
            raise ConfigurationError("a function gets rows, but there is no column left: select some")

    @property
    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Side outputs of late rows, and those that are wanted of the function."""
        return (*super().side_outputs, *self.tags)

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The declared columns, and the timestamps."""
        return self._with_timestamps(self.output_type, time_type)

    def side_output_schema(
        self, output_tag: OutputTag, inputs: Sequence[pa.Schema], time_type: pa.DataType
    ) -> pa.Schema:
        """Late rows are as they came; the function's own have the schema of the tag, and the timestamps."""
        if output_tag in self.late_tags:
            return super().side_output_schema(output_tag, inputs, time_type)
        schema = next(tag.type_info for tag in self.tags if tag == output_tag)
        return self._with_timestamps(schema, time_type)

    def _with_timestamps(self, schema: pa.Schema, time_type: pa.DataType) -> pa.Schema:
        if self.timestamp_column is None:
            return schema
        return schema.append(pa.field(self.timestamp_column, bound_type(time_type)))

    @property
    def sets_timers(self) -> bool:
        return True

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables((TableKind.TIMERS,), (TableKind.TIMERS, TableKind.KEYED_STATE))

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        return {"operator": "process function"}
