"""Description of the windows in a checkpoint, which are read without the job: aggregates and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.errors import CheckpointError

BEGINNING: Final = "begins with"
"""Name of the setting that windows have if they have begun with those of a savepoint of Flink."""

_OF_FLINK: Final = "a savepoint of Flink with the watermark "


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


def shown_beginning(watermark_ms: int | None) -> dict[str, str]:
    """Return what the description of a job says of windows that begin with those of a savepoint of Flink, if any do."""
    return {} if watermark_ms is None else {BEGINNING: f"{_OF_FLINK}{watermark_ms}"}


def watermark_of_beginning(job: Mapping[str, Any], uid: str) -> int | None:
    """Return the watermark of the savepoint of Flink with which an operator's windows began, or None without one.

    Raises
    ------
    CheckpointError
        If the description of the job is damaged.
    """
    text = job.get(f"{uid}: {BEGINNING}", job.get(BEGINNING))
    if text is None:
        return None
    try:
        return int(str(text).removeprefix(_OF_FLINK))
    except ValueError:
        raise CheckpointError(
            f"the windows of operator {uid!r} begin with {text!r}, not with a savepoint"
        ) from None
