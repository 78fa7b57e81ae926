"""One value per key."""

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

from flinkcore.common.type_information import TypeInformation
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
    """Declares a :class:`ValueState`.

    Parameters
    ----------
    name, value_type_info
        As of :class:`StateDescriptor`.

    Notes
    -----
    Follows ``pyflink.datastream.state.ValueStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.VALUE

    def __init__(self, name: str, value_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, value_type_info)
