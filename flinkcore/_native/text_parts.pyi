from typing import final

import numpy as np
import numpy.typing as npt

from flinkcore._native.arrow import ColumnArray, NativeArray

@final
class TextParts:
    def __new__(cls, texts: ColumnArray, separator: bytes) -> TextParts: ...
    def part(self, number: int) -> NativeArray: ...

def count_found(texts: ColumnArray, wanted: bytes) -> npt.NDArray[np.int32]: ...
def text_after(
    texts: ColumnArray, before: bytes, is_first: bool, mark: bytes, members: bytes, is_filled: bool
) -> NativeArray: ...
