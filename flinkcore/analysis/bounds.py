"""Bounds of out-of-orderness that people choose from: fine enough to decide by, and round."""

from __future__ import annotations

from itertools import chain, count, takewhile
from typing import Final, TypeAlias

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR

Ladder: TypeAlias = tuple[tuple[int, int], ...]
"""Steps in ms, and up to where each is taken; beyond, as in the last decade."""

COUNTED: Final[Ladder] = (
    (100, 1),
    (_SECOND, 10),
    (_MINUTE, 100),
    (_HOUR, _SECOND),
    (_DAY, _MINUTE),
    (10 * _DAY, 10 * _MINUTE),
    (100 * _DAY, _HOUR),
)
"""Bounds that late events are counted at: about one in a hundred apart, so some 9,000 up to 100 days."""

SHOWN: Final[Ladder] = (
    (100, 10),
    (_SECOND, 100),
    (10 * _SECOND, _SECOND),
    (_MINUTE, 5 * _SECOND),
    (10 * _MINUTE, 30 * _SECOND),
    (_HOUR, _MINUTE),
    (6 * _HOUR, 5 * _MINUTE),
    (_DAY, 15 * _MINUTE),
    (10 * _DAY, 6 * _HOUR),
    (100 * _DAY, _DAY),
)
"""Bounds that a table shows; each is one of those at which events are counted."""


def bounds_up_to(reach_ms: int, ladder: Ladder) -> Int64s:
    """Return the bounds of a ladder, in ms from 0 on: all below a reach, and the first one that is not below.

    Examples
    --------
    >>> bounds_up_to(3, COUNTED).tolist()
    [0, 1, 2, 3]
    """
    last_ms, last_step_ms = ladder[-1]
    further = ((last_ms * 10**decade, last_step_ms * 10**decade) for decade in count(1))
    parts, start_ms = [], 0
    for until_ms, step_ms in chain(ladder, takewhile(lambda rung: rung[0] < MAX_TIMESTAMP, further)):
        parts.append(np.arange(start_ms, until_ms, step_ms, dtype=np.int64))
        start_ms = until_ms
        if parts[-1][-1] >= reach_ms:
            break
    else:
        parts.append(np.array([start_ms, MAX_TIMESTAMP]))
    bounds = np.concatenate(parts)
    return bounds[: np.searchsorted(bounds, reach_ms, side="left") + 1]
