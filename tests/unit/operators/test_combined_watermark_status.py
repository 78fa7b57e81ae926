"""The combined watermark of indexed inputs, after Flink's IndexedCombinedWatermarkStatus (each step was run there)."""

import pytest

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import ConfigurationError
from flinkcore.operators.combined_watermark_status import IndexedCombinedWatermarkStatus


def test_there_is_no_watermark_before_every_active_input_has_one() -> None:
    combined = IndexedCombinedWatermarkStatus(3)
    assert not combined.update_watermark(0, 5)
    assert not combined.update_watermark(1, MAX_TIMESTAMP)
    assert combined.combined_watermark == MIN_TIMESTAMP
    assert combined.update_watermark(2, 4)
    assert combined.combined_watermark == 4


def test_it_never_goes_back() -> None:
    combined = IndexedCombinedWatermarkStatus(1)
    assert combined.update_watermark(0, 5)
    assert not combined.update_watermark(0, 5)
    assert not combined.update_watermark(0, 3)
    assert combined.combined_watermark == 5


def test_all_idle_inputs_give_the_greatest_watermark() -> None:
    combined = IndexedCombinedWatermarkStatus(2)
    combined.update_watermark(0, 3)
    combined.update_watermark(1, 9)
    assert not combined.update_status(1, True)
    assert not combined.is_idle
    assert combined.update_status(0, True)
    assert combined.is_idle
    assert combined.combined_watermark == 9
    assert not combined.update_status(0, False)
    assert not combined.is_idle


def test_a_watermark_makes_an_idle_input_active_even_if_it_does_not_advance() -> None:
    combined = IndexedCombinedWatermarkStatus(2)
    combined.update_watermark(0, 5)
    combined.update_status(0, True)
    combined.update_status(1, True)
    assert combined.is_idle
    assert not combined.update_watermark(0, 4)
    assert not combined.is_idle


def test_inputs_without_any_watermark_turn_idle_without_one() -> None:
    combined = IndexedCombinedWatermarkStatus(2)
    assert not combined.update_status(0, True)
    assert not combined.update_status(1, True)
    assert combined.is_idle
    assert combined.combined_watermark == MIN_TIMESTAMP


def test_no_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one input, not of 0"):
        IndexedCombinedWatermarkStatus(0)
