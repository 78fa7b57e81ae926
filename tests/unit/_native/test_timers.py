"""TimerHeap, verb by verb."""

import threading

import numpy as np
import pytest
from equipment.timer_batches import advance, delete, register, timer_batch
from models.timers import firing_order, random_timers, rows

from flinkcore._native.timers import MAX_KEY_GROUPS, Timer, TimerHeap
from flinkcore.errors import ConfigurationError, DataError

MIN = -(2**63)
MAX = 2**63 - 1


# ---- single verbs ----


def test_add_is_true_only_for_a_new_head() -> None:
    timers = TimerHeap()
    assert timers.add(5, 1, 1)
    assert not timers.add(5, 1, 1)  # already in
    assert not timers.add(6, 2, 1)  # not the head
    assert not timers.add(5, 2, 1)  # as early as the head
    assert timers.add(4, 2, 1)
    assert timers.size() == len(timers) == 4
    timers._check()


def test_remove_is_true_only_for_the_head() -> None:
    timers = TimerHeap()
    for timestamp_ms in (5, 6, 4):
        timers.add(timestamp_ms, 1, 0)
    assert not timers.remove(6, 1, 0)  # in, but not the head
    assert not timers.remove(6, 1, 0)  # not in
    assert timers.remove(4, 1, 0)
    assert timers.peek() == Timer(5, 1, 0, 0)
    timers._check()


def test_timers_differ_by_timestamp_key_and_namespace() -> None:
    timers = TimerHeap()
    for timer in ((1, 1, 0, 1), (2, 1, 0, 1), (1, 2, 0, 1), (1, 1, 0, 2), (1, 1, 0, 1)):
        timers.add(*timer)
    assert timers.size() == 4


def test_each_key_group_has_its_own_timers() -> None:
    timers = TimerHeap()
    timers.add(1, 1, 0)
    timers.add(1, 1, 1)
    assert timers.size() == 2
    assert not timers.remove(1, 1, 2)
    assert timers.size() == 2


def test_the_head_is_polled_only_if_it_is_due() -> None:
    timers = TimerHeap()
    assert timers.poll_due(2**63 - 1) is None
    timers.add(5, 1, 3)
    timers.add(-7, 2, 4, 9)
    assert timers.poll_due(-8) is None
    assert timers.poll_due(-7) == Timer(-7, 2, 4, 9)
    assert timers.poll_due(4) is None
    assert timers.poll_due(6) == Timer(5, 1, 3, 0)
    assert timers.is_empty()
    timers._check()


def test_equal_timestamps_are_polled_in_order_of_registration() -> None:
    timers = TimerHeap()
    for key in (3, 1, 2, 0):
        timers.add(7, key, key)
    timers.remove(7, 1, 1)
    timers.add(7, 1, 1)  # anew: now the last
    assert [timers.poll().key for _ in range(4)] == [3, 2, 0, 1]


def test_an_empty_heap_has_no_head() -> None:
    timers = TimerHeap()
    assert timers.is_empty()
    assert timers.peek() is None
    assert timers.poll() is None
    assert rows(advance(timers, MAX)) == []
    assert list(timers) == []


def test_extreme_timestamps_are_ordered_as_signed_numbers() -> None:
    timers = TimerHeap()
    register(timers, [MAX, 0, MIN, -1], [1, 2, 3, 4], [0] * 4)
    assert rows(advance(timers, MIN)) == [(MIN, 3, 0, 0)]
    assert advance(timers, MAX).timestamps_ms.tolist() == [-1, 0, MAX]


def test_clear_leaves_a_heap_to_go_on_with() -> None:
    timers = TimerHeap()
    batch = random_timers(1000)
    register(timers, *batch)
    timers.clear()
    timers._check()
    assert timers.is_empty()
    assert register(timers, *batch).all()
    timers._check()


def test_a_moved_timer_comes_after_its_equals() -> None:
    timers = TimerHeap()
    for timestamp_ms, key in ((5, 1), (5, 2), (4, 3)):
        timers.add(timestamp_ms, key, 0)
    assert not timers.move(5, 5, 1, 0)  # where it was, but registered last
    assert not timers.move(4, 5, 3, 0)
    assert timers.move(5, 3, 2, 0)  # the new head
    assert rows(advance(timers, 9)) == [(3, 2, 0, 0), (5, 1, 0, 0), (5, 3, 0, 0)]


def test_moving_an_unknown_timer_registers_one_and_moving_onto_another_leaves_that_one() -> None:
    timers = TimerHeap()
    assert timers.move(1, 7, 1, 0)
    timers.add(8, 1, 0)
    assert not timers.move(7, 8, 1, 0)
    assert rows(timers.timers()) == [(8, 1, 0, 0)]
    with pytest.raises(DataError, match="key group 128 is outside"):
        timers.move(8, 9, 1, 128)
    timers._check()


