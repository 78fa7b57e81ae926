"""Steps over single elements, each of which takes and gives elements of one kind, so that they go in any order."""

from collections.abc import Callable
from typing import Any

from jobs.awaited import awaited
from jobs.early_ends import ends_early
from jobs.timed_elements import LATE, STRATEGY, First, Joined, Timers, Windows

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    ProcessJoinFunction,
    TumblingEventTimeWindows,
)

Element = tuple[int, str, int]

ENDS_EARLY = WatermarkStrategy.for_generator(ends_early("tick")).with_timestamp_assigner(First())
"""Watermarks that come to the maximum amid the job."""


def as_element(value: Any) -> Element:
    """Return an element like those of the source, whatever a step has made of it."""
    kind, *rest = value if isinstance(value, tuple) else ("other", value)
    number = next((each for each in rest if isinstance(each, int)), 0)
    return abs(number) % 2000, str(kind)[:1] + str(number % 3), number % 9


class Near(ProcessJoinFunction[Element, Element]):
    def process_element(self, left: Element, right: Element, ctx: Any) -> Any:
        yield left[0], right[1], (left[2] + right[2]) % 9


STEPS: dict[str, Callable[[DataStream], DataStream]] = {
    "map": lambda s: s.map(lambda v: (v[0], v[1], (v[2] + 1) % 9)),
    "filter": lambda s: s.filter(lambda v: v[2] != 3),
    "rebalance": lambda s: s.rebalance(),
    "rescale": lambda s: s.rescale(),
    "shuffle": lambda s: s.shuffle(),
    "broadcast": lambda s: s.broadcast(),
    "twice": lambda s: s.union(s),
    "new chain": lambda s: s.map(lambda v: v).start_new_chain(),
    "watermarks": lambda s: s.assign_timestamps_and_watermarks(STRATEGY),
    "watermarks that end": lambda s: s.assign_timestamps_and_watermarks(ENDS_EARLY),
    "timers": lambda s: s.key_by(lambda v: v[1]).process(Timers()).map(as_element),
    "side output": lambda s: _with_side_output(s),
    "windows": lambda s: (
        s.assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda v: v[1])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(25)))
        .process(Windows())
        .map(as_element)
    ),
    "sums": lambda s: s.key_by(lambda v: v[1]).sum(2).map(as_element),
    "reduced": lambda s: s.key_by(lambda v: v[2] % 3).reduce(
        lambda one, other: (other[0], one[1][:1] + other[1][:1], other[2])
    ),
    "flat map": lambda s: s.flat_map(lambda v: [v] * (v[2] % 3)),
    "awaited": awaited,
    "less parallel": lambda s: s.map(lambda v: v).set_parallelism(1),
    "counted windows": lambda s: (
        s.key_by(lambda v: v[1])
        .count_window(2)
        .reduce(lambda one, other: (one[0], one[1], (one[2] + other[2]) % 9))
    ),
    "sessions": lambda s: (
        s.assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda v: v[1])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(9)))
        .allowed_lateness(15)
        .side_output_late_data(LATE)
        .process(Windows())
        .map(as_element)
    ),
    "near ones": lambda s: _near_ones(s.assign_timestamps_and_watermarks(STRATEGY)),
    "joined": lambda s: (
        s.key_by(lambda v: v[1])
        .connect(s.filter(lambda v: v[2] > 4).key_by(lambda v: v[1]))
        .process(Joined())
        .map(lambda pair: (pair[0][0], pair[0][1], len(pair[1] or ())))
    ),
}


def _near_ones(stream: DataStream) -> DataStream:
    others = stream.filter(lambda v: v[2] > 4).key_by(lambda v: v[1])
    join = stream.key_by(lambda v: v[1]).interval_join(others)
    return join.between(Time.milliseconds(-9), Time.milliseconds(5)).process(Near())


def _with_side_output(stream: DataStream) -> DataStream:
    timers = stream.key_by(lambda v: v[1]).process(Timers())
    return timers.map(as_element).union(timers.get_side_output(LATE))
