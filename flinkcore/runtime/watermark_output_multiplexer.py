"""Many outputs of watermarks, one per split, combined into one."""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generator import WatermarkOutput
from flinkcore.errors import LifecycleError


class WatermarkUpdateListener(Protocol):
    """Hears what one output does, before it counts for the combined watermark.

    Notes
    -----
    Flink's ``WatermarkOutputMultiplexer.WatermarkUpdateListener``.
    """

    def on_watermark_update(self, watermark: int) -> None:
        """The output's watermark has advanced to this, in ms since the epoch."""

    def on_idle_update(self, idle: bool) -> None:
        """The output was marked idle or active; each watermark marks it active, too. May repeat itself."""


class WatermarkOutputMultiplexer:
    """Combines the watermarks of outputs that come and go: the smallest of those that are not idle.

    An immediate output has its watermarks count at once, a deferred one at the next `on_periodic_emit`. When all
    outputs are idle, the largest watermark of them all is emitted, if it is news, and the underlying output is
    marked idle, at each update anew. It is never marked active here: a watermark does that, implicitly. A
    new output holds the combined watermark where it is; one that is unregistered lets go at the next update.

    Complexity: an update costs O(1) amortised, and O(log n) for each output that has advanced past the smallest
    watermark since; with all n outputs idle, the largest is searched for only after one was unregistered.

    Parameters
    ----------
    underlying_output : WatermarkOutput
        Gets the combined watermarks, which only grow, and idleness.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkOutputMultiplexer`` with its
    ``CombinedWatermarkStatus``, as of 2.3: 1.20 does not emit the largest watermark when the last output turns
    idle.
    """

    def __init__(self, underlying_output: WatermarkOutput) -> None:
        self._underlying_output = underlying_output
        self._partials: dict[str, _PartialWatermark] = {}
        self._combined = _CombinedWatermarkStatus()

    def register_new_output(self, output_id: str, listener: WatermarkUpdateListener | None = None) -> None:
        """Add an output, active and with no watermark yet.

        Parameters
        ----------
        output_id : str
        listener : WatermarkUpdateListener or None

        Raises
        ------
        LifecycleError
            If an output of this id is registered.
        """
        if output_id in self._partials:
            raise LifecycleError(
                f"there is an output of the id {output_id!r} already: unregister it first, or take another id"
            )
        partial = _PartialWatermark(self._combined, listener)
        self._partials[output_id] = partial
        self._combined.add(partial)

    def unregister_output(self, output_id: str) -> bool:
        """Remove an output; return True exactly if it was registered. What is left counts from the next update."""
        partial = self._partials.pop(output_id, None)
        if partial is None:
            return False
        self._combined.remove(partial)
        return True

    def get_immediate_output(self, output_id: str) -> WatermarkOutput:
        """Return an output whose watermarks and idleness count at once.

        Raises
        ------
        LifecycleError
            If no output of this id is registered.
        """
        return _ImmediateOutput(self, self._partial(output_id))

    def get_deferred_output(self, output_id: str) -> WatermarkOutput:
        """Return an output whose watermarks and idleness count from the next `on_periodic_emit`.

        Raises
        ------
        LifecycleError
            If no output of this id is registered.
        """
        return _DeferredOutput(self._partial(output_id))

    def on_periodic_emit(self) -> None:
        """Emit what the outputs amount to now."""
        self._update_combined_watermark()

    def _partial(self, output_id: str) -> "_PartialWatermark":
        partial = self._partials.get(output_id)
        if partial is None:
            raise LifecycleError(f"no output of the id {output_id!r} is registered")
        return partial

    def _update_combined_watermark(self) -> None:
        if self._combined.update():
            self._underlying_output.emit_watermark(Watermark(self._combined.watermark))
        if self._combined.idle:
            self._underlying_output.mark_idle()


class _PartialWatermark:
    """Watermark and idleness of one output."""

    __slots__ = ("_combined", "_listener", "idle", "queued", "registered", "watermark")

    def __init__(
        self, combined: "_CombinedWatermarkStatus", listener: WatermarkUpdateListener | None
    ) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self.registered = False
        self.queued = False
        self._combined = combined
        self._listener = listener

    def set_watermark(self, watermark: int) -> bool:
        """Return True exactly if it has advanced."""
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
        if idle != self.idle:
            self.idle = idle
            if self.registered:
                self._combined.status_changed(self)
        if self._listener is not None:
            self._listener.on_idle_update(idle)


class _CombinedWatermarkStatus:
    """The smallest watermark of the active outputs, or the largest of all if none is active.

    A heap has one entry for each output that is active, and maybe for some that are idle or gone. Its key is the
    watermark that the output had when the entry was made: never more than it has now, so an entry need only
    be brought up to date when it comes to the top.
    """

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self._registered: set[_PartialWatermark] = set()
        self._active = 0
        self._heap: list[tuple[int, int, _PartialWatermark]] = []
        self._entries = 0
        self._largest: int | None = MIN_TIMESTAMP

    def add(self, partial: _PartialWatermark) -> None:
        partial.registered = True
        self._registered.add(partial)
        self._active += 1
        if len(self._heap) > 2 * len(self._registered):
            self._drop_entries_of_no_use()
        self._push(partial)

    def remove(self, partial: _PartialWatermark) -> None:
        partial.registered = False
        self._registered.remove(partial)
        self._active -= not partial.idle
        if partial.watermark == self._largest:
            self._largest = None

    def status_changed(self, partial: _PartialWatermark) -> None:
        if partial.idle:
            self._active -= 1
        else:
            self._active += 1
            if not partial.queued:
                self._push(partial)

    def advanced_to(self, watermark: int) -> None:
        if self._largest is not None and watermark > self._largest:
            self._largest = watermark

    def update(self) -> bool:
        """Return True exactly if the combined watermark has advanced."""
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

    def _push(self, partial: _PartialWatermark) -> None:
        # The number keeps entries of the same watermark from being compared by their output.
        self._entries += 1
        partial.queued = True
        heappush(self._heap, (partial.watermark, self._entries, partial))

    def _drop_entries_of_no_use(self) -> None:
        for _, _, partial in self._heap:
            partial.queued = partial.registered and not partial.idle
        self._heap = [entry for entry in self._heap if entry[2].queued]
        heapify(self._heap)


class _ImmediateOutput:
    def __init__(self, multiplexer: WatermarkOutputMultiplexer, partial: _PartialWatermark) -> None:
        self._multiplexer = multiplexer
        self._partial = partial

    def emit_watermark(self, watermark: Watermark) -> None:
        timestamp = watermark.timestamp
        if self._partial.set_watermark(timestamp) and timestamp > self._multiplexer._combined.watermark:
            self._multiplexer._update_combined_watermark()

    def mark_idle(self) -> None:
        self._partial.set_idle(True)
        self._multiplexer._update_combined_watermark()

    def mark_active(self) -> None:
        self._partial.set_idle(False)
        self._multiplexer._update_combined_watermark()


class _DeferredOutput:
    def __init__(self, partial: _PartialWatermark) -> None:
        self._partial = partial

    def emit_watermark(self, watermark: Watermark) -> None:
        self._partial.set_watermark(watermark.timestamp)

    def mark_idle(self) -> None:
        self._partial.set_idle(True)

    def mark_active(self) -> None:
        self._partial.set_idle(False)
