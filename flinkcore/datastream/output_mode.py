"""What a window gives when it fires again."""

from enum import Enum
from typing import Any, Final

from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.window import MergingWindowAssigner, PurgingTrigger, Trigger, WindowAssigner
from flinkcore.errors import ConfigurationError

ROW_KIND: Final = "row_kind"
"""Column of results that can be withdrawn: Flink's ``RowKind`` in short."""

WITH_DIFFERENCE: Final = ("count", "sum")
"""Aggregates of which a difference can be added to a result."""


class OutputMode(Enum):
    """What a window gives when it fires again, be it by a late row or by its trigger.

    ``ACCUMULATING``: the whole result anew, as Flink's DataStream API. ``RETRACTING``: first the last result once more,
    marked as withdrawn, then the new one, as updates of Flink's Table API. ``DELTA``: only the difference.
    """

    ACCUMULATING = "accumulating"
    RETRACTING = "retracting"
    DELTA = "delta"


def require_output_mode(
    output_mode: OutputMode,
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    aggregates: dict[str, Aggregate],
) -> None:
    """Check that windows can give their results in this way.

    Raises
    ------
    ConfigurationError
        If windows are purged, which forget what they gave; for differences also if windows merge, or an aggregate has
        no difference.
    """
    if output_mode is OutputMode.ACCUMULATING:
        return
    if isinstance(trigger, PurgingTrigger):
        raise ConfigurationError(
            f"{output_mode.value} windows remember what they gave, but {trigger} empties them: take the trigger in it"
        )
    if output_mode is OutputMode.RETRACTING:
        return
    if isinstance(assigner, MergingWindowAssigner):
        raise ConfigurationError(
            "windows that merge have no difference to what they gave before, when they were others: use retracting()"
        )
    for name, aggregate in aggregates.items():
        if aggregate.function not in WITH_DIFFERENCE:
            raise ConfigurationError(
                f"{name} = {aggregate} has no difference that could be added up, only {' and '.join(WITH_DIFFERENCE)} "
                "have: use retracting()"
            )
