"""PyFlink's ``pyflink.datastream.state`` names: keyed, operator and broadcast state, and how it is declared."""

from flinkcore.datastream.state.aggregating_state import AggregatingState, AggregatingStateDescriptor
from flinkcore.datastream.state.broadcast_state import BroadcastState, ReadOnlyBroadcastState
from flinkcore.datastream.state.column_state import ColumnState
from flinkcore.datastream.state.list_state import ListState, ListStateDescriptor
from flinkcore.datastream.state.map_state import MapState, MapStateDescriptor
from flinkcore.datastream.state.operator_state_store import OperatorStateStore
from flinkcore.datastream.state.reducing_state import ReducingState, ReducingStateDescriptor
from flinkcore.datastream.state.state import AppendingState, MergingState, State
from flinkcore.datastream.state.state_descriptor import StateDescriptor
from flinkcore.datastream.state.state_ttl_config import StateTtlConfig
from flinkcore.datastream.state.value_state import ValueState, ValueStateDescriptor

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ColumnState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]
