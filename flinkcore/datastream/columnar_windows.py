"""Which windows run over columns, without a Python object per row.

Windows of event time, global windows and those of counts, with triggers of event time, counts and continuous firings.
An evictor only by count, on global windows with a trigger by count.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

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
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError

_USE_FUNCTIONS: Final = (
    "take a function, which runs row by row: aggregate(MyAggregate(), output_type=pyarrow.schema({...}))"
)

_ASSIGNERS = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    CountTumblingWindowAssigner,
    CountSlidingWindowAssigner,
)


@dataclass(frozen=True)
class ColumnarTrigger:
    """A trigger as the native window operators know it.

    Attributes
    ----------
    name : str
        What fires.
    every : int
        Rows of a count, or milliseconds of a continuous trigger; else without meaning.
    purges : bool
        Whether a firing empties the window.
    """

    name: Literal["event_time", "count", "continuous_event_time"]
    every: int = 1
    purges: bool = False


def columnar_trigger(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None
) -> ColumnarTrigger | None:
    """Return what fires these windows, as the native operators know it.

    Parameters
    ----------
    assigner : WindowAssigner
        Of a class of :mod:`flinkcore.datastream.window`.
    trigger : Trigger or None
        None: the one that the windows have by themselves.

    Returns
    -------
    ColumnarTrigger or None
        None: it does not run over columns.
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
    if kind is EventTimeTrigger or (kind is EndOfStreamTrigger and isinstance(assigner, GlobalWindows)):
        return ColumnarTrigger("event_time", purges=purges)
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
    """Return why windows do not run over columns.

    Parameters
    ----------
    assigner : WindowAssigner
    trigger : Trigger or None
        None: the one that the windows have by themselves.
    evictor : Evictor, optional

    Returns
    -------
    str or None
        A clause; None: they do.
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
            f"{assigner} with the evictor {evictor} do not run over columns, but global windows with a CountTrigger "
            f"and a CountEvictor do: take these, or {_USE_FUNCTIONS}"
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
