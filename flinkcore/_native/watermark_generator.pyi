from typing import Literal, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int64s = npt.NDArray[np.int64]

@final
class WatermarkGenerator:
    def __new__(cls, out_of_orderness_ms: int | None, idleness_ms: int | None = None) -> Self: ...
    def on_event(self, timestamp_ms: int) -> None: ...
    def on_periodic_emit(
        self, clock_ms: int
    ) -> list[tuple[Literal["watermark"], int] | tuple[Literal["status"], Literal["idle"]]]: ...

@final
class RowtimeWatermarkGenerator:
    def __new__(
        cls,
        delay_ms: int,
        interval_ms: int | None,
        lowest_ms: int,
        first_tick_ms: int,
        event_mark: int,
        tick_mark: int,
    ) -> Self: ...
    def on_events(
        self, positions: _Int64s, arrivals_ms: _Int64s, ticks_ms: _Int64s, timestamps_ms: _Int64s
    ) -> _Int64s: ...
    def on_ticks_before(self, end_ms: int) -> _Int64s: ...
    @property
    def state(self) -> tuple[int, int]: ...
    @state.setter
    def state(self, value: tuple[int, int]) -> None: ...
