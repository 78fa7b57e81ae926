"""PyFlink's ``pyflink.datastream.state`` names: keyed, operator and broadcast state, and how it is declared."""

from flinkcore.datastream.state.operator_state_store import OperatorStateStore
from flinkcore.datastream.state.state import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ColumnAggregateState,
    ColumnListState,
    ColumnState,
    ListState,
    MapState,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)
from flinkcore.datastream.state.state_descriptor import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.datastream.state.state_ttl_config import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ColumnAggregateState",
    "ColumnListState",
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
