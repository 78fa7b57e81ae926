"""The difference between two elements, as delta triggers and delta evictors measure it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flinkcore.errors import ArgumentTypeError

T = TypeVar("T")


class DeltaFunction(ABC, Generic[T]):
    """Measures by how much an element differs from an older one.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.functions.windowing.delta.DeltaFunction``.
    """

    @abstractmethod
    def get_delta(self, old_data_point: T, new_data_point: T) -> float:
        """Return the difference between two elements."""


Delta = DeltaFunction[Any] | Callable[[Any, Any], float]
"""A :class:`DeltaFunction`, or a plain function of the older element and the newer."""


def delta_call(owner: str, delta_function: Delta) -> Callable[[Any, Any], float]:
    """Return the callable that measures a difference; raise ConfigurationError for anything else."""
    if isinstance(delta_function, DeltaFunction):
        return delta_function.get_delta
    if callable(delta_function):
        return delta_function
    raise ArgumentTypeError(
        f"{owner} takes a DeltaFunction or a function of two elements, not {delta_function!r}"
    )
