"""How sources wait for each other."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WatermarkAlignmentParams:
    """The group that a source is aligned with, and how closely.

    Parameters
    ----------
    watermark_group : str
        Sources with the same group wait for each other.
    max_allowed_watermark_drift_ms : int
        How far a watermark may be ahead of the group's smallest before reading pauses; not negative.
    update_interval_ms : int
        How often the group's smallest watermark is computed; at least 1.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkAlignmentParams``.
    """

    watermark_group: str
    max_allowed_watermark_drift_ms: int
    update_interval_ms: int

    def __str__(self) -> str:
        return (
            f"aligned in group {self.watermark_group!r} to {self.max_allowed_watermark_drift_ms} ms, "
            f"updated each {self.update_interval_ms} ms"
        )
