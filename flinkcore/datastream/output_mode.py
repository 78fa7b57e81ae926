"""What a window gives when it fires again."""

from enum import Enum
from typing import Any, Final

from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    Evictor,
    MergingWindowAssigner,
    PurgingTrigger,
    Trigger,
    WindowAssigner,
)
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
    evictor: Evictor[Any] | None,
    aggregates: dict[str, Aggregate],
) -> None:
    """Check that windows can give their results in this way.

    Raises
    ------
    ConfigurationError
        If windows are purged, which forget what they gave, or an evictor removes rows that were in it; if windows
        that give one result each should withdraw it; for differences also if windows merge, or an aggregate has
        no difference.
    """
    if output_mode is OutputMode.ACCUMULATING:
        return
    if isinstance(trigger, PurgingTrigger):
        raise ConfigurationError(
            f"{output_mode.value} windows remember what they gave, but {trigger} empties them: take the trigger in it"
        )
    if evictor is not None:
        raise ConfigurationError(
            f"{output_mode.value} windows remember what they gave, but {evictor} removes rows that were in it: leave "
            f"{output_mode.value} out, each result is that of the rows then in the window"
        )
    if output_mode is OutputMode.RETRACTING:
        if isinstance(assigner, CountTumblingWindowAssigner | CountSlidingWindowAssigner):
            raise ConfigurationError(
                f"{assigner} give one result each, when they are full, and never withdraw it: leave retracting() out"
            )
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
