"""The search for a pattern in the rows of each key: MATCH_RECOGNIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.operator_plan import require_column
from flinkcore.columnar.operator_plans.relational import RelationalPlan, require_no_row_kind
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, ranking_of
from flinkcore.columnar.relational.pattern_values import PatternValues
from flinkcore.datastream.graph.row_patterns import Measure, PatternExpression, RowPattern
from flinkcore.datastream.graph.transformations import MatchTransformation


@dataclass(frozen=True)
class PatternMatch(RelationalPlan):
    """Matches of a pattern in the rows of each key, in order of time.

    Attributes
    ----------
    pattern : RowPattern
    conditions : tuple of (PatternExpression or None)
        That of each variable, or None if it takes every row.
    measures : tuple of Measure
        Columns of the results after those of the key.
    order_by, descending, nulls_last : tuples
        Columns that order rows of equal timestamps, before the order of arrival.
    """

    pattern: RowPattern
    conditions: tuple[PatternExpression | None, ...]
    measures: tuple[Measure, ...]
    order_by: tuple[str, ...]
    descending: tuple[bool, ...]
    nulls_last: tuple[bool, ...]

    uid_prefix: ClassVar[str] = "match"

    @classmethod
    def of(cls, step: MatchTransformation) -> PatternMatch:
        return cls(
            step.pattern, step.conditions, step.measures, step.order_by, step.descending, step.nulls_last
        )

    @property
    def function_name(self) -> str:
        return "match_recognize"

    @property
    def needs_event_time(self) -> bool:
        return True

    @property
    def order_dependence(self) -> str:
        return "match_recognize"

    @property
    def columns(self) -> frozenset[str]:
        """The columns that conditions, measures and the order of rows read."""
        expressions = [*self.conditions, *(measure.value for measure in self.measures)]
        read = (each.required_columns for each in expressions if each is not None)
        return frozenset(self.order_by).union(*read)

    def check(self, events: pa.Schema) -> None:
        require_no_row_kind(events, "match_recognize")
        self.pattern.check()
        for column in sorted(self.columns):
            require_column(column, events, f"match_recognize({self.pattern})")
        if self.order_by:
            self.ranking(events).check("match_recognize")

    def ranking(self, events: pa.Schema) -> RowRanking:
        """Return the order of rows of equal timestamps."""
        return ranking_of(self.order_by, self.descending, self.nulls_last, events)

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the key and, after them, the measures."""
        (events,) = inputs
        types = PatternValues([each.value for each in self.measures], events).types()
        measures = [pa.field(each.name, kind) for each, kind in zip(self.measures, types, strict=True)]
        return pa.schema([*(events.field(key) for key in keys), *measures])

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        conditions = zip(self.pattern.names, self.conditions, strict=True)
        skip_to = f" {self.pattern.skip_to}" if self.pattern.skip_to else ""
        return {
            "operator": "match_recognize",
            "pattern": str(self.pattern),
            "within": "no bound" if self.pattern.within_ms is None else f"{self.pattern.within_ms} ms",
            "after a match": f"{self.pattern.skip.value}{skip_to}",
            "conditions": ", ".join(f"{name}: {each}" for name, each in conditions if each is not None),
            "order": ", ".join(
                f"{name}{' descending' if down else ''}"
                for name, down in zip(self.order_by, self.descending, strict=True)
            ),
            "measures": ", ".join(map(str, self.measures)),
            "rows": shown_fields(events),
        }
