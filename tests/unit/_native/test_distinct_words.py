"""Exact counts of distinct words: alone, in tables of words, and in pages of words that lie close together."""

import numpy as np
import pyarrow as pa
import pytest
from models.native_aggregates import numbers, results

from flinkcore._native.accumulator_state import (
    accumulator_parts,
    restore_accumulator_parts,
    touched_entries,
)
from flinkcore._native.aggregates import Accumulators

SCHEMA = pa.schema({"v": pa.int64()})
SPECS = [("count_distinct", "v", None)]
RANDOM = np.random.default_rng(7)
VALUES = {
    "none": [],
    "one": [0],
    "dense": range(5_000),
    "dense around 0": range(-3_000, 3_000),
    "every second one": range(1, 9_000, 2),
    "sparse": [7 * n * n * n for n in range(4_000)],
    "far apart": RANDOM.integers(-(1 << 63), (1 << 63) - 1, 3_000).tolist(),
    "the lowest and highest": [*range(-(1 << 63), -(1 << 63) + 99), *range((1 << 63) - 99, 1 << 63)],
    "dense, then sparse": [*range(200), *(n * 1_000_003 for n in range(2_000))],
    "sparse, then dense": [*(n * 1_000_003 for n in range(50)), *range(3_000)],
    "few pages": [n + page * 64 for page in (0, 5, 9) for n in range(64)],
}


def column(values: object) -> pa.RecordBatch:
    return pa.record_batch([pa.array(list(values), pa.int64())], schema=SCHEMA)  # type: ignore[call-overload]


def added(*entries: object) -> Accumulators:
    """Values of several entries, those of each in an order of their own, some twice."""
    found = Accumulators(SCHEMA, SPECS)
    found.reserve(len(entries))
    for entry, values in enumerate(entries):
        batch = column(values)
        again = RANDOM.permutation(
            np.concatenate([np.arange(batch.num_rows), np.arange(batch.num_rows // 3)])
        )
        found.update(batch.take(pa.array(again, pa.int64())), numbers([entry] * len(again)))
    found._check()
    return found


def counts(accumulators: Accumulators) -> list[int]:
    accumulators.emit_range(0, len(accumulators))
    return results(accumulators)[0]


@pytest.mark.parametrize("name", VALUES)
def test_each_value_counts_once_however_close_values_lie(name: str) -> None:
    assert counts(added(VALUES[name])) == [len(set(VALUES[name]))]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("other", ["dense", "sparse", "few pages", "one"])
def test_merged_sets_have_the_values_of_both(name: str, other: str) -> None:
    found = added(VALUES[name], VALUES[other])
    found.merge(0, 1)
    found._check()
    found.emit_range(0, 1)
    assert results(found)[0] == [len(set(VALUES[name]) | set(VALUES[other]))]


@pytest.mark.parametrize("name", VALUES)
def test_sets_that_are_restored_have_the_same_values_and_go_on(name: str) -> None:
    given, taken = added(VALUES[name]), Accumulators(SCHEMA, SPECS)
    taken.reserve(1)
    entry = numbers([0])
    restore_accumulator_parts(taken, entry, touched_entries(given, entry), accumulator_parts(given, entry))
    more = column(range(4_000, 4_100))
    taken.update(more, numbers([0] * more.num_rows))
    taken._check()
    assert counts(taken) == [len(set(VALUES[name]) | set(range(4_000, 4_100)))]


def test_dense_values_take_a_small_part_of_the_memory_of_sparse_ones() -> None:
    dense, sparse = added(range(50_000)), added(n * 977 for n in range(50_000))
    assert 20 * dense.memory_bytes() < sparse.memory_bytes()
    assert counts(dense) == counts(sparse) == [50_000]
