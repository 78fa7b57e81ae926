"""Aggregates over the rows before each row: OVER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.aggregate_contents import CONTENTS, AggregateContents
from flinkcore.columnar.operator_plans.frame_plans import (
    NamedAggregates,
    contents_of,
    described,
    require_columns,
    require_new_names,
    result_types,
)
from flinkcore.columnar.operator_plans.relational import RelationalPlan, require_no_row_kind, shown_ttl
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, ranking_of
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.transformations import OverTransformation


@dataclass(frozen=True)
class Over(RelationalPlan):
    """Aggregates of each row over its frame: the rows of its key before it, and itself.

    Attributes
    ----------
    rows : int or None
        Rows of a frame, with the row itself, or None if it is not bounded by rows.
    range_ms : int or None
        Length of a frame in ms, or None if it is not bounded by time.
    peers : bool
        Whether rows of equal timestamps have one result.
    by_time : bool
        Whether rows are ordered by event time, and not by arrival.
    aggregates : tuple of (str, Aggregate)
        Names of the columns that are added, and their aggregates.
    late_as_unbounded : bool
        Whether rows are late as those of unbounded frames are, whatever the frames are: if their time is not after
        the watermark.
    order_by, descending, nulls_last : tuples
        Columns that order rows of equal timestamps, before the order of arrival. `order_by` is None if the rows are not
        sorted: a sort does not drop rows at timestamps up to 0, as frames do.
    ttl_ms : int
        Time to live of a key's state after its last row, in ms of processing time; 0 if it never expires.
    expires_by_timer : bool
        Whether a timer clears the state, which is up to half a time to live late.
    late_tag : OutputTag or None
        Side output of late rows, or None if they are dropped.
    keeps_frame_rows : bool
        Whether the rows in frames are kept beside their aggregates, as Flink does, for a savepoint.
    """

    rows: int | None
    range_ms: int | None
    peers: bool
    by_time: bool
    aggregates: NamedAggregates
    late_as_unbounded: bool = False
    order_by: tuple[str, ...] | None = None
    descending: tuple[bool, ...] = ()
    nulls_last: tuple[bool, ...] = ()
    ttl_ms: int = 0
    expires_by_timer: bool = False
    late_tag: OutputTag | None = None
    keeps_frame_rows: bool = False

    uid_prefix: ClassVar[str] = "over"

    @classmethod
    def of(cls, step: OverTransformation) -> Over:
        rows = None if step.preceding_rows is None else step.preceding_rows + 1
        return cls(
            rows,
            step.preceding_ms,
            step.unit == "range",
            step.by == "event_time",
            step.aggregates,
            step.late_as_unbounded,
            step.order_by,
            step.descending,
            step.nulls_last,
            step.ttl_ms,
            step.expires_by_timer,
            step.late_tag,
        )

    @property
    def function_name(self) -> str:
        return "over"

    @property
    def needs_event_time(self) -> bool:
        return self.by_time

    @property
    def order_dependence(self) -> str:
        return "over"

    @property
    def is_bounded(self) -> bool:
        """Return whether rows are late only if a later one of their key has come up, as those of bounded frames."""
        return (self.rows is not None or self.range_ms is not None) and not self.late_as_unbounded

    def check(self, events: pa.Schema) -> None:
        require_no_row_kind(events, "over")
        require_columns(self.aggregates, events)
        require_new_names(self.aggregates, events.names)
        result_types(self.aggregates, events)  # refuses what it cannot run
        if (ranking := self.ranking(events)) is not None:
            ranking.check("a sort")

    def ranking(self, events: pa.Schema) -> RowRanking | None:
        """Return the order of rows of equal timestamps, or None if it is that of arrival."""
        return ranking_of(self.order_by, self.descending, self.nulls_last, events) if self.order_by else None

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the rows and, after them, the aggregates."""
        (events,) = inputs
        names = [name for name, _ in self.aggregates]
        types = result_types(self.aggregates, events)
        return pa.schema([*events, *map(pa.field, names, types)])

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        return {
            "operator": "over",
            "frame": str(self.rows if self.rows is not None else f"{self.range_ms} ms"),
            "peers": str(self.peers),
            "by": "event time" if self.by_time else "arrival",
            **({"late": "as unbounded"} if self.late_as_unbounded else {}),
            **({} if self.order_by is None else {"order": self._described_order()}),
            **shown_ttl(self.ttl_ms),
            **({"rows of frames": "kept for a savepoint"} if self.keeps_frame_rows else {}),
            "aggregates": described(self.aggregates, events),
            "rows": shown_fields(events),
            CONTENTS: self.aggregate_contents(inputs).to_text(),
        }

    def stopping_with_savepoint(self) -> Over:
        return replace(self, keeps_frame_rows=True) if self.is_bounded and self.by_time else self

    def aggregate_contents(self, inputs: Sequence[pa.Schema]) -> AggregateContents:
        (events,) = inputs
        return contents_of(self.aggregates, events)

    def _described_order(self) -> str:
        names = zip(self.order_by or (), self.descending, self.nulls_last, strict=True)
        return ", ".join(
            ("time", *(f"{name}{' descending' * down}{', nulls last' * last}" for name, down, last in names))
        )
