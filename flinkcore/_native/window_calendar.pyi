from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_Int64s = npt.NDArray[np.int64]

@final
class WindowCalendar:
    def __new__(
        cls, starts: _Int64s, widths: _Int64s, lowest_timestamp: int, highest_timestamp: int
    ) -> Self: ...
    @property
    def lowest_timestamp(self) -> int: ...
    @property
    def highest_timestamp(self) -> int: ...
    @property
    def longest(self) -> int: ...
    def window(self, timestamp: int) -> tuple[int, int]: ...
    def bounds(self, timestamps: _Int64s) -> tuple[_Int64s, _Int64s]: ...
