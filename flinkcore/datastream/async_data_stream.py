"""Streams whose elements wait for something outside of the job, many at a time."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from flinkcore.common.time import Interval, interval_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import AsyncFunction, AsyncRetryStrategy
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import AsyncWaitTransformation
from flinkcore.datastream.stream import Stream
from flinkcore.errors import ArgumentTypeError, ConfigurationError

DEFAULT_CAPACITY = 100


class AsyncDataStream:
    """Applies an AsyncFunction to a stream: its calls for up to `capacity` elements run at the same time.

    The times of calls, timeouts and waits before retries are real time on both clocks of a job. The
    results of an element have its timestamp; watermarks, and the end of the input, come after the results of all
    elements before them.

    - **On the system clock** results come as in Flink: ``ordered_wait`` gives those of the first element first,
      ``unordered_wait`` those that are there first, but none before a watermark that the element came after.
    - **On the arrival clock** a call takes no time, as that of a map: its results are emitted at the arrival of the
      element, in the place where a map would emit them. So both give the results in the order of the elements, and
      what follows, timers included, does not depend on how long calls take. Calls still run at the same time: the job
      continues with later elements, and the steps after this one lag.

    Notes
    -----
    Follows ``pyflink.datastream.AsyncDataStream`` (Flink's ``AsyncWaitOperator``).
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Interval,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results as they come; parameters and errors as of :meth:`unordered_wait_with_retry`."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Interval,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results of calls as they come; failed calls may be retried.

        Parameters
        ----------
        data_stream : DataStream
        async_function : AsyncFunction
        timeout : Time, Duration, datetime.timedelta or int (ms)
            After so long, retries included, the results are those of the function's ``timeout``; the call itself goes
            on unnoticed. 0 or less: calls may take as long as they do, which only calls without retries may.
        async_retry_strategy : AsyncRetryStrategy
        capacity : int
            So many elements of a subtask wait for their results at most; further ones hold up the stream.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If an argument is of another type or has no meaning.
        """
        return _wait(
            data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=False
        )

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Interval,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results in the order of the elements; parameters as of :meth:`unordered_wait_with_retry`."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Interval,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Return the results of calls in the order of the elements; failed calls may be retried.

        Parameters and errors as of :meth:`unordered_wait_with_retry`.
        """
        return _wait(
            data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=True
        )


def _wait(
    stream: DataStream,
    function: AsyncFunction[Any, Any],
    timeout: Interval,
    strategy: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: TypeInformation | None,
    ordered: bool,
) -> DataStream:
    if not isinstance(stream, DataStream):
        hint = ": call elements() on the stream of the log" if isinstance(stream, Stream) else ""
        raise ArgumentTypeError(f"AsyncDataStream takes a DataStream, not {stream!r}{hint}")
    if not isinstance(function, AsyncFunction):
        raise ArgumentTypeError(
            f"AsyncDataStream takes an object of a class derived from AsyncFunction, not {function!r}"
        )
    if not iscoroutinefunction(function.async_invoke):
        raise ConfigurationError(
            f"Method 'async_invoke' of class '{type(function).__qualname__}' should be declared as 'async def'."
        )
    timeout_ms = interval_ms(timeout, "the timeout of AsyncDataStream")
    if not isinstance(strategy, AsyncRetryStrategy):
        raise ArgumentTypeError(f"the retry strategy is an AsyncRetryStrategy, not {strategy!r}")
    if strategy is not NO_RETRY_STRATEGY and timeout_ms <= 0:
        raise ConfigurationError(
            "Timeout should be configured when do async with retry: give a timeout of at least 1 ms, which ends the "
            f"attempts, not {timeout_ms} ms"
        )
    if strategy.get_retry_predicate() is None:
        raise ConfigurationError(f"Retry predicate of the async retry strategy {strategy!r} is None.")
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise ConfigurationError(f"capacity is a number of elements, at least 1, not {capacity!r}")
    return stream._then(
        AsyncWaitTransformation(
            stream._input(), function, declared_type(output_type), timeout_ms, strategy, capacity, ordered
        )
    )
