"""From a window assigner to the native windows that do what it says."""

from __future__ import annotations

from typing import Any

from flinkcore._native.session_windows import session_windows
from flinkcore._native.window_kernel import WindowKernel
from flinkcore._native.windows import time_windows
from flinkcore.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError


def window_kernel(assigner: WindowAssigner[Any, Any], allowed_lateness_ms: int) -> WindowKernel:
    """Make native windows, without any state yet.

    Parameters
    ----------
    assigner : WindowAssigner
    allowed_lateness_ms : int

    Returns
    -------
    WindowKernel
        For one operator; also tells which timestamps have a window.

    Raises
    ------
    ConfigurationError
        If the assigner does not run over columns.
    """
    if isinstance(assigner, EventTimeSessionWindows):
        return session_windows(gap=assigner.gap_ms, allowed_lateness=allowed_lateness_ms)
    if not isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows):
        raise ConfigurationError(f"{type(assigner).__name__} does not run over columns")
    if (
        isinstance(assigner, TumblingEventTimeWindows)
        and assigner.window_stagger is not WindowStagger.ALIGNED
    ):
        raise ConfigurationError(f"staggered windows do not run over columns: {assigner}")
    return time_windows(
        size=assigner.size_ms,
        slide=assigner.slide_ms if isinstance(assigner, SlidingEventTimeWindows) else assigner.size_ms,
        offset=assigner.offset_ms,
        allowed_lateness=allowed_lateness_ms,
    )
