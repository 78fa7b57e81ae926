"""The execution mode BATCH for jobs over columns."""

from __future__ import annotations

from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import ConfigurationError


def refuse_alignment_in_batch_mode(strategy: WatermarkStrategy) -> None:
    """Raise a ConfigurationError for a strategy that aligns sources."""
    if strategy.alignment_parameters is not None:
        raise ConfigurationError(
            f"{strategy}: the execution mode BATCH has no watermarks to align; leave with_watermark_alignment out"
        )


def refuse_in_batch_mode(operator: OperatorPlan) -> None:
    """Raise a ConfigurationError for an operator whose results depend on the order of rows.

    In the mode BATCH, Flink sorts the rows of a key by their timestamps; a replay reads them in the order of arrival.
    Aggregates that depend only on which rows are in a window are the same in any order.
    """
    reason = operator.order_dependence
    if reason is not None:
        raise ConfigurationError(
            "in the execution mode BATCH the rows of a key are sorted by time, and those of a job over columns are "
            f"not, which {reason} would show: set the mode to STREAMING, or let the job run element by element, with "
            "functions whose output_type is one of Types"
        )
