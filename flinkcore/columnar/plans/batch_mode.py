"""The execution mode BATCH for jobs over columns."""

from __future__ import annotations

from typing import Final

from flinkcore.columnar.plans.operators import Forward, KeyedOperator, WindowAggregation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.errors import ConfigurationError

_OF_THE_ORDER: Final = frozenset(("first", "last", "collect", "min_by", "max_by"))


def refuse_alignment_in_batch_mode(strategy: WatermarkStrategy) -> None:
    """Raise a ConfigurationError for a strategy that aligns sources."""
    if strategy.alignment_parameters is not None:
        raise ConfigurationError(
            f"{strategy}: the execution mode BATCH has no watermarks to align; leave with_watermark_alignment out"
        )


def refuse_in_batch_mode(operator: KeyedOperator) -> None:
    """Raise a ConfigurationError for an operator whose results depend on the order of rows.

    In the mode BATCH, Flink sorts the rows of a key by their timestamps; a replay reads them in the order of arrival.
    Aggregates that depend only on which rows are in a window are the same in any order.
    """
    reason = _why_not(operator)
    if reason is not None:
        raise ConfigurationError(
            "in the execution mode BATCH the rows of a key are sorted by time, and those of a job over columns are "
            f"not, which {reason} would show: set the mode to STREAMING, or let the job run element by element, with "
            "functions whose output_type is one of Types"
        )


def _why_not(operator: KeyedOperator) -> str | None:
    if isinstance(operator, Forward):
        return None
    if not isinstance(operator, WindowAggregation):
        return "functions"
    if not operator.window.is_event_time():
        return "windows of another kind than event time"
    if operator.trigger is not None or operator.evictor is not None:
        return "triggers and evictors"
    if operator.output_mode is not OutputMode.ACCUMULATING:
        return "windows that fire again"
    ordered = [str(aggregate) for _, aggregate in operator.aggregates if aggregate.function in _OF_THE_ORDER]
    return f"the aggregate {ordered[0]}" if ordered else None
