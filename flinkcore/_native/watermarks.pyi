from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

MAX_ARRIVAL_MS: Final[int]
MAX_INTERVAL_MS: Final[int]

@final
class WatermarkGenerator:
    def __new__(cls, out_of_orderness_ms: int | None, idleness_ms: int | None = None) -> Self: ...
    def on_event(self, timestamp_ms: int) -> None: ...
    def on_periodic_emit(
        self, clock_ms: int
    ) -> list[tuple[Literal["watermark"], int] | tuple[Literal["status"], Literal["idle"]]]: ...

@final
class TimeSummary:
    def __new__(cls, *, interval_ms: int, idleness_ms: int | None, steps: bool) -> Self: ...
    def reserve(self, splits: int) -> None: ...
    def update(
        self, codes: _Int32s, splits: _Int32s, arrivals_ms: _Int64s, timestamps_ms: _Int64s
    ) -> int | None: ...
    def finish(self) -> tuple[dict[str, _Int64s], _Int64s]: ...
