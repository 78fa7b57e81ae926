"""How sources wait for each other."""

from dataclasses import dataclass

from flinkcore.errors import ConfigurationError


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

    Raises
    ------
    ConfigurationError
        If the drift is negative, or the interval not above zero.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkAlignmentParams``.
    """

    watermark_group: str
    max_allowed_watermark_drift_ms: int
    update_interval_ms: int

    def __post_init__(self) -> None:
        if self.max_allowed_watermark_drift_ms < 0:
            raise ConfigurationError(
                "the maximum allowed watermark drift cannot be negative, it is "
                f"{self.max_allowed_watermark_drift_ms} ms"
            )
        if self.update_interval_ms < 1:
            raise ConfigurationError(
                f"the update interval of watermark alignment must be at least 1 ms, it is {self.update_interval_ms} ms"
            )

    def __str__(self) -> str:
        return (
            f"aligned in group {self.watermark_group!r} to {self.max_allowed_watermark_drift_ms} ms, "
            f"updated each {self.update_interval_ms} ms"
        )
