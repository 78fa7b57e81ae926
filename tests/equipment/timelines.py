"""Timelines of steps in plain columns, in blocks of few steps, and the plain columns of timelines."""

from collections.abc import Sequence

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.packed_steps import PackedSteps, StepPacker
from flinkcore.time_plane.timeline import Steps, Timeline

Values = Sequence[int] | Int64s

FEW_STEPS = 3
"""Steps of a block: so few that small examples have several blocks."""


def packed_steps(*columns: Values, block_steps: int = FEW_STEPS) -> PackedSteps:
    """Steps with these clocks and watermarks and, unless ticks made all of them, splits and positions."""
    packer = StepPacker(block_steps=block_steps)
    packer.add(*(np.array(column, np.int64) for column in columns))
    return packer.finish()


def timeline_of(*columns: Values, ends: bool = False, block_steps: int = FEW_STEPS) -> Timeline:
    """The timeline of such steps; the end of the log follows on request."""
    packer = Timeline.packer(None, block_steps)
    packer.add(*(np.array(column, np.int64) for column in columns))
    return Timeline.ended(packer, stops=not ends)


def steps_with_watermarks(watermarks: Values, numbers: Values | None = None) -> PackedSteps:
    """Steps with these watermarks and, if only some numbers get one, others at which it stays as it was."""
    numbers = range(len(watermarks)) if numbers is None else numbers
    given = dict(zip(map(int, numbers), map(int, watermarks), strict=True))
    all_watermarks, last = [], MIN_TIMESTAMP
    for number in range(max(given, default=-1) + 1):
        last = given.get(number, last)
        all_watermarks.append(last)
    clocks = [
        *range(len(all_watermarks) - 1),
        MAX_TIMESTAMP if last == MAX_TIMESTAMP else len(all_watermarks),
    ]
    return packed_steps(clocks[: len(all_watermarks)], all_watermarks)


def repacked(timeline: Timeline, block_steps: int = FEW_STEPS) -> Timeline:
    """The same timeline in blocks of few steps."""
    return timeline_of(*steps_of(timeline), block_steps=block_steps)


def without_end(timeline: Timeline) -> Timeline:
    """The timeline of a log that goes on."""
    steps = steps_of(timeline)
    ends = int(MAX_TIMESTAMP in steps.clock_ms[-1:])
    return timeline_of(*(column[: len(timeline) - ends] for column in steps))


def steps_of(timeline: Timeline) -> Steps:
    """All steps in plain columns, with the end of the log."""
    none = Steps(*np.empty((4, 0), np.int64))
    blocks = [Steps(*timeline.steps.block(number)) for number in range(timeline.steps.n_blocks)]
    return Steps(*(np.concatenate(columns) for columns in zip(none, *blocks, strict=True)))
