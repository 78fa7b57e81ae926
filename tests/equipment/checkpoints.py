"""Small checkpoints for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flinkcore._native.timers import TimerColumns
from flinkcore.checkpoint import Checkpoint, OperatorPart, OperatorSnapshot, PendingCheckpoint
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.operators.state import KeyedStateSnapshot
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot

KEY_GROUPS = 8


def keyed_state(
    entries: Mapping[int, Any],
    type: StateDescriptor.Type = StateDescriptor.Type.VALUE,
    ttl_time: StateTtlConfig.TtlTimeCharacteristic | None = None,
    namespace: Any = None,
) -> KeyedStateSnapshot:
    """Entries by key, whose key group is the key itself."""
    groups = np.array(list(entries), np.int64)
    namespaces = [namespace] * len(entries)
    return KeyedStateSnapshot(type, ttl_time, list(entries), groups, namespaces, list(entries.values()))


def timers(
    event_time: Sequence[tuple[int, int]] = (), processing_time: Sequence[tuple[int, int]] = ()
) -> InternalTimersSnapshot:
    """Timers as pairs of timestamp and key, whose key group is the key itself."""
    keys = sorted({key for _, key in [*event_time, *processing_time]})

    def columns(pairs: Sequence[tuple[int, int]]) -> TimerColumns:
        return TimerColumns(
            np.array([timestamp for timestamp, _ in pairs], np.int64),
            np.array([keys.index(key) for _, key in pairs], np.int64),
            np.array([key for _, key in pairs], np.int32),
            np.zeros(len(pairs), np.int64),
        )

    return InternalTimersSnapshot(keys, [None], columns(event_time), columns(processing_time))


def timer_pairs(snapshot: InternalTimersSnapshot, domain: str = "event_time_timers") -> list[tuple[int, Any]]:
    columns = getattr(snapshot, domain)
    return [
        (timestamp, snapshot.keys[key])
        for timestamp, key in zip(columns.timestamps_ms.tolist(), columns.keys.tolist(), strict=True)
    ]


def write_checkpoint(path: Path, operators: Mapping[str, Sequence[OperatorSnapshot]]) -> Checkpoint:
    """Write what the subtasks of operators hold, by uid, and open it."""
    with PendingCheckpoint.begin(path, KEY_GROUPS) as pending:
        writer = pending.writer()
        parts: list[OperatorPart] = []
        for uid, snapshots in operators.items():
            parts += [writer.write(uid, subtask, snapshot) for subtask, snapshot in enumerate(snapshots)]
        pending.commit(parts)
    return Checkpoint.open(path)


def two_subtasks(first: Mapping[int, Any], second: Mapping[int, Any], **kind: Any) -> list[OperatorSnapshot]:
    """A state `v` on two subtasks that have the key groups 0 to 3 and 4 to 7."""
    return [
        OperatorSnapshot((0, 3), keyed_state={"v": keyed_state(first, **kind)}),
        OperatorSnapshot((4, 7), keyed_state={"v": keyed_state(second, **kind)}),
    ]
