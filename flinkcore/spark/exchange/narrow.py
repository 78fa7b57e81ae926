"""Integers in as few bytes as their range takes.

Every byte of a shuffle is copied several times on its way from Python through the JVM and back. Times and
positions of one block lie close together, so that a base and one, two or four bytes per row serve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.narrow_integers import narrow_integers, widen_integers


@dataclass(frozen=True)
class NarrowIntegers:
    """int64 values as a base and small unsigned steps from it.

    Attributes
    ----------
    base
        What is added to each step.
    running
        Steps are from the value before, not from the base.
    steps
        Shape (n,), of an unsigned type of 1, 2, 4 or 8 bytes; None: all values equal the base.
    """

    base: int
    running: bool
    steps: npt.NDArray[Any] | None

    @classmethod
    def of(
        cls, values: npt.NDArray[np.int64] | npt.NDArray[np.int32], rows: npt.NDArray[np.uint32] | None = None
    ) -> NarrowIntegers:
        """Store values of shape (n,), n > 0, as narrowly as one of the two ways allows.

        Parameters
        ----------
        values
            The integers.
        rows
            Which of them, in which order; None: all.

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
