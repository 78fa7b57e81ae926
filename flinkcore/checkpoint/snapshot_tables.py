"""The snapshot of a subtask as tables, and back."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot
from flinkcore.checkpoint.state_tables import (
    keyed_state_of_table,
    keyed_state_to_table,
    operator_state_of_table,
    operator_state_to_table,
    splits_to_table,
    timers_of_table,
    timers_to_table,
)
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_decoding import EqualColumnsOnce
from flinkcore.checkpoint.value_encoding import EqualValuesOnce
from flinkcore.operators.state import KeyedStateSnapshot, OperatorStateSnapshot
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot


class SnapshotTable(NamedTuple):
    """A table of the state of an operator.

    Attributes
    ----------
    kind : TableKind
    name : str
        Name of the state or the timer service; empty for other kinds.
    table : CheckpointTable
    """

    kind: TableKind
    name: str
    table: CheckpointTable


def snapshot_tables(snapshot: OperatorSnapshot) -> Iterator[SnapshotTable]:
    """Yield the tables of a snapshot; a SchemaError if no column can hold a value."""
    encode_keys = EqualValuesOnce().encode
    for name, timers in snapshot.timers.items():
        yield SnapshotTable(TableKind.TIMERS, name, timers_to_table(name, timers, encode_keys))
    for name, state in snapshot.keyed_state.items():
        yield SnapshotTable(TableKind.KEYED_STATE, name, keyed_state_to_table(name, state, encode_keys))
    for name, operator_state in snapshot.operator_state.items():
        yield SnapshotTable(TableKind.OPERATOR_STATE, name, operator_state_to_table(name, operator_state))
    if snapshot.splits:
        yield SnapshotTable(TableKind.SPLITS, "", splits_to_table(snapshot.splits))
    if snapshot.time_plane is not None:
        yield SnapshotTable(TableKind.TIME_PLANE, "", snapshot.time_plane)
    for windows in snapshot.windows:
        yield SnapshotTable(TableKind.WINDOWS, "", windows)
    for name, relation in snapshot.relations.items():
        yield SnapshotTable(TableKind.RELATION, name, relation)


def state_of_tables(
    tables: Iterable[SnapshotTable], key_group_range: tuple[int, int], watermark_ms: int
) -> OperatorSnapshot:
    """Return timers, states and windows of tables, of each of which there is one with its kind and name."""
    decode_keys = EqualColumnsOnce().decode
    timers: dict[str, InternalTimersSnapshot] = {}
    keyed_state: dict[str, KeyedStateSnapshot] = {}
    operator_state: dict[str, OperatorStateSnapshot] = {}
    windows: list[CheckpointTable] = []
    relations: dict[str, CheckpointTable] = {}
    for kind, name, table in tables:
        if kind is TableKind.TIMERS:
            timers[name] = timers_of_table(table, decode_keys)
        elif kind is TableKind.KEYED_STATE:
            keyed_state[name] = keyed_state_of_table(table, decode_keys)
        elif kind is TableKind.OPERATOR_STATE:
            operator_state[name] = operator_state_of_table(table)
        elif kind is TableKind.RELATION:
            relations[name] = table
        else:
            windows.append(table)
    return OperatorSnapshot(
        key_group_range,
        watermark_ms,
        timers,
        keyed_state,
        operator_state,
        windows=windows,
        relations=relations,
    )
