"""Restart strategies: settings that are accepted without effect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flinkcore.errors import ArgumentTypeError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """Strategy for restarting a job after a failure.

    A job in this process fails at once, and Spark runs lost tasks again: no job is run again as a whole.

    Notes
    -----
    Follows ``pyflink.common.RestartStrategyConfiguration``.
    """

    @abstractmethod
    def get_description(self) -> str:
        """Return the strategy in words."""


class RestartStrategies:
    """Makes restart strategies.

    Notes
    -----
    Follows ``pyflink.common.RestartStrategies``, with the descriptions of Flink 1.19.

    Examples
    --------
    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_delay_between_attempts_interval()
    datetime.timedelta(seconds=10)
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A job that fails is not run again."""

        def get_description(self) -> str:
            """Return the strategy in words."""
            return "Restart deactivated."

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The strategy of the cluster."""

        def get_description(self) -> str:
            """Return the strategy in words."""
            return "Cluster level default restart strategy"

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """So many attempts, each after a delay.

        Parameters
        ----------
        restart_attempts : int
        delay_between_attempts_interval : timedelta or int
            An integer is milliseconds.
        """

        restart_attempts: int
        delay_between_attempts_interval: timedelta

        def __post_init__(self) -> None:
            _in_times(self, "delay_between_attempts_interval")

        def get_restart_attempts(self) -> int:
            """Return the number of attempts."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before an attempt."""
            return self.delay_between_attempts_interval

        def get_description(self) -> str:
            """Return the strategy in words."""
            delay = _in_ms(self.get_delay_between_attempts_interval())
            return f"Restart with fixed delay ({delay}). #{self.restart_attempts} restart attempts."

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """So many attempts in an interval, each after a delay.

        Parameters
        ----------
        max_failure_rate : int
        failure_interval, delay_between_attempts_interval : timedelta or int
            An integer is milliseconds.
        """

        max_failure_rate: int
        failure_interval: timedelta
        delay_between_attempts_interval: timedelta

        def __post_init__(self) -> None:
            _in_times(self, "failure_interval", "delay_between_attempts_interval")

        def get_max_failure_rate(self) -> int:
            """Return the largest number of failures in an interval."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """Return the interval in which failures are counted."""
            return self.failure_interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before an attempt."""
            return self.delay_between_attempts_interval

        def get_description(self) -> str:
            """Return the strategy in words."""
            delay = _in_ms(self.get_delay_between_attempts_interval())
            interval = _in_ms(self.get_failure_interval())
            return (
                f"Failure rate restart with maximum of {self.max_failure_rate} failures within interval {interval} and "
                f"fixed delay {delay}."
            )

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Return the strategy of a job that is not run again."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Return the strategy of the cluster."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | timedelta
    ) -> FixedDelayRestartStrategyConfiguration:
        """Return the strategy of so many attempts, each after a delay.

        Parameters
        ----------
        restart_attempts : int
        delay_between_attempts : int or timedelta
            Milliseconds if it is an integer.

        Raises
        ------
        ConfigurationError
            If the delay is neither.
        """
        delay: Any = delay_between_attempts
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int | timedelta, delay_interval: int | timedelta
    ) -> FailureRateRestartStrategyConfiguration:
        """Return the strategy of so many attempts in an interval, each after a delay.

        Parameters
        ----------
        failure_rate : int
            Failures in the interval up to which a job is run again.
        failure_interval, delay_interval : int or timedelta
            Milliseconds if they are integers.

        Raises
        ------
        ConfigurationError
            If an interval is neither.
        """
        interval: Any = failure_interval
        delay: Any = delay_interval
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, interval, delay)


def _in_times(strategy: RestartStrategyConfiguration, *names: str) -> None:
    """Make the named lengths of time of a strategy timedeltas; ConfigurationError if one is neither that nor ms."""
    for name in names:
        value = getattr(strategy, name)
        if isinstance(value, bool) or not isinstance(value, int | timedelta):
            raise ArgumentTypeError(f"{name} is a number of milliseconds or a timedelta, not {value!r}")
        if isinstance(value, int):
            object.__setattr__(strategy, name, timedelta(milliseconds=value))


def _in_ms(time: timedelta) -> str:
    return f"{time // timedelta(milliseconds=1)} ms"
