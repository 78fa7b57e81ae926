"""Settings of the native watermark generator."""

from dataclasses import dataclass

from flinkcore._native.watermark_generator import WatermarkGenerator


@dataclass(frozen=True)
class GeneratorSpec:
    """The watermark generator of every split.

    Parameters
    ----------
    out_of_orderness_ms : int or None
        Bound, 0 for monotonous timestamps, or None for no watermarks before the end of the log.
    idleness_ms : int or None
        Replay time without events after which a split is idle, or None for never.

    Raises
    ------
    ConfigurationError
        If the out-of-orderness is negative, or the idle timeout not greater than zero.
    """

    out_of_orderness_ms: int | None
    idleness_ms: int | None = None

    def __post_init__(self) -> None:
        WatermarkGenerator(self.out_of_orderness_ms, self.idleness_ms)

    @property
    def makes_steps(self) -> bool:
        """Return whether it puts out watermarks before the end of the log."""
        return self.out_of_orderness_ms is not None
