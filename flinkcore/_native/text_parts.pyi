from typing import final

import numpy as np
import numpy.typing as npt

from flinkcore._native.arrow import ColumnArray, NativeArray

@final
class TextParts:
    def __new__(cls, texts: ColumnArray, separator: bytes) -> TextParts: ...
    def part(self, number: int) -> NativeArray: ...

def count_found(texts: ColumnArray, wanted: bytes) -> npt.NDArray[np.int32]: ...
