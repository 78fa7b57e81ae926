"""The watermarks that each operator of a job meets, where logs come to several of them.

All operators count the same steps, so that places of results mean the same to each::

    what logs tell   a:3  b:5  a idle  b:9          operator 1 takes a, operator 2 takes b,
    step              0    1     2      3           operator 3 takes the results of both
    operator 1        3    3     3      3
    operator 2        -    5     5      9
    operator 3        -    3     5      9           its watermark rises with a status, too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flinkcore._native.watermarks import WATERMARK_KIND, StatusWatermarkValve
from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.replay.time_plane.combined_timeline import (
    StreamTime,
    emitted_in_order,
    put_out_by_operator,
)
from flinkcore.replay.time_plane.step_order import AFTER_ALL_SPLITS
from flinkcore.replay.time_plane.timeline import Timeline
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
