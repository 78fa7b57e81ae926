from typing import NamedTuple

import numpy as np
import numpy.typing as npt

class KernelResults(NamedTuple):
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64] | None
    kinds: npt.NDArray[np.uint8] | None
    values: npt.NDArray[np.int64] | None
    events: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    fired: npt.NDArray[np.int64]
    key_ids: npt.NDArray[np.uint32]
    timestamps: npt.NDArray[np.int64]
