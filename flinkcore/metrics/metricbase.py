"""What functions measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Metric(ABC):  # noqa: B024 - as in PyFlink
    """Base of metrics.

    Notes
    -----
    Follows ``pyflink.metrics.Metric``.
    """


class Counter(Metric, ABC):
    """A number that goes up and down.

    Notes
    -----
    Follows ``pyflink.metrics.Counter``.
    """

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Count up."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Count down."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the count."""


class Meter(Metric, ABC):
    """Counts events, and tells their rate.

    Notes
    -----
    Follows ``pyflink.metrics.Meter``.
    """

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Mark so many events."""

    @abstractmethod
    def get_count(self) -> int:
        """Return how many events were marked."""


class Distribution(Metric, ABC):
    """How values are distributed.

    Notes
    -----
    Follows ``pyflink.metrics.Distribution``.
    """

    @abstractmethod
    def update(self, value: int) -> None:
        """Add a value."""


class MetricGroup(ABC):
    """Metrics and further groups by name.

    Notes
    -----
    Follows ``pyflink.metrics.MetricGroup``.
    """

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return the group of a name within this one, or with `extra` the group of that value of the name."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Return a new counter, or the one of this name."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Let a function tell a value whenever it is asked for."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return a new meter, or the one of this name."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Return a new distribution, or the one of this name."""
