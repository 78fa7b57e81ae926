import numpy as np
import numpy.typing as npt

def split_positions(
    codes: npt.NDArray[np.int32], next_position: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]: ...
