from typing import Final, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

MAX_INTERVAL_MS: Final[int]

@final
class TimeSummary:
    def __new__(cls, *, interval_ms: int, idleness_ms: int | None, steps: bool) -> Self: ...
    def reserve(self, splits: int) -> None: ...
    def update(
        self, splits: _Int32s, offsets: _Int64s, arrivals_ms: _Int64s, timestamps_ms: _Int64s
    ) -> int | None: ...
    def finish(self) -> tuple[dict[str, _Int64s], _Int64s]: ...
