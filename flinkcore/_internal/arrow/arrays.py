"""NumPy arrays by the type of their elements, as signatures name them."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]

RowNumbers: TypeAlias = npt.NDArray[np.uint32]
"""Numbers of rows of a batch."""
