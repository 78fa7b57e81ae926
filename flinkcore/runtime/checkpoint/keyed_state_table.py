"""The entries of a keyed state as a table."""

import builtins

import pyarrow as pa

from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import SchemaError
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.runtime.checkpoint.value_decoding import Decode, decode
from flinkcore.runtime.checkpoint.value_encoding import Encode, encode
from flinkcore.runtime.checkpoint.value_shape import has_serialized
from flinkcore.runtime.state import KeyedStateSnapshot


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
    try:
        type = StateDescriptor.Type(table.attributes["type"])
        ttl_time = table.attributes["ttl_time"]
        characteristic = None if ttl_time is None else StateTtlConfig.TtlTimeCharacteristic[ttl_time]
    except (KeyError, ValueError) as failure:
        raise SchemaError(f"a keyed state of a checkpoint is of no kind known here ({failure})") from failure
    values = table.values("value")
    container = {StateDescriptor.Type.LIST: list, StateDescriptor.Type.MAP: dict}.get(type)
    if container is not None and not set(map(builtins.type, values)) <= {container}:
        raise SchemaError(f"a {type.value} state of a checkpoint has values that are no {container.__name__}")
    return KeyedStateSnapshot(
        type,
        characteristic,
        table.values("key", decode_keys),
        table.numbers("key_group", pa.int32()),
        table.values("namespace"),
        values,
        has_serialized(table.shapes["value"]),
    )
