"""BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks and NoWatermarksGenerator, in Python."""

import pytest
from equipment.recorders import WatermarkOutputRecorder

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    Duration,
    NoWatermarksGenerator,
    Time,
    WatermarkGenerator,
)
from flinkcore.errors import ConfigurationError


def emitted(generator: WatermarkGenerator[object]) -> list[int]:
    output = WatermarkOutputRecorder()
    generator.on_periodic_emit(output)
    return [timestamp for _, timestamp in output.take()]


def feed(generator: WatermarkGenerator[object], *timestamps: int) -> None:
    output = WatermarkOutputRecorder()
    for timestamp in timestamps:
        generator.on_event(object(), timestamp, output)
    assert output.take() == []


def test_the_watermark_before_records_is_the_minimum() -> None:
    assert emitted(BoundedOutOfOrdernessWatermarks(Duration.of_millis(10))) == [MIN_TIMESTAMP]


def test_watermarks_trail_the_largest_timestamp_by_the_bound_and_one_more() -> None:
    generator = BoundedOutOfOrdernessWatermarks(Duration.of_millis(10))
    feed(generator, 12, 9, 11)
    assert emitted(generator) == [1]
    feed(generator, 5)
    assert emitted(generator) == [1], "what has not changed is emitted again"
    feed(generator, 13)
    assert emitted(generator) == [2]


def test_ascending_timestamps_have_no_bound() -> None:
    generator = AscendingTimestampsWatermarks()
    feed(generator, -7)
    assert emitted(generator) == [-8]


def test_no_watermarks_are_none_even_after_events() -> None:
    generator = NoWatermarksGenerator()
    feed(generator, 5)
    assert emitted(generator) == []


@pytest.mark.parametrize("delay", [0, 1, 10, MAX_TIMESTAMP])
def test_no_watermark_wraps_around_at_the_ends_of_64_bits(delay: int) -> None:
    generator = BoundedOutOfOrdernessWatermarks(Time(delay))
    for timestamp in (MIN_TIMESTAMP, MIN_TIMESTAMP + 5, -1, MAX_TIMESTAMP):
        feed(generator, timestamp)
        assert emitted(generator) == [max(timestamp - delay - 1, MIN_TIMESTAMP)]


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_out_of_orderness cannot be negative, it is -1 ms"):
        BoundedOutOfOrdernessWatermarks(Duration.of_millis(-1))
    with pytest.raises(ConfigurationError, match="takes a length of time"):
        BoundedOutOfOrdernessWatermarks("5 s")  # type: ignore[arg-type]
