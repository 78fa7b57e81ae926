"""Watermarks as metrics, after Flink's WatermarkGaugeTest."""

from flinkcore.common import MIN_TIMESTAMP
from flinkcore.operators.metrics.gauges import WatermarkGauge


def test_a_gauge_shows_the_minimum_until_a_watermark_is_set_and_then_the_last() -> None:
    gauge = WatermarkGauge()
    assert gauge.value == MIN_TIMESTAMP
    gauge.set_current_watermark(64)
    gauge.set_current_watermark(23)
    assert gauge.value == 23
