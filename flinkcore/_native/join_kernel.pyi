from typing import Any, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.packed_steps import PackedSteps
from flinkcore._native.relational import KernelResults
from flinkcore._native.timers import TimerHeap

_Int64s = npt.NDArray[np.int64]

@final
class JoinKind:
    @property
    def name(self) -> str: ...

@final
class JoinKernel:
    def __new__(
        cls,
        kind: JoinKind,
        timers: TimerHeap,
        timeline: PackedSteps,
        *,
        how: str,
        has_condition: bool,
        has_kinds: bool,
        steps_done: int,
        result_limit: int,
        end_ms: int = ...,
    ) -> JoinKernel: ...
    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8],
        rows: _Int64s,
        timestamps: _Int64s,
        steps: _Int64s,
        can_match: npt.NDArray[np.uint8] | None = None,
        window_ends: _Int64s | None = None,
        window_offsets: _Int64s | None = None,
        arrivals: _Int64s | None = None,
        first: int = 0,
    ) -> int: ...
    def advance(self, steps_before: int) -> bool: ...
    def finish(self) -> bool: ...
    @property
    def is_full(self) -> bool: ...
    def pairs(self) -> tuple[_Int64s, _Int64s]: ...
    def take(self, passed: npt.NDArray[np.uint8] | None = None) -> KernelResults: ...
    def take_late(self) -> _Int64s: ...
    def forget_expired(self, now: int) -> None: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def current_watermark(self) -> int: ...
    def memory_bytes(self) -> int: ...
    @property
    def live_count(self) -> int: ...
    def live_rows(self, input_number: int) -> _Int64s: ...
    def renumber(self, rows: _Int64s, input_number: int) -> None: ...
    def snapshot(self) -> dict[str, dict[str, Any]]: ...
    def restore(self, table: str, keys: _Int64s, rows: dict[str, _Int64s], columns: Any) -> None: ...
    def _check(self) -> None: ...
