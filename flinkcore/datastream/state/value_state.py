"""One value per key."""

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

from flinkcore.datastream.state.state import State
from flinkcore.datastream.state.state_descriptor import StateDescriptor

T = TypeVar("T")


class ValueState(State, Generic[T]):
    """A single value of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.ValueState``.
    """

    @abstractmethod
    def value(self) -> T | None:
        """Return the value; None where there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ValueState`; parameters as of :class:`StateDescriptor`.

    Notes
    -----
    Follows ``pyflink.datastream.state.ValueStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.VALUE
