"""The native generator of SQL's watermarks against the generator that is called event by event."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flinkcore._native.watermark_generator import RowtimeWatermarkGenerator
from flinkcore.common.rowtime_watermarks import RowtimeWatermarks
from flinkcore.common.watermark import Watermark

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.integers(-30, 60), INT64)
EVENT, TICK = 1, 2


@dataclass
class Output:
    """Takes emissions with their place."""

    clock: int = 0
    place: int = 0
    rows: list[tuple[int, int, int]] = field(default_factory=list)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.rows.append((self.clock, self.place, watermark.timestamp))


def event_by_event(
    generator: RowtimeWatermarks, events: list[tuple[int, int]], every: int, end: int
) -> list[tuple[int, int, int]]:
    """Return what the generator emits for events and at every tick, each of which sees the events up to it."""
    output, next_tick = Output(), every

    def call_before(tick: int) -> None:
        nonlocal next_tick
        while next_tick < tick:
            output.clock, output.place = next_tick, TICK
            generator.on_periodic_emit(output)
            next_tick += every

    for position, (arrival, time) in enumerate(events):
        call_before(-(-arrival // every) * every)
        output.clock, output.place = arrival, position << 4 | EVENT
        generator.on_event(None, time, output)
    call_before(end)
    return output.rows


@given(
    events=st.lists(st.tuples(st.integers(1, 40), TIMES), max_size=30),
    delay=st.one_of(st.integers(-20, 20), INT64),
    interval=st.one_of(st.none(), st.integers(0, 15)),
    lowest=st.sampled_from([0, -(2**63)]),
    cut=st.integers(0, 30),
)
def test_whole_columns_emit_what_single_events_emit(
    events: list[tuple[int, int]], delay: int, interval: int | None, lowest: int, cut: int
) -> None:
    events = sorted(events, key=lambda event: event[0])
    every, end = 7, 49
    wanted = event_by_event(RowtimeWatermarks(delay, interval, lowest), events, every, end)
    native = RowtimeWatermarkGenerator(delay, interval, lowest, every, EVENT, TICK)
    columns = np.array(events, np.int64).reshape(-1, 2)
    positions = np.arange(len(events), dtype=np.int64)
    ticks = -(-columns[:, 0] // every) * every
    found = []
    for part in (slice(0, cut), slice(cut, None)):
        given_columns = (positions[part], columns[part, 0], ticks[part], columns[part, 1])
        found.append(native.on_events(*map(np.ascontiguousarray, given_columns)))
    found.append(native.on_ticks_before(end))
    assert np.concatenate(found).tolist() == [list(row) for row in wanted]
