"""Watermarks as metrics, after Flink's WatermarkGaugeTest and MinWatermarkGaugeTest."""

import pytest

from flinkcore.common import MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.gauges import MinWatermarkGauge, WatermarkGauge


def test_a_gauge_shows_the_minimum_until_a_watermark_is_set_and_then_the_last() -> None:
    gauge = WatermarkGauge()
    assert gauge.value == MIN_TIMESTAMP
    gauge.set_current_watermark(64)
    gauge.set_current_watermark(23)
    assert gauge.value == 23


def test_the_least_of_several_gauges_is_shown() -> None:
    gauges = [WatermarkGauge(), WatermarkGauge()]
    least = MinWatermarkGauge(*gauges)
    assert least.value == MIN_TIMESTAMP
    gauges[0].set_current_watermark(1)
    assert least.value == MIN_TIMESTAMP
    gauges[1].set_current_watermark(2)
    assert least.value == 1
    gauges[0].set_current_watermark(3)
    assert least.value == 2


def test_the_least_of_no_gauges_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        MinWatermarkGauge()
