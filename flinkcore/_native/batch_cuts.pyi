from typing import final

import numpy as np
import numpy.typing as npt

from flinkcore._native.key_timers import KeyTimers

_Int64s = npt.NDArray[np.int64]

@final
class BatchCuts:
    def __new__(
        cls,
        event_time_timers: KeyTimers,
        processing_time_timers: KeyTimers,
        one_element_per_key: bool = False,
        event_time_delay_ms: int | None = None,
        processing_time_delay_ms: int | None = None,
    ) -> BatchCuts: ...
    def grow(self, n_keys: int) -> None: ...
    def start_from(self, watermark_ms: int, clock_ms: int) -> None: ...
    def lower_floors(self, watermark_ms: int) -> None: ...
    def rows_with_due_timers(
        self, keys: _Int64s, watermarks_ms: _Int64s, arrivals_ms: _Int64s
    ) -> _Int64s: ...
    def take(
        self, keys: _Int64s, timestamps_ms: _Int64s, watermarks_ms: _Int64s, arrivals_ms: _Int64s
    ) -> tuple[_Int64s, _Int64s]: ...
    def take_waiting(
        self,
        keys: _Int64s,
        timestamps_ms: _Int64s,
        watermarks_ms: _Int64s,
        arrivals_ms: _Int64s,
        rows: _Int64s,
        begins: _Int64s,
        ends: _Int64s,
    ) -> _Int64s: ...
    def fire(self, keys: _Int64s, floors_ms: _Int64s, watermarks_ms: _Int64s, clocks_ms: _Int64s) -> None: ...
    def end_batch(self) -> None: ...
    def seen(self, keys: _Int64s) -> tuple[_Int64s, _Int64s, _Int64s]: ...
    def first_foreign(self, keys: _Int64s) -> int: ...
    def first_too_early(self, keys: _Int64s, times_ms: _Int64s, is_event_time: bool) -> tuple[int, int]: ...
