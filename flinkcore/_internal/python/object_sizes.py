"""Estimates of the memory of Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_SAMPLED: Final = 32
"""So many of the objects of a container are looked at."""

MOST_DEEP: Final = 4


def size_of(item: Any, depth: int = 0) -> int:
    """Return about how many bytes an object takes, with what it contains; of large containers, a sample counts."""
    size = getsizeof(item, 64)
    if depth == MOST_DEEP:
        return size
    if isinstance(item, dict):
        return size + _sampled(item.keys(), len(item), depth) + _sampled(item.values(), len(item), depth)
    if isinstance(item, list | tuple | set | frozenset):
        return size + _sampled(item, len(item), depth)
    attributes = getattr(item, "__dict__", None)
    return size if not isinstance(attributes, dict) else size + size_of(attributes, depth + 1)


def size_of_all(items: Sequence[Any] | npt.NDArray[np.object_]) -> int:
    """Return about how many bytes the objects of a sequence take, by a sample of them; None takes none."""
    step = max(1, len(items) // (2 * MOST_SAMPLED))
    sample = items[::step]
    taken = sum(size_of(item) for item in sample if item is not None)
    return taken * len(items) // max(1, len(sample))


def _sampled(items: Iterable[Any], n_items: int, depth: int) -> int:
    sizes = [size_of(item, depth + 1) for item in islice(items, MOST_SAMPLED)]
    return sum(sizes) * n_items // max(1, len(sizes))
