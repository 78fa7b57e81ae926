"""Requests that fail or find nothing at first are repeated; those that take too long get a default."""

import asyncio
import functools

from pyflink.common import Time, Types
from pyflink.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
    async_retry_predicates,
)

MODE = "process"


class Model(AsyncFunction[str, str]):
    """The number in a request says how often it must be tried before it succeeds."""

    def __init__(self, gives_nothing):
        self.gives_nothing = gives_nothing
        self.attempts = {}

    async def async_invoke(self, value: str) -> list[str]:
        self.attempts[value] = self.attempts.get(value, 0) + 1
        await asyncio.sleep(0.01)
        if value == "slow":
            await asyncio.sleep(60)
        if self.attempts[value] < int(value[1:]):
            if self.gives_nothing:
                return []
            raise TimeoutError(value)
        return [f"{value} after {self.attempts[value]}"]

    def timeout(self, value: str) -> list[str]:
        return [f"{value} timed out"]


def run(env: StreamExecutionEnvironment):
    requests = env.from_collection(["a1", "b2", "slow", "c3"], Types.STRING())
    after_errors = AsyncRetryStrategy.fixed_delay(
        max_attempts=3,
        backoff_time_millis=20,
        result_predicate=None,
        exception_predicate=functools.partial(
            async_retry_predicates.exception_type_predicate, expected_error_type=TimeoutError
        ),
    )
    answered = AsyncDataStream.ordered_wait_with_retry(
        requests, Model(False), Time.seconds(2), after_errors, capacity=10, output_type=Types.STRING()
    )
    after_nothing = AsyncRetryStrategy.exponential_backoff(
        max_attempts=1,
        initial_delay=10,
        max_retry_delay=50,
        multiplier=2,
        result_predicate=async_retry_predicates.empty_result_predicate,
        exception_predicate=None,
    )
    found = AsyncDataStream.unordered_wait_with_retry(
        env.from_collection(["a1", "b2", "c3", "slow"], Types.STRING()),
        Model(True),
        Time.seconds(2),
        after_nothing,
        output_type=Types.STRING(),
    )
    outputs = {"after errors": list(answered.execute_and_collect())}
    outputs["after nothing"] = sorted(found.execute_and_collect())
    return outputs
