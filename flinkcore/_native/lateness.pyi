from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from flinkcore._native.packed_steps import PackedSteps
from flinkcore._native.window_calendar import WindowCalendar

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

@final
class LatenessCounter:
    def __new__(
        cls,
        timeline: PackedSteps,
        bounds_ms: _Int64s,
        groups: _Int32s,
        own: int,
        splits: int,
    ) -> Self: ...
    def add_windows(
        self,
        *,
        allowed_lateness_ms: _Int64s,
        size: int = ...,
        slide: int = ...,
        offset: int = ...,
        cumulative: bool = ...,
        calendar: WindowCalendar | None = ...,
    ) -> None: ...
    def begin(self, splits: _Int32s, arrivals_ms: _Int64s) -> None: ...
    def arrived(self, splits: _Int32s, offsets: _Int64s, arrivals_ms: _Int64s) -> None: ...
    def update(
        self, splits: _Int32s, offsets: _Int64s, arrivals_ms: _Int64s, timestamps_ms: _Int64s
    ) -> None: ...
    def add(self, counts: dict[str, _Int64s]) -> None: ...
    def counts(self) -> dict[str, _Int64s]: ...

def windows_of_slices(
    slices: _Int64s,
    least_ms: _Int64s,
    greatest_ms: _Int64s,
    *,
    size: int = ...,
    slide: int = ...,
    offset: int = ...,
    cumulative: bool = ...,
    calendar: WindowCalendar | None = ...,
) -> tuple[_Int64s, _Int64s, _Int64s]: ...
def first_clocks(timeline: PackedSteps, own_bound_ms: int, reached_ms: _Int64s, bound_ms: int) -> _Int64s: ...
