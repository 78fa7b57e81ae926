"""The metrics of a task, held in the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flinkcore.errors import ConfigurationError
from flinkcore.metrics import Counter, Distribution, Meter, Metric, MetricGroup

M = TypeVar("M", bound=Metric)


class TaskCounter(Counter):
    """A counter."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Count up."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Count down."""
        self._count -= n

    def get_count(self) -> int:
        """Return the count."""
        return self._count

    @property
    def value(self) -> int:
        """The count."""
        return self._count


class TaskMeter(Meter):
    """A meter, which counts: a replay has no speed of its own."""

    def __init__(self) -> None:
        self._count = 0

    def mark_event(self, value: int = 1) -> None:
        """Mark so many events."""
        self._count += value

    def get_count(self) -> int:
        """Return how many events were marked."""
        return self._count

    @property
    def value(self) -> int:
        """How many events were marked."""
        return self._count


class TaskDistribution(Distribution):
    """A distribution: number, sum, minimum and maximum of the values, as Beam's has it in PyFlink."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0
        self._min: int | None = None
        self._max: int | None = None

    def update(self, value: int) -> None:
        """Add a value."""
        self._count += 1
        self._sum += value
        self._min = value if self._min is None or value < self._min else self._min
        self._max = value if self._max is None or value > self._max else self._max

    @property
    def value(self) -> dict[str, int | None]:
        """Number, sum, minimum and maximum."""
        return {"count": self._count, "sum": self._sum, "min": self._min, "max": self._max}


class TaskGauge(Metric):
    """A function that is asked for a value."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    @property
    def value(self) -> Any:
        """What the function says."""
        return self._function()


class TaskMetricGroup(MetricGroup):
    """A group of metrics.

    Parameters
    ----------
    scope : tuple of str
        Names of the groups from the outermost on.

    Notes
    -----
    Stands where PyFlink has ``GenericMetricGroup``.
    """

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self._scope = scope
        self._groups: dict[tuple[str, str | None], TaskMetricGroup] = {}
        self._metrics: dict[str, Metric] = {}

    def add_group(self, name: str, extra: str | None = None) -> TaskMetricGroup:
        """Return the group of a name within this one, or with `extra` the group of that value of the name."""
        scope = (*self._scope, name) if extra is None else (*self._scope, name, extra)
        return self._groups.setdefault((name, extra), TaskMetricGroup(scope))

    def counter(self, name: str) -> Counter:
        """Return a new counter, or the one of this name."""
        return self._metric(name, TaskCounter)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Let a function tell a value whenever it is asked for."""
        self._metrics[name] = TaskGauge(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return a new meter, or the one of this name."""
        return self._metric(name, TaskMeter)

    def distribution(self, name: str) -> Distribution:
        """Return a new distribution, or the one of this name."""
        return self._metric(name, TaskDistribution)

    def _metric(self, name: str, kind: type[M]) -> M:
        metric = self._metrics.setdefault(name, kind())
        if not isinstance(metric, kind):
            raise ConfigurationError(
                f"the metric {'.'.join((*self._scope, name))} is a {type(metric).__name__} already, no {kind.__name__}"
            )
        return metric

    def values(self) -> dict[str, Any]:
        """Return the values of all metrics, by their full names."""
        values = {".".join((*self._scope, name)): metric.value for name, metric in self._metrics.items()}  # type: ignore[attr-defined]
        for group in self._groups.values():
            values |= group.values()
        return values
