"""The entries of a keyed state as a table."""

import builtins
from typing import Any

import pyarrow as pa

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import SchemaError
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.runtime.checkpoint.value_decoding import Decode, decode
from flinkcore.runtime.checkpoint.value_encoding import Encode, encode
from flinkcore.runtime.checkpoint.value_shape import has_serialized
from flinkcore.runtime.state import KeyedStateSnapshot
from flinkcore.runtime.state.time_to_live import map_values


def keyed_state_to_table(
    name: str, snapshot: KeyedStateSnapshot, encode_keys: Encode = encode
) -> CheckpointTable:
    """Return the table of a state's entries; values with a time to live are pairs with their stamps.

    Parameters
    ----------
    name : str
    snapshot : KeyedStateSnapshot
    encode_keys : callable
        As `encode`.

    Raises
    ------
    SchemaError
        If a column cannot hold one of the keys, namespaces or values.
    """
    columns = TableColumns(f"the state {name!r}")
    columns.add_numbers("key_group", snapshot.key_groups, pa.int32())
    columns.add_values("key", snapshot.keys, encode_keys)
    columns.add_values("namespace", snapshot.namespaces)
    columns.add_values("value", snapshot.values)
    ttl_time = snapshot.ttl_time
    return columns.table(
        {"type": snapshot.type.value, "ttl_time": None if ttl_time is None else ttl_time.name}
    )


def keyed_state_of_table(table: CheckpointTable, decode_keys: Decode = decode) -> KeyedStateSnapshot:
    """Return the entries of a table.

    Parameters
    ----------
    table : CheckpointTable
    decode_keys : callable
        As `decode`.

    Raises
    ------
    SchemaError
        If it is no table of a keyed state.
    """
    table.check_columns("key_group", "key", "namespace", "value")
    type = StateDescriptor.Type(table.attributes["type"])
    ttl_time = table.attributes["ttl_time"]
    characteristic = None if ttl_time is None else StateTtlConfig.TtlTimeCharacteristic[ttl_time]
    values = table.values("value")
    container = {StateDescriptor.Type.LIST: list, StateDescriptor.Type.MAP: dict}.get(type)
    if container is not None and not set(map(builtins.type, values)) <= {container}:
        raise SchemaError(f"a {type.value} state of a checkpoint has values that are no {container.__name__}")
    if container is not None and not all(values):  # None may be a value: of a column state of objects
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
            "a state of a checkpoint with a time to live has a value that is no pair with the time of its last access"
        )
    if not MIN_TIMESTAMP <= stamped[1] <= MAX_TIMESTAMP:
        raise SchemaError(f"a state of a checkpoint has the last access {stamped[1]}, which is no time in ms")
