from typing import final

import numpy as np
import numpy.typing as npt

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import NativeArray, RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.packed_steps import PackedSteps

@final
class WindowKernel:
    @property
    def name(self) -> str: ...
    @property
    def takes_partials(self) -> bool: ...
    @property
    def lowest_timestamp(self) -> int: ...
    @property
    def highest_timestamp(self) -> int: ...

@final
class WindowOperator:
    def __new__(
        cls,
        kernel: WindowKernel,
        *,
        keys: KeyEncoder,
        accumulators: Accumulators,
        key_names: list[str],
        aggregate_names: list[str],
        timeline: PackedSteps,
        row_limit: int,
        byte_limit: int,
        time_format: str = ...,
        retracting: bool = ...,
        steps_done: int = ...,
        least_watermark: int = ...,
        emitted_at: str | None = ...,
        steps_dated: int = ...,
    ) -> WindowOperator: ...
    def process(
        self,
        batch: RecordBatch,
        keys: KeyEncoder,
        rows: npt.NDArray[np.uint32] | None,
        timestamps: npt.NDArray[np.int64],
        steps_before: npt.NDArray[np.int64],
        first: int = 0,
        partials: Accumulators | None = None,
        partial_events: npt.NDArray[np.int64] | None = None,
        clocks: npt.NDArray[np.int64] | None = None,
    ) -> int: ...
    def advance(self, steps_before: int) -> bool: ...
    def finish(self) -> bool: ...
    def windows(self) -> tuple[NativeArray, npt.NDArray[np.uint32]]: ...
    def restore(
        self,
        keys: KeyEncoder,
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        trigger_states: npt.NDArray[np.int64],
        flags: npt.NDArray[np.uint8],
    ) -> npt.NDArray[np.uint32]: ...
    @property
    def kind(self) -> str: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def rows_ready(self) -> int: ...
    def take(self) -> NativeArray: ...
    def take_late(self) -> npt.NDArray[np.uint32]: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def live_windows(self) -> int: ...
    def memory_bytes(self) -> int: ...
    @property
    def current_watermark(self) -> int: ...
    def _check(self) -> None: ...
