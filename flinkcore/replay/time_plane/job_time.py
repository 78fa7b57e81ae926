"""The time of a replay of several logs: split numbers over all of them, and the watermarks that its operator meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from flinkcore._native.watermarks import WATERMARK_KIND, StatusWatermarkValve
from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.replay.time_plane.combined_timeline import (
    StreamStart,
    StreamTime,
    combined_by_operator,
    emitted_in_order,
    merged_by_valve,
    put_out_by_operator,
)
from flinkcore.replay.time_plane.time_cut import TimeCut
from flinkcore.replay.time_plane.timeline import AFTER_ALL_SPLITS, Timeline, TimePlane
from flinkcore.replay.time_plane.total_order import LogEvents
from flinkcore.runtime.combined_watermark_status import IndexedCombinedWatermarkStatus

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class InputStreams:
    """The streams of one input of an operator.

    Parameters
    ----------
    logs : tuple of int
        Numbers of the logs whose rows it gets.
    operators : tuple of int
        Numbers of the operators whose results it gets.
    """

    logs: tuple[int, ...]
    operators: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperatorStreams:
    """The streams that come to an operator.

    Parameters
    ----------
    inputs : tuple of InputStreams
        One or two.
    unites_inputs : bool
        Whether its watermark is that of a union of both inputs, and not that of an operator with two.
    """

    inputs: tuple[InputStreams, ...]
    unites_inputs: bool = False


@dataclass(frozen=True)
class JobStreams:
    """Which logs and operators come to each operator of a job.

    Parameters
    ----------
    operators : tuple of OperatorStreams
        Each behind those whose results it takes.
    """

    operators: tuple[OperatorStreams, ...]

    @property
    def is_chain(self) -> bool:
        """Whether the first operator takes all logs, and each other one only what one operator gives."""
        return not any(
            any(each.logs for each in one.inputs) or sum(len(each.operators) for each in one.inputs) > 1
            for one in self.operators[1:]
        )


@dataclass(frozen=True, eq=False)
class _Told:
    """Watermarks and statuses of a stream, by the number of what a log has told first; shape (n,) each."""

    cause: Int64s
    kind: npt.NDArray[np.int8]
    watermark_ms: Int64s

    @property
    def is_watermark(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.kind == WATERMARK_KIND)


def stage_timelines(operators: Sequence[OperatorStreams], logs: Sequence[StreamTime]) -> list[Timeline]:
    """Return the watermarks of each operator, all with the same steps; the end of time is the last.

    Parameters
    ----------
    operators
        The streams of each, behind those whose results it takes.
    logs
        What each log tells; their splits are numbered over all of them.

    Notes
    -----
    An operator of Flink passes watermarks and statuses on when it has done what they are the cause of.
    """
    emitted, log = emitted_in_order(logs)
    of_logs = [
        _Told(np.flatnonzero(log == number), emitted.kind[log == number], emitted.watermark_ms[log == number])
        for number in range(len(logs))
    ]
    of_stages: list[_Told] = []
    for streams in operators:
        inputs = [
            [*(of_logs[each] for each in one.logs), *(of_stages[each] for each in one.operators)]
            for one in streams.inputs
        ]
        if streams.unites_inputs:
            inputs = [[each for one in inputs for each in one]]
        of_stages.append(_by_operator([_by_valve(channels) for channels in inputs]))
    causes = np.unique(np.concatenate([told.cause[told.is_watermark] for told in of_stages]))
    return [
        Timeline(
            np.append(emitted.clock_ms[causes], MAX_TIMESTAMP),
            np.append(_watermarks(told, causes), MAX_TIMESTAMP),
            np.append(emitted.split[causes], AFTER_ALL_SPLITS),
            np.append(emitted.position[causes], 0),
        )
        for told in of_stages
    ]


def _watermarks(told: _Told, causes: Int64s) -> Int64s:
    rises = np.full(len(causes), MIN_TIMESTAMP)
    rises[np.searchsorted(causes, told.cause[told.is_watermark])] = told.watermark_ms[told.is_watermark]
    return np.maximum.accumulate(rises)


def _by_valve(channels: Sequence[_Told]) -> _Told:
    if len(channels) == 1:
        return channels[0]
    merged, channel = _merged(channels)
    valve = StatusWatermarkValve(len(channels))
    return _put_out(merged, *valve.input_batch(channel, merged.kind, merged.watermark_ms))


def _by_operator(inputs: Sequence[_Told]) -> _Told:
    if len(inputs) == 1:
        return inputs[0]
    merged, number = _merged(inputs)
    combined = IndexedCombinedWatermarkStatus(len(inputs))
    return _put_out(merged, *put_out_by_operator(combined, number, merged.kind, merged.watermark_ms))


def _merged(streams: Sequence[_Told]) -> tuple[_Told, npt.NDArray[np.int32]]:
    """What all streams tell by its cause, and the number of the stream of each; of one cause by stream."""
    number = np.repeat(np.arange(len(streams), dtype=np.int32), [len(told.cause) for told in streams])
    cause, kind, watermark = (
        np.concatenate([getattr(told, name) for told in streams])
        for name in ("cause", "kind", "watermark_ms")
    )
    order = np.argsort(cause, kind="stable")
    return _Told(cause[order], kind[order], watermark[order]), number[order]


def _put_out(merged: _Told, at: Int64s, kinds: npt.NDArray[np.int8], watermarks: Int64s) -> _Told:
    return _Told(merged.cause[at], kinds, watermarks)


@dataclass(frozen=True)
class ReplayTime:
    """The time of a replay as one of its operators sees it.

    Parameters
    ----------
    timeline : Timeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Of all logs; None: there is no event.
    first_splits : list of int
        Number of the first split of each log.
    second_from : int
        Splits of its logs from this number on belong to its second input, if it has one.
    """

    timeline: Timeline
    last_arrival_ms: int | None
    first_splits: list[int]
    second_from: int = 0


class JobTime:
    """What follows from the time planes of all logs of a job.

    Parameters
    ----------
    streams
        Which logs and operators come to each operator.
    time_planes
        Of each log, as `combine_logs` makes them.
    cuts
        Where each log goes on from a checkpoint; none: from the start.

    Attributes
    ----------
    first_splits : list of int
        Number of the first split of each log, and how many splits there are in all.
    last_arrival_ms : int or None
        Of all logs; None: there is no event.
    """

    def __init__(
        self, streams: JobStreams, time_planes: Sequence[TimePlane], cuts: Sequence[TimeCut] = ()
    ) -> None:
        self.time_planes = list(time_planes)
        self.first_splits = [0, *np.cumsum([len(each.split_values) for each in time_planes]).tolist()]
        self.last_arrival_ms = time_planes[0].last_arrival_ms
        self._streams = streams
        self._cuts = cuts

    def _second_from(self, streams: OperatorStreams) -> int:
        of_second = streams.inputs[1].logs if len(streams.inputs) == 2 else ()
        return int(self.first_splits[of_second[0] if of_second else -1])

    def cuts(self) -> list[TimeCut]:
        """Where the logs end, if the job stops with a checkpoint; none if it does not."""
        if any(time_plane.cut is None for time_plane in self.time_planes):
            return []
        operator_ms = self._stream_time.final_watermark_ms
        by_log = {
            number: stream.final_watermark_ms
            for stream, each in zip(self._inputs, self._streams.operators[0].inputs, strict=False)
            for number in each.logs
        }
        return [
            replace(
                time_plane.cut,
                input_watermark_ms=by_log.get(number, operator_ms),
                operator_watermark_ms=operator_ms,
            )
            for number, time_plane in enumerate(self.time_planes)
            if time_plane.cut is not None
        ]

    def _logs(self) -> list[StreamTime]:
        return [
            StreamTime(
                time_plane.timeline, time_plane.statuses, self._start(number), time_plane.cut is not None
            ).with_splits_from(first_split)
            for number, (time_plane, first_split) in enumerate(
                zip(self.time_planes, self.first_splits, strict=False)
            )
        ]

    @cached_property
    def _inputs(self) -> list[StreamTime]:
        """What each input of the first operator has; all together, where it unites them."""
        logs = self._logs()
        first = self._streams.operators[0]
        if first.unites_inputs:
            united = self._cuts[0].operator_watermark_ms if self._cuts else MIN_TIMESTAMP
            return [merged_by_valve(logs, united)]
        return [
            merged_by_valve(
                [logs[number] for number in each.logs],
                self._cuts[each.logs[0]].input_watermark_ms if self._cuts else MIN_TIMESTAMP,
            )
            for each in first.inputs
        ]

    @cached_property
    def _stream_time(self) -> StreamTime:
        """Watermarks and statuses that the operator meets, and passes on."""
        return combined_by_operator(
            self._inputs, self._cuts[0].operator_watermark_ms if self._cuts else MIN_TIMESTAMP
        )

    def _start(self, number: int) -> StreamStart | None:
        if not self._cuts or self._cuts[number].last_arrival_ms is None:
            return None
        cut = self._cuts[number]
        assert cut.last_arrival_ms is not None
        return StreamStart(
            cut.last_arrival_ms, cut.watermark_ms, cut.is_idle(self.time_planes[number].split_values)
        )

    @cached_property
    def timelines(self) -> list[Timeline]:
        """The watermarks of each operator, all inputs combined; all have the same steps."""
        operators = self._streams.operators
        if self._streams.is_chain:
            return [self._stream_time.timeline] * len(operators)
        return stage_timelines(operators, self._logs())

    def replay_times(self) -> list[ReplayTime]:
        """The time as each operator sees it."""
        return [
            ReplayTime(timeline, self.last_arrival_ms, self.first_splits, self._second_from(streams))
            for timeline, streams in zip(self.timelines, self._streams.operators, strict=True)
        ]

    def placed(self, log: int, events: LogEvents) -> LogEvents:
        """Events of a log, with split numbers over all logs."""
        first_split = self.first_splits[log]
        return replace(events, splits=events.splits + np.int32(first_split)) if first_split else events
