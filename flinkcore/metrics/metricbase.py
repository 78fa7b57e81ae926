"""The metrics of functions."""

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
    """A number that is incremented and decremented.

    Notes
    -----
    Follows ``pyflink.metrics.Counter``.
    """

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Increment the count."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Decrement the count."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the count."""


class Meter(Metric, ABC):
    """Counts events, and measures their rate.

    Notes
    -----
    Follows ``pyflink.metrics.Meter``.
    """

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Record a number of events."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the number of recorded events."""


class Distribution(Metric, ABC):
    """The distribution of recorded values.

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
        """Return the subgroup of a name; with `extra`, that of a name and a value."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Return the counter `name`; create it if it does not exist."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a function that returns the current value of a gauge."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return the meter `name`; create it if it does not exist."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Return the distribution `name`; create it if it does not exist."""
