"""The watermark and the idleness of several inputs or splits together."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError


class PartialWatermarkListener(Protocol):
    """Is notified of the watermarks and the idleness of one output, before they are combined.

    Notes
    -----
    Flink's ``WatermarkOutputMultiplexer.WatermarkUpdateListener``.
    """

    def on_watermark_update(self, watermark: int) -> None:
        """The output's watermark has advanced to this, in ms since the epoch."""

    def on_idle_update(self, idle: bool) -> None:
        """The output was marked idle or active, also by each watermark; may be repeated."""


class PartialWatermark:
    """Watermark and idleness of one output, which is active and without a watermark at first.

    Parameters
    ----------
    combined : CombinedWatermarkStatus
        The combined status, which the output is to be added to.
    listener : PartialWatermarkListener or None

    Notes
    -----
    Flink's ``CombinedWatermarkStatus.PartialWatermark``.
    """

    __slots__ = ("_combined", "_listener", "idle", "queued", "registered", "watermark")

    def __init__(
        self, combined: "CombinedWatermarkStatus", listener: PartialWatermarkListener | None
    ) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self.registered = False
        self.queued = False
        self._combined = combined
        self._listener = listener

    def set_watermark(self, watermark: int) -> bool:
        """Take a watermark in ms since the epoch, which marks the output active; return whether it has advanced."""
        self.set_idle(False)
        if watermark <= self.watermark:
            return False
        if self._listener is not None:
            self._listener.on_watermark_update(watermark)
        self.watermark = watermark
        if self.registered:
            self._combined.advanced_to(watermark)
        return True

    def set_idle(self, idle: bool) -> None:
        """Mark the output idle or active."""
        if idle != self.idle:
            self.idle = idle
            if self.registered:
                self._combined.status_changed(self)
        if self._listener is not None:
            self._listener.on_idle_update(idle)


class CombinedWatermarkStatus:
    """The least watermark of the active outputs, or the greatest of all if none is active.

    A heap has an entry for each active output, and perhaps for some that are idle or removed. The key of an entry is a
    watermark that the output has had, never more than its current one, and is updated when it comes to the top.

    Attributes
    ----------
    watermark : int
        The combined watermark of the last update, in ms since the epoch; -2**63 before the first.
    idle : bool
        Whether all outputs were idle at the last update.

    Notes
    -----
    Flink's ``CombinedWatermarkStatus``.
    """

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self._registered: set[PartialWatermark] = set()
        self._active = 0
        self._heap: list[tuple[int, int, PartialWatermark]] = []
        self._entries = 0
        self._largest: int | None = MIN_TIMESTAMP

    def add(self, partial: PartialWatermark) -> None:
        """Add an output, from the next update on."""
        partial.registered = True
        self._registered.add(partial)
        self._active += 1
        if len(self._heap) > 2 * len(self._registered):
            self._drop_entries_of_no_use()
        self._push(partial)

    def remove(self, partial: PartialWatermark) -> None:
        """Remove an output, from the next update on."""
        partial.registered = False
        self._registered.remove(partial)
        self._active -= not partial.idle
        if partial.watermark == self._largest:
            self._largest = None

    def status_changed(self, partial: PartialWatermark) -> None:
        """Note that an output has turned idle or active."""
        if partial.idle:
            self._active -= 1
        else:
            self._active += 1
            if not partial.queued:
                self._push(partial)

    def advanced_to(self, watermark: int) -> None:
        """Note that the watermark of an output has advanced."""
        if self._largest is not None and watermark > self._largest:
            self._largest = watermark

    def update(self) -> bool:
        """Combine the current watermarks and statuses; return whether the combined watermark has advanced."""
        if not self._registered:
            return False
        self.idle = self._active == 0
        watermark = self._largest_of_all() if self.idle else self._smallest_of_the_active()
        if watermark <= self.watermark:
            return False
        self.watermark = watermark
        return True

    def _smallest_of_the_active(self) -> int:
        while True:
            key, number, partial = self._heap[0]
            if partial.idle or not partial.registered:
                partial.queued = False
                heappop(self._heap)
            elif partial.watermark > key:
                heapreplace(self._heap, (partial.watermark, number, partial))
            else:
                return key

    def _largest_of_all(self) -> int:
        if self._largest is None:
            self._largest = max(partial.watermark for partial in self._registered)
        return self._largest

    def _push(self, partial: PartialWatermark) -> None:
        # The number keeps outputs of entries of the same watermark from being compared.
        self._entries += 1
        partial.queued = True
        heappush(self._heap, (partial.watermark, self._entries, partial))

    def _drop_entries_of_no_use(self) -> None:
        for _, _, partial in self._heap:
            partial.queued = partial.registered and not partial.idle
        self._heap = [entry for entry in self._heap if entry[2].queued]
        heapify(self._heap)


class IndexedCombinedWatermarkStatus:
    """The least watermark of the active inputs, and whether all of them are idle.

    While all are idle, the combined watermark is the greatest of all. It never goes back.

    Parameters
    ----------
    inputs : int
        At least 1; all are active, without a watermark, at first.

    Raises
    ------
    ConfigurationError
        If there is no input.

    Notes
    -----
    Flink's ``IndexedCombinedWatermarkStatus``.

    Examples
    --------
    >>> combined = IndexedCombinedWatermarkStatus(2)
    >>> combined.update_watermark(0, 10), combined.update_watermark(1, 7), combined.combined_watermark
    (False, True, 7)
    """

    def __init__(self, inputs: int) -> None:
        if inputs < 1:
            raise ConfigurationError(f"watermarks are combined of at least one input, not of {inputs}")
        self._combined = CombinedWatermarkStatus()
        self._partials = [PartialWatermark(self._combined, None) for _ in range(inputs)]
        for partial in self._partials:
            self._combined.add(partial)

    def restore(self, watermarks_ms: Sequence[int], idle: Sequence[bool], watermark_ms: int) -> None:
        """Restore the watermarks and statuses of a snapshot; before any update.

        Parameters
        ----------
        watermarks_ms : sequence of int
            By input, in ms since the epoch; -2**63 before the first.
        idle : sequence of bool
            By input.
        watermark_ms : int
            The combined watermark, which may be greater than that of the inputs, as it never goes back.
        """
        for partial, own_ms, is_idle in zip(self._partials, watermarks_ms, idle, strict=True):
            partial.set_watermark(own_ms)
            partial.set_idle(is_idle)
        self._combined.update()
        self._combined.watermark = watermark_ms

    def inputs(self) -> tuple[list[int], list[bool]]:
        """Return the watermarks of the inputs in ms since the epoch, and which of them are idle."""
        return [each.watermark for each in self._partials], [each.idle for each in self._partials]

    @property
    def combined_watermark(self) -> int:
        """The combined watermark in ms since the epoch; -2**63 before the first."""
        return self._combined.watermark

    @property
    def is_idle(self) -> bool:
        """Return whether all inputs were idle at the last update."""
        return self._combined.idle

    def update_watermark(self, index: int, timestamp_ms: int) -> bool:
        """Take a watermark of an input, which makes it active; return whether the combined watermark has advanced."""
        self._partials[index].set_watermark(timestamp_ms)
        return self._combined.update()

    def update_status(self, index: int, idle: bool) -> bool:
        """Take the status of an input; return whether the combined watermark has advanced."""
        self._partials[index].set_idle(idle)
        return self._combined.update()
