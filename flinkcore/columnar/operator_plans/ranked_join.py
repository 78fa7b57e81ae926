"""A join of two streams with the highest of its pairs, which no step comes between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import ColumnOp
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.relational import RelationalPlan
from flinkcore.columnar.operator_plans.top_rows import TopRows


@dataclass(frozen=True)
class RankedJoin(RelationalPlan):
    """A join and the highest of its pairs by the same key: pairs are ranked by number, and only results are gathered.

    Attributes
    ----------
    join : Join
    between : tuple of ColumnOp
        Operations on the pairs before they are ranked.
    pairs : pyarrow.Schema
        Columns of the pairs after these.
    top : TopRows
    """

    join: Join
    between: tuple[ColumnOp, ...]
    pairs: pa.Schema
    top: TopRows

    uid_prefix: ClassVar[str] = "top"

    @classmethod
    def of(cls, step: Any) -> RankedJoin:
        raise NotImplementedError("the planner makes it of two operators")

    @staticmethod
    def takes(join: Join, top: TopRows) -> bool:
        """Return whether these two can be one operator: pairs are final, and never expire."""
        operation = join.operation
        of_changes = join.keeps_changes or operation.changes or top.of_changes
        has_windows = operation.has_windows or top.window is not None or top.late_tag is not None
        is_of_keys = top.limit_column is None and not join.ttl_ms
        return operation.how in ("inner", "left") and is_of_keys and not of_changes and not has_windows

    @property
    def function_name(self) -> str:
        return f"{self.join.function_name} with {self.top.function_name}"

    @property
    def needs_event_time(self) -> bool:
        return self.join.needs_event_time or self.top.needs_event_time

    @property
    def order_dependence(self) -> str | None:
        return self.top.order_dependence

    @property
    def timestamp_range(self) -> tuple[int, int]:
        return self.join.timestamp_range

    @property
    def is_retracting(self) -> bool:
        return self.top.is_retracting

    @property
    def held_back_ms(self) -> int:
        return self.join.held_back_ms

    def check(self, events: pa.Schema) -> None:
        self.join.check(events)

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        return self.top.result_schema([self.pairs], keys, time_type)

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        return self.top.repeating_columns

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        ranked = {f"highest: {name}": value for name, value in self.top.describe([self.pairs]).items()}
        del ranked["highest: operator"]
        joined = self.join.describe(inputs)
        return {**joined, "operator": f"{joined['operator']}, highest rows", **ranked}
