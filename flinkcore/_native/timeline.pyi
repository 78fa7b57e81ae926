from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from flinkcore._native.split_records import SplitRecords

_Int64s = npt.NDArray[np.int64]

@final
class SplitMerge:
    def __new__(
        cls,
        records: SplitRecords,
        *,
        interval_ms: int,
        out_of_orderness_ms: int | None,
        idleness_ms: int | None,
        first_arrival_ms: int,
        last_arrival_ms: int,
        max_drift_ms: int | None = ...,
        update_interval_ms: int | None = ...,
        window_emissions: int = ...,
    ) -> Self: ...
    def run(self, *, stops: bool = ...) -> None: ...
    def steps(self) -> tuple[_Int64s, _Int64s]: ...
    def statuses(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def idle_spans(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def paused_spans(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def final_watermarks(self) -> _Int64s: ...
