"""Columns that a job names: those that the log's settings read, and those that steps compute."""

from __future__ import annotations

from flinkcore.common.expressions import is_expression
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.transformations import EventLogSource
from flinkcore.errors import ConfigurationError
from flinkcore.replay.log.column_ops import HIDDEN_PREFIX, ColumnOp, Select, WithColumns, expression_columns


def assigned(op: ColumnOp) -> tuple[str, ...]:
    """Return the columns that an op computes."""
    return tuple(name for name, _ in op.expressions) if isinstance(op, Select | WithColumns) else ()


def refuse_replaced(source: EventLogSource, before: tuple[ColumnOp, ...]) -> None:
    """Arrivals and splits are those of the recorded log; a step that seems to change them would do nothing."""
    for name in [name for op in before for name in assigned(op)]:
        if name in _columns_given(source.arrival):
            raise ConfigurationError(
                f"column {name!r} is computed after the arrivals have been read from it: give "
                "from_event_log(..., arrival=expression) to convert them, or another name to the computed column"
            )
        if is_expression(source.timestamp) and name in _columns_given(source.timestamp):
            raise ConfigurationError(
                f"column {name!r} is computed after from_event_log(timestamp={source.timestamp}) has read it: put "
                "all of the computation into one of the two, or give another name to the computed column"
            )
        if isinstance(source.split, str) and name == source.split:
            raise ConfigurationError(
                f"column {name!r} is computed after the splits have been read from it, which are those of the "
                "recorded log: give the computed column another name, or write it into the log first"
            )


def _columns_given(setting: object) -> frozenset[str]:
    """Columns that a setting names, or whose expression reads them."""
    if isinstance(setting, str):
        return frozenset([setting])
    return (expression_columns(setting) if is_expression(setting) else None) or frozenset()


def refuse_reserved(source: EventLogSource, ops: tuple[ColumnOp, ...], strategy: WatermarkStrategy) -> None:
    """Refuse names that hidden columns have."""
    used = [name for op in ops for name in (*assigned(op), *(op.required_columns or ()))]
    for given in (source.timestamp, source.arrival, source.split, strategy.timestamp_column):
        used += _columns_given(given)
    for name in used:
        if name.startswith(HIDDEN_PREFIX):
            raise ConfigurationError(
                f"column {name!r}: names that begin with {HIDDEN_PREFIX!r} are reserved; rename the column"
            )
