"""What all kinds of state have in common."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """A state of a function; keyed state shows what belongs to the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.State``.
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove what is held; of keyed state, under the current key."""


class AppendingState(State, Generic[IN, OUT]):
    """A state that values are added to.

    Notes
    -----
    Follows ``pyflink.datastream.state.AppendingState``.
    """

    @abstractmethod
    def get(self) -> OUT:
        """Return what the added values have become."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """An appending state of which two can become one, as windows do that merge.

    Notes
    -----
    Follows ``pyflink.datastream.state.MergingState``.
    """