def test_iteration_shows_the_timers_as_they_were() -> None:
    timers = TimerHeap()
    register(timers, [3, 1, 2], [1, 2, 3], [0, 1, 2])
    seen = []
    for timer in timers:
        timers.poll()
        seen.append(timer.timestamp_ms)
    assert seen == [3, 1, 2]


# ---- batches ----


@pytest.mark.parametrize("batch_rows", [1, 63, 64, 65, 1000, 20_000])
def test_batches_of_any_size_give_what_one_batch_gives(batch_rows: int) -> None:
    batch = random_timers(20_000)
    timers = TimerHeap()
    for first in range(0, 20_000, batch_rows):
        assert register(timers, *(column[first : first + batch_rows] for column in batch)).all()
    timers._check()
    assert not register(timers, *batch).any()
    order = np.random.default_rng(1).permutation(20_000)[:15_000]
    for first in range(0, 15_000, batch_rows):
        assert delete(timers, *(column[order[first : first + batch_rows]] for column in batch)).all()
    timers._check()
    rest = np.setdiff1d(np.arange(20_000), order)
    assert rows(advance(timers, MAX)) == firing_order(tuple(column[rest] for column in batch))
    timers._check()


@pytest.mark.parametrize("steps", [1, 2, 5, 100, 3000])
def test_watermarks_in_any_steps_fire_the_same_timers_in_the_same_order(steps: int) -> None:
    batch = random_timers(20_000)
    timers = TimerHeap()
    register(timers, *batch)
    fired = []
    for watermark_ms in np.linspace(batch[0].min(), batch[0].max(), steps).astype(np.int64).tolist()[-steps:]:
        columns = advance(timers, watermark_ms)
        assert (columns.timestamps_ms <= watermark_ms).all()
        fired += rows(columns)
        timers._check()
    fired += rows(advance(timers, MAX))
    assert fired == firing_order(batch)


@pytest.mark.parametrize("limit", [1, 7, 100, 6000, 20_000, 30_000])
def test_a_limit_keeps_the_later_timers(limit: int) -> None:
    batch = random_timers(20_000)
    timers = TimerHeap()
    register(timers, *batch)
    expected = firing_order(batch)
    fired: list[tuple[int, ...]] = []
    while len(fired) < min(3 * limit, 20_000):
        columns = advance(timers, MAX, limit)
        assert len(columns.keys) == min(limit, 20_000 - len(fired))
        fired += rows(columns)
        timers._check()
    assert fired == expected[: len(fired)]
    assert timers.size() == 20_000 - len(fired)


def test_a_limit_of_zero_fires_nothing() -> None:
    timers = TimerHeap()
    timers.add(1, 1, 0)
    assert rows(advance(timers, 5, 0)) == []
    with pytest.raises(ConfigurationError, match="limit is -1"):
        advance(timers, 5, -1)


def test_all_equal_timestamps_fire_in_order_of_registration() -> None:
    timers = TimerHeap()
    keys = np.random.default_rng(3).permutation(50_000)
    register(timers, np.full(50_000, 1_000), keys, keys % 128)
    assert advance(timers, 999).keys.tolist() == []
    assert advance(timers, 1_000).keys.tolist() == keys.tolist()


def test_descending_timestamps_fire_ascending() -> None:
    timers = TimerHeap()
    for first in range(50_000, 0, -500):
        register(timers, np.arange(first, first - 500, -1), np.zeros(500, int), np.zeros(500, int))
    timers._check()
    assert advance(timers, MAX).timestamps_ms.tolist() == list(range(1, 50_001))


def test_a_row_repeated_in_a_batch_is_registered_once() -> None:
    timers = TimerHeap()
    assert register(timers, [1, 1, 1], [5, 5, 6], [0, 0, 0]).tolist() == [True, False, True]
    assert delete(timers, [1, 1, 2], [5, 5, 5], [0, 0, 0]).tolist() == [True, False, False]
    assert rows(timers.timers()) == [(1, 6, 0, 0)]


def test_a_timer_registered_at_or_below_the_watermark_waits_for_the_next_advance() -> None:
    timers = TimerHeap()
    timers.add(10, 1, 0)
    assert advance(timers, 20).keys.tolist() == [1]
    timers.add(5, 2, 0)
    timers.add(20, 3, 0)
    assert advance(timers, 20).keys.tolist() == [2, 3]


def test_single_verbs_go_between_batches() -> None:
    timers = TimerHeap()
    register(timers, [10, 20, 30], [1, 2, 3], [0, 0, 0])
    assert timers.poll() == Timer(10, 1, 0, 0)
    assert timers.add(5, 4, 0)
    assert not timers.remove(30, 3, 0)
    assert advance(timers, 100).keys.tolist() == [4, 2]
    timers._check()


