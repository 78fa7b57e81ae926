"""How far two elements are apart."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flinkcore.errors import ConfigurationError

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
    """Return what to call for a difference.

    Raises
    ------
    ConfigurationError
        If there is nothing to call.
    """
    if isinstance(delta_function, DeltaFunction):
        return delta_function.get_delta
    if callable(delta_function):
        return delta_function
    raise ConfigurationError(
        f"{owner} takes a DeltaFunction or a function of two elements, not {delta_function!r}"
    )
