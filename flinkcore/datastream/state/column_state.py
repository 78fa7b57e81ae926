"""State of a function over batches: a column with a value per key."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class ColumnState(ABC):
    """A numpy column with a row per key, by dense key id; it grows as keys come.

    ``state[key_ids]`` and ``state[key_ids] = values`` are numpy's: reading copies; where an id comes twice, the last
    value stays, and ``state[key_ids] += 1`` counts it once. Where a key may come several times in a batch, count with
    ``numpy.add.at(state.array, key_ids, 1)``.

    Notes
    -----
    PyFlink has no counterpart; it stands for a ``ValueState`` of every key at once.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the state."""

    @property
    @abstractmethod
    def dtype(self) -> "np.dtype[Any]":
        """Type of the values."""

    @property
    @abstractmethod
    def default(self) -> Any:
        """Value of a key that has none yet."""

    @property
    @abstractmethod
    def array(self) -> "npt.NDArray[Any]":
        """The column itself (n_keys,), to be read and written; valid until the call of the function returns."""

    @abstractmethod
    def clear(self, key_ids: Any) -> None:
        """Give keys the default again."""

    def __getitem__(self, key_ids: Any) -> Any:
        return self.array[key_ids]

    def __setitem__(self, key_ids: Any, values: Any) -> None:
        self.array[key_ids] = values

    def __len__(self) -> int:
        return len(self.array)
