"""The least watermark of those that were reported."""

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from flinkcore.common.constants import MIN_TIMESTAMP

K = TypeVar("K", bound=Hashable)


class WatermarkAggregator(Generic[K]):
    """Keeps the last watermark of each key, and the least of them.

    Complexity: a report costs O(log n) amortised over n keys.

    Notes
    -----
    Flink's ``SourceCoordinator.WatermarkAggregator``. A key counts from its first report, and its watermark may go
    back.
    """

    def __init__(self) -> None:
        self._watermarks: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._reports = 0

    def aggregate(self, key: K, watermark: int) -> int | None:
        """Set the watermark of a key.

        Parameters
        ----------
        key : hashable
        watermark : int
            In ms since the epoch.

        Returns
        -------
        int or None
            The least watermark, if it has changed; None if it has not.
        """
        before = self.aggregated_watermark
        self._watermarks[key] = watermark
        # The number keeps keys, which need not have an order, from being compared.
        self._reports += 1
        heappush(self._heap, (watermark, self._reports, key))
        if len(self._heap) > 2 * len(self._watermarks) + 16:
            self._heap = [(mark, at, k) for at, (k, mark) in enumerate(self._watermarks.items())]
            self._reports = len(self._heap)
            heapify(self._heap)
        while self._watermarks[self._heap[0][2]] != self._heap[0][0]:
            heappop(self._heap)
        after = self.aggregated_watermark
        return after if after != before else None

    @property
    def keys(self) -> Iterable[K]:
        """Those that have reported, in the order of their first reports."""
        return self._watermarks.keys()

    @property
    def aggregated_watermark(self) -> int:
        """The least watermark in ms since the epoch; -2**63 if none was reported."""
        return self._heap[0][0] if self._heap else MIN_TIMESTAMP
