"""Integers in as few bytes as their range takes.

Every byte of a shuffle is copied several times on its way from Python through the JVM and back. Times and
positions of one block lie close together, so that a base and one, two or four bytes per row serve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_WIDTHS = (np.uint8, np.uint16, np.uint32)


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
        Shape (n,), of an unsigned type of 1, 2 or 4 bytes, or of int64 if the range is wider; None: all
        values equal the base.
    """

    base: int
    running: bool
    steps: npt.NDArray[Any] | None

    @classmethod
    def of(cls, values: npt.NDArray[np.int64]) -> NarrowIntegers:
        """Store values of shape (n,), n > 0, as narrowly as one of the two ways allows.

        Examples
        --------
        >>> NarrowIntegers.of(np.array([1_000_000, 1_000_300, 1_000_301])).steps
        array([  0, 300, 301], dtype=uint16)
        """
        low, high = int(values.min()), int(values.max())
        if low == high:
            return cls(low, False, None)
        width = _width(high - low)
        if width is np.uint8:
            return cls(low, False, (values - low).astype(np.uint8))
        if high - low < 1 << 63:
            steps = np.diff(values, prepend=values[:1])
            running_width = _width(int(steps.max())) if int(steps.min()) >= 0 else None
            if running_width is not None and (width is None or running_width().itemsize < width().itemsize):
                return cls(int(values[0]), True, steps.astype(running_width))
        if width is None:
            return cls(0, False, values)
        return cls(low, False, (values - low).astype(width))

    def values(self, n_rows: int) -> npt.NDArray[np.int64]:
        """Return the values again, as a new array of shape (n_rows,)."""
        if self.steps is None:
            return np.full(n_rows, self.base, np.int64)
        values = np.cumsum(self.steps, dtype=np.int64) if self.running else self.steps.astype(np.int64)
        values += self.base
        return values


def _width(span: int) -> Any:
    """The narrowest unsigned type for 0..span; None if four bytes are not enough."""
    return next((width for width in _WIDTHS if span <= np.iinfo(width).max), None)
