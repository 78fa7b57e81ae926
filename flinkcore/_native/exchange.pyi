from typing import Any

import numpy as np
import numpy.typing as npt

def narrow_integers(
    values: npt.NDArray[np.int32] | npt.NDArray[np.int64], rows: npt.NDArray[np.uint32] | None = None
) -> tuple[int, bool, npt.NDArray[Any] | None]: ...
def widen_integers(steps: npt.NDArray[Any], base: int, running: bool) -> npt.NDArray[np.int64]: ...
def total_order(
    arrivals: npt.NDArray[np.int64], splits: npt.NDArray[np.int32], positions: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32] | None: ...
def partition_rows(
    key_groups: npt.NDArray[np.int32],
    max_parallelism: int,
    partitions: int,
    rows: npt.NDArray[np.uint32] | None = None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
