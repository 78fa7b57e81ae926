from typing import Any, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import NativeArray, RecordBatch
from flinkcore._native.keys import KeyEncoder

@final
class WindowOperator:
    def __new__(
        cls,
        *,
        size: int,
        slide: int,
        offset: int,
        allowed_lateness: int,
        keys: KeyEncoder,
        accumulators: Accumulators,
        key_names: list[str],
        aggregate_names: list[str],
        clocks: npt.NDArray[np.int64],
        watermarks: npt.NDArray[np.int64],
        time_format: str = ...,
    ) -> WindowOperator: ...
    def process(
        self,
        batch: RecordBatch,
        keys: KeyEncoder,
        rows: npt.NDArray[np.uint32] | None,
        timestamps: npt.NDArray[np.int64],
        arrivals: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint32]: ...
    def advance(self, arrival: int) -> None: ...
    def finish(self) -> None: ...
    @property
    def rows_ready(self) -> int: ...
    def take(self) -> NativeArray: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def live_windows(self) -> int: ...
    @property
    def current_watermark(self) -> int: ...
    def _check(self) -> Any: ...
