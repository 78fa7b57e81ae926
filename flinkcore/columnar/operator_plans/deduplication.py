"""One row of each key, the first or the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.relational import (
    RelationalPlan,
    has_row_kind,
    shown_ttl,
    with_row_kind,
    without_kind,
)
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.transformations import DeduplicateTransformation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class Deduplication(RelationalPlan):
    """One row of each key.

    Attributes
    ----------
    keeps_last : bool
        Whether the last row is kept, and not the first.
    by_time : bool
        Whether rows are ordered by event time, and not by arrival.
    changes : bool
        Whether results are changes, at once.
    of_changes : bool
        Whether the rows are changes, with a row kind.
    ttl_ms : int
        Time to live of what is known of a key, in ms of processing time after it was written; 0 if it never expires.
    late_tag : OutputTag or None
        Side output of late rows, or None if they are dropped.
    """

    keeps_last: bool
    by_time: bool
    changes: bool
    of_changes: bool = False
    ttl_ms: int = 0
    late_tag: OutputTag | None = None

    uid_prefix: ClassVar[str] = "deduplicate"

    @classmethod
    def of(cls, step: DeduplicateTransformation) -> Deduplication:
        return cls(
            step.keep == "last",
            step.by == "event_time",
            step.changes,
            ttl_ms=step.ttl_ms,
            late_tag=step.late_tag,
        )

    @property
    def function_name(self) -> str:
        return "deduplicate"

    @property
    def needs_event_time(self) -> bool:
        return self.by_time

    @property
    def order_dependence(self) -> str:
        return "deduplicate"

    def bound_to(self, inputs: Sequence[pa.Schema]) -> Deduplication:
        return replace(self, of_changes=has_row_kind(inputs[0]))

    def check(self, events: pa.Schema) -> None:
        if ROW_KIND in events.names and not (self.keeps_last and not self.by_time):
            raise ConfigurationError(
                f"deduplicate takes changes, with a column {ROW_KIND!r}, if it keeps the last row by arrival "
                "(keep='last', by='arrival'): take that, or top(1, by=...) for an order by a column"
            )

    @property
    def is_retracting(self) -> bool:
        return self.changes and (self.keeps_last or self.by_time)

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the rows, and the row kind of changes."""
        events = without_kind(inputs[0])
        return with_row_kind(events) if self.changes else events

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        return (ROW_KIND,) if self.changes else ()

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        return {
            "operator": "deduplicate",
            "keep": "last" if self.keeps_last else "first",
            "by": "event time" if self.by_time else "arrival",
            "changes": str(self.changes),
            **({"of changes": "True"} if self.of_changes else {}),
            **shown_ttl(self.ttl_ms),
            "rows": shown_fields(events),
        }
