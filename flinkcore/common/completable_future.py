"""Results that come later."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from flinkcore._internal.python.interruptible_condition import InterruptibleCondition
from flinkcore.errors import JobCancelledError

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """The result of work that runs elsewhere; safe to use in several threads.

    Notes
    -----
    Follows ``pyflink.common.CompletableFuture``.
    """

    def __init__(self) -> None:
        self._changed = InterruptibleCondition()
        self._done = False
        self._cancelled = False
        self._value: T | None = None
        self._error: BaseException | None = None

    @classmethod
    def completed(cls, value: T) -> CompletableFuture[T]:
        """Return a future that has its result."""
        future = cls()
        future.complete(value)
        return future

    def complete(self, value: T) -> bool:
        """Set the result, unless there is one; return whether it was set."""
        return self._complete(value, None)

    def complete_exceptionally(self, error: BaseException) -> bool:
        """Set an error, which `result` raises, unless there is a result; return whether it was set."""
        return self._complete(None, error)

    def cancel(self) -> bool:
        """Cancel the future unless it has come; return whether it is cancelled. The work itself continues."""
        with self._changed:
            self._cancelled |= not self._done
            self._complete(None, JobCancelledError("the result was given up"))
            return self._cancelled

    def cancelled(self) -> bool:
        """Return whether the result was given up before it came."""
        return self._cancelled

    def done(self) -> bool:
        """Return whether there is a result or an error, or it was given up."""
        return self._done

    def result(self) -> T:
        """Wait for the result, and return it.

        Raises
        ------
        BaseException
            The error that there is instead; a JobCancelledError if the result was given up.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def exception(self) -> BaseException | None:
        """Return the error, or None if the work has not failed."""
        return self._error

    def _complete(self, value: T | None, error: BaseException | None) -> bool:
        with self._changed:
            if self._done:
                return False
            self._value, self._error, self._done = value, error, True
            self._changed.notify_all()
            return True
