"""Descriptors: how functions declare their state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from flinkcore.datastream.functions.reduce_function import (
    AggregateFunction,
    ReduceFunction,
    as_reduce_function,
)
from flinkcore.datastream.state.state import IN, OUT, K, T, V
from flinkcore.datastream.state.state_ttl_config import StateTtlConfig
from flinkcore.errors import ArgumentTypeError

ACC = TypeVar("ACC")


@runtime_checkable
class StateType(Protocol):
    """A type that a state's values are checked against: a TypeInformation, or a Serializer.

    Its text form appears in error messages. Two objects for the same type must be equal.
    """

    def accepts(self, value: object) -> bool:
        """Return whether a value is of this type; it is never called with None."""


def _checked_type(type_info: StateType | None, name: str) -> StateType | None:
    if type_info is None or (isinstance(type_info, StateType) and not isinstance(type_info, type)):
        return type_info
    raise ArgumentTypeError(f"the type of the state {name!r} is a TypeInformation, not {type_info!r}")


class StateDescriptor(ABC):
    """The name of a state, the type of its content, and how long that lives.

    Parameters
    ----------
    name : str
        Not empty, and unique in its operator.
    type_info : TypeInformation or Serializer, optional
        Type of the value, the elements of the list, the accumulator, or the values of the map; if it is left out,
        values are not checked.

    Raises
    ------
    ConfigurationError
        If the name is not a text or empty, or the type is not a type.

    Notes
    -----
    Follows ``pyflink.datastream.state.StateDescriptor``, where the type cannot be left out.
    """

    class Type(Enum):
        """The kinds of state, as snapshots name them (Flink's ``StateDescriptor.Type``)."""

        VALUE = "value"
        LIST = "list"
        REDUCING = "reducing"
        AGGREGATING = "aggregating"
        MAP = "map"

    type: ClassVar[Type]

    def __init__(self, name: str, type_info: StateType | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"the name of a state is a text that is not empty, not {name!r}")
        self.name = name
        self.type_info = _checked_type(type_info, name)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """Return the name of the state."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig | None) -> None:
        """Let the content expire, or not (None); to be called before the state is asked for.

        Raises
        ------
        ConfigurationError
            If it is not a StateTtlConfig.
        """
        if ttl_config is not None and not isinstance(ttl_config, StateTtlConfig):
            raise ArgumentTypeError(
                f"the time to live of the state {self.name!r} is a StateTtlConfig, such as "
                f"StateTtlConfig.new_builder(Time.hours(1)).build(), not {ttl_config!r}"
            )
        self._ttl_config = ttl_config

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """Return how values expire, or None if they never do."""
        return self._ttl_config if self._ttl_config is not None and self._ttl_config.is_enabled() else None

    def describes_same_state(self, other: StateDescriptor) -> bool:
        """Return whether kind, name, types and time to live are equal; functions are not compared."""
        return self.signature() == other.signature()

    def signature(self) -> tuple[object, ...]:
        """Return what all descriptors of one state must have in common."""
        return self.type, self.name, self.type_info, self.ttl_config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ValueState`; parameters as of :class:`StateDescriptor`.

    Notes
    -----
    Follows ``pyflink.datastream.state.ValueStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.VALUE

    def __init__(self, name: str, value_type_info: StateType | None = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ListState`; parameters as of :class:`StateDescriptor`.

    Notes
    -----
    Follows ``pyflink.datastream.state.ListStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.LIST

    def __init__(self, name: str, elem_type_info: StateType | None = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Declares a :class:`MapState`, or a :class:`BroadcastState`; parameters as of :class:`StateDescriptor`.

    Notes
    -----
    Follows ``pyflink.datastream.state.MapStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.MAP

    def __init__(
        self,
        name: str,
        key_type_info: StateType | None = None,
        value_type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, value_type_info)
        self.key_type_info = _checked_type(key_type_info, name)

    def signature(self) -> tuple[object, ...]:
        return *super().signature(), self.key_type_info


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a :class:`ReducingState`.

    Parameters
    ----------
    name, type_info
        As of :class:`StateDescriptor`.
    reduce_function : ReduceFunction or callable
        Anything else is an ArgumentTypeError.

    Notes
    -----
    Follows ``pyflink.datastream.state.ReducingStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.REDUCING

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = as_reduce_function(reduce_function)

    def get_reduce_function(self) -> ReduceFunction[T]:
        """Return the function."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, ACC, OUT]):
    """Declares an :class:`AggregatingState`.

    Parameters
    ----------
    name, state_type_info
        As of :class:`StateDescriptor`.
    agg_function : AggregateFunction
        Anything else is an ArgumentTypeError.

    Notes
    -----
    Follows ``pyflink.datastream.state.AggregatingStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.AGGREGATING

    def __init__(
        self,
        name: str,
        agg_function: AggregateFunction[IN, ACC, OUT],
        state_type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise ArgumentTypeError(
                f"the aggregating state {name!r} takes an AggregateFunction, not {agg_function!r}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction[IN, ACC, OUT]:
        """Return the function."""
        return self._agg_function
