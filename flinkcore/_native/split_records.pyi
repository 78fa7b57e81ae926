from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

@final
class SplitRecords:
    def __new__(
        cls, *, splits: int, interval_ms: int, file: int | None = None, buffer_bytes: int = ...
    ) -> Self: ...
    def add_chunk(
        self,
        splits: _Int32s,
        events: _Int64s,
        first_arrivals_ms: _Int64s,
        last_arrivals_ms: _Int64s,
        max_timestamps_ms: _Int64s,
        n_records: _Int64s,
        records: _Int64s | int,
    ) -> None: ...
