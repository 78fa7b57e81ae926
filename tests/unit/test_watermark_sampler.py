"""Small parts of alignment: samples of watermarks, their least, a clock with pauses, a gauge of time."""

import random

import pytest

from flinkcore.common import MIN_TIMESTAMP
from flinkcore.elements.sources.source_watermarks import PausableRelativeClock
from flinkcore.elements.sources.watermark_alignment import WatermarkAggregator, WatermarkSampler
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.operators.metrics.gauges import TimerGauge
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService


def test_without_a_buffer_the_latest_watermark_counts() -> None:
    sampler = WatermarkSampler(0)
    assert (sampler.oldest_sample, sampler.latest) == (MIN_TIMESTAMP, MIN_TIMESTAMP)
    sampler.add_latest(13)
    sampler.sample()
    sampler.add_latest(42)
    assert (sampler.oldest_sample, sampler.latest) == (42, 42)


def test_with_a_buffer_of_two_the_watermark_two_samplings_ago_counts() -> None:
    sampler = WatermarkSampler(2)
    seen = []
    for watermark in (13, 42, 7, 8):
        sampler.add_latest(watermark)
        sampler.sample()
        seen.append(sampler.oldest_sample)
    assert seen == [MIN_TIMESTAMP, 13, 42, 7]
    assert sampler.latest == 8


def test_a_negative_buffer_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"pipeline\.watermark-alignment\.buffer-size .* -2"):
        WatermarkSampler(-2)


def test_the_least_watermark_of_the_last_of_each_key_is_told_if_it_changes() -> None:
    aggregator: WatermarkAggregator[str] = WatermarkAggregator()
    assert aggregator.aggregated_watermark == MIN_TIMESTAMP
    assert aggregator.aggregate("a", MIN_TIMESTAMP) is None
    assert aggregator.aggregate("a", 5) == 5
    assert aggregator.aggregate("b", 9) is None
    assert aggregator.aggregate("a", 12) == 9
    assert aggregator.aggregate("a", 9) is None
    assert aggregator.aggregate("b", 3) == 3
    assert list(aggregator.keys) == ["a", "b"]


def test_the_least_watermark_stays_right_over_many_reports() -> None:
    random_numbers = random.Random(5)
    aggregator: WatermarkAggregator[int] = WatermarkAggregator()
    watermarks: dict[int, int] = {}
    for _ in range(3000):
        key, watermark = random_numbers.randrange(7), random_numbers.randrange(-20, 20)
        watermarks[key] = watermark
        aggregator.aggregate(key, watermark)
        assert aggregator.aggregated_watermark == min(watermarks.values())


def test_no_time_passes_in_pauses_and_pauses_nest() -> None:
    base = DrivenProcessingTimeService(100)
    clock = PausableRelativeClock(base.current_processing_time)
    base.advance_to(110)
    clock.pause()
    base.advance_to(120)
    clock.pause()
    base.advance_to(130)
    clock.un_pause()
    base.advance_to(140)
    assert clock.relative_time_ms() == 110
    clock.un_pause()
    base.advance_to(150)
    assert clock.relative_time_ms() == 120
    clock.pause()
    base.advance_to(190)
    clock.un_pause()
    base.advance_to(195)
    assert clock.relative_time_ms() == 125
    with pytest.raises(LifecycleError, match="not paused"):
        clock.un_pause()


def test_a_timer_gauge_adds_up_the_time_between_marks() -> None:
    clock = DrivenProcessingTimeService(100)
    gauge = TimerGauge(clock.current_processing_time)
    gauge.mark_end()
    gauge.mark_start()
    clock.advance_to(130)
    gauge.mark_start()
    clock.advance_to(150)
    assert (gauge.accumulated_time_ms, gauge.is_measuring) == (50, True)
    gauge.mark_end()
    clock.advance_to(160)
    assert (gauge.accumulated_time_ms, gauge.is_measuring) == (50, False)
    gauge.mark_start()
    clock.advance_to(161)
    assert gauge.accumulated_time_ms == 51
    gauge.mark_end()
    gauge.mark_end()
    assert gauge.accumulated_time_ms == 51
