from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

MAX_ARRIVAL_MS: Final[int]
MAX_INTERVAL_MS: Final[int]

@final
class WatermarkGenerator:
    def __init__(self, out_of_orderness_ms: int | None, idleness_ms: int | None = None) -> None: ...
    def on_event(self, timestamp_ms: int) -> None: ...
    def on_periodic_emit(
        self, clock_ms: int
    ) -> list[tuple[Literal["watermark"], int] | tuple[Literal["status"], Literal["idle"]]]: ...

@final
class TimeSummary:
    def __init__(self, *, interval_ms: int, idleness_ms: int | None, steps: bool) -> None: ...
    def reserve(self, splits: int) -> None: ...
    def update(self, codes: Int32s, splits: Int32s, arrivals_ms: Int64s, timestamps_ms: Int64s) -> None: ...
    def finish(self) -> tuple[dict[str, Int64s], dict[str, npt.NDArray[Any]]]: ...
