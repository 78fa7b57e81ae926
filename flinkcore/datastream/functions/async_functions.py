"""Functions whose calls wait for something outside of the job, and when such calls are tried again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from flinkcore.datastream.functions.function import Function
from flinkcore.errors import ArgumentTypeError, ConfigurationError

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[Any], bool]
"""From the result of a call to whether it is to be tried again."""

ExceptionPredicate = Callable[[Exception], bool]
"""From the error of a call to whether it is to be tried again."""


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Predicate that decides which calls are retried.

    Notes
    -----
    Follows ``pyflink.datastream.AsyncRetryPredicate``.
    """

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """Return the predicate of results, or None if no result is a reason to retry."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """Return the predicate of errors, or None if no error is a reason to retry."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Strategy that decides whether, when and how often calls are retried.

    One object serves all elements of a subtask, whose calls overlap.

    Notes
    -----
    Follows ``pyflink.datastream.AsyncRetryStrategy``.
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether there may be another attempt after so many, at least 1."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return how many milliseconds pass before the next attempt after so many."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicate that decides which calls are retried."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return the strategy without retries."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Return a :class:`FixedDelayRetryStrategy`; parameters and errors are its own."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Return an :class:`ExponentialBackoffDelayRetryStrategy`; parameters and errors are its own."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[OUT], Generic[OUT]):
    """Predicate of two functions, either of which may be None for no such reason.

    Parameters
    ----------
    result_predicate : callable or None
        From the result of a call to a bool.
    exception_predicate : callable or None
        From the error of a call to a bool.

    Raises
    ------
    ConfigurationError
        If one is neither a function nor None.
    """

    def __init__(
        self, result_predicate: ResultPredicate | None, exception_predicate: ExceptionPredicate | None
    ) -> None:
        for predicate in (result_predicate, exception_predicate):
            if predicate is not None and not callable(predicate):
                raise ArgumentTypeError(f"a retry predicate is a function or None, not {predicate!r}")
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Never retries."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)

    def __repr__(self) -> str:
        return "NoRetryStrategy()"


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


class _LimitedRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Tries again for two reasons, so many times."""

    def __init__(
        self,
        max_attempts: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        _require_above_zero(max_attempts=max_attempts)
        self._max_attempts = max_attempts
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class FixedDelayRetryStrategy(_LimitedRetryStrategy[OUT], Generic[OUT]):
    """Retries up to a number of times, each after the same delay.

    Parameters
    ----------
    max_attempts : int
        Attempts beside the first one, at least 1.
    backoff_time_millis : int
        At least 1.
    result_predicate, exception_predicate : callable or None
        As of :class:`RetryPredicate`.

    Raises
    ------
    ConfigurationError
        If a number is too small. (PyFlink raises AssertionError.)
    """

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        _require_above_zero(backoff_time_millis=backoff_time_millis)
        self._backoff_time_millis = backoff_time_millis

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def __repr__(self) -> str:
        return f"FixedDelayRetryStrategy({self._max_attempts}, {self._backoff_time_millis} ms)"


class ExponentialBackoffDelayRetryStrategy(_LimitedRetryStrategy[OUT], Generic[OUT]):
    """Retries up to a number of times, after a delay that grows from attempt to attempt.

    Parameters
    ----------
    max_attempts : int
        Attempts beside the first one, at least 1.
    initial_delay, max_retry_delay : int
        The first time and the longest, in ms, at least 1.
    multiplier : float
        Ratio of each time to the previous one, above 0; fractions of a ms are cut off.
    result_predicate, exception_predicate : callable or None
        As of :class:`RetryPredicate`.

    Raises
    ------
    ConfigurationError
        If a number is too small. (PyFlink raises AssertionError.)

    Notes
    -----
    Deliberate difference: the time depends on the number of the attempt alone. PyFlink remembers the last time that it
    gave, to whichever element.

    Examples
    --------
    >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 500, 2.0, None, None)
    >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4)]
    [100, 200, 400, 500]
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        _require_above_zero(
            initial_delay=initial_delay, max_retry_delay=max_retry_delay, multiplier=multiplier
        )
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = self._initial_delay
        for _ in range(current_attempts - 1):
            following = int(min(delay * self._multiplier, self._max_retry_delay))
            if following == delay:
                break
            delay = following
        return delay

    def __repr__(self) -> str:
        return (
            f"ExponentialBackoffDelayRetryStrategy({self._max_attempts}, {self._initial_delay} ms to "
            f"{self._max_retry_delay} ms by {self._multiplier})"
        )


def _require_above_zero(**settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise ConfigurationError(f"{name} should be greater than zero, it is {value!r}")


class AsyncFunction(Function, Generic[IN, OUT]):
    """Function that returns the results for an element once something outside of the job has answered.

    Calls for several elements run at the same time, in an asyncio loop on a thread of its own; ``open`` and ``close``
    are called in the thread of the job.

    Notes
    -----
    Follows ``pyflink.datastream.AsyncFunction``.
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> Iterable[OUT]:
        """Return the results for an element, in a list; an error that is not tried again fails the job."""

    def timeout(self, value: IN) -> Iterable[OUT]:
        """Return the results for an element whose call takes too long, in a list; by default a TimeoutError."""
        raise TimeoutError(f"Async function call has timed out for input: {value}")
