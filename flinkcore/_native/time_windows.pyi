import numpy as np
import numpy.typing as npt

from flinkcore._native.keys import KeyEncoder
from flinkcore._native.packed_steps import PackedSteps
from flinkcore._native.window_calendar import WindowCalendar
from flinkcore._native.window_operator import WindowKernel

def time_windows(
    *,
    allowed_lateness: int,
    size: int = ...,
    slide: int = ...,
    offset: int = ...,
    cumulative: bool = ...,
    calendar: WindowCalendar | None = ...,
    purges: bool = ...,
) -> WindowKernel: ...
def sliced_windows(
    *, size: int, slide: int, offset: int, allowed_lateness: int, cumulative: bool = ...
) -> WindowKernel: ...
def rows_before_firing(
    kernel: WindowKernel,
    rows: npt.NDArray[np.uint32] | None,
    timestamps: npt.NDArray[np.int64],
    steps_before: npt.NDArray[np.int64],
    timeline: PackedSteps,
    *,
    width: int = ...,
    offset: int = ...,
    calendar: WindowCalendar | None = ...,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
def different_panes(
    keys: KeyEncoder,
    rows: npt.NDArray[np.uint32],
    timestamps: npt.NDArray[np.int64],
    *,
    most: int,
    width: int = ...,
    offset: int = ...,
    calendar: WindowCalendar | None = ...,
) -> int: ...
