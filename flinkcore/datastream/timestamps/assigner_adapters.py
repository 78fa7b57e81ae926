"""Adapters of legacy assigners to watermark generators and watermark strategies."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkcore.common.watermark_generators import WatermarkGenerator, WatermarkOutput
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.timestamps.assigners import (
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
)
from flinkcore.errors import ConfigurationError


class AssignerWithPeriodicWatermarksAdapter(WatermarkGenerator[Any]):
    """Asks a periodic assigner for its watermark at each periodic call.

    Parameters
    ----------
    assigner : AssignerWithPeriodicWatermarks
        The same object must extract the timestamps, since it learns of the elements by that.

    Notes
    -----
    Flink 1.20's ``AssignerWithPeriodicWatermarksAdapter``.
    """

    def __init__(self, assigner: AssignerWithPeriodicWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self._assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)


class AssignerWithPunctuatedWatermarksAdapter(WatermarkGenerator[Any]):
    """Asks a punctuated assigner for a watermark at each event.

    Parameters
    ----------
    assigner : AssignerWithPunctuatedWatermarks

    Notes
    -----
    Flink 1.20's ``AssignerWithPunctuatedWatermarksAdapter``.
    """

    changes_at_events_only = True

    def __init__(self, assigner: AssignerWithPunctuatedWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


StrategyOrAssigner: TypeAlias = (
    WatermarkStrategy | AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks
)
"""The argument of ``assign_timestamps_and_watermarks``."""


def as_watermark_strategy(given: StrategyOrAssigner) -> WatermarkStrategy:
    """Return a strategy as it is, and a legacy assigner as a strategy; raise ConfigurationError for anything else.

    The timestamps and the watermarks of such a strategy come from one object with state: use a copy
    (``copy.deepcopy``) of it for each split, as the timestamps-and-watermarks operator does.

    Notes
    -----
    The ``Strategy`` classes within Flink 1.20's adapters.
    """
    if isinstance(given, WatermarkStrategy):
        return given
    if isinstance(given, AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks):
        return WatermarkStrategy.for_generator(_AdapterSupplier(given)).with_timestamp_assigner(given)
    raise ConfigurationError(
        "assign_timestamps_and_watermarks takes a strategy such as WatermarkStrategy."
        f"for_bounded_out_of_orderness(Duration.of_seconds(4)), not {given!r}"
    )


@dataclass(frozen=True)
class _AdapterSupplier:
    assigner: AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks

    def __call__(self) -> WatermarkGenerator[Any]:
        if isinstance(self.assigner, AssignerWithPeriodicWatermarks):
            return AssignerWithPeriodicWatermarksAdapter(self.assigner)
        return AssignerWithPunctuatedWatermarksAdapter(self.assigner)

    def __str__(self) -> str:
        return type(self.assigner).__name__
