"""The metrics of tasks, and how those of several tasks are combined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Any, Final, TypeVar

from flinkcore.errors import ConfigurationError
from flinkcore.metrics import Counter, Distribution, Meter, Metric, MetricGroup
from flinkcore.operators.metrics.histogram import DescriptiveStatisticsHistogram

M = TypeVar("M", bound="TaskMetric")


class TaskMetric(Metric):
    """A metric of a task."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """The value of the metric."""

    @abstractmethod
    def add(self, other: Any) -> None:
        """Add the metric of the same name and kind of a later task."""

    def held(self) -> TaskMetric:
        """Return the metric as it is now, to be sent to another process."""
        return copy(self)


class _Count(TaskMetric):
    def __init__(self) -> None:
        self._count = 0

    def get_count(self) -> int:
        return self._count

    @property
    def value(self) -> int:
        return self._count

    def add(self, other: Any) -> None:
        self._count += other._count


class TaskCounter(_Count, Counter):
    """A counter."""

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n


class TaskMeter(_Count, Meter):
    """A meter, which counts events: a replay has no rate."""

    def mark_event(self, value: int = 1) -> None:
        self._count += value


class TaskDistribution(TaskMetric, Distribution):
    """A distribution: count, sum, minimum and maximum of the values, as Beam's in PyFlink."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0
        self._min: int | None = None
        self._max: int | None = None

    def update(self, value: int) -> None:
        self._count += 1
        self._sum += value
        self._min = value if self._min is None or value < self._min else self._min
        self._max = value if self._max is None or value > self._max else self._max

    @property
    def value(self) -> dict[str, int | None]:
        return {"count": self._count, "sum": self._sum, "min": self._min, "max": self._max}

    def add(self, other: TaskDistribution) -> None:
        self._count += other._count
        self._sum += other._sum
        self._min = min((each for each in (self._min, other._min) if each is not None), default=None)
        self._max = max((each for each in (self._max, other._max) if each is not None), default=None)


class TaskGauge(TaskMetric):
    """A gauge: the value of a function; of several tasks the last one counts."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    @property
    def value(self) -> Any:
        return self._function()

    def add(self, other: TaskGauge) -> None:
        self._function = other._function

    def held(self) -> TaskGauge:
        return TaskGauge(partial(_itself, self.value))


class TaskTotal(TaskGauge):
    """A count that something else keeps; those of several tasks are added."""

    def add(self, other: TaskGauge) -> None:
        self._function = partial(_itself, self.value + other.value)

    def held(self) -> TaskTotal:
        return TaskTotal(partial(_itself, self.value))


class TaskHistogram(TaskMetric):
    """A histogram: count, minimum, maximum, mean, standard deviation and quantiles, as Flink's reporters give them.

    Parameters
    ----------
    histogram : DescriptiveStatisticsHistogram
    """

    def __init__(self, histogram: DescriptiveStatisticsHistogram) -> None:
        self._histogram = histogram

    @property
    def value(self) -> dict[str, float]:
        statistics = self._histogram.statistics
        quantiles = {f"p{name}": statistics.quantile(float(f"0.{name}")) for name in _QUANTILES}
        return {
            "count": self._histogram.count,
            "min": statistics.min,
            "max": statistics.max,
            "mean": statistics.mean,
            "stddev": statistics.std_dev,
            **quantiles,
        }

    def add(self, other: TaskHistogram) -> None:
        self._histogram = self._histogram.merged(other._histogram)

    def held(self) -> TaskHistogram:
        return TaskHistogram(self._histogram.merged())


_QUANTILES: Final = ("50", "75", "95", "98", "99", "999")


def _itself(value: Any) -> Any:
    return value


class TaskMetricGroup(MetricGroup):
    """A group of metrics.

    Parameters
    ----------
    scope : tuple of str
        Names of the groups, the outermost first.

    Notes
    -----
    Stands where PyFlink has ``GenericMetricGroup``.
    """

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self._scope = scope
        self._groups: dict[tuple[str, str | None], TaskMetricGroup] = {}
        self._metrics: dict[str, TaskMetric] = {}

    def add_group(self, name: str, extra: str | None = None) -> TaskMetricGroup:
        scope = (*self._scope, name) if extra is None else (*self._scope, name, extra)
        return self._groups.setdefault((name, extra), TaskMetricGroup(scope))

    def counter(self, name: str) -> Counter:
        return self._metric(name, TaskCounter)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        self._metrics[name] = TaskGauge(obj)

    def total(self, name: str, function: Callable[[], int]) -> None:
        """Register a function that returns the current value of a count."""
        self._metrics[name] = TaskTotal(function)

    def histogram(self, name: str, histogram: DescriptiveStatisticsHistogram) -> None:
        """Register a histogram."""
        self._metrics[name] = TaskHistogram(histogram)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._metric(name, TaskMeter)

    def distribution(self, name: str) -> Distribution:
        return self._metric(name, TaskDistribution)

    def _metric(self, name: str, kind: type[M]) -> M:
        metric = self._metrics.setdefault(name, kind())
        if not isinstance(metric, kind):
            raise ConfigurationError(
                f"the metric {'.'.join((*self._scope, name))} is a {type(metric).__name__} already, no {kind.__name__}"
            )
        return metric

    def held(self) -> dict[str, TaskMetric]:
        """Return all metrics as they are now, by full name, to be sent to another process."""
        held = {".".join((*self._scope, name)): metric.held() for name, metric in self._metrics.items()}
        for group in self._groups.values():
            held |= group.held()
        return held

    def values(self) -> dict[str, Any]:
        """Return the values of all metrics by full name."""
        return {name: metric.value for name, metric in self.held().items()}


def values_of_tasks(tasks: Iterable[dict[str, TaskMetric]]) -> dict[str, Any]:
    """Return the values of the metrics of all tasks by full name; metrics of the same name are added."""
    metrics: dict[str, TaskMetric] = {}
    for held in tasks:
        for name, metric in held.items():
            if type(metrics.setdefault(name, metric)) is not type(metric):
                raise ConfigurationError(
                    f"the metric {name} is a {type(metrics[name]).__name__} in one task and a {type(metric).__name__} "
                    "in another one"
                )
            if metrics[name] is not metric:
                metrics[name].add(metric)
    return {name: metric.value for name, metric in metrics.items()}
