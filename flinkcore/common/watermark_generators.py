"""The watermark generators that Flink has built in.

None of their sums leaves 64 bits, whatever the timestamps: a generator starts as if it had seen the smallest
timestamp from which its delay can be subtracted, so no watermark lies below -2**63.
"""

from typing import Any

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.time import Duration, Time, bound_ms
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generator import WatermarkGenerator, WatermarkOutput


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator[Any]):
    """The watermark is the largest timestamp, less a bound, less 1 ms; emitted at every periodic call.

    Before the first event the watermark is -2**63, and it is emitted again where it has not changed: what
    receives it tells news from repetition.

    Parameters
    ----------
    max_out_of_orderness : Duration or Time
        Not negative; counted in whole milliseconds.

    Raises
    ------
    ConfigurationError
        If the bound is negative.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.BoundedOutOfOrdernessWatermarks``.

    Examples
    --------
    >>> from flinkcore.common import Duration
    >>> generator = BoundedOutOfOrdernessWatermarks(Duration.of_seconds(4))
    """

    changes_at_events_only = True

    def __init__(self, max_out_of_orderness: Duration | Time) -> None:
        self._out_of_orderness_ms = bound_ms(max_out_of_orderness, "max_out_of_orderness")
        self._max_timestamp = MIN_TIMESTAMP + self._out_of_orderness_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Take in a timestamp."""
        if event_timestamp > self._max_timestamp:
            self._max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the watermark."""
        output.emit_watermark(Watermark(self._max_timestamp - self._out_of_orderness_ms - 1))

    def snapshot_state(self) -> int:
        """Return the largest timestamp."""
        return self._max_timestamp

    def restore_state(self, state: int) -> None:
        """Go on from the largest timestamp of before."""
        self._max_timestamp = state


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """The watermark is the largest timestamp less 1 ms, for timestamps that do not go back.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.AscendingTimestampsWatermarks``: a bound of 0.
    """

    def __init__(self) -> None:
        super().__init__(Duration.of_millis(0))


class NoWatermarksGenerator(WatermarkGenerator[Any]):
    """Makes no watermarks.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.NoWatermarksGenerator``.
    """

    changes_at_events_only = True

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Do nothing."""

    def snapshot_state(self) -> None:
        """Return nothing."""

    def restore_state(self, state: None) -> None:
        """Do nothing."""
