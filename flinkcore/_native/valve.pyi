from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]

WATERMARK_KIND: Final = 0
IDLE_KIND: Final = 1
ACTIVE_KIND: Final = 2

_Emitted = tuple[Literal["watermark"], int] | tuple[Literal["status"], Literal["idle", "active"]]

@final
class StatusWatermarkValve:
    def __new__(cls, channels: int) -> Self: ...
    def input_watermark(self, channel: int, timestamp_ms: int) -> list[_Emitted]: ...
    def input_watermark_status(self, channel: int, status: Literal["idle", "active"]) -> list[_Emitted]: ...
    def input_batch(
        self,
        channels: _Int32s,
        kinds: npt.NDArray[np.int8],
        timestamps_ms: _Int64s,
    ) -> tuple[_Int64s, npt.NDArray[np.int8], _Int64s]: ...
    def restore(self, watermarks_ms: _Int64s, idle: npt.NDArray[np.uint8], watermark_ms: int) -> None: ...
    def state(self) -> tuple[_Int64s, npt.NDArray[np.uint8], int]: ...
    @property
    def channels(self) -> int: ...
    @property
    def current_watermark(self) -> int: ...
    @property
    def is_idle(self) -> bool: ...
    def _check(self) -> None: ...
