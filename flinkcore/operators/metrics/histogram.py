"""Statistics of the last values of a metric."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class HistogramStatistics:
    """Statistics of the values in a histogram.

    Parameters
    ----------
    values : tuple of float
        In ascending order.

    Notes
    -----
    Flink's ``DescriptiveStatisticsHistogramStatistics``. Without values, minimum and maximum are 0, and
    the others NaN.
    """

    values: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def min(self) -> int:
        """The least value."""
        return int(self.values[0]) if self.values else 0

    @property
    def max(self) -> int:
        """The greatest value."""
        return int(self.values[-1]) if self.values else 0

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return math.fsum(self.values) / self.size if self.values else math.nan

    @property
    def std_dev(self) -> float:
        """The sample standard deviation; 0 for one value."""
        if self.size < 2:
            return 0.0 if self.values else math.nan
        mean = self.mean
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (self.size - 1))

    def quantile(self, quantile: float) -> float:
        """Return a quantile of the values, interpolated between neighbours.

        Parameters
        ----------
        quantile : float
            Above 0, at most 1; 0.5 is the median.

        Raises
        ------
        ConfigurationError
            If it is out of that range.
        """
        if not 0 < quantile <= 1:
            raise ConfigurationError(f"a quantile is above 0 and at most 1, not {quantile}")
        if not self.values:
            return math.nan
        position = quantile * (self.size + 1)
        below = math.floor(position)
        if below < 1:
            return self.values[0]
        if below >= self.size:
            return self.values[-1]
        lower, upper = self.values[below - 1], self.values[below]
        return lower + (position - below) * (upper - lower)


class DescriptiveStatisticsHistogram:
    """The last values of a metric.

    Parameters
    ----------
    window_size : int
        The number of values, at least 1.

    Raises
    ------
    ConfigurationError
        If it is less.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram``.
    """

    def __init__(self, window_size: int) -> None:
        if window_size < 1:
            raise ConfigurationError(f"a histogram keeps at least one value, not {window_size}")
        self._window: deque[float] = deque(maxlen=window_size)
        self._count = 0

    def update(self, value: float) -> None:
        """Add a value, which replaces the oldest one if the window is full."""
        self._window.append(float(value))
        self._count += 1

    def merged(self, *others: DescriptiveStatisticsHistogram) -> DescriptiveStatisticsHistogram:
        """Return a histogram of the values of this one and of others, which keeps those that they keep."""
        all_of_them = (self, *others)
        merged = DescriptiveStatisticsHistogram(sum(each._window.maxlen or 0 for each in all_of_them))
        for each in all_of_them:
            merged._window += each._window
            merged._count += each._count
        return merged

    @property
    def count(self) -> int:
        """The number of values that were added, including those no longer kept."""
        return self._count

    @property
    def statistics(self) -> HistogramStatistics:
        """The statistics of the kept values."""
        return HistogramStatistics(tuple(sorted(self._window)))
