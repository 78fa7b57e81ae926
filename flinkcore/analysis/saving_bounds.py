"""The least out-of-orderness bound, and the least allowed lateness, with which a late event is in time for a window.

For bounded out-of-orderness the watermark is the merged maximum less the bound and 1 ms, and ticks, idleness and the
merge of the splits do not depend on the bound: a longer one lowers every watermark by the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

Late: TypeAlias = Callable[[int], Collection[int]]
"""From by how many ms the events are given more time, to the numbers of those that are late then; ever fewer."""


def least_savings(late: Late, most_ms: Mapping[int, int]) -> dict[int, int]:
    """Return by how many ms more each late event is not late any more, where that also depends on other events.

    Parameters
    ----------
    late
        Asked at most once for each length of time: by halves, between what some events need and others do not.
    most_ms
        With so much, by its number, each event is certainly in time; at least 1.
    """
    found: dict[int, int] = {}
    # Of (least, most, events): with `least` they are all late, with `most` none is.
    open_spans: list[tuple[int, int, frozenset[int]]] = [
        (0, max(most_ms.values(), default=0), frozenset(most_ms))
    ]
    while open_spans:
        least, most, events = open_spans.pop()
        if not events:
            continue
        if most - least == 1:
            found |= dict.fromkeys(events, most)
            continue
        middle = (least + most) // 2
        still = events & frozenset(late(middle))
        open_spans += [(least, middle, events - still), (middle, most, still)]
    return found
