"""The watermark and the idleness of several inputs together."""

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError


class IndexedCombinedWatermarkStatus:
    """The least watermark of the active inputs, and whether all of them are idle.

    While all are idle, the combined watermark is the greatest of all: nothing is waited for. It never goes
    back.

    Parameters
    ----------
    inputs : int
        At least 1; all active, without a watermark, at first.

    Raises
    ------
    ConfigurationError
        If there is no input.

    Notes
    -----
    Flink's ``IndexedCombinedWatermarkStatus`` and ``CombinedWatermarkStatus``.

    Examples
    --------
    >>> combined = IndexedCombinedWatermarkStatus(2)
    >>> combined.update_watermark(0, 10), combined.update_watermark(1, 7), combined.combined_watermark
    (False, True, 7)
    """

    def __init__(self, inputs: int) -> None:
        if inputs < 1:
            raise ConfigurationError(f"watermarks are combined of at least one input, not of {inputs}")
        self._watermarks = [MIN_TIMESTAMP] * inputs
        self._idle_inputs = [False] * inputs
        self._combined_watermark = MIN_TIMESTAMP
        self._idle = False

    @property
    def combined_watermark(self) -> int:
        """The combined watermark in ms since the epoch; -2**63 if there is none yet."""
        return self._combined_watermark

    @property
    def is_idle(self) -> bool:
        """Whether all inputs were idle at the last update."""
        return self._idle

    def update_watermark(self, index: int, timestamp_ms: int) -> bool:
        """Take a watermark of an input, which makes that input active.

        Returns
        -------
        bool
            Whether the combined watermark advanced.
        """
        self._idle_inputs[index] = False
        self._watermarks[index] = max(self._watermarks[index], timestamp_ms)
        return self._update_combined_watermark()

    def update_status(self, index: int, idle: bool) -> bool:
        """Take the status of an input.

        Returns
        -------
        bool
            Whether the combined watermark advanced.
        """
        self._idle_inputs[index] = idle
        return self._update_combined_watermark()

    def _update_combined_watermark(self) -> bool:
        self._idle = all(self._idle_inputs)
        if self._idle:
            combined = max(self._watermarks)
        else:
            combined = MAX_TIMESTAMP
            for watermark, idle in zip(self._watermarks, self._idle_inputs, strict=True):
                if not idle and watermark < combined:
                    combined = watermark
        if combined <= self._combined_watermark:
            return False
        self._combined_watermark = combined
        return True
