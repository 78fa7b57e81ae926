"""The watermark generators and strategies that golden scenarios name."""

from typing import Any

from flinkcore.common import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.common.time import Duration
from flinkcore.common.watermark_generators import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    RelativeClock,
    WatermarksWithIdleness,
)
from flinkcore.datastream.timestamps import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    FailingHandler,
    IgnoringHandler,
    StrategyOrAssigner,
    as_watermark_strategy,
)


class Punctuated(WatermarkGenerator[int]):
    """An even timestamp is a watermark."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class ValueAsTimestamp(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class LegacyBounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: int) -> int:
        return element


class LegacyAscending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element: int) -> int:
        return element


class LegacyPunctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value

    def check_and_get_next_watermark(self, last_element: int, extracted_timestamp: int) -> Watermark | None:
        return Watermark(extracted_timestamp) if extracted_timestamp % 2 == 0 else None


def python_generator(parameters: dict[str, Any], clock: RelativeClock) -> WatermarkGenerator[Any]:
    kind = parameters["type"]
    if kind == "bounded":
        return BoundedOutOfOrdernessWatermarks(Duration.of_millis(parameters["delay"]))
    if kind == "ascending":
        return AscendingTimestampsWatermarks()
    if kind == "punctuated":
        return Punctuated()
    if kind == "idleness":
        of = python_generator(parameters["of"], clock)
        return WatermarksWithIdleness(of, Duration.of_millis(parameters["timeout"]), clock)
    assert kind == "none"
    return NoWatermarksGenerator()


def periodic_assigner(parameters: dict[str, Any]) -> AssignerWithPeriodicWatermarks:
    if parameters["type"] == "legacy_bounded":
        return LegacyBounded(Duration.of_millis(parameters["delay"]))
    extractor = LegacyAscending()
    if parameters["handler"] == "ignore":
        return extractor.with_violation_handler(IgnoringHandler())
    if parameters["handler"] == "fail":
        return extractor.with_violation_handler(FailingHandler())
    assert parameters["handler"] == "log"
    return extractor


def golden_argument(parameters: dict[str, Any], assigner: bool) -> StrategyOrAssigner:
    """What a program gives to ``assign_timestamps_and_watermarks``: a legacy assigner as it is."""
    kind = parameters["type"]
    if kind == "legacy_punctuated":
        return LegacyPunctuated()
    return (
        periodic_assigner(parameters) if kind.startswith("legacy") else golden_strategy(parameters, assigner)
    )


def golden_strategy(parameters: dict[str, Any], assigner: bool) -> WatermarkStrategy:
    """The strategy of a `timestamps_operator` scenario."""
    kind = parameters["type"]
    if kind == "legacy_punctuated":
        return as_watermark_strategy(LegacyPunctuated())
    if kind.startswith("legacy"):
        return as_watermark_strategy(periodic_assigner(parameters))
    if kind == "idleness":
        inner = golden_strategy(parameters["of"], assigner)
        return inner.with_idleness(Duration.of_millis(parameters["timeout"]))
    if kind == "bounded":
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(parameters["delay"]))
    elif kind == "ascending":
        strategy = WatermarkStrategy.for_monotonous_timestamps()
    elif kind == "none":
        strategy = WatermarkStrategy.no_watermarks()
    else:
        assert kind == "punctuated"
        strategy = WatermarkStrategy.for_generator(Punctuated)
    return strategy.with_timestamp_assigner(ValueAsTimestamp()) if assigner else strategy
