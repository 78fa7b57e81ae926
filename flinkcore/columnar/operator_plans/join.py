"""Joins of two keyed streams over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import Select, expression_columns, output_schema, shown_names
from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.native_windows import window_timestamps
from flinkcore.columnar.operator_plans.operator_plan import bound_type
from flinkcore.columnar.operator_plans.relational import (
    RelationalPlan,
    has_row_kind,
    require_no_row_kind,
    shown_ttl,
    with_row_kind,
    without_kind,
)
from flinkcore.columnar.operator_plans.row_windows import require_row_windows
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.join_operations import JoinOperation, RegularJoin, TemporalJoin, WindowJoin
from flinkcore.datastream.window import LocalEventTimeWindows
from flinkcore.errors import ConfigurationError, SchemaError

if TYPE_CHECKING:
    from flinkcore.datastream.graph.transformations import JoinTransformation

WINDOW_COLUMNS = ("window_start", "window_end")


@dataclass(frozen=True)
class Join(RelationalPlan):
    """A join of two streams by key.

    Attributes
    ----------
    operation : JoinOperation
    changing : tuple of two bools
        Whether the rows of each stream are changes, with a row kind.
    """

    operation: JoinOperation
    changing: tuple[bool, bool] = (False, False)

    uid_prefix: ClassVar[str] = "join"

    @classmethod
    def of(cls, step: JoinTransformation) -> Join:
        operation = step.operation
        if isinstance(operation, WindowJoin) and operation.assigner is not None:
            require_row_windows(operation.assigner, "join_window")
        return cls(operation)

    @property
    def function_name(self) -> str:
        return self.operation.call

    @property
    def needs_event_time(self) -> bool:
        return self.operation.needs_event_time

    @property
    def order_dependence(self) -> str:
        return self.operation.call

    @property
    def timestamp_range(self) -> tuple[int, int]:
        operation = self.operation
        if isinstance(operation, WindowJoin) and operation.assigner is not None:
            return window_timestamps(operation.assigner)
        return operation.timestamp_range

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return self.operation.late_tags

    @property
    def held_back_ms(self) -> int:
        return self.operation.held_back_ms

    @property
    def local_windows(self) -> LocalEventTimeWindows | None:
        operation = self.operation
        if isinstance(operation, WindowJoin) and isinstance(operation.assigner, LocalEventTimeWindows):
            return operation.assigner
        return None

    def check(self, events: pa.Schema) -> None:
        if not isinstance(self.operation, RegularJoin):
            require_no_row_kind(events, self.operation.call)

    def bound_to(self, inputs: Sequence[pa.Schema]) -> Join:
        """Return this, with which inputs are changes; raises a SchemaError if the condition does not fit."""
        left, right = map(has_row_kind, inputs)
        bound = replace(self, changing=(left, right))
        where = self.operation.where
        if where is None:
            return bound
        pairs = self.pair_schema(inputs)
        columns = expression_columns(where)
        unknown = sorted((columns or frozenset()) - set(pairs.names))
        if unknown:
            raise SchemaError(
                f"{self.operation.call}(where=...) has the column {unknown[0]!r}, which neither stream has; columns: "
                f"{shown_names(pairs)}",
                unknown=unknown[0],
            )
        found = output_schema((Select((), (("where", where),)),), pairs).field("where").type
        if not pa.types.is_boolean(found):
            raise SchemaError(f"{self.operation.call}(where={where}) gives {found} instead of true or false")
        return bound

    @property
    def ttl_ms(self) -> int:
        return max(self._ttls_ms, default=0)

    @property
    def _ttls_ms(self) -> tuple[int, ...]:
        if isinstance(self.operation, TemporalJoin):
            return (self.operation.ttl_ms,)
        return self.operation.ttl_ms if isinstance(self.operation, RegularJoin) else ()

    @property
    def keeps_changes(self) -> bool:
        """Return whether rows may be withdrawn, or forgotten."""
        return any(self.changing) or (isinstance(self.operation, RegularJoin) and self.ttl_ms > 0)

    @property
    def is_retracting(self) -> bool:
        gives_padded = self.operation.how not in ("inner", "semi")
        return self.operation.changes and (gives_padded or any(self.changing))

    @property
    def gives_left_alone(self) -> bool:
        """Return whether results have the columns of left rows alone."""
        return self.operation.how in ("semi", "anti")

    def pair_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Return the columns of pairs of rows: those of the left one, then those of the right one.

        Raises
        ------
        ConfigurationError
            If two have the same name in spite of the suffix.
        """
        left, right = map(without_kind, inputs)
        fields = list(left)
        for field in right:
            name = field.name + (self.operation.suffix if field.name in left.names else "")
            fields.append(field.with_name(name))
        schema = pa.schema([field.with_nullable(True) for field in fields])
        for name in schema.names:
            if schema.names.count(name) > 1:
                raise ConfigurationError(
                    f"{self.operation.call}: two columns of the results are named {name!r}; give another suffix= than "
                    f"{self.operation.suffix!r}, or rename one"
                )
        return schema

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """The columns of both rows, or of the left one, bounds of windows, and the row kind of changes."""
        schema = self.pair_schema(inputs)
        if self.gives_left_alone:
            schema = without_kind(inputs[0])
        added = WINDOW_COLUMNS if self.operation.has_windows else ()
        for name in (*added, *((ROW_KIND,) if self.operation.changes else ())):
            if name in schema.names:
                raise ConfigurationError(
                    f"{self.operation.call}: results get a column {name!r}, and the rows have one; rename it before"
                )
        for name in added:
            schema = schema.append(pa.field(name, bound_type(time_type)))
        return with_row_kind(schema) if self.operation.changes else schema

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        changes = (ROW_KIND,) if self.operation.changes else ()
        return (*(WINDOW_COLUMNS if self.operation.has_windows else ()), *changes)

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        operation = self.operation
        left, right = map(shown_fields, inputs)
        changing = {}
        if isinstance(operation, RegularJoin) and any(self.changing):
            shown = [
                f"{side} by {'all columns' if key is None else ', '.join(key) or 'the key'}"
                for side, key, is_changing in zip(
                    ("left", "right"), operation.unique_keys, self.changing, strict=True
                )
                if is_changing
            ]
            changing = {"changes in": "; ".join(shown)}
        return {
            "operator": operation.call,
            "how": operation.how,
            **operation.settings,
            **changing,
            **shown_ttl(*self._ttls_ms),
            "where": str(operation.where),
            "nulls_equal": str(operation.nulls_equal),
            "rows": left,
            "right rows": right,
        }
