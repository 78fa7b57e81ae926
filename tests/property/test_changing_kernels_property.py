"""Kernels over changes give what small models give: with few results at a time, and cut by snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.changes import ChangingJoinModel, ChangingTopModel, KeptValuesModel, Result, Row

from flinkcore._native.changing_join import ChangingJoinKernel
from flinkcore._native.changing_top import ChangingTopKernel
from flinkcore._native.kept_values import KeptValues
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.time_plane.timeline import Timeline

KINDS = ("+I", "-U", "+U", "-D")
KEYS = pa.record_batch({"key": pa.array([0, 1, 2], pa.int64())})
HOW = ("inner", "left", "right", "full", "semi", "anti")

changes = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.sampled_from(KINDS), st.integers(0, 3)), max_size=40
)
"""Side, key, kind and content of a row; key 0 matches nothing."""


def meets(left: int, right: int) -> bool:
    return left <= right


def always(left: int, right: int) -> bool:
    return True


def known_keys() -> KeyDictionary:
    keys = KeyDictionary(KEYS, ["key"])
    keys.ids(KEYS)
    return keys


def timeline() -> Any:
    return Timeline.of(np.array([2**63 - 1], np.int64), np.array([2**63 - 1], np.int64)).steps


def identities(contents: list[int]) -> Any:
    words = np.array(contents, np.uint64)
    return np.stack((words % 2, words), axis=1)  # half of them have the same first word


def top_kernel(keys: KeyDictionary, *, has_tails: bool, **choices: Any) -> ChangingTopKernel:
    """A kernel of ROW_NUMBER, whose sort keys are one word, or a tail."""
    return ChangingTopKernel(
        keys,
        timeline(),
        steps_done=0,
        rank="row_number",
        n_words=not has_tails,
        has_tails=has_tails,
        replaces=False,
        **choices,
    )


class Run:
    """A kernel over events in calls of some, whose state is renumbered and moves to other kernels on the way."""

    def __init__(self, made: Any, contents: list[int]) -> None:
        self.made, self.contents = made, contents
        self.keys = known_keys()
        self.kernel = made(self.keys)
        self.results: list[list[Result]] = [[] for _ in contents]
        self.final: list[Result] = []
        self.begin = 0

    def take(self, passed: Any = None) -> None:
        results = self.kernel.take() if passed is None else self.kernel.take(passed)
        kinds = [0] * len(results.left) if results.kinds is None else results.kinds.tolist()
        seconds = results.right if results.right is not None else results.values
        if seconds is None:
            seconds = np.full(len(results.left), -1)
        for left, second, kind, event in zip(
            results.left.tolist(), seconds.tolist(), kinds, results.events.tolist(), strict=True
        ):
            row = KINDS[kind], None if left < 0 else left, None if second < 0 else second
            if event < 0:
                self.final.append(row)
            else:
                self.results[self.begin + event].append(row)


@given(changes, st.sampled_from(HOW), st.booleans(), st.booleans(), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_join_of_changes(
    events: list[Any], how: str, has_condition: bool, has_kinds: bool, data: st.DataObject
) -> None:
    limit, at_once = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    condition = meets if has_condition else always
    contents = [content for *_, content in events]

    def made(keys: KeyDictionary) -> ChangingJoinKernel:
        return ChangingJoinKernel(
            keys,
            timeline(),
            how=how,
            has_condition=has_condition,
            has_kinds=has_kinds,
            replaces=(False, False),
            steps_done=0,
            result_limit=limit,
        )

    run = Run(made, contents)

    def take() -> None:
        passed = None
        if has_condition:
            pairs = zip(*(numbers.tolist() for numbers in run.kernel.pairs()), strict=True)
            passed = np.array([condition(contents[a], contents[b]) for a, b in pairs], np.uint8)
        run.take(passed)

    for begin in range(0, len(events), at_once):
        part = events[begin : begin + at_once]
        run.begin, n = begin, len(part)
        columns: list[Any] = [
            np.array([key for _, key, _, _ in part], np.uint32),
            np.zeros(n, np.int32),
            np.array([side for side, *_ in part], np.int8),
            np.arange(begin, begin + n),
            np.arange(begin, begin + n),
            np.zeros(n, np.int64),
            np.array([key != 0 for _, key, _, _ in part], np.uint8),
            np.array([KINDS.index(kind) for _, _, kind, _ in part], np.uint8),
            identities(contents[begin : begin + n]),
        ]
        taken = 0
        while taken < n:
            taken = run.kernel.process(*columns, first=taken)
            take()
            run.kernel._check()
        for side in (0, 1):
            run.kernel.renumber(run.kernel.live_rows(side), side)
        if data.draw(st.booleans(), "moves"):
            tables = run.kernel.snapshot()
            run.kernel = made(run.keys)
            for name, table in tables.items():
                rows = {each: table[each] for each in ("row", "right_row") if each in table}
                others = {each: values for each, values in table.items() if each not in ("key", *rows)}
                run.kernel.restore(name, np.ascontiguousarray(table["key"]), rows, pa.record_batch(others))
            run.kernel._check()
    done = False
    while not done:
        done = run.kernel.finish()
        take()
    model = ChangingJoinModel(how, condition)
    expected = [
        model.event(side, key, kind, Row(number, content))
        for number, (side, key, kind, content) in enumerate(events)
    ]
    if has_kinds:
        assert run.results == expected
        assert run.final == []
        return
    assert not any(run.results)
    final = [row for key in range(3) for row in model.final(key)]
    if how in ("inner", "semi", "right"):  # left rows that match nothing are not kept
        final = [row for row in final if row[1] is None or events[row[1]][1] != 0]
    assert sorted(run.final, key=repr) == sorted(final, key=repr)


@given(changes, st.integers(1, 3), st.integers(0, 2), st.booleans(), st.booleans(), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_the_highest_rows_of_changes(
    events: list[Any], n: int, skip: int, ranks_shown: bool, has_tails: bool, data: st.DataObject
) -> None:
    limit, at_once = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    has_kinds = data.draw(st.booleans(), "changes")
    of_limits = has_kinds and not skip and data.draw(st.booleans(), "limits")
    limits = np.array([data.draw(st.integers(0, 3)) if of_limits else n for _ in events], np.int64)
    contents = [content for *_, content in events]
    sort_keys = [content // 2 for content in contents]  # two contents are equally high

    def made(keys: KeyDictionary) -> ChangingTopKernel:
        return top_kernel(
            keys,
            result_limit=limit,
            n=n + skip,
            skip=skip,
            has_tails=has_tails,
            ranks_shown=ranks_shown,
            changes=has_kinds,
            of_limits=of_limits,
        )

    def words_of(numbers: list[int]) -> dict[str, Any]:
        keys = [sort_keys[number] for number in numbers]
        if not has_tails:
            words = np.array(keys, np.uint64).reshape(-1, 1)
            return {"words": words, "tail_ends": None, "tails": None}
        return {
            "words": np.empty((len(keys), 0), np.uint64),
            "tail_ends": np.concatenate(([0], np.cumsum(keys))).astype(np.int64),
            "tails": np.ones(sum(keys), np.uint8),
        }

    run = Run(made, contents)
    for begin in range(0, len(events), at_once):
        part = events[begin : begin + at_once]
        run.begin, size = begin, len(part)
        numbers = np.arange(begin, begin + size)
        columns: list[Any] = [
            np.array([key for _, key, _, _ in part], np.uint32),
            np.zeros(size, np.int32),
            None,
            numbers,
            numbers,
            np.zeros(size, np.int64),
            *words_of(numbers.tolist()).values(),
            np.array([KINDS.index(kind) for _, _, kind, _ in part], np.uint8),
            identities(contents[begin : begin + size]),
            None,
            limits[begin : begin + size] if of_limits else None,
        ]
        taken = 0
        while taken < size:
            taken = run.kernel.process(*columns, first=taken)
            run.take()
            run.kernel._check()
        run.kernel.renumber(run.kernel.live_rows())
        if data.draw(st.booleans(), "moves"):
            tables = run.kernel.snapshot()
            table = tables["top"]
            run.kernel = made(run.keys)
            if of_limits:
                last_ranks = pa.record_batch({"limit": tables["limits"]["limit"]})
                run.kernel.restore("limits", tables["limits"]["key"], {}, last_ranks)
            rows = {"row": table["row"], **words_of(table["row"].tolist())}
            others = {each: values for each, values in table.items() if each not in ("key", "row")}
            run.kernel.restore("top", np.ascontiguousarray(table["key"]), rows, pa.record_batch(others))
            run.kernel._check()
    done = False
    while not done:
        done = run.kernel.finish()
        run.take()
    model = ChangingTopModel(n + skip, skip, ranks_shown)
    if of_limits:
        model.limits = {key: limits[number] for number, (_, key, *_) in reversed([*enumerate(events)])}
    expected = [
        model.event(key, kind, sort_keys[number], Row(number, content))
        for number, (_, key, kind, content) in enumerate(events)
    ]
    if has_kinds:
        assert run.results == expected
        assert run.final == []
        return
    final = [
        ("+I", row.number, rank if ranks_shown else None)
        for key in range(3)
        for rank, row in enumerate(model.ordered(key)[: n + skip], 1)
        if rank > skip
    ]
    assert sorted(run.final, key=repr) == sorted(final, key=repr)


@given(changes, st.integers(1, 9), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_the_values_of_changes(events: list[Any], at_once: int, data: st.DataObject) -> None:
    shown = data.draw(st.sampled_from(("first", "last", "all")))
    kept, model = KeptValues(shown), KeptValuesModel()
    for begin in range(0, len(events), at_once):
        part = events[begin : begin + at_once]
        kept.process(
            np.array([key for _, key, _, _ in part], np.uint32),
            np.arange(begin, begin + len(part)),
            identities([content for *_, content in part]),
            np.array([kind in ("-U", "-D") for _, _, kind, _ in part], np.uint8),
            True,
        )
        kept._check()
        expected = [
            model.event(key, kind, Row(begin + number, content))
            for number, (_, key, kind, content) in enumerate(part)
        ]
        numbers, ends = kept.take()
        if ends is None:
            place = 0 if shown == "first" else -1
            assert numbers.tolist() == [values[place] if values else -1 for values in expected]
        else:
            assert [values.tolist() for values in np.split(numbers, ends[:-1])] == expected
        if data.draw(st.booleans(), "moves"):
            table = kept.snapshot()
            kept = KeptValues(shown)
            kept.restore(*(table[name] for name in ("key", "row", "low", "high", "n_rows")))
            kept._check()


def test_a_key_whose_limit_is_0_shows_no_row() -> None:
    keys = KeyDictionary(pa.schema([("k", pa.int64())]), ["k"])
    kernel = top_kernel(
        keys, result_limit=9, n=3, skip=0, has_tails=False, ranks_shown=True, changes=True, of_limits=True
    )
    n, zeros = 3, np.zeros(3, np.int64)
    numbers = np.arange(n)
    words = np.arange(n, dtype=np.uint64).reshape(-1, 1)
    key_ids, inserted = np.zeros(n, np.uint32), np.zeros(n, np.uint8)
    taken = kernel.process(
        *(key_ids, np.zeros(n, np.int32), None, numbers, numbers, zeros, words, None, None, inserted),
        *(identities([1, 2, 3]), None, zeros),
    )
    kernel._check()
    assert (taken, kernel.live_count, len(kernel.take().left)) == (n, n, 0)
