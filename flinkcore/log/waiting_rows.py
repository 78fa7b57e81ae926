"""Events of paused splits that wait in a checkpoint: read and filtered, and not yet met by their generator.

A row of such a table::

    the columns that the job reads, as they reach the timestamps | timestamp | arrival | split | position

Arrivals are running maxima, splits are numbers among those of the checkpoint's time plane, and positions are those in
the whole split. Rows of a split lie in its order, also from one table to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.arrow.batch_bytes import pieces
from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.table_file import TableFile, read_table, refused_as
from flinkcore.errors import SchemaError
from flinkcore.log.sources.chunks import Chunk

_PLACES: Final[Mapping[str, pa.DataType]] = {
    f"{HIDDEN_PREFIX}waiting {name}": kind
    for name, kind in (
        ("timestamp_ms", pa.int64()),
        ("arrival_ms", pa.int64()),
        ("split", pa.int32()),
        ("position", pa.int64()),
    )
}


def waiting_table(
    batch: pa.RecordBatch, timestamps_ms: Int64s, arrivals_ms: Int64s, splits: Int32s, positions: Int64s
) -> CheckpointTable:
    """Return the table of events that wait; parameters as of `WaitingBatch`."""
    places = timestamps_ms, arrivals_ms, splits, positions
    arrays = [pa.array(column, kind) for column, kind in zip(places, _PLACES.values(), strict=True)]
    names = [*batch.schema.names, *_PLACES]
    return CheckpointTable(pa.RecordBatch.from_arrays([*batch.columns, *arrays], names), {}, {})


@dataclass(frozen=True)
class WaitingBatch:
    """A batch of events that wait, as the time plane and the data plane see it.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, n rows
        The columns that the job reads, after the operations ahead of the timestamps.
    timestamp_ms, arrival_ms : numpy.ndarray, shape (n,), int64
    split_codes : numpy.ndarray, shape (n,), int32
        Indices into ``split_values``.
    split_values : list, length k
        Values of the splits of the checkpoint.
    positions : numpy.ndarray, shape (n,), int64
        In the whole split.
    """

    batch: pa.RecordBatch
    timestamp_ms: Int64s
    arrival_ms: Int64s
    split_codes: Int32s
    split_values: list[Any]
    positions: Int64s

    @property
    def by_cut(self) -> None:
        """Sides of the cut: unknown, as the run that read them from the log has counted them."""

    @property
    def split_rows(self) -> Int64s:
        """Shape (k,): none, as they were counted when they were read from the log."""
        return np.zeros(len(self.split_values), np.int64)

    @property
    def rows_read(self) -> int:
        """Return how many rows."""
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PausedSplits:
    """Splits of a checkpoint that may have waiting events, by their numbers.

    Parameters
    ----------
    values : list, length k
        The values of the split column.
    after_ms, up_to_ms : numpy.ndarray, shape (k,), int64
        Their events arrived after the one and up to the other; none can, where the split is not paused.
    rows : numpy.ndarray, shape (k,), int64
        Number of rows that the split had in all, or -1 if positions are not numbers of rows.
    """

    values: list[Any]
    after_ms: Int64s
    up_to_ms: Int64s
    rows: Int64s


@dataclass(frozen=True)
class WaitingRows(Chunk):
    """Events of paused splits in a table of a checkpoint: the first chunks of the log that is resumed from it.

    Parameters
    ----------
    storage : CheckpointDirectory
    entry : TableFile
        The table.
    splits : PausedSplits
    """

    storage: CheckpointDirectory
    entry: TableFile
    splits: PausedSplits

    @classmethod
    def of(
        cls, storage: CheckpointDirectory, tables: Sequence[TableFile], splits: PausedSplits
    ) -> tuple[WaitingRows, ...]:
        """Return the chunks of all tables, which come before chunk 0 of the log.

        Parameters
        ----------
        storage : CheckpointDirectory
        tables : sequence of TableFile
            In the order in which they were written.
        splits : PausedSplits
        """
        return tuple(
            cls(
                number - len(tables),
                f"{storage.path}/{entry.file}",
                entry.n_rows,
                entry.size,
                0,
                storage,
                entry,
                splits,
            )
            for number, entry in enumerate(tables)
        )

    def batches(self, batch_rows: int, batch_bytes: int = BATCH_BYTES) -> Iterator[WaitingBatch]:
        """Stream the events in their order.

        Parameters
        ----------
        batch_rows : int
            Rows of a batch at most.
        batch_bytes : int
            Bytes of a batch at most, unless it has only one row.

        Raises
        ------
        CheckpointError
            If the table is missing, damaged, or contradicts the time plane of the checkpoint.
        """
        table = read_table(self.storage, self.entry)
        with refused_as(f"{self.label} ({self.entry})", self.path):
            places = [table.numbers(name, kind) for name, kind in _PLACES.items()]
            self._check(*places)
            own = table.batch.select([name for name in table.batch.schema.names if name not in _PLACES])

        def too_large(start: int, stop: int) -> bool:
            return stop - start > batch_rows or own.slice(start, stop - start).nbytes > batch_bytes

        for start, stop in pieces(0, own.num_rows, too_large):
            timestamps, arrivals, splits, positions = (column[start:stop] for column in places)
            batch = own.slice(start, stop - start)
            yield WaitingBatch(batch, timestamps, arrivals, splits, self.splits.values, positions)

    def _check(
        self,
        timestamps: npt.NDArray[Any],
        arrivals: npt.NDArray[Any],
        splits: npt.NDArray[Any],
        positions: npt.NDArray[Any],
    ) -> None:
        paused = self.splits
        self._refuse(
            (splits < 0) | (splits >= len(paused.values)), "is of a split that the checkpoint has not"
        )
        outside = (arrivals <= paused.after_ms[splits]) | (arrivals > paused.up_to_ms[splits])
        self._refuse(outside, "did not arrive while its split was paused")
        rows = paused.rows[splits]
        self._refuse((rows >= 0) & ((positions < 0) | (positions >= rows)), "has a position beyond its split")
        order = np.argsort(splits, kind="stable")
        goes_back = (np.diff(positions[order]) <= 0) | (np.diff(arrivals[order]) < 0)
        is_wrong = np.zeros(len(order), np.bool_)
        is_wrong[order[1:]] = (np.diff(splits[order]) == 0) & (rows[order[1:]] >= 0) & goes_back
        self._refuse(is_wrong, "does not come behind the one before it in its split")

    def _refuse(self, is_wrong: npt.NDArray[np.bool_], what: str) -> None:
        if is_wrong.any():
            raise SchemaError(f"row {int(np.argmax(is_wrong))} {what}")

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        for waiting in self.batches(batch_rows, batch_bytes):
            yield waiting.batch if columns is None else waiting.batch.select(list(columns))

    @property
    def path(self) -> str:
        return self.label
