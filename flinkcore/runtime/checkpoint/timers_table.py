"""The timers of a service as a table."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.timers import TimerColumns
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.runtime.checkpoint.value_decoding import Decode, decode
from flinkcore.runtime.checkpoint.value_encoding import Encode, encode
from flinkcore.runtime.timers.internal_timers_snapshot import InternalTimersSnapshot


def timers_to_table(
    name: str, snapshot: InternalTimersSnapshot, encode_keys: Encode = encode
) -> CheckpointTable:
    """Return the table of a service's timers, in order of registration, those of event time first.

    Parameters
    ----------
    name : str
    snapshot : InternalTimersSnapshot
    encode_keys : callable
        As `encode`.

    Raises
    ------
    SchemaError
        If a column cannot hold one of the keys or namespaces.
    """
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
    """Return the timers of a table.

    Parameters
    ----------
    table : CheckpointTable
    decode_keys : callable
        As `decode`.

    Raises
    ------
    SchemaError
        If it is no table of timers.
    """
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
