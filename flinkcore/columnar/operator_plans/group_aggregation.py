"""Aggregates over all rows of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.columnar.operator_plans.aggregate_contents import CONTENTS, AggregateContents
from flinkcore.columnar.operator_plans.frame_plans import (
    NamedAggregates,
    columns_of,
    contents_of,
    described,
    require_columns,
    require_new_names,
    result_types,
)
from flinkcore.columnar.operator_plans.relational import (
    RelationalPlan,
    has_row_kind,
    shown_ttl,
    with_row_kind,
)
from flinkcore.columnar.operator_plans.window_aggregation import given_key_type
from flinkcore.datastream.aggregates import RETRACTABLE, count
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.transformations import GroupAggregateTransformation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class GroupAggregation(RelationalPlan):
    """Aggregates over all rows of each key.

    Attributes
    ----------
    aggregates : tuple of (str, Aggregate)
    changes : bool
        Whether each row gives the changes of its key's result, and not the end of the log the last one.
    withdraws : bool
        Whether the rows are changes themselves, with a row kind.
    results : tuple of ColumnExpression
        Results of a key, of its aggregates: there is a change if one of them changes. By default all aggregates.
    ttl_ms : int
        Time to live of a key's state after its last row, in ms of processing time; 0 if it never expires. With one,
        each row gives a change, even if the result stays the same, as in Flink.
    """

    aggregates: NamedAggregates
    changes: bool
    withdraws: bool = False
    results: tuple[ColumnExpression, ...] = ()
    ttl_ms: int = 0

    uid_prefix: ClassVar[str] = "aggregate"

    @classmethod
    def of(cls, step: GroupAggregateTransformation) -> GroupAggregation:
        return cls(step.aggregates, step.changes, results=step.results, ttl_ms=step.ttl_ms)

    def bound_to(self, inputs: Sequence[pa.Schema]) -> GroupAggregation:
        return replace(self, withdraws=has_row_kind(inputs[0]))

    @property
    def function_name(self) -> str:
        return "aggregate"

    @property
    def order_dependence(self) -> str:
        return "aggregate"

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the aggregates, and the row kind if there is one."""
        return columns_of(self.aggregates) | {ROW_KIND}

    def check(self, events: pa.Schema) -> None:
        require_columns(self.aggregates, events)
        result_types(self.aggregates, events)  # refuses what it cannot run
        for name, aggregate in self.aggregates:
            if ROW_KIND in events.names and aggregate.function not in RETRACTABLE:
                raise ConfigurationError(
                    f"{name} = {aggregate}: the rows have a column {ROW_KIND!r}, so they withdraw others, and only "
                    f"{', '.join(RETRACTABLE)} can subtract. Keep the final rows of the step before (changes=False)"
                )

    @property
    def counted(self) -> int | None:
        """Number of a result that counts all rows of a key, so that each row changes it, or None."""
        if self.results or self.withdraws:
            return None
        counts = (n for n, (_, each) in enumerate(self.aggregates) if each == count())
        return next(counts, None)

    @property
    def is_retracting(self) -> bool:
        return self.changes

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The keys, the aggregates, and the row kind of changes."""
        (events,) = inputs
        require_new_names(self.aggregates, [*keys, ROW_KIND])
        names = [name for name, _ in self.aggregates]
        types = result_types(self.aggregates, events)
        schema = pa.schema(
            [
                *(pa.field(key, given_key_type(events.field(key).type)) for key in keys),
                *map(pa.field, names, types),
            ]
        )
        return with_row_kind(schema) if self.changes else schema

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        return (ROW_KIND,) if self.changes else ()

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        return {
            "operator": "aggregate of all rows of a key",
            "changes": str(self.changes),
            **shown_ttl(self.ttl_ms),
            "aggregates": described(self.aggregates, events),
            CONTENTS: self.aggregate_contents(inputs).to_text(),
        }

    def aggregate_contents(self, inputs: Sequence[pa.Schema]) -> AggregateContents:
        (events,) = inputs
        return contents_of(self.aggregates, events)
