"""Lists of rows by key id against lists of Python."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.key_lists import KeyLists
from flinkcore._native.row_places import RowPlaces
from flinkcore.columnar.batch_functions import column_states
from flinkcore.columnar.batch_functions.column_states import ArrowListState
from flinkcore.columnar.relational import numbered_rows
from flinkcore.columnar.relational.numbered_rows import ALL_COPIED, NumberedRows
from flinkcore.errors import DataError, SchemaError

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
        state, model = ArrowListState("rows", SCHEMA, piece_bytes), defaultdict[int, list[Any]](list)
        state.grow(N_KEYS)
        n = 0
        for verb, keys in verbs:
            new = [{"number": n + place, "text": f"{key} {n}" * (n % 5)} for place, key in enumerate(keys)]
            if verb in ("clear", "update"):
                for key in keys:
                    model[key].clear()
            if verb == "clear":
                state.clear(keys)
            if verb in ("add", "update"):
                getattr(state, verb)(keys, pa.RecordBatch.from_pylist(new, SCHEMA))
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


def list_state(schema: pa.Schema = SCHEMA, n_keys: int = 10) -> ArrowListState:
    state = ArrowListState("rows", schema)
    state.grow(n_keys)
    return state


def test_key_ids_may_be_any_view_of_integers() -> None:
    state = list_state()
    keys = np.arange(10)
    state.add(keys[::-2], {"number": [9, 7, 5, 3, 1], "text": list("97531")})
    assert state.lengths(keys[::-1]).tolist() == [1, 0] * 5
    assert state.get(keys.astype(">u4")[1::2])[0]["text"].to_pylist() == list("13579")
    state.clear(np.stack((keys, keys), axis=1)[:, 0])
    assert state.lengths(keys).tolist() == [0] * 10


def test_rows_are_not_changed_by_those_who_gave_them() -> None:
    state = list_state(pa.schema({"number": pa.int64()}))
    given = np.arange(10)
    for length in (10, 4, 1):  # joined with the rows before it, or not
        state.add(np.arange(length), pa.record_batch({"number": pa.array(given[:length])}))
    given[:] = -1
    assert state.get([0, 1])[0]["number"].to_pylist() == [0, 0, 0, 1, 1]


def test_rows_do_not_hold_those_that_they_are_a_part_of() -> None:
    state, many = (
        list_state(pa.schema({"number": pa.int64()}), 40),
        pa.record_batch({"number": np.arange(1 << 17)}),
    )
    before = pa.total_allocated_bytes()
    for length in (40, 10, 2):
        copy = many.take(pa.array(np.arange(many.num_rows)))
        state.add(np.arange(length), copy.slice(5, length))
        del copy
    assert pa.total_allocated_bytes() - before < 1 << 17


def test_rows_that_do_not_fit_clear_no_list() -> None:
    state = list_state()
    state.add([3], {"number": [1], "text": ["a"]})
    with pytest.raises(SchemaError, match="that are not int64"):
        state.update([3], {"number": ["x"], "text": ["b"]})
    with pytest.raises(DataError, match="got 1 rows, and 2 key ids"):
        state.update([3, 3], {"number": [1], "text": ["b"]})
    assert state.get([3])[0].to_pylist() == [{"number": 1, "text": "a"}]


def test_joined_pieces_have_no_more_bytes_than_a_piece_may_have() -> None:
    rows = NumberedRows(pa.schema({"text": pa.string()}), ALL_COPIED, 1_000)
    rows.add(pa.record_batch({"text": ["x" * 400]}))
    for _ in range(9):
        rows.add(pa.record_batch({"text": ["x" * 300]}))
    assert max(piece.nbytes for piece in rows._pieces) <= 1_000
    assert len(rows.take(np.arange(10))) == 10


def test_rows_with_too_much_text_for_one_batch_are_copied_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    class FewPlaces:
        def __init__(self, begins: Any, numbers: Any) -> None:
            self._n = len(numbers)
            self._places = RowPlaces(begins, numbers)

        def gathered(self, pieces: list[Any]) -> Any:
            if self._n > 10:
                raise OverflowError("strings have more bytes than their offsets can count")
            return self._places.gathered(pieces)

    state, numbers = list_state(n_keys=40), np.arange(200)
    state.add(numbers % 40, {"number": numbers, "text": ["x"] * 200})
    monkeypatch.setattr(numbered_rows, "RowPlaces", FewPlaces)
    state.clear(np.arange(20))
    state._forget_cleared_rows()
    assert len(state._rows) == 100
    assert state.get([21, 39])[0].column("number").to_pylist() == [*range(21, 200, 40), *range(39, 200, 40)]
    kept, lists = state.kept()
    assert [[row.number for row in rows] for rows in lists] == [list(range(key, 200, 40)) for key in kept]
    with pytest.raises(
        DataError,
        match=r"the state .* has 15 rows of 3 keys: the column .* of rows that come together has more than",
    ):
        state.get([20, 21, 22])


def test_lists_of_many_keys_are_not_numbered_anew_for_few_rows() -> None:
    state = list_state(n_keys=1 << 20)
    state.add(np.arange(100_000), {"number": np.arange(100_000), "text": ["x"] * 100_000})
    state.clear(np.arange(100_000))
    assert state._lists.numbered == 100_000
    state.update(np.arange(100_000), {"number": np.arange(100_000), "text": ["x"] * 100_000})
    state.clear(np.arange(100_000))
    assert state._lists.numbered == 0


def test_cleared_rows_do_not_stay_in_memory() -> None:
    state = ArrowListState("rows", SCHEMA)
    state.grow(10)
    for round_ in range(40):
        keys = np.arange(10_000) % 10
        state.update(keys, {"number": np.arange(10_000), "text": ["x" * 100] * 10_000})
        assert len(state._rows) <= 60_000, round_
    assert state.lengths([3]).tolist() == [1_000]
