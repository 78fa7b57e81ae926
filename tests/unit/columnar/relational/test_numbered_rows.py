"""NumberedRows: rows by number, by reference as long as it pays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.columnar.relational.numbered_rows import NumberedRows

SCHEMA = pa.schema({"number": pa.int64(), "text": pa.string(), "list": pa.list_(pa.int64())})


def rows(begin: int, n: int) -> pa.RecordBatch:
    numbers = range(begin, begin + n)
    columns = [
        numbers,
        [f"text {number}" for number in numbers],
        [[number] * (number % 3) for number in numbers],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def test_rows_are_taken_by_the_numbers_that_adding_gave() -> None:
    kept = NumberedRows(SCHEMA, small_rows=4)
    assert [kept.add(rows(begin, n)) for begin, n in ((0, 5), (5, 1), (6, 0), (6, 9))] == [0, 5, 6, 6]
    assert len(kept) == 15
    assert kept.take(np.array([14, 0, 5, 0])).column("number").to_pylist() == [14, 0, 5, 0]
    assert kept.take(np.empty(0, np.int64)).schema == SCHEMA


def test_a_negative_number_gives_a_row_of_nulls() -> None:
    kept = NumberedRows(SCHEMA, small_rows=2)
    nulls = {"number": None, "text": None, "list": None}
    assert kept.take(np.array([-1, -1])).to_pylist() == [nulls, nulls]
    for begin in (0, 3):
        kept.add(rows(begin, 3))
    assert kept.take(np.array([4, -1, 1])).to_pylist() == [
        *rows(4, 1).to_pylist(),
        nulls,
        *rows(1, 1).to_pylist(),
    ]


def test_large_batches_are_not_copied() -> None:
    kept = NumberedRows(SCHEMA, small_rows=4)
    batch = rows(0, 1000)
    before = pa.total_allocated_bytes()
    kept.add(batch)
    assert pa.total_allocated_bytes() == before
    assert kept.nbytes == batch.nbytes


def test_freed_rows_give_their_memory_back() -> None:
    kept = NumberedRows(SCHEMA, small_rows=4)
    for begin in range(0, 10_000, 1000):
        kept.add(rows(begin, 1000))
    whole = kept.nbytes
    live = np.array([9_999, 17, 17, 4_000])
    numbers = kept.keep(live)
    assert kept.nbytes < whole / 100
    assert kept.take(numbers).column("number").to_pylist() == live.tolist()


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 6), st.just("keep")), max_size=20),
    st.sampled_from([1, 3, 100]),
    st.sampled_from([1, 300, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_rows_stay_the_same_however_they_are_moved(
    verbs: list[int | str], small_rows: int, piece_bytes: int, random: object
) -> None:
    kept, model, added = NumberedRows(SCHEMA, small_rows, piece_bytes), dict[int, int](), 0
    for verb in verbs:
        if isinstance(verb, int):
            first = kept.add(rows(added, verb))
            model |= {first + i: added + i for i in range(verb)}
            added += verb
        else:
            live = [number for number in model if random.random() < 0.4]  # type: ignore[attr-defined]
            numbers = kept.keep(np.array(live, np.int64)).tolist()
            model = {new: model[old] for new, old in zip(numbers, live, strict=True)}
        asked = [*model, -1]
        random.shuffle(asked)  # type: ignore[attr-defined]
        expected = [model.get(number) for number in asked]
        assert kept.take(np.array(asked)).column("number").to_pylist() == expected
        assert [
            number for part in kept.parts(np.array(asked), 3) for number in part.column("number").to_pylist()
        ] == expected


def test_wide_rows_are_not_in_memory_twice_while_pieces_are_joined() -> None:
    schema = pa.schema([("wide", pa.binary())])
    rows = NumberedRows(schema)
    one = pa.record_batch([pa.array([bytes(1 << 20)], pa.binary())], schema=schema)
    pool = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(pool)
    pa.set_memory_pool(counting)
    try:
        for _ in range(64):
            rows.add(one)
        assert rows.nbytes >= 64 << 20
        assert counting.max_memory() < 80 << 20
        assert rows.take(np.array([63, 0])).num_rows == 2
    finally:
        pa.set_memory_pool(pool)
