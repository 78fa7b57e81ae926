"""Keyed state backends for tests: few key groups, small numbers as keys, a clock that is driven."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import AggregateFunction
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

KEY_GROUPS = 6


def key_group_of(key: Any) -> int:
    return int(key) % KEY_GROUPS


def new_backend(
    clock: DrivenProcessingTimeService | None = None,
    key_group_range: tuple[int, int] | None = None,
    key_group_of: Callable[[Any], int] = key_group_of,
    first_sweep: int = 4,
) -> KeyedStateBackend:
    """A backend that forgets keys without state as early as it can."""
    key_context = KeyContext(KEY_GROUPS, key_group_range, key_group_of, first_sweep)
    return KeyedStateBackend(key_context, clock or DrivenProcessingTimeService())


class Average(AggregateFunction[float, list[float], float]):
    """Accumulates a sum and a count, changed in place."""

    def create_accumulator(self) -> list[float]:
        return [0, 0]

    def add(self, value: float, accumulator: list[float]) -> list[float]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[float]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[float], acc_b: list[float]) -> list[float]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]
