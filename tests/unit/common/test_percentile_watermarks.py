"""PercentileOutOfOrdernessWatermarks: a percentile of the latest timestamps instead of their maximum."""

import math

import pytest
from equipment.recorders import WatermarkOutputRecorder

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    BoundedOutOfOrdernessWatermarks,
    Duration,
    PercentileOutOfOrdernessWatermarks,
    WatermarkGenerator,
)
from flinkcore.errors import ConfigurationError

HOUR_MS = 3_600_000


def percentile_watermarks(
    percentile: float, window_size: int, delay_ms: int = 10
) -> PercentileOutOfOrdernessWatermarks:
    return PercentileOutOfOrdernessWatermarks(Duration.of_millis(delay_ms), percentile, window_size)


def watermark_after(generator: WatermarkGenerator[None], *timestamps: int) -> int:
    output = WatermarkOutputRecorder()
    for timestamp in timestamps:
        generator.on_event(None, timestamp, output)
    generator.on_periodic_emit(output)
    ((_, watermark),) = output.take()
    return int(watermark)


def test_the_watermark_is_the_percentile_less_the_bound_less_one() -> None:
    assert watermark_after(percentile_watermarks(0.8, 5), 100, 300, 200, 500, 400) == 400 - 10 - 1


def test_one_event_hours_early_does_not_move_the_watermark_past_the_others() -> None:
    robust = percentile_watermarks(0.99, 1000)
    plain = BoundedOutOfOrdernessWatermarks(Duration.of_millis(10))
    regular = range(0, 200_000, 100)
    for generator in (robust, plain):
        watermark_after(generator, *regular)
    before = watermark_after(robust)
    assert watermark_after(robust, 200_000 + 5 * HOUR_MS) == before + 100
    assert watermark_after(plain, 200_000 + 5 * HOUR_MS) > 4 * HOUR_MS


def test_as_many_early_events_as_the_percentile_leaves_out_have_no_effect_and_one_more_has() -> None:
    regular = [100] * 97
    assert watermark_after(percentile_watermarks(0.97, 100), *regular, *[HOUR_MS] * 3) == 89
    assert watermark_after(percentile_watermarks(0.97, 100), *regular, *[HOUR_MS] * 4) == HOUR_MS - 11


def test_the_first_event_cannot_mislead_and_gives_no_watermark() -> None:
    generator = percentile_watermarks(0.5, 4)
    assert watermark_after(generator) == MIN_TIMESTAMP
    assert watermark_after(generator, HOUR_MS) == MIN_TIMESTAMP
    assert watermark_after(generator, 100) == 89


def test_the_watermark_lags_behind_a_jump_until_enough_events_have_come() -> None:
    generator = percentile_watermarks(0.8, 10)
    watermark_after(generator, *[0] * 10)
    assert [watermark_after(generator, HOUR_MS) for _ in range(3)] == [-11, -11, HOUR_MS - 11]


def test_events_that_leave_the_window_are_forgotten_so_the_raw_watermark_may_go_back() -> None:
    generator = percentile_watermarks(0.5, 2)
    assert watermark_after(generator, 500, 600) == 489
    assert watermark_after(generator, 300) == 289


def test_equal_timestamps_count_each() -> None:
    generator = percentile_watermarks(0.75, 4)
    assert watermark_after(generator, 7, 7, 7, 9) == -4
    assert watermark_after(generator, 9) == -2


def test_a_percentile_of_one_is_the_maximum_of_the_window() -> None:
    generator = percentile_watermarks(1, 3)
    assert watermark_after(generator, 50) == 39
    assert watermark_after(generator, 20, 20, 20) == 9


def test_a_percentile_is_the_decimal_fraction_that_was_written() -> None:
    assert math.ceil(0.55 * 100) == 56
    assert watermark_after(percentile_watermarks(0.55, 100, 0), *range(1, 101)) == 54


def test_no_watermark_wraps_around_at_the_ends_of_64_bits() -> None:
    generator = percentile_watermarks(0.5, 2)
    assert watermark_after(generator, MIN_TIMESTAMP, MIN_TIMESTAMP) == MIN_TIMESTAMP
    assert watermark_after(generator, MIN_TIMESTAMP + 20, MIN_TIMESTAMP + 20) == MIN_TIMESTAMP + 9
    assert watermark_after(generator, MAX_TIMESTAMP, MAX_TIMESTAMP) == MAX_TIMESTAMP - 11


@pytest.mark.parametrize(
    ("percentile", "window_size", "message"),
    [
        (0, 10, "percentile must be a number above 0 and at most 1, not 0"),
        (-0.5, 10, "percentile must be"),
        (1.01, 10, "percentile must be"),
        (float("nan"), 10, "percentile must be"),
        (True, 10, "percentile must be"),
        ("0.9", 10, "percentile must be"),
        (0.9, 0, "window_size must be an integer from 1, not 0"),
        (0.9, 10.0, "window_size must be"),
        (0.9, True, "window_size must be"),
        (0.99, 99, "0.99 leaves no event out of a window of 99: window_size must be at least 100"),
    ],
)
def test_parameters_out_of_range_are_refused(percentile: float, window_size: int, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        percentile_watermarks(percentile, window_size)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_out_of_orderness cannot be negative"):
        percentile_watermarks(0.9, 10, -1)
