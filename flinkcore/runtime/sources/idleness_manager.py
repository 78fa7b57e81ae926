"""The idleness of a reader's main output and of its split outputs, together."""

from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import WatermarkOutput


class IdlenessManager:
    """Marks the underlying output idle only when neither the main output nor the split outputs are active.

    Most readers use only one of both. The vacant one has a generator, too, and must not mark the source idle, nor
    keep it active: each counts as idle until its first watermark.

    Parameters
    ----------
    underlying_output : WatermarkOutput
        Gets all watermarks, each call of `mark_active`, and `mark_idle` while both are idle.

    Attributes
    ----------
    main_output, split_local_output : WatermarkOutput

    Notes
    -----
    Flink's ``ProgressiveTimestampsAndWatermarks.IdlenessManager``.
    """

    def __init__(self, underlying_output: WatermarkOutput) -> None:
        self._underlying_output = underlying_output
        self.main_output = IdlenessAwareWatermarkOutput(self, underlying_output)
        self.split_local_output = IdlenessAwareWatermarkOutput(self, underlying_output)

    def maybe_mark_underlying_output_as_idle(self) -> None:
        """Mark the underlying output idle if both outputs are."""
        if self.main_output.is_idle and self.split_local_output.is_idle:
            self._underlying_output.mark_idle()


class IdlenessAwareWatermarkOutput:
    """One of both outputs of an :class:`IdlenessManager`."""

    def __init__(self, manager: IdlenessManager, underlying_output: WatermarkOutput) -> None:
        self._manager = manager
        self._underlying_output = underlying_output
        self.is_idle = True

    def emit_watermark(self, watermark: Watermark) -> None:
        """Pass the watermark on; be active from now on."""
        self._underlying_output.emit_watermark(watermark)
        self.is_idle = False

    def mark_idle(self) -> None:
        """Be idle, and let the manager see whether the source is."""
        self.is_idle = True
        self._manager.maybe_mark_underlying_output_as_idle()

    def mark_active(self) -> None:
        """Be active, and mark the underlying output so."""
        self.is_idle = False
        self._underlying_output.mark_active()
