"""The namespaces of restored timers and state: those of windows that the assigner makes, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    GlobalWindow,
    GlobalWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
    WindowStagger,
)
from flinkcore.errors import SchemaError
from flinkcore.operators.windowing.window_operator import TIMER_SERVICE_NAME

IsNamespace = Callable[[Any], bool]
_ALIGNED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulativeEventTimeWindows,
    LocalEventTimeWindows,
)
_NO_CONTEXT: Any = None
"""Aligned assigners ask for none."""


def check_namespaces(
    snapshot: OperatorSnapshot, timer_service: str, of_timers: IsNamespace, of_state: IsNamespace
) -> None:
    """Accept a snapshot if its timers and state are in namespaces that the operator uses.

    Parameters
    ----------
    snapshot : OperatorSnapshot
    timer_service : str
        The name of the operator's timer service, its only one.
    of_timers, of_state : callable
        Whether a namespace can be one of its timers, and of its state.

    Raises
    ------
    SchemaError
        If not; names the state, or the timers.
    """
    for name, timers in snapshot.timers.items():
        if name != timer_service:
            raise SchemaError(
                f"the timers {name!r} are not those of the operator, which are {timer_service!r}"
            )
        _refuse(f"the timers {name!r}", timers.namespaces, of_timers)
    for name, entries in snapshot.keyed_state.items():
        _refuse(f"the state {name!r}", set(entries.namespaces), of_state)


def _refuse(what: str, namespaces: Any, is_namespace: IsNamespace) -> None:
    for namespace in namespaces:
        if not is_namespace(namespace):
            raise SchemaError(
                f"{what} of the checkpoint are of {namespace!r}, which the operator does not have"
            )


def is_void(namespace: Any) -> bool:
    """Return whether it is the namespace of what belongs to a key as such."""
    return namespace is None


def check_window_namespaces(snapshot: OperatorSnapshot, operation: WindowOperation) -> None:
    """Accept a snapshot of a window operator if it is of windows that the assigner makes; see `check_namespaces`."""
    is_window = _windows_of(operation.assigner)
    check_namespaces(
        snapshot, TIMER_SERVICE_NAME, is_window, lambda namespace: namespace is None or is_window(namespace)
    )


def _windows_of(assigner: WindowAssigner[Any, Any]) -> IsNamespace:
    """Return a predicate for the windows of an assigner, as far as they are known without elements."""
    if type(assigner) in _ALIGNED and getattr(assigner, "window_stagger", None) in (
        None,
        WindowStagger.ALIGNED,
    ):
        return lambda namespace: (
            type(namespace) is TimeWindow
            and namespace.start < namespace.end
            and namespace in assigner.assign_windows(None, namespace.max_timestamp(), _NO_CONTEXT)
        )
    if type(assigner) is GlobalWindows:
        return lambda namespace: type(namespace) is GlobalWindow
    return lambda namespace: (
        namespace is not None and (type(namespace) is not TimeWindow or namespace.start < namespace.end)
    )
