import numpy as np
import numpy.typing as npt

def total_order(
    arrivals: npt.NDArray[np.int64], splits: npt.NDArray[np.int32], positions: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32] | None: ...
def partition_rows(
    key_groups: npt.NDArray[np.int32],
    max_parallelism: int,
    partitions: int,
    rows: npt.NDArray[np.uint32] | None = None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
