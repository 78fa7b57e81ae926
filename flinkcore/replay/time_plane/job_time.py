"""The time of a replay of several logs: split numbers over all of them, and the watermarks that its operator meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.replay.time_plane.combined_timeline import (
    StreamStart,
    StreamTime,
    combined_by_operator,
    merged_by_valve,
)
from flinkcore.replay.time_plane.stage_timelines import JobStreams, OperatorStreams, stage_timelines
from flinkcore.replay.time_plane.time_cut import TimeCut
from flinkcore.replay.time_plane.timeline import Timeline, TimePlane
from flinkcore.replay.time_plane.total_order import LogEvents


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
