"""Part of a partition that waits in a temporary file: state of its key groups, and rows that came after that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flinkcore._internal.io.spilled_batches import SpilledBatches
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.table_kinds import OF_KEYS, TableKind
from flinkcore.columnar.replay.spilled_rows import SpilledRows
from flinkcore.columnar.stages.restored_operator import StagePlace, SuspendedOperator


class SpilledPart:
    """A range of key groups whose stage was suspended.

    Parameters
    ----------
    key_groups : (int, int)
        The first and the last one.
    place : StagePlace
        Where the stage was suspended.

    Attributes
    ----------
    rows : SpilledRows
        Events that came after that.
    """

    def __init__(self, key_groups: tuple[int, int], place: StagePlace) -> None:
        self.key_groups = key_groups
        self._place = place
        self._batches = SpilledBatches(f"state and rows of the key groups {key_groups[0]} to {key_groups[1]}")
        self._tables: list[Callable[[], SnapshotTable]] = []
        self.rows = SpilledRows(self._batches)

    def add_state(self, state: SnapshotTable) -> None:
        """Write those rows of a table that are of these key groups; a SourceError if they do not fit."""
        kind, name, table = state
        if kind in OF_KEYS:
            table = table.of_key_groups(*self.key_groups)
            if not table.batch.num_rows and kind is not TableKind.TIMERS:
                return  # without a timer, too, a service takes over the watermark
        place, shapes, attributes = self._batches.append(table.batch), table.shapes, table.attributes
        self._tables.append(
            lambda: SnapshotTable(kind, name, CheckpointTable(self._batches.read(place), shapes, attributes))
        )

    def state(self) -> SuspendedOperator:
        """Return the state from which a stage over these key groups is restored."""
        return SuspendedOperator(self._place, self._read_tables)

    def _read_tables(self) -> Iterator[SnapshotTable]:
        return (read() for read in self._tables)

    def close(self) -> None:
        """Release the room on the disk; may be called again."""
        self._batches.close()