def test_slots_of_fired_timers_are_used_again() -> None:
    timers = TimerHeap()
    for round_ in range(50):
        register(timers, np.arange(100) + round_, np.arange(100), np.arange(100))
        advance(timers, round_ + 50)
        timers._check()
    assert timers.size() == sum(range(50))


def test_one_namespace_or_one_per_row() -> None:
    timers = TimerHeap()
    register(timers, [1, 1], [1, 2], [0, 0], 9)
    register(timers, [1, 1], [1, 2], [0, 0], [9, 8])
    assert timers.timers().namespaces.tolist() == [9, 9, 8]


def test_sequences_are_numbered_anew_when_they_run_out() -> None:
    timers = TimerHeap()
    keys = np.arange(200)
    register(timers, np.full(200, 5), keys, keys % 128)
    delete(timers, np.full(50, 5), keys[:50], keys[:50] % 128)
    timers._skip_sequence(2**32 - 3)
    register(timers, np.full(10, 5), keys[:10], keys[:10])
    timers._check()
    timers._skip_sequence(2**32 - 1)
    timers.add(5, 10, 10)
    timers._check()
    assert advance(timers, 5).keys.tolist() == [*range(50, 200), *range(11)]


def test_sequences_run_out_while_a_large_batch_is_not_yet_ordered() -> None:
    timers = TimerHeap()
    timers._skip_sequence(2**32 - 500)
    batch = random_timers(5_000)
    register(timers, *batch)
    timers._check()
    assert rows(advance(timers, MAX)) == firing_order(batch)


# ---- key groups ----


def test_timers_of_key_groups_are_listed_in_order_of_registration() -> None:
    timers = TimerHeap(10, (2, 8))
    register(timers, [9, 8, 7, 6, 5], [1, 2, 3, 4, 5], [2, 8, 5, 2, 8])
    assert timers.timers().keys.tolist() == [1, 2, 3, 4, 5]
    assert timers.timers((3, 8)).keys.tolist() == [2, 3, 5]
    assert timers.subset_for_key_group(2).keys.tolist() == [1, 4]
    assert timers.subset_for_key_group(3).keys.tolist() == []


@pytest.mark.parametrize("key_group", [9, 21, -1, 1 << 20])
def test_a_key_group_outside_of_the_range_is_named(key_group: int) -> None:
    timers = TimerHeap(128, (10, 20))
    timers.add(1, 1, 10)
    message = rf"key group {key_group} is outside of this heap's range 10 to 20"
    for verb in (
        lambda: timers.add(0, 1, key_group),
        lambda: timers.remove(0, 1, key_group),
        lambda: timers.subset_for_key_group(key_group),
    ):
        with pytest.raises(DataError, match=message):
            verb()
    for batch_verb in (timers.register, timers.delete):
        with pytest.raises(DataError, match="row 2: " + message):
            batch_verb(timer_batch([1, 2, 3, 4], [1, 2, 3, 4], [10, 11, key_group, 0]))
    assert rows(timers.timers()) == [(1, 1, 10, 0)]


@pytest.mark.parametrize(
    ("max_parallelism", "key_group_range", "message"),
    [
        (0, None, "max_parallelism is 0"),
        (MAX_KEY_GROUPS + 1, None, "from 1 to 32768"),
        (8, (0, 8), r"key_group_range is \(0, 8\); it must lie within 0 and 7"),
        (8, (5, 4), "key_group_range"),
        (8, (-1, 4), "key_group_range"),
    ],
)
def test_an_impossible_range_is_refused(
    max_parallelism: int, key_group_range: tuple[int, int] | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TimerHeap(max_parallelism, key_group_range)


def test_the_widest_range_holds_a_timer_per_key_group() -> None:
    timers = TimerHeap(MAX_KEY_GROUPS)
    assert timers.key_group_range == (0, 32767)
    keys = np.arange(MAX_KEY_GROUPS)
    register(timers, keys, keys, keys)
    timers._check()
    assert advance(timers, MAX).key_groups.tolist() == keys.tolist()


# ---- threads ----


def test_heaps_of_other_threads_do_not_interfere() -> None:
    batch = random_timers(50_000)
    heaps = [TimerHeap() for _ in range(2)]

    def replay(timers: TimerHeap) -> None:
        for first in range(0, 50_000, 5_000):
            register(timers, *(column[first : first + 5_000] for column in batch))
        delete(timers, *(column[:10_000] for column in batch))

    threads = [threading.Thread(target=replay, args=(timers,)) for timers in heaps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = firing_order(tuple(column[10_000:] for column in batch))
    for timers in heaps:
        timers._check()
        assert rows(advance(timers, MAX)) == expected
