"""Statistics over the last values; the expected figures are those of Flink's DescriptiveStatisticsHistogram."""

import math

import pytest

from flinkcore.errors import ConfigurationError
from flinkcore.operators.metrics.histogram import DescriptiveStatisticsHistogram

QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.95, 0.999, 1.0)
ELEVEN = [*range(1, 11), 1000]
SIX = [-5, 0, 7, 7, 7, -100]


@pytest.mark.parametrize(
    ("window", "values", "size", "least", "greatest", "mean", "std_dev", "quantiles"),
    [
        (1, [], 0, 0, 0, math.nan, math.nan, [math.nan] * 7),
        (3, [5], 1, 5, 5, 5.0, 0.0, [5.0] * 7),
        (1, [3, 1], 1, 1, 1, 1.0, 0.0, [1.0] * 7),
        (3, [3, 1], 2, 1, 3, 2.0, 1.4142135623730951, [1, 1, 2, 3, 3, 3, 3]),
        (3, [10, 20, 30, 40], 3, 20, 40, 30.0, 10.0, [20, 20, 30, 40, 40, 40, 40]),
        (128, [10, 20, 30, 40], 4, 10, 40, 25.0, 12.909944487358056, [10, 12.5, 25, 37.5, 40, 40, 40]),
        (3, ELEVEN, 3, 9, 1000, 339.66666666666663, 571.8656602151709, [9, 9, 10, 1000, 1000, 1000, 1000]),
        (128, ELEVEN, 11, 1, 1000, 95.9090909090909, 299.8667886063592, [1, 3, 6, 9, 1000, 1000, 1000]),
        (3, SIX, 3, -100, 7, -28.666666666666664, 61.776478803289955, [-100, -100, 7, 7, 7, 7, 7]),
        (128, SIX, 6, -100, 7, -14.0, 42.416977732978566, [-100, -28.75, 3.5, 7, 7, 7, 7]),
    ],
)
def test_the_figures_are_flinks(
    window: int,
    values: list[int],
    size: int,
    least: int,
    greatest: int,
    mean: float,
    std_dev: float,
    quantiles: list[float],
) -> None:
    histogram = DescriptiveStatisticsHistogram(window)
    for value in values:
        histogram.update(value)
    statistics = histogram.statistics
    assert histogram.count == len(values)
    assert (statistics.size, statistics.min, statistics.max) == (size, least, greatest)
    assert statistics.mean == pytest.approx(mean, nan_ok=True)
    assert statistics.std_dev == pytest.approx(std_dev, nan_ok=True)
    assert [statistics.quantile(q) for q in QUANTILES] == pytest.approx(quantiles, nan_ok=True)


def test_statistics_do_not_change_with_later_values() -> None:
    histogram = DescriptiveStatisticsHistogram(2)
    histogram.update(1)
    before = histogram.statistics
    histogram.update(2)
    histogram.update(3)
    assert before.values == (1,)
    assert histogram.statistics.values == (2, 3)


@pytest.mark.parametrize("quantile", [0.0, -0.5, 1.01, math.nan])
def test_a_quantile_out_of_range_is_refused(quantile: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and at most 1"):
        DescriptiveStatisticsHistogram(1).statistics.quantile(quantile)


@pytest.mark.parametrize("window", [0, -1])
def test_an_empty_window_is_refused(window: int) -> None:
    with pytest.raises(ConfigurationError, match=f"at least one value, not {window}"):
        DescriptiveStatisticsHistogram(window)


def test_merged_histograms_count_all_values_and_keep_those_of_each() -> None:
    first, second = DescriptiveStatisticsHistogram(2), DescriptiveStatisticsHistogram(3)
    for value in (1, 2, 3):
        first.update(value)
    second.update(9)
    merged = first.merged(second)
    assert (merged.count, merged.statistics.values) == (4, (2, 3, 9))
    for value in (10, 11, 12):
        merged.update(value)
    assert (merged.count, merged.statistics.values) == (7, (3, 9, 10, 11, 12))
    assert (first.count, second.count) == (3, 1)
