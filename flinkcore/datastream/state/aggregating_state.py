"""One aggregate per key."""

from typing import ClassVar, Generic, TypeVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.datastream.functions.aggregate_function import AggregateFunction
from flinkcore.datastream.state.state import MergingState
from flinkcore.datastream.state.state_descriptor import StateDescriptor
from flinkcore.errors import ConfigurationError

IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class AggregatingState(MergingState[IN, OUT | None]):
    """What an :class:`AggregateFunction` makes of all values added under the current key.

    ``get`` returns None before the first ``add``; adding None clears.

    Notes
    -----
    Follows ``pyflink.datastream.state.AggregatingState``.
    """


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, ACC, OUT]):
    """Declares an :class:`AggregatingState`.

    Parameters
    ----------
    name : str
        As of :class:`StateDescriptor`.
    agg_function : AggregateFunction
    state_type_info : TypeInformation, optional
        Type of the accumulators, which are what the state holds.

    Raises
    ------
    ConfigurationError
        As of :class:`StateDescriptor`, and if the function is none. (PyFlink raises TypeError.)

    Notes
    -----
    Follows ``pyflink.datastream.state.AggregatingStateDescriptor``.
    """

    type: ClassVar = StateDescriptor.Type.AGGREGATING

    def __init__(
        self,
        name: str,
        agg_function: AggregateFunction[IN, ACC, OUT],
        state_type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise ConfigurationError(
                f"the aggregating state {name!r} takes an AggregateFunction, not {agg_function!r}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction[IN, ACC, OUT]:
        """Return the function."""
        return self._agg_function
