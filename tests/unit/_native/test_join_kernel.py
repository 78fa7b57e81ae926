"""Joins check the columns of their events, and give the memory of rows that leave to the next ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from equipment.timelines import packed_steps

from flinkcore._native.interval_join import interval_join
from flinkcore._native.join_kernel import JoinKernel, JoinKind
from flinkcore._native.regular_join import regular_join
from flinkcore._native.temporal_join import temporal_join
from flinkcore._native.timers import TimerHeap
from flinkcore._native.window_join import window_join


def kernel(
    kind: JoinKind, watermarks: list[int], how: str = "inner", timers: TimerHeap | None = None
) -> JoinKernel:
    """A join whose watermark is in force before each step."""
    return JoinKernel(
        kind,
        TimerHeap() if timers is None else timers,
        packed_steps(np.arange(len(watermarks)), np.array(watermarks, np.int64)),
        how=how,
        has_condition=False,
        has_kinds=False,
        steps_done=0,
        result_limit=1 << 20,
    )


def take_in(join: JoinKernel, inputs: list[int], times: list[int], steps: int = 0, **columns: Any) -> int:
    n = len(inputs)
    zeros = np.zeros(n, np.int64)
    return join.process(
        zeros.astype(np.uint32),
        zeros.astype(np.int32),
        np.array(inputs, np.int8),
        np.arange(n),
        np.array(times, np.int64),
        zeros + steps,
        **columns,
    )


@pytest.mark.parametrize("offsets", [[0, 3, 2], [0, -1, 2], [-1, 1, 2], [1, 1, 2]])
def test_offsets_of_windows_that_do_not_ascend_from_0_are_refused(offsets: list[int]) -> None:
    windows = {"window_ends": np.array([10, 20]), "window_offsets": np.array(offsets)}
    with pytest.raises(ValueError, match="must ascend from 0"):
        take_in(kernel(window_join(), []), [0, 1], [5, 15], **windows)


def test_offsets_of_windows_without_their_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="and their end"):
        take_in(kernel(window_join(), []), [0, 1], [5, 15], window_offsets=np.array([0, 1, 2]))


@pytest.mark.parametrize("number", [2, -1])
def test_a_number_of_an_input_that_is_neither_0_nor_1_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="inputs must be 0 or 1"):
        take_in(kernel(interval_join(0, 5), []), [0, number], [1, 2])


def test_rows_take_memory_only_while_they_are_kept() -> None:
    join = kernel(interval_join(0, 1_000), [10_000, 20_000])
    take_in(join, [0], [0])
    of_one = join.memory_bytes()
    for steps, first in enumerate((1_000, 11_000)):
        times = [first + number * 7 % 900 for number in range(2_000)]
        take_in(join, [0] * len(times), times, steps)
        join._check()
        assert join.memory_bytes() > of_one + 16 * len(times)
    take_in(join, [1, 0], [29_000, 29_000], 2)
    assert join.live_count == 2
    assert join.memory_bytes() == of_one


@pytest.mark.parametrize("kind", [interval_join(0, 5), window_join(), regular_join(), temporal_join()])
@pytest.mark.parametrize(("key", "namespace"), [(1, 0), (1 << 31, 0), (0, -(1 << 40)), (0, 1 << 31)])
@pytest.mark.parametrize("has_keys", [True, False])
def test_a_timer_of_rows_that_there_cannot_be_fires_nothing(
    kind: JoinKind, key: int, namespace: int, has_keys: bool
) -> None:
    timers = TimerHeap()
    timers.add(150, key, 0, namespace)
    join = kernel(kind, [200], "left", timers)
    if has_keys:
        windows = {"window_ends": np.array([300]), "window_offsets": np.array([0, 1])}
        take_in(join, [0], [250], **(windows if kind.name == "a window join" else {}))
    assert join.advance(1)
    assert len(join.take().left) == 0
    assert len(timers) == has_keys
    assert join.live_count == has_keys
