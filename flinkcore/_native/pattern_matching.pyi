from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from flinkcore._native.packed_steps import PackedSteps
from flinkcore._native.timers import TimerHeap

SKIPS: Final[dict[str, int]]
FAILURES: Final[dict[int, str]]

_Int64s = npt.NDArray[np.int64]
_Read = tuple[_Int64s | None, _Int64s, _Int64s | None]

@final
class PatternMatcher:
    def __new__(
        cls,
        timers: TimerHeap,
        timeline: PackedSteps,
        *,
        steps_done: int,
        states: list[list[tuple[int, int, list[tuple[int, bool]]]]],
        n_variables: int,
        skip: str,
        skip_variable: int,
        within_ms: int,
        known: int,
        always: int,
        readers: list[tuple[list[tuple[int, bool, int]], list[int]]],
    ) -> PatternMatcher: ...
    def begin(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        rows: _Int64s,
        timestamps: _Int64s,
        steps: _Int64s,
        values: npt.NDArray[np.uint64],
    ) -> None: ...
    def run(self) -> bool: ...
    def asked(self, variable: int) -> tuple[int, _Int64s | None, _Int64s, _Int64s | None] | None: ...
    def answer(self, variable: int, values: npt.NDArray[np.uint8]) -> None: ...
    def settle(self, steps: int) -> None: ...
    @property
    def failure(self) -> tuple[str, int] | None: ...
    @property
    def n_emitted(self) -> int: ...
    def take(
        self,
    ) -> tuple[
        _Int64s, _Int64s, _Int64s, _Int64s, _Int64s, npt.NDArray[np.uint32], npt.NDArray[np.int32]
    ]: ...
    def take_read(self) -> _Read: ...
    def memory_bytes(self) -> int: ...
    @property
    def live_count(self) -> int: ...
    def live_rows(self) -> _Int64s: ...
    def renumber(self, rows: _Int64s) -> None: ...
    def snapshot(self) -> Mapping[str, Mapping[str, _Int64s]]: ...
    def restore(
        self,
        table: str,
        keys: _Int64s,
        key_groups: npt.NDArray[np.int32],
        rows: Mapping[str, Any],
        columns: Any,
    ) -> None: ...
    def _check(self) -> None: ...
