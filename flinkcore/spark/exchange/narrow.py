"""Integers in as few bytes as their range needs.

Every byte of a shuffle is copied several times from Python through the JVM and back. Times and positions of
one block are close together, so that a base and one, two or four bytes per row are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.exchange import narrow_integers, widen_integers


@dataclass(frozen=True)
class NarrowIntegers:
    """int64 values as a base and small unsigned steps from it.

    Attributes
    ----------
    base : int
    running : bool
        Whether each step is added to the value before it, and not to the base.
    steps : numpy.ndarray or None
        Shape (n_rows,), unsigned integers of 1, 2, 4 or 8 bytes. None if all values equal the base.
    """

    base: int
    running: bool
    steps: npt.NDArray[Any] | None

    @classmethod
    def of(
        cls, values: npt.NDArray[np.int64] | npt.NDArray[np.int32], rows: npt.NDArray[np.uint32] | None = None
    ) -> NarrowIntegers:
        """Narrow integers, with running steps or without, whichever takes fewer bytes.

        Parameters
        ----------
        values : numpy.ndarray
            Shape (n,), int32 or int64, n > 0.
        rows : numpy.ndarray of uint32, optional
            Shape (n_rows,), the values to take, in this order. By default all.

        Examples
        --------
        >>> NarrowIntegers.of(np.array([1_000_000, 1_000_300, 1_000_301])).steps
        array([  0, 300,   1], dtype=uint16)
        """
        return cls(*narrow_integers(values, rows))

    def values(self, n_rows: int) -> npt.NDArray[np.int64]:
        """Return the values again, as a new array of shape (n_rows,)."""
        if self.steps is None:
            return np.full(n_rows, self.base, np.int64)
        return widen_integers(self.steps, self.base, self.running)
