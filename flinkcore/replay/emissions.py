"""What the operators of splits emit, element by element, and the timeline that the valve makes of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark import Watermark
from flinkcore.replay.column_ipc import read_columns, write_columns
from flinkcore.replay.step_order import AFTER_ALL_SPLITS
from flinkcore.replay.timeline import Timeline
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus

Int64s = npt.NDArray[np.int64]


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
        self._rows.extend((self.clock_ms, self.cause, self.position, kind, timestamp_ms))

    def rows(self) -> Int64s:
        """All so far: numpy.ndarray of int64, shape (n, 5): clock, cause, position, kind, timestamp."""
        return np.array(self._rows, np.int64).reshape(-1, 5)


@dataclass(frozen=True, eq=False)
class Emissions:
    """What the operators of some splits emitted; each split's emissions lie in their order.

    Parameters
    ----------
    split, clock_ms, cause, position, kind, timestamp_ms : numpy.ndarray of int64, shape (n_emissions,)
        As of SplitEmissions; kinds are those of the valve, the timestamp of a status is 0.
    """

    split: Int64s
    clock_ms: Int64s
    cause: Int64s
    position: Int64s
    kind: Int64s
    timestamp_ms: Int64s

    @classmethod
    def of(cls, splits: dict[int, SplitEmissions]) -> Emissions:
        """The emissions of splits, by number."""
        rows = {split: emissions.rows() for split, emissions in splits.items()}
        split = np.repeat(np.array(list(rows), np.int64), [len(found) for found in rows.values()])
        columns = np.concatenate([np.empty((0, 5), np.int64), *rows.values()]).T
        return cls(split, *(np.ascontiguousarray(column) for column in columns))

    @classmethod
    def concatenate(cls, parts: Iterable[Emissions]) -> Emissions:
        """The emissions of several sets of splits."""
        held = list(parts)
        none = np.empty(0, np.int64)
        return cls(
            *(
                np.concatenate([none, *(getattr(part, column.name) for part in held)])
                for column in fields(cls)
            )
        )

    def in_order(self) -> Emissions:
        """In the order in which the valve takes them in: by clock; at one clock those of events in total order,
        then those of the tick in split order, then those of the end of the log."""
        order = np.lexsort((self.position, self.split, self.cause, self.clock_ms))
        return Emissions(*(getattr(self, column.name)[order] for column in fields(self)))

    def to_ipc(self) -> bytes:
        """The emissions as an Arrow IPC stream."""
        return write_columns(
            "Emissions", {}, {column.name: getattr(self, column.name) for column in fields(self)}
        )

    @classmethod
    def from_ipc(cls, data: bytes) -> Emissions:
        """The emissions that `to_ipc` wrote; a DataError if these bytes are something else."""
        _, columns = read_columns("Emissions", data)
        return cls(**{name: column.to_numpy() for name, column in columns.items()})

    def timeline(self, splits: int) -> Timeline:
        """What the valve, which has a channel for each of so many splits, emits; these emissions lie in order."""
        valve = StatusWatermarkValve(splits)
        causes, kinds, watermarks = valve.input_batch(
            self.split.astype(np.int32), self.kind.astype(np.int8), self.timestamp_ms
        )
        merged = kinds == WATERMARK_KIND
        steps = causes[merged]
        by_event = self.cause[steps] == Cause.EVENT
        if not by_event.any():
            return Timeline.to_end_of_time(self.clock_ms[steps], watermarks[merged])
        return Timeline.to_end_of_time(
            self.clock_ms[steps],
            watermarks[merged],
            np.where(by_event, self.split[steps], AFTER_ALL_SPLITS),
            np.where(by_event, self.position[steps], 0),
        )

    def final_watermarks(self, splits: int) -> Int64s:
        """The last watermark of each of so many splits, -2**63 if it had none."""
        final = np.full(splits, MIN_TIMESTAMP)
        marks = self.kind == WATERMARK_KIND
        np.maximum.at(final, self.split[marks], self.timestamp_ms[marks])
        return final

    def idle_spans(self, end_ms: int) -> tuple[Int64s, Int64s, Int64s]:
        """When which split was idle: (split, from, to), by split and clock; these emissions lie in order."""
        statuses = np.flatnonzero(self.kind != WATERMARK_KIND)
        statuses = statuses[np.argsort(self.split[statuses], kind="stable")]
        begins = np.flatnonzero(self.kind[statuses] == IDLE_KIND)
        # A split is idle until its next status, which is active; after that of the last split nothing follows.
        splits = np.append(self.split[statuses], -1)
        until = np.append(self.clock_ms[statuses], end_ms)
        until = np.where(splits[begins + 1] == splits[begins], until[begins + 1], end_ms)
        return splits[begins], self.clock_ms[statuses[begins]], until
