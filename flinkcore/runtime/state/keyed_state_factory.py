"""Makes keyed states of their descriptors."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state.element_check import ElementCheck
from flinkcore.runtime.state.entry_check import EntryCheck
from flinkcore.runtime.state.heap_aggregating_state import HeapAggregatingState
from flinkcore.runtime.state.heap_list_state import HeapListState
from flinkcore.runtime.state.heap_map_state import HeapMapState
from flinkcore.runtime.state.heap_reducing_state import HeapReducingState
from flinkcore.runtime.state.heap_state import HeapState
from flinkcore.runtime.state.heap_value_state import HeapValueState
from flinkcore.runtime.state.stamped_values import Stamped
from flinkcore.runtime.state.state_table import StateTable
from flinkcore.runtime.state.ttl_aggregating_state import TtlAggregateFunction, TtlAggregatingState
from flinkcore.runtime.state.ttl_list_state import TtlListState
from flinkcore.runtime.state.ttl_map_state import TtlMapState
from flinkcore.runtime.state.ttl_reducing_state import TtlReduce, TtlReducingState
from flinkcore.runtime.state.ttl_state import TtlLife, TtlState
from flinkcore.runtime.state.ttl_value_state import TtlValueState
from flinkcore.runtime.state.value_check import value_check

KeyedState = HeapState | TtlState[Any]


def heap_state(descriptor: StateDescriptor, key_context: KeyContext, table: StateTable) -> HeapState:
    """Return the state that a descriptor declares, without a time to live, on a table.

    Raises
    ------
    ConfigurationError
        If it is no descriptor of a keyed state.
    """
    name = descriptor.name
    if isinstance(descriptor, ValueStateDescriptor):
        return HeapValueState(name, key_context, table, value_check(name, "values", descriptor.type_info))
    if isinstance(descriptor, ListStateDescriptor):
        return HeapListState(name, key_context, table, ElementCheck(name, descriptor.type_info))
    if isinstance(descriptor, MapStateDescriptor):
        return HeapMapState(name, key_context, table, EntryCheck(descriptor))
    if isinstance(descriptor, ReducingStateDescriptor):
        check = value_check(name, "values", descriptor.type_info)
        return HeapReducingState(name, key_context, table, descriptor.get_reduce_function().reduce, check)
    if isinstance(descriptor, AggregatingStateDescriptor):
        check = value_check(name, "accumulators", descriptor.type_info)
        return HeapAggregatingState(name, key_context, table, descriptor.get_agg_function(), check)
    raise ConfigurationError(f"{descriptor!r} describes no keyed state")


def ttl_state(
    descriptor: StateDescriptor,
    key_context: KeyContext,
    table: StateTable,
    life: TtlLife,
    on_access: Callable[[], None],
) -> TtlState[Any]:
    """Return the state that a descriptor declares, with a time to live, on a table of stamped values.

    Raises
    ------
    ConfigurationError
        If it is no descriptor of a keyed state.
    """
    name = descriptor.name
    check = value_check(name, "values", descriptor.type_info)
    if isinstance(descriptor, ValueStateDescriptor):
        return TtlValueState(HeapValueState(name, key_context, table), life, on_access, check)
    if isinstance(descriptor, ListStateDescriptor):
        original: HeapListState[Stamped] = HeapListState(name, key_context, table, ElementCheck(name))
        return TtlListState(original, life, on_access, ElementCheck(name, descriptor.type_info))
    if isinstance(descriptor, MapStateDescriptor):
        stamped_map: HeapMapState[Any, Stamped] = HeapMapState(
            name, key_context, table, EntryCheck(MapStateDescriptor(name))
        )
        return TtlMapState(stamped_map, life, on_access, EntryCheck(descriptor))
    if isinstance(descriptor, ReducingStateDescriptor):
        reduce = TtlReduce(descriptor.get_reduce_function(), life, check)
        return TtlReducingState(HeapReducingState(name, key_context, table, reduce), life, on_access, check)
    if isinstance(descriptor, AggregatingStateDescriptor):
        check = value_check(name, "accumulators", descriptor.type_info)
        function = TtlAggregateFunction(descriptor.get_agg_function(), life, check)
        aggregating = HeapAggregatingState(name, key_context, table, function)
        return TtlAggregatingState(aggregating, life, on_access, function)
    raise ConfigurationError(f"{descriptor!r} describes no keyed state")
