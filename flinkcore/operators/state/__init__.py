"""Keyed and operator state, and its snapshots. Private."""

from flinkcore.operators.state.keyed_state_backend import KeyedStateBackend
from flinkcore.operators.state.keyed_state_store import DefaultKeyedStateStore
from flinkcore.operators.state.operator_state_backend import OperatorStateBackend
from flinkcore.operators.state.serialized_values import SerializedValue
from flinkcore.operators.state.state_snapshots import (
    DistributionMode,
    KeyedStateSnapshot,
    OperatorStateSnapshot,
    redistribute,
)
from flinkcore.operators.state.state_table import VOID_NAMESPACE

__all__ = [
    "VOID_NAMESPACE",
    "DefaultKeyedStateStore",
    "DistributionMode",
    "KeyedStateBackend",
    "KeyedStateSnapshot",
    "OperatorStateBackend",
    "OperatorStateSnapshot",
    "SerializedValue",
    "redistribute",
]
