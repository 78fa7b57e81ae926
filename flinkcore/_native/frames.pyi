from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import ArrowArrayExportable, RecordBatch

class FrameRows(NamedTuple):
    key_ids: npt.NDArray[np.uint32]
    parts: npt.NDArray[np.uint8]
    times: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]

@final
class Frames:
    def __new__(
        cls,
        accumulators: Accumulators,
        *,
        rows: int | None = None,
        range_ms: int | None = None,
        peers: bool = False,
    ) -> Frames: ...
    @property
    def can_retract(self) -> bool: ...
    def process(
        self,
        batch: RecordBatch | ArrowArrayExportable,
        key_ids: npt.NDArray[np.uint32],
        times: npt.NDArray[np.int64] | None = None,
        *,
        retracts: npt.NDArray[np.uint8] | None = None,
        cleared_before: npt.NDArray[np.int64] | None = None,
        cleared_keys: npt.NDArray[np.uint32] | None = None,
        emits: bool = True,
    ) -> npt.NDArray[np.uint32]: ...
    def clear(self, key_ids: npt.NDArray[np.uint32]) -> None: ...
    def emit(self, key_ids: npt.NDArray[np.uint32]) -> None: ...
    def rows_of(self, key_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]: ...
    def previous(self, key_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]: ...
    def snapshot(self) -> FrameRows: ...
    def restore(
        self,
        key_ids: npt.NDArray[np.uint32],
        parts: npt.NDArray[np.uint8],
        times: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint32]: ...
    def memory_bytes(self) -> int: ...
    def _check(self) -> None: ...
