from typing import Any

import numpy as np
import numpy.typing as npt

def integer_codes(
    values: npt.NDArray[np.integer[Any]], most_range: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]] | None: ...
