"""Timers, keyed states, operator states and positions in splits as tables of a checkpoint, and back.

All functions raise a SchemaError: to a table, if no column can hold a key, namespace or value; from a table, if it is
not of their kind. `encode_keys` and `decode_keys` are :func:`value_encoding.encode` and :func:`value_decoding.decode`,
or methods that reuse the keys of the table before.
"""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.timers import TimerColumns
from flinkcore.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.checkpoint.declared_types import type_to_json
from flinkcore.checkpoint.operator_snapshot import SplitPosition
from flinkcore.checkpoint.value_decoding import Decode, decode, decode_maps
from flinkcore.checkpoint.value_encoding import Encode, encode
from flinkcore.checkpoint.value_shape import has_serialized
from flinkcore.datastream.state import MapStateDescriptor, StateDescriptor, StateTtlConfig
from flinkcore.errors import SchemaError
from flinkcore.operators.state import DistributionMode, KeyedStateSnapshot, OperatorStateSnapshot
from flinkcore.operators.state.time_to_live import map_values
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot


def timers_to_table(
    name: str, snapshot: InternalTimersSnapshot, encode_keys: Encode = encode
) -> CheckpointTable:
    """Return the table of a service's timers in order of registration, event time first."""
    domains = snapshot.event_time_timers, snapshot.processing_time_timers
    columns = TableColumns(f"the timers {name!r}")
    lengths = [len(timers.timestamps_ms) for timers in domains]
    columns.add_numbers("is_event_time", np.repeat([True, False], lengths), pa.bool_())
    columns.add_numbers("timestamp_ms", np.concatenate([t.timestamps_ms for t in domains]), pa.int64())
    columns.add_numbers("key_group", np.concatenate([t.key_groups for t in domains]), pa.int32())
    key_indexes = np.concatenate([timers.keys for timers in domains])
    columns.add_indexed_values("key", snapshot.keys, key_indexes, encode_keys)
    namespaces = np.concatenate([timers.namespaces for timers in domains])
    columns.add_indexed_values("namespace", snapshot.namespaces, namespaces)
    event_time, processing_time = domains
    return columns.table(
        {
            "event_time": _extent(event_time.timestamps_ms),
            "processing_time": _extent(processing_time.timestamps_ms),
        }
    )


def _extent(timestamps_ms: npt.NDArray[np.int64]) -> dict[str, Any]:
    if not len(timestamps_ms):
        return {"count": 0}
    return {
        "count": len(timestamps_ms),
        "earliest_ms": int(timestamps_ms.min()),
        "latest_ms": int(timestamps_ms.max()),
    }


def timers_of_table(table: CheckpointTable, decode_keys: Decode = decode) -> InternalTimersSnapshot:
    """Return the timers of a table."""
    table.check_columns("is_event_time", "timestamp_ms", "key_group", "key", "namespace")
    keys, key_indexes = table.indexed_values("key", decode_keys)
    namespaces, namespace_indexes = table.indexed_values("namespace")
    is_event_time = table.numbers("is_event_time", pa.bool_())
    timestamps_ms = table.numbers("timestamp_ms", pa.int64())
    key_groups = table.numbers("key_group", pa.int32())
    event_time, processing_time = (
        TimerColumns(
            timestamps_ms[chosen], key_indexes[chosen], key_groups[chosen], namespace_indexes[chosen]
        )
        for chosen in (is_event_time, ~is_event_time)
    )
    return InternalTimersSnapshot(keys, namespaces, event_time, processing_time).with_used_names()


def keyed_state_to_table(
    name: str, snapshot: KeyedStateSnapshot, encode_keys: Encode = encode
) -> CheckpointTable:
    """Return the table of a state's entries; values with a time to live are stamped."""
    columns = TableColumns(f"the state {name!r}")
    columns.add_numbers("key_group", snapshot.key_groups, pa.int32())
    columns.add_values("key", snapshot.keys, encode_keys)
    columns.add_values("namespace", snapshot.namespaces)
    columns.add_values("value", snapshot.values)
    ttl_time = snapshot.ttl_time
    return columns.table(
        {
            "type": snapshot.type.value,
            "ttl_time": None if ttl_time is None else ttl_time.name,
            **_declared(snapshot.descriptor),
        }
    )


