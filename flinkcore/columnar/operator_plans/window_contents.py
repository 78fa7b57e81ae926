"""Description of the windows in a checkpoint, which are read without the job: aggregates and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents

BEGINNING: Final = "begins with"
"""Name of the setting that windows have if they have begun with those of a savepoint of Flink."""


@dataclass(frozen=True)
class WindowTable:
    """Tables of an operator's windows over columns.

    Attributes
    ----------
    contents : WindowContents
    kind : str
        Name of the kernel.
    """

    contents: WindowContents
    kind: str


@dataclass(frozen=True)
class WindowContents(AggregateContents):
    """The aggregates of windows over columns, and how the windows lie in time.

    Attributes
    ----------
    size_ms, slide_ms : int
        Length and slide of windows with a fixed length; else 0.
    lateness_ms : int
        Allowed lateness.
    trigger : str
        Name of the trigger, such as ``event_time`` or ``count``.
    every : int
        Its number of elements or ms.
    purges : bool
        Whether a firing empties a window.
    is_global : bool
        Whether each key has one window without end.
    keeps_results : bool
        Whether windows also hold what they have given before.
    """

    size_ms: int
    slide_ms: int
    lateness_ms: int
    trigger: str
    every: int
    purges: bool
    is_global: bool
    keeps_results: bool


def began_with_savepoint(job: Mapping[str, Any], uid: str) -> bool:
    """Return whether the windows of an operator began with a savepoint of Flink, by the description of its job."""
    return job.get(f"{uid}: {BEGINNING}", job.get(BEGINNING)) is not None
