"""The highest rows of each key, or of each window of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import pyarrow as pa

from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, window_timestamps
from flinkcore.columnar.operator_plans.operator_plan import bound_type, require_column
from flinkcore.columnar.operator_plans.relational import (
    RelationalPlan,
    has_row_kind,
    require_no_row_kind,
    with_row_kind,
    without_kind,
)
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, ranking_of
from flinkcore.columnar.operator_plans.row_windows import require_row_windows
from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.columnar.operator_plans.window_contents import shown_beginning
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.transformations import TopTransformation
from flinkcore.datastream.window import LocalEventTimeWindows
from flinkcore.errors import ConfigurationError, SchemaError


@dataclass(frozen=True)
class TopRows(RelationalPlan):
    """The highest rows of each key, or of each window of a key.

    Attributes
    ----------
    call : str
        Name of the method, for messages.
    n, skip : int
        Results have the ranks `skip` + 1 to `n`.
    by : tuple of str
        Columns that order rows; the first one counts most.
    descending : tuple of bool
    nulls_last : tuple of (bool or None)
    by_time : bool
        Whether event time orders rows, in the direction `latest_first`, and no column does.
    rank : str
        "row_number", "rank" or "dense_rank".
    rank_column : str or None
    latest_first : bool
        Whether of equal rows the latest is first.
    changes : bool
    window : WindowAssigner or None
        Assigns rows to windows.
    window_end : str or None
        Column with the end of each row's window.
    unique_key : tuple of str or None
        If rows are changes that only rise: columns by which a row that comes replaces an earlier one.
    limit_column : str or None
        Column with the last rank of a key, in its first row, where null is 0, or None if the last rank is `n`.
    of_changes : bool
        Whether the rows are changes, with a row kind.
    late_tag : OutputTag or None
        Side output of late rows, or None if they are dropped.
    savepoint_watermark_ms : int or None
        Watermark of the operator of Flink in whose savepoint the first rows of windows are; None if they are in none.
    """

    call: str
    n: int
    skip: int
    by: tuple[str, ...]
    descending: tuple[bool, ...]
    nulls_last: tuple[bool | None, ...]
    by_time: bool
    rank: str
    rank_column: str | None
    latest_first: bool
    changes: bool
    window: WindowsByTime | None
    window_end: str | None
    unique_key: tuple[str, ...] | None
    limit_column: str | None = None
    of_changes: bool = False
    late_tag: OutputTag | None = None
    savepoint_watermark_ms: int | None = None

    uid_prefix: ClassVar[str] = "top"

    @classmethod
    def of(cls, step: TopTransformation) -> TopRows:
        window = None if step.window is None else require_row_windows(step.window, step.call)
        bound = ("window", "of_changes", "savepoint_watermark_ms")
        own = {field.name: getattr(step, field.name) for field in fields(cls) if field.name not in bound}
        return cls(**own, window=window)

    def bound_to(self, inputs: Sequence[pa.Schema]) -> TopRows:
        return replace(self, of_changes=has_row_kind(inputs[0]))

    @property
    def function_name(self) -> str:
        return self.call

    @property
    def of_windows(self) -> bool:
        """Return whether rows belong to windows."""
        return self.window is not None or self.window_end is not None

    @property
    def needs_event_time(self) -> bool:
        return self.of_windows or self.by_time

    @property
    def timestamp_range(self) -> tuple[int, int]:
        return (MIN_TIMESTAMP, MAX_TIMESTAMP) if self.window is None else window_timestamps(self.window)

    @property
    def local_windows(self) -> LocalEventTimeWindows | None:
        return self.window if isinstance(self.window, LocalEventTimeWindows) else None

    @property
    def order_dependence(self) -> str | None:
        return self.call

    def ranking(self, events: pa.Schema) -> RowRanking:
        """Return the order of rows with these columns."""
        return ranking_of(self.by, self.descending, self.nulls_last, events)

    def check(self, events: pa.Schema) -> None:
        for column in self.by:
            require_column(column, events, self.call)
        self.ranking(events).check(self.call)
        kind = pa.int64() if self.limit_column is None else events.field(self.limit_column).type
        if kind not in (pa.int16(), pa.int32(), pa.int64()):
            raise SchemaError(
                f"{self.call} shows as many rows as {self.limit_column!r} has, which is {kind}: Flink takes int16, "
                "int32 and int64. Cast the column"
            )
        if self.of_windows or self.by_time:
            require_no_row_kind(events, f"{self.call} of windows")
        if self.changes and self.rank != "row_number" and ROW_KIND in events.names:
            raise ConfigurationError(
                f"{self.call}(rank={self.rank!r}, changes=True) takes rows that are only added, and these have a "
                f"column {ROW_KIND!r}: take rank='row_number', or the final rows (changes=False)"
            )
        if self.window_end is not None:
            require_column(self.window_end, events, f"{self.call}(window_end=...)")
            kind = events.field(self.window_end).type
            if not pa.types.is_timestamp(kind) and kind != pa.int64():
                raise SchemaError(
                    f"{self.call}(window_end={self.window_end!r}): the column is {kind}; the end of a window is a "
                    "timestamp, or int64 (ms since the epoch)"
                )
        for name in self._added:
            if name in events.names:
                raise ConfigurationError(
                    f"{self.call} adds a column {name!r}, and its rows have one already: "
                    + (
                        "take another name, with rank_column="
                        if name == self.rank_column
                        else f"rename it before, or, if it is their window's, take {self.call}(window_end='window_end')"
                    )
                )

    @property
    def _added(self) -> list[str]:
        windows = [] if self.window is None else ["window_start", "window_end"]
        return [*windows, *([self.rank_column] if self.rank_column is not None else [])]

    @property
    def is_retracting(self) -> bool:
        return self.changes

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of the rows, the bounds of their window, the rank, and the row kind of changes."""
        (events,) = inputs
        kinds: dict[str, Any] = dict.fromkeys(self._added, bound_type(time_type))
        if self.rank_column is not None:
            kinds[self.rank_column] = pa.int64()
        schema = pa.schema([*without_kind(events), *kinds.items()])
        return with_row_kind(schema) if self.changes else schema

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        return (*self._added, *((ROW_KIND,) if self.changes else ()))

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        (events,) = inputs
        elsewhere = ("call", "rank_column", "limit_column", "late_tag", "savepoint_watermark_ms")
        own = tuple(field.name for field in fields(self) if field.name not in elsewhere)
        return {
            "operator": "highest rows",
            **shown_settings(self, own),
            **({} if self.limit_column is None else shown_settings(self, ("limit_column",))),
            "rows": shown_fields(events),
            **shown_beginning(self.savepoint_watermark_ms),
        }

    def beginning_with_savepoint(self, watermark_ms: int) -> TopRows:
        return replace(self, savepoint_watermark_ms=watermark_ms) if self.of_windows else self
