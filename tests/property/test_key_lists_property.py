"""Lists of rows by key id against lists of Python."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.key_lists import KeyLists
from flinkcore.replay.batch_functions import column_states, growing_rows
from flinkcore.replay.batch_functions.column_states import ArrowListState

N_KEYS = 3_001
KEYS = st.lists(st.sampled_from([0, 1, 2, 5, 1023, 1024, 3000]), max_size=12)
VERBS = st.tuples(st.sampled_from(["add", "add", "update", "clear", "get"]), KEYS)
SCHEMA = pa.schema({"number": pa.int64(), "text": pa.string()})


def ids(keys: list[int]) -> Any:
    return np.array(keys, np.int64)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(VERBS, st.tuples(st.just("renumber"), KEYS)), max_size=40))
def test_key_lists_are_lists_of_row_numbers(verbs: list[tuple[str, list[int]]]) -> None:
    lists, model, numbered = KeyLists(), defaultdict[int, list[int]](list), 0
    lists.grow(3)
    lists.grow(N_KEYS)
    for verb, keys in verbs:
        if verb == "renumber":
            old = lists.renumber().tolist()
            assert old == [row for key in sorted(model) for row in model[key]]
            new = {row: number for number, row in enumerate(old)}
            model = defaultdict(list, {key: [new[row] for row in held] for key, held in model.items()})
            numbered = len(old)
        elif verb == "add":
            lists.add(ids(keys))
            for key in keys:
                model[key].append(numbered)
                numbered += 1
        elif verb != "get":
            lists.clear(ids(keys))
            for key in keys:
                model[key].clear()
        rows, places = lists.rows(ids(keys))
        assert rows.tolist() == [row for key in keys for row in model[key]]
        assert places.tolist() == [place for place, key in enumerate(keys) for _ in model[key]]
        assert lists.lengths(ids(keys)).tolist() == [len(model[key]) for key in keys]
        assert (len(lists), lists.numbered) == (sum(map(len, model.values())), numbered)


@pytest.mark.parametrize("verb", ["add", "rows", "lengths", "clear"])
@pytest.mark.parametrize("key", [-1, 3])
def test_an_unknown_key_changes_nothing(verb: str, key: int) -> None:
    lists = KeyLists()
    lists.grow(3)
    lists.add(ids([1]))
    with pytest.raises(IndexError, match=f"no key {key}"):
        getattr(lists, verb)(ids([1, key]))
    assert lists.rows(ids([0, 1, 2]))[0].tolist() == [0]


@settings(deadline=None, max_examples=100)
@given(verbs=st.lists(VERBS, max_size=40), piece_bytes=st.sampled_from([1, 200, 1 << 28]))
def test_a_list_state_holds_the_rows_of_each_key(
    verbs: list[tuple[str, list[int]]], piece_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_states, "LEAST_CLEARED_ROWS", 4)
        patch.setattr(column_states, "COPIED_ROWS", 3)
        patch.setattr(growing_rows, "PIECE_BYTES", piece_bytes)
        state, model = ArrowListState("rows", SCHEMA), defaultdict[int, list[Any]](list)
        state.grow(N_KEYS)
        n = 0
        for verb, keys in verbs:
            new = [{"number": n + place, "text": f"{key} {n}" * (n % 5)} for place, key in enumerate(keys)]
            if verb in ("clear", "update"):
                state.clear(keys)
                for key in keys:
                    model[key].clear()
            if verb in ("add", "update"):
                state.add(keys, pa.RecordBatch.from_pylist(new, SCHEMA))
                for key, row in zip(keys, new, strict=True):
                    model[key].append(row)
                n += len(keys)
            rows, places = state.get(keys)
            assert rows.schema == SCHEMA
            assert rows.to_pylist() == [row for key in keys for row in model[key]]
            assert places.tolist() == [place for place, key in enumerate(keys) for _ in model[key]]
            assert state.lengths(keys).tolist() == [len(model[key]) for key in keys]
        held, values = state.kept()
        assert dict(
            zip(held.tolist(), [[row.as_dict() for row in rows] for rows in values], strict=True)
        ) == {key: rows for key, rows in model.items() if rows}
        other = ArrowListState("rows", SCHEMA)
        other.grow(N_KEYS)
        other.restore(held, values)
        assert other.get(held)[0].equals(state.get(held)[0])


def test_cleared_rows_do_not_stay_in_memory() -> None:
    state = ArrowListState("rows", SCHEMA)
    state.grow(10)
    for round_ in range(40):
        keys = np.arange(10_000) % 10
        state.update(keys, {"number": np.arange(10_000), "text": ["x" * 100] * 10_000})
        assert len(state._rows) <= 60_000, round_
    assert state.lengths([3]).tolist() == [1_000]
