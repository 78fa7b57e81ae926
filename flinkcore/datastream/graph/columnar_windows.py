"""Windows that run over columns, without a Python object per row, and their results when they fire again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    LocalEventTimeWindows,
    MergingWindowAssigner,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError

WINDOW_RESULT_COLUMNS: Final = ("window_start", "window_end", "late_firing", "watermark")
"""Columns of every window result beside the keys and the aggregates."""

ROW_KIND: Final = "row_kind"
"""Column of results that may be withdrawn: Flink's ``RowKind`` in short."""

WITH_DIFFERENCE: Final = ("count", "sum")
"""Aggregates whose differences add up to a result."""


def require_output_mode(
    output_mode: OutputMode,
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    evictor: Evictor[Any] | None,
    aggregates: dict[str, Aggregate],
) -> None:
    """Check that windows support an output mode.

    Raises
    ------
    ConfigurationError
        If windows lose rows of earlier results, by a purging trigger or an evictor; if windows with a single result
        should withdraw it; for differences also if windows merge, or an aggregate has no difference.
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
                f"{assigner.in_words} give one result each, when they are full, and never withdraw it: leave "
                "retracting() out"
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


_USE_FUNCTIONS: Final = (
    "take a function, which runs row by row: aggregate(MyAggregate(), output_type=pyarrow.schema({...}))"
)

_ASSIGNERS = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    CountTumblingWindowAssigner,
    CountSlidingWindowAssigner,
)


@dataclass(frozen=True)
class ColumnarTrigger:
    """A trigger in the form of the native window operators.

    Attributes
    ----------
    name : str
        The kind of trigger.
    every : int
        Rows of a count trigger, or ms of a continuous one; otherwise unused.
    purges : bool
        Whether a firing purges the window.
    """

    name: Literal["event_time", "count", "continuous_event_time", "end_of_stream"]
    every: int = 1
    purges: bool = False


def columnar_trigger(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None
) -> ColumnarTrigger | None:
    """Return the trigger of windows in the form of the native operators.

    Parameters
    ----------
    assigner : WindowAssigner
        Assigner, of a class of :mod:`flinkcore.datastream.window`.
    trigger : Trigger or None
        Trigger, or None for the default trigger of the windows.

    Returns
    -------
    ColumnarTrigger or None
        The trigger over columns, or None if it does not run over columns.
    """
    if trigger is None and type(assigner) in (CountTumblingWindowAssigner, CountSlidingWindowAssigner):
        assert isinstance(assigner, CountTumblingWindowAssigner | CountSlidingWindowAssigner)
        return ColumnarTrigger("count", assigner.window_size, purges=True)
    if trigger is None:
        trigger = assigner.get_default_trigger()
    purges = False
    while type(trigger) is PurgingTrigger:
        trigger, purges = trigger.nested_trigger, True
    # A subclass may do anything else: only the classes themselves are known.
    kind = type(trigger)
    if kind is EventTimeTrigger:
        return ColumnarTrigger("event_time", purges=purges)
    if kind is EndOfStreamTrigger and isinstance(assigner, GlobalWindows):
        return ColumnarTrigger("end_of_stream", purges=purges)
    if type(trigger) is CountTrigger:
        return ColumnarTrigger("count", trigger.window_size, purges)
    if type(trigger) is ContinuousEventTimeTrigger:
        return ColumnarTrigger("continuous_event_time", trigger.interval, purges)
    return None


def why_not_columnar(
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    evictor: Evictor[Any] | None = None,
) -> str | None:
    """Return why windows do not run over columns, as a clause of a message; None if they do.

    Those that do are windows of event time, global windows and those of counts, with triggers of event time, counts and
    continuous firings. An evictor must be one by count, on global windows with a trigger by count.

    Parameters
    ----------
    assigner : WindowAssigner
    trigger : Trigger or None
        Trigger, or None for the default trigger of the windows.
    evictor : Evictor, optional
    """
    kind = type(assigner)
    if kind not in _ASSIGNERS:
        return f"windows of class {kind.__name__} do not run over columns: {_USE_FUNCTIONS}"
    if (
        isinstance(assigner, TumblingEventTimeWindows)
        and assigner.window_stagger is not WindowStagger.ALIGNED
    ):
        return f"staggered windows ({assigner.window_stagger}) do not run over columns: {_USE_FUNCTIONS}"
    if isinstance(assigner, CountTumblingWindowAssigner | CountSlidingWindowAssigner) and trigger is not None:
        return (
            "windows of a count run over columns only with the trigger that they have by themselves: leave "
            f"{trigger} out, or {_USE_FUNCTIONS}"
        )
    if columnar_trigger(assigner, trigger) is None:
        trigger = assigner.get_default_trigger() if trigger is None else trigger
        if isinstance(trigger, NeverTrigger):
            return "windows that never fire give no rows: set a trigger, such as CountTrigger.of(10)"
        return f"the trigger {trigger} does not run over columns: {_USE_FUNCTIONS}"
    return None if evictor is None else _why_not_evicted(assigner, trigger, evictor)


def _why_not_evicted(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None, evictor: Evictor[Any]
) -> str | None:
    firing = columnar_trigger(assigner, trigger)
    by_count = isinstance(assigner, GlobalWindows) and firing is not None and firing.name == "count"
    if type(evictor) is not CountEvictor or not by_count:
        return (
            f"{assigner.in_words} with the evictor {evictor} do not run over columns, but global windows with a "
            f"CountTrigger and a CountEvictor do: take these, or {_USE_FUNCTIONS}"
        )
    if evictor.max_count == 0 and not evictor.do_evict_after:
        return f"{evictor} leaves no row to aggregate: let it keep some, or {_USE_FUNCTIONS}"
    return None


def require_columnar(
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    evictor: Evictor[Any] | None = None,
) -> None:
    """Raise a ConfigurationError if windows do not run over columns; parameters as of `why_not_columnar`."""
    reason = why_not_columnar(assigner, trigger, evictor)
    if reason is not None:
        raise ConfigurationError(f"aggregates of columns: {reason}")
