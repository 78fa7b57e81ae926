"""Common parts of the plans of relational operators."""

from __future__ import annotations

from typing import ClassVar, Final

import pyarrow as pa

from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorTables
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import ConfigurationError, SchemaError

_TEXT: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
"""Types of which a row kind may be, perhaps as a dictionary."""


class RelationalPlan(OperatorPlan):
    """An operator that a relational kernel runs: its state is tables of keys, rows and timers."""

    takes_null_keys: ClassVar[bool] = True

    late_tag: OutputTag | None = None
    """Side output of late rows, for operators that have such rows of one input."""

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return () if self.late_tag is None else (self.late_tag,)

    @property
    def ttl_ms(self) -> int:
        """Longest time to live of its state, in ms of processing time after it was written; 0 if it never expires."""
        return 0

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables((TableKind.RELATION,), (TableKind.RELATION,))


def shown_ttl(*ttls_ms: int) -> dict[str, str]:
    """Return the description of times to live, of which a checkpoint has the rest; none if no state expires."""
    return {"time to live": ", ".join(f"{ttl_ms} ms" for ttl_ms in ttls_ms)} if any(ttls_ms) else {}


def with_row_kind(schema: pa.Schema) -> pa.Schema:
    """Return columns and, last, the kind of change."""
    return schema.append(pa.field(ROW_KIND, pa.string()))


def has_row_kind(events: pa.Schema) -> bool:
    """Return whether rows are changes, with a column of their kinds.

    Raises
    ------
    SchemaError
        If there is such a column, and it has no text.
    """
    if ROW_KIND not in events.names:
        return False
    kind = events.field(ROW_KIND).type
    text = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(is_text(text) for is_text in _TEXT):
        raise SchemaError(
            f"the column {ROW_KIND!r} is {kind}, and a change has its kind there as text: +I, -U, +U or -D. Cast it to "
            "string, or rename the column if the rows are not changes"
        )
    return True


def without_kind(schema: pa.Schema) -> pa.Schema:
    """Return the columns of rows but their kind."""
    return pa.schema([field for field in schema if field.name != ROW_KIND])


def require_no_row_kind(events: pa.Schema, call: str) -> None:
    """Check that the rows that come to an operator are none that withdraw others.

    Raises
    ------
    ConfigurationError
        If they have the column that says so.
    """
    if ROW_KIND in events.names:
        raise ConfigurationError(
            f"{call} takes rows that are only added, and these have a column {ROW_KIND!r}: drop it, or keep the final "
            "rows of the step before (changes=False)"
        )
