"""The timelines of several logs, taken together: by the valve of a union, or by an operator with two inputs.

A stream that goes on from a checkpoint has told a watermark and a status before: valve and operator stand where these
have brought them, and put out nothing for them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flinkcore._native.watermarks import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.replay.time_plane.timeline import AFTER_ALL_SPLITS, Statuses, Timeline
from flinkcore.runtime.combined_watermark_status import IndexedCombinedWatermarkStatus

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StreamStart:
    """What a stream that goes on from a checkpoint has told before.

    Parameters
    ----------
    last_arrival_ms : int
        Of the replay before.
    watermark_ms : int
        -2**63 if there was none.
    is_idle : bool
    """

    last_arrival_ms: int
    watermark_ms: int
    is_idle: bool

    @property
    def step(self) -> tuple[int, int] | None:
        """As of `TimeCut.step`."""
        if self.watermark_ms == MIN_TIMESTAMP:
            return None
        return self.last_arrival_ms - 1, self.watermark_ms


@dataclass(frozen=True, eq=False)
class StreamTime:
    """When a stream has which watermark, and when it is idle.

    Parameters
    ----------
    timeline : Timeline
    statuses : Statuses
    start : StreamStart or None
        None: it begins with its logs.
    stops : bool
        Whether it stops with a checkpoint: the end of time does not follow.
    """

    timeline: Timeline
    statuses: Statuses
    start: StreamStart | None = None
    stops: bool = False

    @property
    def final_watermark_ms(self) -> int:
        """The last watermark; -2**63 if there was none."""
        return int(self.timeline.watermark_ms[-1]) if len(self.timeline.watermark_ms) else MIN_TIMESTAMP

    def with_splits_from(self, first_split: int) -> StreamTime:
        """The same, where the splits of the log have other numbers: this is that of the first."""
        if first_split == 0:
            return self
        timeline, statuses = self.timeline, self.statuses
        return replace(
            self,
            timeline=replace(timeline, split=_counted_from(first_split, timeline.split)),
            statuses=replace(statuses, split=_counted_from(first_split, statuses.split)),
        )


@dataclass(frozen=True, eq=False)
class Emitted:
    """Watermarks and statuses in the order in which they come; all of shape (n,).

    Parameters
    ----------
    clock_ms, split, position : numpy.ndarray of int64
        Their places, as those of the steps of a timeline.
    kind : numpy.ndarray of int8
    watermark_ms : numpy.ndarray of int64
        0 where it is a status.
    """

    clock_ms: Int64s
    split: Int64s
    position: Int64s
    kind: npt.NDArray[np.int8]
    watermark_ms: Int64s

    @classmethod
    def by(cls, time: StreamTime) -> Emitted:
        """What a stream emits, but for what it has told before, and the end of time."""
        timeline, statuses = time.timeline, time.statuses
        steps = timeline.steps_before_end
        kinds = np.where(statuses.idle == 1, IDLE_KIND, ACTIVE_KIND)
        columns = (
            (timeline.clock_ms[:steps], statuses.clock_ms),
            (timeline.split[:steps], statuses.split),
            (timeline.position[:steps], statuses.position),
            (np.full(steps, WATERMARK_KIND), kinds),
            (timeline.watermark_ms[:steps], np.zeros_like(statuses.clock_ms)),
        )
        # A status with n steps before it comes between those numbered n - 1 and n.
        order = np.argsort(
            np.concatenate((2 * np.arange(steps) + 1, 2 * statuses.steps)),
            kind="stable",
        )
        if time.start is not None and time.start.step is not None:
            order = order[order != 0]
        clock, split, position, kind, watermark = (np.concatenate(parts)[order] for parts in columns)
        return cls(clock, split, position, kind.astype(np.int8), watermark)


def merged_by_valve(channels: Sequence[StreamTime], watermark_ms: int = MIN_TIMESTAMP) -> StreamTime:
    """What a union of streams has: each is a channel of one valve.

    Parameters
    ----------
    channels
        At least one; their splits are numbered over all of them.
    watermark_ms
        Where they go on from a checkpoint: what the valve has put out last.

    Notes
    -----
    Flink's ``StatusWatermarkValve``. In a job of Flink each subtask of the streams is a channel; here the splits of
    a log have a valve of their own before.
    """
    if len(channels) == 1:
        return channels[0]
    emitted, channel = emitted_in_order(channels)
    valve = StatusWatermarkValve(len(channels))
    start = _start(channels, watermark_ms)
    if start is not None:
        starts = [stream.start for stream in channels if stream.start is not None]
        valve.restore(
            np.array([each.watermark_ms for each in starts], np.int64),
            np.array([each.is_idle for each in starts], np.uint8),
            watermark_ms,
        )
    outputs = valve.input_batch(channel, emitted.kind, emitted.watermark_ms)
    return _stream_time(emitted, *outputs, start, channels[0].stops)


def combined_by_operator(inputs: Sequence[StreamTime], watermark_ms: int = MIN_TIMESTAMP) -> StreamTime:
    """What an operator with several inputs has, and passes on: the least watermark of those that are not idle.

    Parameters
    ----------
    inputs
        At least one; their splits are numbered over all of them.
    watermark_ms
        Where they go on from a checkpoint: what the operator has passed on last.

    Notes
    -----
    Flink's ``AbstractStreamOperator.processWatermark1``, ``processWatermarkStatus1`` and those of the second input.
    """
    if len(inputs) == 1:
        return inputs[0]
    emitted, number = emitted_in_order(inputs)
    combined = IndexedCombinedWatermarkStatus(len(inputs))
    start = _start(inputs, watermark_ms)
    if start is not None:
        starts = [stream.start for stream in inputs if stream.start is not None]
        combined.restore(
            [each.watermark_ms for each in starts], [each.is_idle for each in starts], watermark_ms
        )
    outputs = put_out_by_operator(combined, number, emitted.kind, emitted.watermark_ms)
    return _stream_time(emitted, *outputs, start, inputs[0].stops)


def put_out_by_operator(
    combined: IndexedCombinedWatermarkStatus,
    number: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int8],
    watermark_ms: Int64s,
) -> tuple[Int64s, npt.NDArray[np.int8], Int64s]:
    """What an operator passes on of watermarks and statuses of its inputs.

    Returns
    -------
    tuple of numpy.ndarray
        Number of the entry that was the cause, kind, and watermark, 0 where it is a status.
    """
    causes, put_out, watermarks = [], [], []
    entries = zip(number.tolist(), kinds.tolist(), watermark_ms.tolist(), strict=True)
    for at, (index, kind, watermark) in enumerate(entries):
        was_idle = combined.is_idle
        if kind == WATERMARK_KIND:
            advanced = combined.update_watermark(index, watermark)
        else:
            advanced = combined.update_status(index, kind == IDLE_KIND)
        if advanced:
            causes.append(at)
            put_out.append(WATERMARK_KIND)
            watermarks.append(combined.combined_watermark)
        if kind != WATERMARK_KIND and combined.is_idle != was_idle:
            causes.append(at)
            put_out.append(kind)
            watermarks.append(0)
    return np.array(causes, np.int64), np.array(put_out, np.int8), np.array(watermarks, np.int64)


def _start(streams: Sequence[StreamTime], watermark_ms: int) -> StreamStart | None:
    """What the streams together have told before, with this watermark last."""
    starts = [stream.start for stream in streams if stream.start is not None]
    if not starts:
        return None
    return StreamStart(starts[0].last_arrival_ms, watermark_ms, all(each.is_idle for each in starts))


def _counted_from(first_split: int, split: Int64s) -> Int64s:
    return np.where(split == AFTER_ALL_SPLITS, split, split + first_split)


def emitted_in_order(streams: Sequence[StreamTime]) -> tuple[Emitted, npt.NDArray[np.int32]]:
    """What all streams emit, by its place in the replay, and the number of the stream of each; ticks by stream."""
    all_emitted = [Emitted.by(stream) for stream in streams]
    number = np.repeat(
        np.arange(len(streams), dtype=np.int32), [len(emitted.clock_ms) for emitted in all_emitted]
    )
    clock, split, position, kind, watermark = (
        np.concatenate([getattr(emitted, name) for emitted in all_emitted])
        for name in ("clock_ms", "split", "position", "kind", "watermark_ms")
    )
    order = np.lexsort(
        (number, position, split, clock)
    )  # stable: what one stream emits at one place keeps its order
    return Emitted(clock[order], split[order], position[order], kind[order], watermark[order]), number[order]


def _stream_time(
    emitted: Emitted,
    causes: Int64s,
    kinds: npt.NDArray[np.int8],
    watermarks: Int64s,
    start: StreamStart | None,
    stops: bool,
) -> StreamTime:
    is_step = kinds == WATERMARK_KIND
    steps, statuses = causes[is_step], causes[~is_step]
    first_step = None if start is None else start.step
    return StreamTime(
        Timeline.going_on(
            emitted.clock_ms[steps],
            watermarks[is_step],
            emitted.split[steps],
            emitted.position[steps],
            first_step=first_step,
            stops=stops,
        ),
        Statuses(
            emitted.clock_ms[statuses],
            np.cumsum(is_step, dtype=np.int64)[~is_step] + int(first_step is not None),
            (kinds[~is_step] == IDLE_KIND).astype(np.int64),
            emitted.split[statuses],
            emitted.position[statuses],
        ),
        start,
        stops,
    )
