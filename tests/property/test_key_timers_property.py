"""Timers by key id against sets of times."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.key_timers import BatchCuts, KeyTimers
from flinkcore.errors import DataError

MIN, MAX = -(2**63), 2**63 - 1
KEYS = st.sampled_from([0, 1, 2, 5, 1023, 1024, 3000])
TIMES = st.one_of(st.integers(-4, 12), st.sampled_from([MIN, MIN + 1, MAX - 1, MAX]))
ROWS = st.lists(st.tuples(KEYS, TIMES), max_size=12)
VERBS = st.tuples(st.sampled_from(["register", "register", "delete", "delete_all", "poll", "due_keys"]), ROWS)


def columns(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([key for key, _ in rows], np.int64), np.array([time for _, time in rows], np.int64)


@settings(deadline=None, max_examples=200)
@given(st.lists(VERBS, max_size=40))
def test_key_timers_are_sets_of_times_by_key(verbs: list[tuple[str, list[tuple[int, int]]]]) -> None:
    timers, model = KeyTimers(), dict[int, set[int]]()
    timers.grow(3)
    timers.grow(3001)
    for verb, rows in verbs:
        keys, times = columns(rows)
        if verb == "register":
            before = sum(map(len, model.values()))
            for key, time in rows:
                model.setdefault(key, set()).add(time)
            assert timers.register(keys, times) == sum(map(len, model.values())) - before
        elif verb == "delete":
            known = {row for row in rows if row[1] in model.get(row[0], ())}
            for key, time in known:
                model[key].remove(time)
            assert timers.delete(keys, times) == len(known)
        elif verb == "delete_all":
            gone = [len(model.pop(key, ())) for key in {key for key, _ in rows}]
            assert timers.delete_all(keys) == sum(gone)
        elif verb == "poll":
            for key, _ in rows:
                if model.get(key):
                    model[key].remove(min(model[key]))
            timers.poll(keys)
        else:
            for _, time in rows:
                due = [key for key, held in model.items() if held and min(held) <= time]
                assert timers.due_keys(time).tolist() == sorted(due)
        first, exist = timers.first(np.arange(3001))
        for key in (0, 1, 2, 5, 7, 1023, 1024, 3000):
            assert exist[key] == bool(model.get(key))
            assert first[key] == (min(model[key]) if model.get(key) else MAX)
        expected = sorted((key, time) for key, held in model.items() for time in held)
        assert list(zip(*(column.tolist() for column in timers.timers()), strict=True)) == expected
        assert len(timers) == len(expected)
        timers._check()


def test_many_timers_of_one_key_come_in_order_however_they_were_registered() -> None:
    random = np.random.default_rng(3)
    timers = KeyTimers()
    timers.grow(1)
    times = random.permutation(5000)
    assert timers.register(np.zeros(5000, np.int64), times) == 5000
    assert timers.delete(np.zeros(2500, np.int64), np.sort(times)[1::2].copy()) == 2500
    timers._check()
    found = []
    while len(timers):
        found.append(int(timers.first(np.zeros(1, np.int64))[0][0]))
        timers.poll(np.zeros(1, np.int64))
    assert found == list(range(0, 5000, 2))


@pytest.mark.parametrize("keys", [[-1], [3], [0, 9]])
def test_unknown_keys_are_refused_and_nothing_changes(keys: list[int]) -> None:
    timers = KeyTimers()
    timers.grow(3)
    ids, times = np.array(keys), np.zeros(len(keys), np.int64)
    for verb in (timers.register, timers.delete):
        with pytest.raises(DataError, match=f"there is no key of the id {keys[-1]}; there are 3 keys"):
            verb(ids, times)
    for verb in (timers.delete_all, timers.first, timers.poll):
        with pytest.raises(DataError, match="there is no key of the id"):
            verb(ids)
    with pytest.raises(DataError, match="2 key ids for 1 times"):
        timers.register(np.array([0, 1]), np.array([5]))
    assert len(timers) == 0


def taken(cuts: BatchCuts, *columns: list[int]) -> tuple[list[int], list[int]]:
    rows, waiting = cuts.take(*(np.array(column) for column in columns))
    return rows.tolist(), waiting.tolist()


def test_bounds_at_the_ends_of_time_do_not_wrap_around() -> None:
    for delay in (2**62, -(2**62)):
        cuts = BatchCuts(KeyTimers(), KeyTimers(), event_time_delay_ms=delay, processing_time_delay_ms=delay)
        cuts.grow(2)
        late, early = [MAX - 5] * 2, [MIN + 5] * 2
        assert taken(cuts, [0, 0], late, [5, 6], [5, 5]) == ([0, 1], [])
        assert taken(cuts, [1, 1], early, [5, 6], [5, 5]) == ([0], [1])
