from typing import Any, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from flinkcore._native.packed_steps import StepPacker

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

@final
class SplitRecords:
    def __new__(cls, *, splits: int, interval_ms: int) -> Self: ...
    def add_parts(
        self,
        splits: _Int32s,
        first_ticks_ms: _Int64s,
        last_ticks_ms: _Int64s,
        max_timestamps_ms: _Int64s,
        n_records: _Int64s,
        ticks_ms: _Int64s,
        timestamps_ms: _Int64s,
    ) -> None: ...

@final
class SplitOperators:
    def __new__(
        cls,
        records: SplitRecords,
        interval_ms: int,
        out_of_orderness_ms: int | None,
        idleness_ms: int | None,
        first_arrival_ms: int,
        last_arrival_ms: int,
    ) -> Self: ...

@final
class SplitMerge:
    def __new__(
        cls,
        records: SplitRecords,
        packer: StepPacker,
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
    def run_before(self, clock_ms: int) -> None: ...
    def run(self, *, stops: bool = ...) -> None: ...
    def statuses(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def holders(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def idle_spans(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def paused_spans(self) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def final_watermarks(self) -> _Int64s: ...

def split_merge_state(merge: SplitMerge) -> dict[str, Any]: ...
def continue_holders(merge: SplitMerge) -> None: ...
def leads_of_ends(merge: SplitMerge) -> tuple[int, float, float, int]: ...
def restore_split_merge(merge: SplitMerge, state: dict[str, Any], stopped_ms: int) -> None: ...
