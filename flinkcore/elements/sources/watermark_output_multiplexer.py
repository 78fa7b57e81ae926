"""The outputs of watermarks of several splits, combined into one."""

from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import WatermarkOutput
from flinkcore.errors import LifecycleError
from flinkcore.operators.combined_watermark_status import (
    CombinedWatermarkStatus,
    PartialWatermark,
    PartialWatermarkListener,
)


class WatermarkOutputMultiplexer:
    """Combines the watermarks of outputs that come and go: the least of those that are not idle.

    The watermarks of an immediate output count at once, those of a deferred one from the next `on_periodic_emit`. When
    all outputs are idle, the greatest watermark is emitted, if it advances, and the underlying output is marked idle,
    at each update again. It is never marked active: a watermark implies that. A new output holds the combined watermark
    back; an unregistered one counts until the next update.

    Complexity: an update costs O(1) amortised, and O(log n) for each output that has advanced past the least watermark
    since; with all n outputs idle, the greatest is searched for only after one was unregistered.

    Parameters
    ----------
    underlying_output : WatermarkOutput
        Receives the combined watermarks, which never go back, and idleness.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkOutputMultiplexer`` with its
    ``CombinedWatermarkStatus``, as of 2.3: 1.20 does not emit the greatest watermark when the last output turns
    idle.
    """

    def __init__(self, underlying_output: WatermarkOutput) -> None:
        self._underlying_output = underlying_output
        self._partials: dict[str, PartialWatermark] = {}
        self._combined = CombinedWatermarkStatus()

    def register_new_output(self, output_id: str, listener: PartialWatermarkListener | None = None) -> None:
        """Add an output, which is active and has no watermark.

        Raises
        ------
        LifecycleError
            If an output of this id is registered.
        """
        if output_id in self._partials:
            raise LifecycleError(
                f"there is an output of the id {output_id!r} already: unregister it first, or take another id"
            )
        partial = PartialWatermark(self._combined, listener)
        self._partials[output_id] = partial
        self._combined.add(partial)

    def restore_output(self, output_id: str, watermark_ms: int, is_idle: bool) -> None:
        """Let a registered output have the watermark and idleness of a checkpoint; nothing is emitted."""
        partial = self._partial(output_id)
        partial.set_watermark(watermark_ms)
        partial.set_idle(is_idle)
        self._combined.update()

    def output_state(self, output_id: str) -> tuple[int, bool]:
        """Return the watermark of a registered output, and whether it is idle."""
        partial = self._partial(output_id)
        return partial.watermark, partial.idle

    def unregister_output(self, output_id: str) -> bool:
        """Remove an output, from the next update on; return whether it was registered."""
        partial = self._partials.pop(output_id, None)
        if partial is None:
            return False
        self._combined.remove(partial)
        return True

    def get_immediate_output(self, output_id: str) -> WatermarkOutput:
        """Return a registered output whose watermarks and idleness count at once."""
        return _ImmediateOutput(self, self._partial(output_id))

    def get_deferred_output(self, output_id: str) -> WatermarkOutput:
        """Return a registered output whose watermarks and idleness count from the next `on_periodic_emit`."""
        return _DeferredOutput(self._partial(output_id))

    def on_periodic_emit(self) -> None:
        """Emit the combined watermark, if it has advanced, and idleness."""
        self._update_combined_watermark()

    def _partial(self, output_id: str) -> PartialWatermark:
        partial = self._partials.get(output_id)
        if partial is None:
            raise LifecycleError(f"no output of the id {output_id!r} is registered")
        return partial

    def _update_combined_watermark(self) -> None:
        if self._combined.update():
            self._underlying_output.emit_watermark(Watermark(self._combined.watermark))
        if self._combined.idle:
            self._underlying_output.mark_idle()


class _ImmediateOutput:
    def __init__(self, multiplexer: WatermarkOutputMultiplexer, partial: PartialWatermark) -> None:
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
    def __init__(self, partial: PartialWatermark) -> None:
        self._partial = partial

    def emit_watermark(self, watermark: Watermark) -> None:
        self._partial.set_watermark(watermark.timestamp)

    def mark_idle(self) -> None:
        self._partial.set_idle(True)

    def mark_active(self) -> None:
        self._partial.set_idle(False)
