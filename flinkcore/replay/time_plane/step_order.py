"""Where the steps of a timeline lie among the events of a log: before or after each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

AFTER_ALL_SPLITS: Final = 2**31 - 1
"""In place of a split: the step comes after all events with its clock, as a tick does."""


def steps_before(
    step_clocks_ms: Int64s,
    step_splits: Int64s,
    step_positions: Int64s,
    arrivals_ms: Int64s,
    splits: Int32s,
    positions: Int64s,
) -> Int64s:
    """How many steps lie before each event in the total order (arrival, split, position).

    The step that an event makes comes after it. O(log n_steps) per event that arrives at the clock of a step at
    all, vectorised.

    Parameters
    ----------
    step_clocks_ms, step_splits, step_positions : numpy.ndarray of int64, shape (n_steps,)
        In total order.
    arrivals_ms, splits, positions : numpy.ndarray of int64, int32 and int64, shape (n_rows,)

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)
    """
    before = np.searchsorted(step_clocks_ms, arrivals_ms, side="left")
    end = np.searchsorted(step_clocks_ms, arrivals_ms, side="right")
    open_rows = np.flatnonzero(before < end)
    while len(open_rows):
        middle = (before[open_rows] + end[open_rows]) // 2
        split = splits[open_rows]
        is_before = (step_splits[middle] < split) | (
            (step_splits[middle] == split) & (step_positions[middle] < positions[open_rows])
        )
        before[open_rows[is_before]] = middle[is_before] + 1
        end[open_rows[~is_before]] = middle[~is_before]
        open_rows = open_rows[before[open_rows] < end[open_rows]]
    return before
