"""OVER and aggregates of a key, row by row with lists: the models for the native frames and for the rows that wait."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from models.aggregates import SPREADS, Row, Spec, result_of

MIN = -(2**63)


@dataclass
class FrameOfKey:
    rows: list[tuple[int, Row]] = field(default_factory=list)
    """Times and rows, oldest first."""

    sums: dict[int, float] = field(default_factory=dict)
    """Running sums of floats by number of the aggregate: what leaves is subtracted."""


@dataclass
class FramesModel:
    """`size` rows of a frame, or `range_ms` before its row; without both, all rows before."""

    specs: list[Spec]
    schema: pa.Schema
    size: int | None = None
    range_ms: int | None = None
    keys: dict[int, FrameOfKey] = field(default_factory=dict)

    def add(self, key: int, time: int, row: Row) -> None:
        frame = self.keys.setdefault(key, FrameOfKey())
        while frame.rows and (
            len(frame.rows) == self.size
            or (self.range_ms is not None and time - frame.rows[0][0] > self.range_ms)
        ):
            self._count(frame, frame.rows.pop(0)[1], -1)
        frame.rows.append((time, row))
        self._count(frame, row, 1)

    def retract(self, key: int, row: Row) -> None:
        frame = self.keys.get(key)
        if frame is not None and frame.rows:
            at = next((at for at, (_, other) in enumerate(frame.rows) if other == row), 0)
            del frame.rows[at]
            self._count(frame, row, -1)
            if not frame.rows:
                self.clear(key)

    def _count(self, frame: FrameOfKey, row: Row, sign: int) -> None:
        for number, spec in enumerate(self.specs):
            if self._is_running(spec) and row[str(spec[1])] is not None:
                value = float(row[str(spec[1])])
                before = frame.sums.get(number)
                if before is None:
                    frame.sums[number] = value
                else:
                    frame.sums[number] = before + value if sign > 0 else before - value

    def _is_running(self, spec: Spec) -> bool:
        kind = None if spec[1] is None else self.schema.field(spec[1]).type
        if kind is None or pa.types.is_decimal(kind):
            return False
        return spec[0] == "mean" or (spec[0] == "sum" and pa.types.is_floating(kind))

    def clear(self, key: int) -> None:
        self.keys.pop(key, None)

    def results(self, key: int) -> list[Any]:
        """One per spec; of standard deviations and variances the values that they are of, for `is_spread`."""
        frame = self.keys.get(key, FrameOfKey())
        rows = [row for _, row in frame.rows]
        return [self._result(frame, rows, number) for number in range(len(self.specs))]

    def _result(self, frame: FrameOfKey, rows: Sequence[Row], number: int) -> Any:
        spec = self.specs[number]
        if spec[0] in SPREADS:
            return [row[str(spec[1])] for row in rows if row[str(spec[1])] is not None]
        if not self._is_running(spec):
            return result_of(rows, spec, self.schema)
        n = sum(row[str(spec[1])] is not None for row in rows)
        if not n:
            return None
        return frame.sums[number] / n if spec[0] == "mean" else frame.sums[number]


@dataclass
class PendingKey:
    rows: list[tuple[int, int]] = field(default_factory=list)
    """Timestamps and numbers of the rows that wait."""

    timers: set[int] = field(default_factory=set)
    last: int = 0
    cleanup: int | None = None


@dataclass
class PendingModel:
    """Flink's OVER functions up to the frame, with a timer for each timestamp of a key."""

    bounded: bool
    range_ms: int | None = None
    watermark: int = MIN
    keys: dict[int, PendingKey] = field(default_factory=dict)

    def add(self, key: int, timestamp: int, number: int) -> bool:
        """Take a row; False if it is late."""
        state = self.keys.setdefault(key, PendingKey())
        if timestamp <= (state.last if self.bounded else self.watermark):
            return False
        state.rows.append((timestamp, number))
        state.timers.add(timestamp)
        if self.range_ms is not None:
            least = timestamp + self.range_ms + 1
            if state.cleanup is None or state.cleanup < least:
                state.cleanup = timestamp + self.range_ms + self.range_ms // 2 + 1
                state.timers.add(state.cleanup)
        return True

    def advance(self, watermark: int) -> list[tuple[int, int, int | None]]:
        """Return (timestamp, key, number) of the rows that come up, number None where a key is forgotten."""
        if watermark <= self.watermark:
            return []
        self.watermark = watermark
        found: list[tuple[int, int, int | None]] = []
        due = sorted({time for state in self.keys.values() for time in state.timers if time <= watermark})
        for time in due:
            for key, state in self.keys.items():
                if time not in state.timers:
                    continue
                state.timers.discard(time)
                if state.cleanup is not None and state.cleanup <= time:
                    found.append((time, key, None))
                    state.last, state.cleanup = 0, None
                    assert not state.rows or min(state.rows)[0] > time
                    continue
                found += [(time, key, number) for at, number in state.rows if at == time]
                state.rows = [row for row in state.rows if row[0] != time]
                state.last = time
        return found