def _declared(descriptor: StateDescriptor | None) -> dict[str, Any]:
    """Return the types that a descriptor declares, as attributes of the table of its state."""
    declared = {"value_type": type_to_json(getattr(descriptor, "type_info", None))}
    if isinstance(descriptor, MapStateDescriptor):
        declared["key_type"] = type_to_json(descriptor.key_type_info)
    return {name: each for name, each in declared.items() if each is not None}


def keyed_state_of_table(table: CheckpointTable, decode_keys: Decode = decode) -> KeyedStateSnapshot:
    """Return the entries of a table."""
    table.check_columns("key_group", "key", "namespace", "value")
    type = StateDescriptor.Type(table.attributes["type"])
    ttl_time = table.attributes["ttl_time"]
    characteristic = None if ttl_time is None else StateTtlConfig.TtlTimeCharacteristic[ttl_time]
    values = table.values("value", decode_maps if type is StateDescriptor.Type.MAP else decode)
    container = {StateDescriptor.Type.LIST: list, StateDescriptor.Type.MAP: dict}.get(type)
    if container is not None and not set(map(builtins.type, values)) <= {container}:
        raise SchemaError(f"a {type.value} state of a checkpoint has values other than {container.__name__}")
    if container is not None and not all(values):  # of other kinds, a column state of objects may have None
        raise SchemaError(f"a {type.value} state of a checkpoint has an entry without a value")
    if characteristic is not None:
        for held in values:
            map_values(type, held, _checked_stamp)
    return KeyedStateSnapshot(
        type,
        characteristic,
        table.values("key", decode_keys),
        table.numbers("key_group", pa.int32()),
        table.values("namespace"),
        values,
        has_serialized(table.shapes["value"]),
    )


def _checked_stamp(stamped: Any) -> None:
    if builtins.type(stamped) is not tuple or len(stamped) != 2 or builtins.type(stamped[1]) is not int:
        raise SchemaError(
            "a state of a checkpoint with a time to live has a value without the time of its last access"
        )
    if not MIN_TIMESTAMP <= stamped[1] <= MAX_TIMESTAMP:
        raise SchemaError(
            f"a state of a checkpoint has the last access {stamped[1]}, which is not a time in ms"
        )


def operator_state_to_table(name: str, snapshot: OperatorStateSnapshot) -> CheckpointTable:
    """Return the table of a state's elements in order; those of a broadcast state are pairs."""
    columns = TableColumns(f"the operator state {name!r}")
    columns.add_values("element", snapshot.elements)
    return columns.table({"mode": snapshot.mode.value, **_declared(snapshot.descriptor)})


def operator_state_of_table(table: CheckpointTable) -> OperatorStateSnapshot:
    """Return the elements of a table."""
    table.check_columns("element")
    mode = DistributionMode(table.attributes["mode"])
    elements = table.values("element")
    if mode is DistributionMode.BROADCAST and any(type(e) is not tuple or len(e) != 2 for e in elements):
        raise SchemaError(
            "a broadcast state of a checkpoint has an element that is not a pair of key and value"
        )
    return OperatorStateSnapshot(mode, elements)


def splits_to_table(splits: Sequence[SplitPosition]) -> CheckpointTable:
    """Return the table of positions."""
    columns = TableColumns("the splits")
    columns.add_values("split", [split.split for split in splits])
    columns.add_values("position", [split.position for split in splits])
    columns.add_values("state", [split.state for split in splits])
    return columns.table({})


def splits_of_table(table: CheckpointTable) -> list[SplitPosition]:
    """Return the positions of a table."""
    table.check_columns("split", "position", "state")
    columns = table.values("split"), table.values("position"), table.values("state")
    return [SplitPosition(*row) for row in zip(*columns, strict=True)]
