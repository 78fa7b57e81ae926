from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.arrow import ArrowArrayExportable, NativeArray
from flinkcore._native.packed_steps import PackedSteps

class DueRows(NamedTuple):
    rows: npt.NDArray[np.int64]
    key_ids: npt.NDArray[np.uint32]
    key_groups: npt.NDArray[np.int32]
    timestamps: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    cleared_before: npt.NDArray[np.int64]
    cleared_keys: npt.NDArray[np.uint32]

class KeyTimes(NamedTuple):
    key_ids: npt.NDArray[np.uint32]
    last_ms: npt.NDArray[np.int64]
    cleanup_ms: npt.NDArray[np.int64]

@final
class PendingRows:
    def __new__(
        cls,
        timeline: PackedSteps,
        *,
        max_parallelism: int,
        key_groups: tuple[int, int],
        bounded: bool,
        range_ms: int | None = None,
        row_limit: int,
        steps_done: int = 0,
    ) -> PendingRows: ...
    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        rows: npt.NDArray[np.int64],
        timestamps: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
        first: int = 0,
    ) -> int: ...
    def advance(self, steps_before: int) -> bool: ...
    def finish(self) -> bool: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def rows_ready(self) -> int: ...
    def take(self) -> DueRows: ...
    def take_late(self) -> npt.NDArray[np.int64]: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def current_watermark(self) -> int: ...
    def live_rows(self) -> npt.NDArray[np.int64]: ...
    def renumber(self, rows: npt.NDArray[np.int64]) -> None: ...
    def timers(self) -> NativeArray: ...
    def key_times(self) -> KeyTimes: ...
    def restore(
        self, timers: ArrowArrayExportable, times: KeyTimes, key_groups: npt.NDArray[np.int32]
    ) -> None: ...
    def memory_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def _check(self) -> None: ...
