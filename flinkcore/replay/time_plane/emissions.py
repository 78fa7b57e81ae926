"""What the operators of splits emit, element by element, and its order."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.watermarks import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.replay.time_plane.column_ipc import read_columns, write_columns
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus

Int64s = npt.NDArray[np.int64]

ROW_INTEGERS = 4
"""Integers of an emission."""


class Cause(IntEnum):
    """Why an operator emitted; at one clock, what events cause comes first."""

    EVENT = 0
    TICK = 1
    END_OF_LOG = 2


class SplitEmissions:
    """Takes what the operator of one split emits, with its place in the replay: an Output.

    Attributes
    ----------
    cause : Cause
    clock_ms : int
        What the replay clock shows: the arrival of the event, the tick, the last arrival.
    position : int
        Of the event in its split; 0 where no event is the cause.
    """

    def __init__(self) -> None:
        self.cause = Cause.TICK
        self.clock_ms = 0
        self.position = 0
        self._rows = array("q")

    def emit_watermark(self, watermark: Watermark) -> None:
        """Take a watermark."""
        self._add(WATERMARK_KIND, watermark.timestamp)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Take a status."""
        self._add(IDLE_KIND if status is WatermarkStatus.IDLE else ACTIVE_KIND, 0)

    def collect(self, record: StreamRecord[Any]) -> None:
        """Leave it: the first pass has no records."""

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Leave it: the first pass has no records."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Leave it: a replay has no latency."""

    def _add(self, kind: int, timestamp_ms: int) -> None:
        self._rows.extend((self.clock_ms, self.position << 4 | self.cause << 2 | kind, timestamp_ms))

    def __len__(self) -> int:
        """How many have been taken since `take`."""
        return len(self._rows) // 3

    def take(self) -> Int64s:
        """Those since the last call, in their order.

        Returns
        -------
        numpy.ndarray of int64, shape (n, 3)
            Clock; position, cause and kind in one; timestamp, of a status 0.
        """
        rows, self._rows = self._rows, array("q")
        return np.array(rows, np.int64).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Emissions:
    """Emissions of some splits in the order in which the valve takes them in.

    By clock; at one clock those of events in total order, then those of the tick in split order, then those of the end
    of the log.

    Parameters
    ----------
    rows : numpy.ndarray of int64, shape (n, 4)
        Clock; cause and split in one; position and kind in one; timestamp.
    """

    rows: Int64s

    @classmethod
    def of(cls, splits: dict[int, SplitEmissions]) -> Emissions:
        """Take the emissions of splits, by number."""
        taken = {split: emissions.take() for split, emissions in splits.items()}
        split = np.repeat(np.array(list(taken), np.int64), [len(found) for found in taken.values()])
        emitted = np.concatenate([np.empty((0, 3), np.int64), *taken.values()])
        clock, place, timestamp = emitted.T
        columns = (clock, (place & 0b1100) << 30 | split, (place >> 4) << 2 | place & 0b11, timestamp)
        return cls(np.stack(columns, axis=1)).in_order()

    def in_order(self) -> Emissions:
        """The rows in order; what one event or tick makes a split emit keeps its own."""
        clock, cause_and_split, position_and_kind, _ = self.rows.T
        return Emissions(self.rows[np.lexsort((position_and_kind >> 2, cause_and_split, clock))])

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)

    @property
    def clock_ms(self) -> Int64s:
        """What the replay clock showed."""
        return self.rows[:, 0]

    @property
    def by_event(self) -> npt.NDArray[np.bool_]:
        """Whether an event was the cause."""
        by_event: npt.NDArray[np.bool_] = (self.rows[:, 1] >> 32) == Cause.EVENT
        return by_event

    @property
    def split(self) -> npt.NDArray[np.int32]:
        """Number of the split."""
        return (self.rows[:, 1] & 0xFFFF_FFFF).astype(np.int32)

    @property
    def position(self) -> Int64s:
        """Of the event that was the cause; else 0."""
        return self.rows[:, 2] >> 2

    @property
    def kind(self) -> npt.NDArray[np.int8]:
        """As the valve names it."""
        return (self.rows[:, 2] & 0b11).astype(np.int8)

    @property
    def timestamp_ms(self) -> Int64s:
        """Of a watermark; else 0."""
        return np.ascontiguousarray(self.rows[:, 3])

    def to_ipc(self) -> bytes:
        """The emissions as an Arrow IPC stream."""
        return write_columns("Emissions", {}, {"rows": self.rows.ravel()})

    @classmethod
    def from_ipc(cls, data: bytes) -> Emissions:
        """The emissions that `to_ipc` wrote; a DataError if these bytes are something else."""
        _, columns = read_columns("Emissions", data)
        return cls(columns["rows"].to_numpy().reshape(-1, ROW_INTEGERS))
