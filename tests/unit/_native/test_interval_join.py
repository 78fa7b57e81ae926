"""Rows of interval joins that never come out padded have no timers: they go as if each had one."""

from __future__ import annotations

import numpy as np
import pytest
from equipment.timelines import packed_steps

from flinkcore._native.interval_join import interval_join
from flinkcore._native.join_kernel import JoinKernel
from flinkcore._native.timers import TimerHeap

EVENTS = 80_000
AT_ONCE = 8_000
PER_STEP = 50
LOWER, UPPER = -30, 200


class Run:
    """A join of events one after the other, whose times are up to 400 ms out of order; the watermark lags by 100 ms."""

    def __init__(self, how: str, keys: int) -> None:
        self.timers = TimerHeap()
        random = np.random.default_rng(11)
        numbers = np.arange(EVENTS)
        times = numbers // 10 + random.integers(-400, 400, EVENTS)
        watermarks = np.maximum.accumulate(times)[PER_STEP - 1 :: PER_STEP] - 100
        steps = packed_steps(np.arange(len(watermarks)), watermarks, block_steps=64)
        # Keys come for a while, and never again.
        key_ids = (numbers * keys // EVENTS + random.integers(0, 40, EVENTS)).astype(np.uint32)
        columns = (
            key_ids,
            (key_ids % 128).astype(np.int32),
            random.integers(0, 2, EVENTS).astype(np.int8),
            numbers,
            times,
            numbers // PER_STEP,
        )
        self.kernel = JoinKernel(
            interval_join(LOWER, UPPER),
            self.timers,
            steps,
            how=how,
            has_condition=False,
            has_kinds=False,
            steps_done=0,
            result_limit=1 << 30,
        )
        self.most_kept = 0
        self.pairs: list[tuple[int, int]] = []
        for begin in range(0, EVENTS, AT_ONCE):
            part = [column[begin : begin + AT_ONCE] for column in columns]
            assert self.kernel.process(*part) == AT_ONCE
            self.most_kept = max(self.most_kept, self.kernel.live_count)
            results = self.kernel.take()
            assert results.right is not None
            both = (results.left >= 0) & (results.right >= 0)
            self.pairs += zip(results.left[both].tolist(), results.right[both].tolist(), strict=True)
        self.kernel._check()


@pytest.mark.parametrize("keys", [60, 30_000], ids=["keys that stay", "keys that go"])
def test_pairs_are_those_of_a_join_whose_rows_all_have_timers(keys: int) -> None:
    inner, full = Run("inner", keys), Run("full", keys)
    assert len(inner.timers) == 0 < len(full.timers)
    assert len(inner.pairs) > EVENTS // 100
    assert inner.pairs == full.pairs
    kept, with_timers = (run.kernel.snapshot() for run in (inner, full))
    for table in ("left", "right", "clean_up"):
        assert kept[table].keys() == with_timers[table].keys()
        for name in kept[table].keys() - {"matched"}:
            assert kept[table][name].tolist() == with_timers[table][name].tolist(), (table, name)


def test_rows_of_keys_that_are_not_seen_again_are_removed() -> None:
    assert Run("inner", 30_000).most_kept < EVENTS // 2


@pytest.mark.parametrize(("how", "inputs"), [("left", {0}), ("right", {1}), ("full", {0, 1})])
def test_rows_that_come_out_padded_have_timers(how: str, inputs: set[int]) -> None:
    timers = Run(how, 60).timers.timers()
    assert set(timers.namespaces.tolist()) == inputs


def test_each_pair_needs_its_flag() -> None:
    kernel = JoinKernel(
        interval_join(LOWER, UPPER),
        TimerHeap(),
        packed_steps(np.empty(0, np.int64), np.empty(0, np.int64)),
        how="left",
        has_condition=True,
        has_kinds=False,
        steps_done=0,
        result_limit=10,
    )
    zeros = np.zeros(3, np.int64)
    kernel.process(
        zeros.astype(np.uint32), zeros.astype(np.int32), np.array([0, 1, 1], np.int8), zeros, zeros, zeros
    )
    assert len(kernel.pairs()[0]) == 2
    with pytest.raises(ValueError, match="one value per pair"):
        kernel.take(np.ones(1, np.uint8))
    assert len(kernel.take(np.ones(2, np.uint8)).left) == 2
