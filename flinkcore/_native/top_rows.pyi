from collections.abc import Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.packed_steps import PackedSteps
from flinkcore._native.relational import KernelResults
from flinkcore._native.timers import TimerHeap

@final
class TopKernel:
    def __new__(
        cls,
        timers: TimerHeap,
        timeline: PackedSteps,
        *,
        steps_done: int,
        result_limit: int,
        n: int,
        skip: int,
        rank: str,
        n_words: int,
        has_tails: bool,
        latest_first: bool,
        ranks_shown: bool,
        changes: bool,
        of_windows: bool,
        of_limits: bool = ...,
        least_watermark: int = ...,
        update_before: bool = True,
    ) -> TopKernel: ...
    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8] | None,
        rows: npt.NDArray[np.int64],
        timestamps: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
        words: npt.NDArray[np.uint64],
        tail_ends: npt.NDArray[np.int64] | None,
        tails: npt.NDArray[np.uint8] | None,
        ends: npt.NDArray[np.int64] | None,
        is_last: npt.NDArray[np.uint8] | None,
        limits: npt.NDArray[np.int64] | None = None,
        first: int = 0,
    ) -> int: ...
    def advance(self, steps_before: int) -> bool: ...
    def finish(self) -> bool: ...
    @property
    def is_full(self) -> bool: ...
    def take(self) -> KernelResults: ...
    def take_late(self) -> npt.NDArray[np.int64]: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def current_watermark(self) -> int: ...
    def memory_bytes(self) -> int: ...
    @property
    def live_count(self) -> int: ...
    def live_rows(self) -> npt.NDArray[np.int64]: ...
    def renumber(self, rows: npt.NDArray[np.int64]) -> None: ...
    def snapshot(self) -> Mapping[str, Mapping[str, npt.NDArray[Any]]]: ...
    def restore(
        self,
        table: str,
        keys: npt.NDArray[np.int64],
        rows: dict[str, npt.NDArray[Any]],
        columns: Any,
    ) -> None: ...
    def _check(self) -> None: ...
