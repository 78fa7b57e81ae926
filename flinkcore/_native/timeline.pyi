from typing import final

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

@final
class SplitMerge:
    def __init__(
        self,
        *,
        splits: int,
        out_of_orderness_ms: int | None,
        idleness_ms: int | None,
        interval_ms: int,
        first_arrival_ms: int,
    ) -> None: ...
    def add_chunk(
        self,
        splits: Int32s,
        events: Int64s,
        first_arrivals_ms: Int64s,
        last_arrivals_ms: Int64s,
        max_timestamps_ms: Int64s,
        record_splits: Int32s,
        record_kinds: Int32s,
        record_first: Int64s,
        record_second: Int64s,
    ) -> None: ...
    def finish(self, last_arrival_ms: int) -> tuple[int, Int64s, Int32s, npt.NDArray[np.int8], Int64s]: ...
    def final_watermarks(self) -> Int64s: ...

def arrivals_by_rate(
    positions: Int64s, codes: Int32s, bases: Int64s, arrival_start_ms: int, rate: float
) -> Int64s: ...
def order_events(
    arrivals_ms: Int64s,
    positions: Int64s,
    codes: Int32s,
    places: Int32s,
    splits: Int32s,
    bases: Int64s,
    running_arrivals_ms: Int64s,
) -> tuple[Int64s, Int32s, Int64s]: ...
