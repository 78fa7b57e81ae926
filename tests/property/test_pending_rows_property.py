"""The rows that wait for the watermark against a model of Flink's OVER functions: late rows, clean-up, restored."""

from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.over import PendingModel

from flinkcore._native.pending_rows import PendingRows
from flinkcore.time_plane.timeline import Timeline

GROUPS = np.array([3, 0, 3, 1], np.int32)
"""Key groups of the keys 0 to 3."""


class Native:
    """The kernel with what it has given, in one list."""

    def __init__(self, timeline: Timeline, settings: dict[str, Any], steps_done: int = 0) -> None:
        self.timeline, self.settings = timeline, settings
        self.kernel = PendingRows(
            timeline.steps, max_parallelism=4, key_groups=(0, 3), steps_done=steps_done, **settings
        )
        self.found: list[tuple[int, int, int, int | None]] = []
        self.late = 0

    def take(self) -> None:
        before, keys = self.kernel.take_cleared()
        results = self.kernel.take()
        rows = zip(
            results.steps.tolist(),
            results.timestamps.tolist(),
            results.key_ids.tolist(),
            results.left.tolist(),
            strict=True,
        )
        cleared = list(zip(before.tolist(), keys.tolist(), strict=True))
        n = len(results.left)
        assert results.events.tolist() == [-1] * n
        assert results.fired.tolist() == results.timestamps.tolist()
        for place, row in enumerate([*rows, None]):
            self.found += [(-1, -1, key, None) for at, key in cleared if at == place]
            if row is not None:
                self.found.append(row)
        self.kernel._check()

    def process(self, keys: list[int], rows: list[int], timestamps: list[int], steps: list[int]) -> None:
        ids = np.array(keys, np.uint32)
        columns = ids, GROUPS[ids], None, *(np.array(each, np.int64) for each in (rows, timestamps, steps))
        taken = 0
        while taken < len(keys):
            taken = self.kernel.process(*columns, first=taken)
            self.take()

    def walk(self, steps: int | None) -> None:
        done = False
        while not done:
            done = self.kernel.finish() if steps is None else self.kernel.advance(steps)
            self.take()

    def restored(self, steps: int, renumber: int) -> "Native":
        """Another kernel that goes on from here, with other numbers of rows."""
        other = Native(self.timeline, self.settings, steps)
        other.found = self.found
        for name, table in self.kernel.snapshot().items():
            columns = dict(table)
            keys = columns.pop("key")
            numbers = columns.pop("row", np.empty(0, np.int64))
            other.kernel.restore(
                name,
                keys,
                GROUPS[keys],
                {"row": np.where(numbers < 0, -1, numbers + renumber)},
                pa.record_batch(columns) if columns else pa.record_batch([], schema=pa.schema([])),
            )
        other.kernel._check()
        assert other.kernel.live_count == self.kernel.live_count
        # The numbers that they had.
        other.kernel.renumber(other.kernel.live_rows() - renumber)
        assert other.kernel.live_rows().tolist() == self.kernel.live_rows().tolist()
        return other


frames = st.sampled_from([{"bounded": False}, {"bounded": True}]) | st.integers(0, 7).map(
    lambda range_ms: {"bounded": True, "range_ms": range_ms}
)


@settings(deadline=None, max_examples=examples(200))
@given(
    frame=frames,
    limit=st.sampled_from([1, 2, 100]),
    watermarks=st.lists(st.integers(1, 6), max_size=12),
    start=st.integers(-5, 3),
    data=st.data(),
)
def test_rows_come_up_as_in_flink(
    frame: dict[str, Any], limit: int, watermarks: list[int], start: int, data: st.DataObject
) -> None:
    raised = start + np.cumsum(np.array(watermarks, np.int64))
    end = 2**63 - 1
    timeline = Timeline.of(np.array([*range(len(raised)), end], np.int64), np.array([*raised, end], np.int64))
    native = Native(timeline, {**frame, "result_limit": limit})
    model = PendingModel(**frame)
    expected: list[tuple[int, int, int, int | None]] = []
    number = late = 0
    for step in range(len(raised) + 1):
        rows = data.draw(
            st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 24)), max_size=5), label=f"before {step}"
        )
        for key, timestamp in rows:
            late += not model.add(key, timestamp, number)
            native.process([key], [number], [timestamp], [step])
            number += 1
        if data.draw(st.booleans(), label="goes on elsewhere"):
            native.walk(step)
            native = native.restored(step, 1000)
        for time, key, row in model.advance(int([*raised, end][step])):
            expected.append((-1, -1, key, None) if row is None else (step, time, key, row))
    native.walk(None)
    counted = native.kernel.counts()["late"]
    assert counted <= late
    check_order(native.found, expected)
    assert native.kernel.live_count == 0


Found = list[tuple[int, int, int, int | None]]


def check_order(found: Found, expected: Found) -> None:
    """By step, time, key group and key; and of each key what Flink has for it."""
    for key in range(len(GROUPS)):
        assert [row for row in found if row[2] == key] == [row for row in expected if row[2] == key]
    rows = [row for row in found if row[3] is not None]
    order = [(step, time, int(GROUPS[key])) for step, time, key, _ in rows]
    assert order == sorted(order)
    together = [(step, time, key) for step, time, key, _ in rows]
    for at, place in enumerate(together):
        first = together.index(place)
        assert together[first : at + 1] == [place] * (at + 1 - first)
