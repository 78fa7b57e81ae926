"""The time of a replay of several logs: split numbers over all of them, and the watermarks that its operator meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flinkcore.replay.plans.connected_process import ConnectedProcess
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.time_plane.combined_timeline import StreamTime, combined_by_operator, merged_by_valve
from flinkcore.replay.time_plane.timeline import Timeline, TimePlane
from flinkcore.replay.total_order import Events


@dataclass(frozen=True)
class ReplayTime:
    """The time of a replay as its operator sees it.

    Parameters
    ----------
    timeline : Timeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Of all logs; None: there is no event.
    first_splits : list of int
        Number of the first split of each log.
    second_from : int
        Splits from this number on belong to the second input of the operator, if it has one.
    """

    timeline: Timeline
    last_arrival_ms: int | None
    first_splits: list[int]
    second_from: int = 0


class JobTime:
    """What follows from the time planes of all logs of a job.

    Parameters
    ----------
    plan
        The job.
    time_planes
        Of each log, as `combine_logs` makes them.

    Attributes
    ----------
    first_splits : list of int
        Number of the first split of each log, and how many splits there are in all.
    last_arrival_ms : int or None
        Of all logs; None: there is no event.
    """

    def __init__(self, plan: JobPlan, time_planes: Sequence[TimePlane]) -> None:
        self.time_planes = list(time_planes)
        self.first_splits = [0, *np.cumsum([len(each.split_values) for each in time_planes]).tolist()]
        self.last_arrival_ms = time_planes[0].last_arrival_ms
        self._plan = plan

    @property
    def second_from(self) -> int:
        """Splits from this number on belong to the second input of the operator, if it has one."""
        return int(self.first_splits[len(self._plan.stages[0].inputs[0].logs)])

    def stream_time(self) -> StreamTime:
        """Watermarks and statuses that the operator meets, and passes on."""
        logs = [
            StreamTime(time_plane.timeline, time_plane.statuses).with_splits_from(first_split)
            for time_plane, first_split in zip(self.time_planes, self.first_splits, strict=False)
        ]
        operator = self._plan.stages[0].operator
        if isinstance(operator, ConnectedProcess) and operator.unites_inputs:
            return merged_by_valve(logs)
        return combined_by_operator(
            [merged_by_valve([logs[number] for number in each.logs]) for each in self._plan.stages[0].inputs]
        )

    def replay_time(self) -> ReplayTime:
        """The time as the operator sees it."""
        time = self.stream_time()
        if len(self._plan.stages) > 1:  # the operators go by the places of steps
            time = time.with_splits_from(0)
        return ReplayTime(time.timeline, self.last_arrival_ms, self.first_splits, self.second_from)

    def placed(self, log: int, events: Events) -> Events:
        """Events of a log, with split numbers over all logs."""
        first_split = self.first_splits[log]
        return replace(events, splits=events.splits + np.int32(first_split)) if first_split else events
