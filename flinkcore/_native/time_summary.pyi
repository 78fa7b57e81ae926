from typing import Final, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

MAX_INTERVAL_MS: Final[int]

DEFAULT_WINDOW_TICKS: Final[int]

def window_length(interval_ms: int, window_ticks: int) -> int: ...

@final
class TimeSummary:
    def __new__(
        cls, *, interval_ms: int, idleness_ms: int | None, steps: bool, window_ticks: int = ...
    ) -> Self: ...
    @property
    def nbytes(self) -> int: ...
    def reserve(self, splits: int) -> None: ...
    def update(
        self, splits: _Int32s, offsets: _Int64s, arrivals_ms: _Int64s, timestamps_ms: _Int64s
    ) -> int | None: ...
    def take(self) -> tuple[_Int32s, _Int64s, _Int64s, _Int64s, _Int64s, _Int64s, _Int64s]: ...
    def finish(self) -> dict[str, _Int64s]: ...

def steps_to_differences(
    first_ticks: _Int64s, n_records: _Int64s, ticks: _Int64s, timestamps: _Int64s, interval: int
) -> _Int64s: ...
def differences_to_steps(
    first_ticks: _Int64s,
    n_records: _Int64s,
    first_timestamps: _Int64s,
    ticks: _Int64s,
    timestamps: _Int64s,
    interval: int,
) -> None: ...
