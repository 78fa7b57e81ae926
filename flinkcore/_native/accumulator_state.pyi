from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.aggregates import Accumulators

_Parts = list[dict[str, Any]]

def accumulator_parts(accumulators: Accumulators, entries: npt.NDArray[np.uint32]) -> _Parts: ...
def restore_accumulator_parts(
    accumulators: Accumulators,
    entries: npt.NDArray[np.uint32],
    touched: npt.NDArray[np.uint8],
    parts: _Parts,
) -> None: ...
def touched_entries(accumulators: Accumulators, entries: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]: ...
