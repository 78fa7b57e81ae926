"""The time of a replay of several logs: split numbers over all of them, and the watermarks that each operator meets.

All operators count the same steps, so that places of results mean the same to each::

    what logs emit   a:3  b:5  a idle  b:9          operator 1 takes a, operator 2 takes b,
    step              0    1     2      3           operator 3 takes the results of both
    operator 1        3    3     3      3
    operator 2        -    5     5      9
    operator 3        -    3     5      9           its watermark rises with a status, too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.time_plane.stream_watermarks import (
    LogStreams,
    StreamStart,
    StreamWatermarks,
    combined_by_operator,
    merged_by_valve,
)
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timeline import Timeline, TimePlane


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
    held_back_ms : int
        By how much the watermarks that it passes on are lower than its own.
    """

    inputs: tuple[InputStreams, ...]
    unites_inputs: bool = False
    held_back_ms: int = 0


@dataclass(frozen=True)
class JobStreams:
    """Logs and operators that are the inputs of each operator of a job.

    Parameters
    ----------
    operators : tuple of OperatorStreams
        Operators, each after those whose results it takes.
    """

    operators: tuple[OperatorStreams, ...]

    @property
    def has_one_time(self) -> bool:
        """Return whether all operators have the same watermarks: they are a chain, and none holds watermarks back."""
        return self.is_chain and not any(one.held_back_ms for one in self.operators[:-1])

    @property
    def is_chain(self) -> bool:
        """Return whether the first operator takes all logs, and each other one only what one operator gives."""
        return not any(
            any(each.logs for each in one.inputs) or sum(len(each.operators) for each in one.inputs) > 1
            for one in self.operators[1:]
        )


@dataclass(frozen=True)
class ReplayTime:
    """The time of a replay as one of its operators sees it.

    Parameters
    ----------
    timeline : Timeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Last arrival of all logs, or None without events.
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
    """Times of a job, derived from the time planes of all its logs.

    Parameters
    ----------
    streams
        Which logs and operators come to each operator.
    time_planes
        Time planes of each log, as `combine_logs` makes them.
    cuts
        Cut at which each log resumes from a checkpoint; empty if they start at their beginning.

    Attributes
    ----------
    first_splits : list of int
        Number of the first split of each log, and how many splits there are in all.
    last_arrival_ms : int or None
        Last arrival of all logs, or None without events.
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
        """Return where the logs end, if the job stops with a checkpoint; none if it does not."""
        if any(time_plane.cut is None for time_plane in self.time_planes):
            return []
        operator_ms = self._outputs[0].final_watermark_ms
        by_log = {
            number: stream.final_watermark_ms
            for stream, each in zip(self._inputs[0], self._streams.operators[0].inputs, strict=False)
            for number in each.logs
        }
        later = zip(self._outputs[1:], self._inputs[1:], strict=True)
        later_operators_ms = tuple(
            tuple(stream.final_watermark_ms for stream in (output, *inputs)) for output, inputs in later
        )
        return [
            replace(
                time_plane.cut,
                input_watermark_ms=by_log.get(number, operator_ms),
                operator_watermark_ms=operator_ms,
                later_operators_ms=() if self._streams.has_one_time else later_operators_ms,
            )
            for number, time_plane in enumerate(self.time_planes)
            if time_plane.cut is not None
        ]

    @cached_property
    def _logs(self) -> LogStreams:
        starts = [self._start(number) for number in range(len(self.time_planes))]
        return LogStreams.of(self.time_planes, self.first_splits, starts)

    def _start(self, number: int) -> StreamStart | None:
        if not self._cuts or self._cuts[number].last_arrival_ms is None:
            return None
        cut = self._cuts[number]
        return StreamStart(cut.watermark_ms, cut.is_idle(self.time_planes[number].split_values))

    def _restored_ms(self, number: int) -> tuple[int, ...]:
        """Return what an operator has passed on last before the logs, and what its inputs had."""
        streams = self._streams.operators[number]
        if not self._cuts:
            return (MIN_TIMESTAMP,) * (1 + len(streams.inputs))
        if number == 0:
            inputs_ms = (self._cuts[each.logs[0]].input_watermark_ms for each in streams.inputs)
            return self._cuts[0].operator_watermark_ms, *inputs_ms
        if self._streams.has_one_time:
            return (self._cuts[0].operator_watermark_ms,) * 2
        return self._cuts[0].later_operators_ms[number - 1]

    @cached_property
    def _inputs_and_outputs(self) -> tuple[list[list[StreamWatermarks]], list[StreamWatermarks]]:
        all_inputs, outputs = list[list[StreamWatermarks]](), list[StreamWatermarks]()
        for number, streams in enumerate(self._streams.operators):
            channels = [
                [
                    *(self._logs.streams[log] for log in each.logs),
                    *(
                        outputs[operator].held_back(self._streams.operators[operator].held_back_ms)
                        for operator in each.operators
                    ),
                ]
                for each in streams.inputs
            ]
            operator_ms, *inputs_ms = self._restored_ms(number)
            if streams.unites_inputs:
                channels, inputs_ms = [[each for one in channels for each in one]], [operator_ms]
            inputs = [merged_by_valve(*each) for each in zip(channels, inputs_ms, strict=True)]
            all_inputs.append(inputs)
            outputs.append(combined_by_operator(inputs, operator_ms))
        return all_inputs, outputs

    @property
    def _inputs(self) -> list[list[StreamWatermarks]]:
        """Return what comes to the inputs of each operator; all together, if it unites them."""
        return self._inputs_and_outputs[0]

    @property
    def _outputs(self) -> list[StreamWatermarks]:
        """Return what each operator meets, and passes on (maybe held back) when it has done what that causes."""
        return self._inputs_and_outputs[1]

    @cached_property
    def timelines(self) -> list[Timeline]:
        """The watermarks of each operator, all inputs combined; all have the same steps."""
        operators = self._streams.operators
        if len(self.time_planes) == 1 and self._streams.has_one_time:
            return [self.time_planes[0].timeline] * len(operators)
        logs, outputs = self._logs, self._outputs
        causes = np.unique(np.concatenate([stream.cause[stream.is_watermark] for stream in outputs]))
        places = logs.clock_ms[causes], logs.split[causes], logs.position[causes]
        return [self._timeline(stream.watermarks_at(causes), *places, stream.start) for stream in outputs]

    def _timeline(
        self,
        watermark_ms: Int64s,
        clock_ms: Int64s,
        split: Int64s,
        position: Int64s,
        start: StreamStart | None,
    ) -> Timeline:
        first_step = None
        if start is not None and self._has_restored_watermark:
            assert self._cuts[0].last_arrival_ms is not None
            first_step = self._cuts[0].last_arrival_ms - 1, start.watermark_ms
        packer = Timeline.packer(first_step)
        packer.add(clock_ms, watermark_ms, split, position)
        return Timeline.ended(packer, stops=self.time_planes[0].cut is not None)

    @property
    def _has_restored_watermark(self) -> bool:
        """Return whether some operator had a watermark before the logs: then all count the step that stands for it."""
        starts = [stream.start for stream in self._outputs]
        return any(start is not None and start.watermark_ms != MIN_TIMESTAMP for start in starts)

    def replay_times(self) -> list[ReplayTime]:
        """Return the time as each operator sees it."""
        return [
            ReplayTime(timeline, self.last_arrival_ms, self.first_splits, self._second_from(streams))
            for timeline, streams in zip(self.timelines, self._streams.operators, strict=True)
        ]
