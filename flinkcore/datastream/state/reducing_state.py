"""One reduced value per key."""

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.datastream.functions.reduce_function import ReduceFunction, as_reduce_function
from flinkcore.datastream.state.state import MergingState
from flinkcore.datastream.state.state_descriptor import StateDescriptor

T = TypeVar("T")


class ReducingState(MergingState[T, T | None]):
    """What a :class:`ReduceFunction` makes of all values added under the current key.

    ``get`` returns None before the first ``add``; adding None clears.

    Notes
    -----
    Follows ``pyflink.datastream.state.ReducingState``.
    """


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ReducingState`.

    Parameters
    ----------
    name : str
        As of :class:`StateDescriptor`.
    reduce_function : ReduceFunction or callable
    type_info : TypeInformation, optional
        Type of the values.

    Raises
    ------
    ConfigurationError
        As of :class:`StateDescriptor`, and if the function is none. (PyFlink raises TypeError.)

    Notes
    -----
    Follows ``pyflink.datastream.state.ReducingStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.REDUCING

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = as_reduce_function(reduce_function)

    def get_reduce_function(self) -> ReduceFunction[T]:
        """Return the function."""
        return self._reduce_function
