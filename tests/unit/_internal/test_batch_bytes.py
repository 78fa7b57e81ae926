"""Batches cut by their bytes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkcore._internal.arrow.batch_bytes import cut, gathered


@given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=40),
    most_bytes=st.integers(1, 600),
)
def test_pieces_have_all_rows_in_order_and_only_single_rows_have_more_bytes(
    sizes: list[int], most_bytes: int
) -> None:
    batch = pa.record_batch({"n": range(len(sizes)), "text": ["x" * size for size in sizes]})
    pieces = list(cut(batch, most_bytes))
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([batch]))
    assert all(piece.nbytes <= most_bytes or piece.num_rows == 1 for piece in pieces)


def test_a_batch_that_fits_stays_as_it_is() -> None:
    batch = pa.record_batch({"n": range(10)})
    assert next(cut(batch, batch.nbytes)) is batch
    assert len(list(cut(batch, batch.nbytes - 1))) == 2


def test_a_batch_is_not_cut_into_rows_as_its_dictionary_is_large() -> None:
    text = pa.array(["x" * 1000] * 100).dictionary_encode()
    assert [piece.num_rows for piece in cut(pa.record_batch({"text": text}), 500)] == [100]


@pytest.mark.parametrize(("most_bytes", "groups"), [(16, [[2], [1, 1]]), (24, [[2, 1], [1]]), (1, [[1]] * 4)])
def test_batches_come_together_as_far_as_they_fit(most_bytes: int, groups: list[list[int]]) -> None:
    batches = [pa.record_batch({"n": pa.array([0] * rows, pa.int64())}) for rows in (2, 1, 1)]
    found = [[batch.num_rows for batch in group] for group in gathered(batches, most_bytes)]
    assert found == groups
