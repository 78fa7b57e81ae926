"""Watermarks and statuses of the streams of a job: of its logs, of unions of them, and what operators pass on.

A stream that is resumed from a checkpoint has emitted a watermark and a status before: valve and operator stand where
these have brought them, and emit nothing for them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.operators.combined_watermark_status import IndexedCombinedWatermarkStatus
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS, Steps, TimePlane

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class StreamStart:
    """Last emission of a stream that resumes from a checkpoint.

    Parameters
    ----------
    watermark_ms : int
        Last watermark, in ms since the epoch; -2**63 before the first.
    is_idle : bool
    """

    watermark_ms: int
    is_idle: bool


@dataclass(frozen=True, eq=False)
class StreamWatermarks:
    """Watermarks and statuses of a stream, in order.

    Parameters
    ----------
    cause : numpy.ndarray of int64, shape (n,)
        Which watermark or status of a log was the cause: its number among those of all logs, in total order.
    kind : numpy.ndarray of int8, shape (n,)
    watermark_ms : numpy.ndarray of int64, shape (n,)
        0 where it is a status.
    start : StreamStart or None
        Last emission before the logs, or None if the stream begins with them.
    """

    cause: Int64s
    kind: Kinds
    watermark_ms: Int64s
    start: StreamStart | None = None

    @property
    def is_watermark(self) -> npt.NDArray[np.bool_]:
        """Return which are watermarks; shape (n,)."""
        return np.asarray(self.kind == WATERMARK_KIND)

    @property
    def _started_ms(self) -> int:
        return MIN_TIMESTAMP if self.start is None else self.start.watermark_ms

    @property
    def final_watermark_ms(self) -> int:
        """The last watermark; -2**63 before the first."""
        watermarks = self.watermark_ms[self.is_watermark]
        return int(watermarks[-1]) if len(watermarks) else self._started_ms

    def held_back(self, by_ms: int) -> StreamWatermarks:
        """Return these with watermarks that are so much lower."""
        if not by_ms:
            return self
        lower = np.maximum(self.watermark_ms, MIN_TIMESTAMP + by_ms) - by_ms
        start = self.start
        if start is not None:
            start = StreamStart(held_back(start.watermark_ms, by_ms), start.is_idle)
        return replace(self, watermark_ms=np.where(self.is_watermark, lower, 0), start=start)

    def watermarks_at(self, causes: Int64s) -> Int64s:
        """Return the watermark after each of some causes, which are in order and include all that raise it."""
        rises = np.full(len(causes), self._started_ms)
        at = self.is_watermark
        rises[np.searchsorted(causes, self.cause[at])] = self.watermark_ms[at]
        return np.maximum.accumulate(rises)


def held_back(watermark_ms: int, by_ms: int) -> int:
    """Return a watermark that is so much lower; -2**63, for none yet, stays as it is."""
    return max(watermark_ms, MIN_TIMESTAMP + by_ms) - by_ms


@dataclass(frozen=True, eq=False)
class LogStreams:
    """Emissions of all logs of a job, in total order.

    Parameters
    ----------
    clock_ms, split, position : numpy.ndarray of int64, shape (n,)
        The places of all watermarks and statuses, as those of the steps of a timeline, with splits numbered over all
        logs. Those of several logs at one tick come in the order of the logs.
    streams : list of StreamWatermarks
        Streams of each log.
    """

    clock_ms: Int64s
    split: Int64s
    position: Int64s
    streams: list[StreamWatermarks]

    @classmethod
    def of(
        cls,
        time_planes: Sequence[TimePlane],
        first_splits: Sequence[int],
        starts: Sequence[StreamStart | None],
    ) -> LogStreams:
        """Return what logs emit, but for what they have emitted before, and the end of time.

        Parameters
        ----------
        time_planes
            Time planes of each log.
        first_splits
            Number of the first split of each log.
        starts
            Starts of each log.
        """
        emitted = [
            _emitted(time_plane, first_split, start)
            for time_plane, first_split, start in zip(time_planes, first_splits, starts, strict=False)
        ]
        log = np.repeat(np.arange(len(emitted)), [len(columns[0]) for columns in emitted])
        clock, split, position, kind, watermark = map(np.concatenate, zip(*emitted, strict=True))
        order = np.lexsort((log, position, split, clock))  # stable: at one place a log's keep their order
        log, kind, watermark = log[order], kind[order], watermark[order]
        streams = [
            StreamWatermarks(
                np.flatnonzero(log == number), kind[log == number], watermark[log == number], start
            )
            for number, start in enumerate(starts)
        ]
        return cls(clock[order], split[order], position[order], streams)


def _emitted(
    time_plane: TimePlane, first_split: int, start: StreamStart | None
) -> tuple[Int64s, Int64s, Int64s, Kinds, Int64s]:
    """Clock, split, position, kind and watermark of what a log emits."""
    statuses, steps = time_plane.statuses, time_plane.timeline.steps_before_end
    changes = Steps(statuses.clock_ms, np.zeros_like(statuses.clock_ms), statuses.split, statuses.position)
    emitted = zip(*time_plane.timeline.blocks(), changes, strict=True)
    clock, watermark, split, position = (np.concatenate(columns) for columns in emitted)
    kinds = np.where(statuses.idle == 1, IDLE_KIND, ACTIVE_KIND)
    kind = np.concatenate((np.full(steps, WATERMARK_KIND, np.int8), kinds.astype(np.int8)))
    # A status with n steps before it comes between those numbered n - 1 and n.
    order = np.argsort(np.concatenate((2 * np.arange(steps) + 1, 2 * statuses.steps)), kind="stable")
    if start is not None and start.watermark_ms != MIN_TIMESTAMP:
        order = order[order != 0]
    split = np.where(split == AFTER_ALL_SPLITS, split, split + first_split)
    return clock[order], split[order], position[order], kind[order], watermark[order]


def merged_by_valve(
    channels: Sequence[StreamWatermarks], restored_ms: int = MIN_TIMESTAMP
) -> StreamWatermarks:
    """Return what a union of streams has: each is a channel of one valve.

    Parameters
    ----------
    channels
        At least one.
    restored_ms
        Where they are resumed from a checkpoint: what the valve has emitted last.

    Notes
    -----
    Flink's ``StatusWatermarkValve``. In a job of Flink each subtask of the streams is a channel; here the splits of
    a log have a valve of their own before.
    """
    if len(channels) == 1:
        return channels[0]
    merged, channel, (started_ms, idle) = _merged(channels, restored_ms)
    valve = StatusWatermarkValve(len(channels))
    if merged.start is not None:
        valve.restore(np.array(started_ms, np.int64), np.array(idle, np.uint8), restored_ms)
    at, kinds, watermarks = valve.input_batch(channel, merged.kind, merged.watermark_ms)
    return StreamWatermarks(merged.cause[at], kinds, watermarks, merged.start)


def combined_by_operator(
    inputs: Sequence[StreamWatermarks], restored_ms: int = MIN_TIMESTAMP
) -> StreamWatermarks:
    """Return what an operator with several inputs has, and passes on: the least watermark of those that are not idle.

    Parameters
    ----------
    inputs
        At least one.
    restored_ms
        Where they are resumed from a checkpoint: what the operator has passed on last.

    Notes
    -----
    Flink's ``AbstractStreamOperator.processWatermark1``, ``processWatermarkStatus1`` and those of the second input.
    """
    if len(inputs) == 1:
        return inputs[0]
    merged, number, started = _merged(inputs, restored_ms)
    combined = IndexedCombinedWatermarkStatus(len(inputs))
    if merged.start is not None:
        combined.restore(*started, restored_ms)
    at, kinds, watermarks = list[int](), list[int](), list[int]()
    entries = zip(number.tolist(), merged.kind.tolist(), merged.watermark_ms.tolist(), strict=True)
    for entry, (index, kind, watermark) in enumerate(entries):
        was_idle = combined.is_idle
        if kind == WATERMARK_KIND:
            advanced = combined.update_watermark(index, watermark)
        else:
            advanced = combined.update_status(index, kind == IDLE_KIND)
        if advanced:
            at.append(entry)
            kinds.append(WATERMARK_KIND)
            watermarks.append(combined.combined_watermark)
        if kind != WATERMARK_KIND and combined.is_idle != was_idle:
            at.append(entry)
            kinds.append(kind)
            watermarks.append(0)
    cause = merged.cause[np.array(at, np.int64)]
    return StreamWatermarks(cause, np.array(kinds, np.int8), np.array(watermarks, np.int64), merged.start)


def _merged(
    streams: Sequence[StreamWatermarks], restored_ms: int
) -> tuple[StreamWatermarks, npt.NDArray[np.int32], tuple[list[int], list[bool]]]:
    """Return what all streams emit, sorted by cause and then by stream; the stream of each; and their starts."""
    number = np.repeat(np.arange(len(streams), dtype=np.int32), [len(stream.cause) for stream in streams])
    cause = np.concatenate([stream.cause for stream in streams])
    order = np.argsort(cause, kind="stable")
    kind = np.concatenate([stream.kind for stream in streams])[order]
    watermark = np.concatenate([stream.watermark_ms for stream in streams])[order]
    starts = [stream.start for stream in streams if stream.start is not None]
    idle = [each.is_idle for each in starts]
    start = StreamStart(restored_ms, all(idle)) if starts else None
    started = [each.watermark_ms for each in starts], idle
    return StreamWatermarks(cause[order], kind, watermark, start), number[order], started
