"""TimerHeap against a list, under random sequences of verbs."""

import numpy as np
import pyarrow as pa
from equipment.timer_batches import advance, delete, register
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from models.timers import Row, TimerModel

from flinkcore._native.timers import TimerColumns, TimerHeap

MIN = -(2**63)
MAX = 2**63 - 1
KEY_GROUPS = 6

timestamps = st.one_of(
    st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([MIN, MAX]), st.integers(MIN, MAX)
)
key_groups = st.integers(0, KEY_GROUPS - 1)


@st.composite
def fresh_rows(draw: st.DrawFn) -> Row:
    key = draw(st.integers(0, 11))
    return draw(timestamps), key, key % KEY_GROUPS, draw(st.integers(-1, 1))


def columns(rows: list[Row]) -> list[np.ndarray]:
    return [np.array([row[i] for row in rows], np.int64) for i in range(4)]


def tuples(fired: TimerColumns) -> list[Row]:
    return list(zip(*(column.tolist() for column in fired), strict=True))


class TimerMachine(RuleBasedStateMachine):
    """Rows lie in self.first … self.last, which a rescale narrows or widens."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = TimerHeap(KEY_GROUPS)
        self.model = TimerModel()
        self.first, self.last = 0, KEY_GROUPS - 1

    def draw_rows(self, data: st.DataObject, most: int) -> list[Row]:
        """Known and unknown timers of the present range; few distinct ones, many rows."""
        known = st.sampled_from(self.model.rows) if self.model.rows else fresh_rows()
        rows = data.draw(st.lists(st.one_of(fresh_rows(), known), max_size=most))
        return [row for row in rows if self.first <= row[2] <= self.last]

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        for row in self.draw_rows(data, 3):
            assert self.timers.add(*row) == self.model.add(row)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        for row in self.draw_rows(data, 2):
            assert self.timers.remove(*row) == self.model.remove(row)

    @rule(data=st.data(), to_ms=timestamps)
    def move(self, data: st.DataObject, to_ms: int) -> None:
        for row in self.draw_rows(data, 2):
            self.model.remove(row)
            assert self.timers.move(row[0], to_ms, *row[1:]) == self.model.add((to_ms, *row[1:]))

    @rule(data=st.data())
    def move_onto_another(self, data: st.DataObject) -> None:
        if self.model.rows:
            row = data.draw(st.sampled_from(self.model.rows))
            same = [other[0] for other in self.model.rows if other[1:] == row[1:]]
            to_ms = data.draw(st.sampled_from(same))
            self.model.remove(row)
            assert self.timers.move(row[0], to_ms, *row[1:]) == self.model.add((to_ms, *row[1:]))

    @rule(data=st.data())
    def register(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data, 30)
        assert register(self.timers, *columns(rows)).tolist() == self.model.register(rows)

    @rule(
        start=st.integers(-5, 5),
        step=st.sampled_from([-1, 0, 1, 7]),
        n=st.integers(65, 200),
        at=st.integers(0, 50),
    )
    def register_many(self, start: int, step: int, n: int, at: int) -> None:
        keys = [20 + at + i for i in range(n)]
        span = self.last - self.first + 1
        rows = [(start + step * (i % 50), key, self.first + key % span, 0) for i, key in enumerate(keys)]
        assert register(self.timers, *columns(rows)).tolist() == self.model.register(rows)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data, 20)
        assert delete(self.timers, *columns(rows)).tolist() == self.model.delete(rows)

    @precondition(lambda self: self.model.rows)
    @rule(seed=st.integers(0, 9), share=st.sampled_from([0.1, 0.5, 1.0]))
    def delete_many(self, seed: int, share: float) -> None:
        order = np.random.default_rng(seed).permutation(len(self.model.rows))
        rows = [self.model.rows[i] for i in order[: int(len(order) * share)]]
        assert delete(self.timers, *columns(rows)).tolist() == self.model.delete(rows)

    @rule(times=st.integers(1, 3))
    def poll(self, times: int) -> None:
        for _ in range(times):
            assert self.timers.poll() == self.model.poll()

    @rule(watermark_ms=timestamps, limit=st.one_of(st.none(), st.none(), st.integers(0, 60)))
    def advance(self, watermark_ms: int, limit: int | None) -> None:
        assert tuples(advance(self.timers, watermark_ms, limit)) == self.model.advance(watermark_ms, limit)

    @rule(share=st.floats(0, 1))
    def advance_to_a_share(self, share: float) -> None:
        ordered = sorted(row[0] for row in self.model.rows)
        watermark_ms = ordered[int(share * (len(ordered) - 1))] if ordered else 0
        assert tuples(advance(self.timers, watermark_ms)) == self.model.advance(watermark_ms)

    @rule(ends=st.tuples(key_groups, key_groups))
    def rescale(self, ends: tuple[int, int]) -> None:
        """Another worker's range: what it held of that range goes on there."""
        first, last = sorted(ends)
        snapshot = pa.record_batch(self.timers.snapshot())
        self.timers = TimerHeap(KEY_GROUPS, (first, last))
        self.model.rows = self.model.of_key_groups(first, last)
        self.first, self.last = first, last
        assert self.timers.restore(snapshot) == len(self.model.rows)

    @rule()
    def restart_with_all_key_groups(self) -> None:
        snapshot = pa.record_batch(self.timers.snapshot())
        self.timers = TimerHeap(KEY_GROUPS)
        self.first, self.last = 0, KEY_GROUPS - 1
        self.timers.restore(snapshot)

    @rule(key_group=key_groups)
    def subset(self, key_group: int) -> None:
        if self.first <= key_group <= self.last:
            assert tuples(self.timers.subset_for_key_group(key_group)) == self.model.of_key_groups(
                key_group, key_group
            )

    @rule()
    def sequences_run_out_soon(self) -> None:
        self.timers._skip_sequence(2**32 - 6)

    @invariant()
    def agrees(self) -> None:
        self.timers._check()
        assert self.timers.size() == len(self.model.rows)
        assert self.timers.is_empty() == (not self.model.rows)
        assert self.timers.peek() == self.model.head()
        assert tuples(self.timers.timers()) == self.model.rows


TimerMachine.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestTimers = TimerMachine.TestCase
