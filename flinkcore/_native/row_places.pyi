from typing import final

import numpy as np
import numpy.typing as npt

from flinkcore._native.arrow import ColumnArray, NativeArray

@final
class RowPlaces:
    def __new__(cls, begins: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> RowPlaces: ...
    def __len__(self) -> int: ...
    def gathered(self, pieces: list[ColumnArray]) -> NativeArray: ...
