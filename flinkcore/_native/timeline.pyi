from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

@final
class SplitMerge:
    def __new__(
        cls,
        *,
        splits: int,
        out_of_orderness_ms: int | None,
        idleness_ms: int | None,
        interval_ms: int,
        first_arrival_ms: int,
    ) -> Self: ...
    def add_chunk(
        self,
        splits: _Int32s,
        events: _Int64s,
        first_arrivals_ms: _Int64s,
        last_arrivals_ms: _Int64s,
        max_timestamps_ms: _Int64s,
        record_splits: _Int32s,
        record_kinds: _Int32s,
        record_first: _Int64s,
        record_second: _Int64s,
    ) -> None: ...
    def finish(self, last_arrival_ms: int) -> tuple[_Int64s, _Int32s, npt.NDArray[np.int8], _Int64s]: ...
    def final_watermarks(self) -> _Int64s: ...

def arrivals_by_rate(
    positions: _Int64s, codes: _Int32s, bases: _Int64s, arrival_start_ms: int, rate: float
) -> _Int64s: ...
def order_events(
    arrivals_ms: _Int64s,
    positions: _Int64s,
    codes: _Int32s,
    places: _Int32s,
    splits: _Int32s,
    bases: _Int64s,
    running_arrivals_ms: _Int64s,
) -> tuple[_Int64s, _Int32s, _Int64s]: ...
