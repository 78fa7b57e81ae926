"""Accumulators: rows in any order, entries emptied and used again, merging, results in parts, memory."""

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.process_limits import limit_memory
from models.native_aggregates import Spec, aggregate, numbers, results

from flinkcore._native.aggregates import Accumulators
from flinkcore.errors import DataError

# ---- rows and entries --------------------------------------------------------------------------------------


def test_rows_are_taken_in_the_order_given() -> None:
    batch = pa.record_batch({"x": [10, 11, 12, 13]})
    accumulators = Accumulators(batch.schema, [("collect", "x", None), ("last", "x", None)])
    accumulators.reserve(2)
    accumulators.update(batch, numbers([0, 1, 0, 0]), numbers([3, 1, 0, 3]))
    accumulators.emit_range(0, 2)
    assert results(accumulators) == [[[13, 10, 13], [11]], [13, 11]]


def test_blocks_longer_than_a_thousand_rows_are_taken_whole() -> None:
    n = 10_000
    generator = np.random.default_rng(7)
    entries = generator.integers(0, 50, n).astype(np.uint32)
    values = generator.integers(-1000, 1000, n)
    batch = pa.record_batch({"x": values, "s": pa.array([str(value) for value in values])})
    functions = ("sum", "max", "count_distinct", "collect", "last")
    accumulators = Accumulators(batch.schema, [*[(f, "x", None) for f in functions], ("collect", "s", None)])
    accumulators.reserve(50)
    accumulators.update(batch, entries)
    accumulators._check()
    accumulators.emit(numbers(range(49, -1, -1)))
    groups = [values[entries == e].tolist() for e in range(49, -1, -1)]
    expected = [[sum(g), max(g), len(set(g)), g, g[-1], [str(v) for v in g]] for g in groups]
    assert [list(row) for row in zip(*results(accumulators), strict=True)] == expected


def test_more_entries_than_a_block_are_emitted_whole() -> None:
    n = 5000
    batch = pa.record_batch(
        {"x": range(n), "s": [str(i) for i in range(n)], "h": [i % 3 or None for i in range(n)]}
    )
    accumulators = Accumulators(batch.schema, [("max", "x", None), ("last", "s", None), ("min", "h", None)])
    accumulators.reserve(n)
    accumulators.update(batch, numbers(range(n)))
    accumulators.emit_range(3, n - 3)
    accumulators.emit(numbers(range(n - 1, -1, -1)))
    expected = [*range(3, n), *range(n - 1, -1, -1)]
    assert results(accumulators) == [expected, [str(i) for i in expected], [i % 3 or None for i in expected]]


def test_lists_longer_than_a_block_keep_their_nulls() -> None:
    elements = [None if i % 1000 == 999 else i for i in range(5000)]
    texts = [None if element is None else str(element) for element in elements]
    batch = pa.record_batch({"x": elements, "s": pa.array(texts)})
    assert aggregate(batch, ("collect", "x", None), ("collect", "s", None)) == [elements, texts]


def test_two_aggregates_over_one_column_do_not_disturb_each_other() -> None:
    batch = pa.record_batch({"x": pa.array([2**63, None, 1], pa.uint64())})
    assert aggregate(
        batch,
        ("sum", "x", None),
        ("max", "x", None),
        ("first", "x", None),
        ("max", "x", None),
        ("collect", "x", None),
        ("max_by", "x", "x"),
        ("count", "x", None),
    ) == [2**63 + 1, 2**63, 2**63, 2**63, [2**63, None, 1], 2**63, 2]


def test_cleared_entries_start_anew() -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    specs: list[Spec] = [
        (f, c, None) for c in ("x", "s") for f in ("min", "max", "first", "count_distinct", "collect")
    ]
    specs += [("sum", "x", None), ("mean", "x", None), ("min_by", "s", "x")]
    accumulators = Accumulators(schema, specs)
    accumulators.reserve(3)
    accumulators.update(pa.record_batch([[1, 2, 3], ["a", "b", "c"]], schema=schema), numbers([0, 1, 2]))
    accumulators.clear(numbers([0]))
    accumulators.clear_range(2, 1)
    accumulators._check()
    accumulators.update(pa.record_batch([[9, 8], ["z", "y"]], schema=schema), numbers([0, 2]))
    accumulators.emit_range(0, 3)
    got = results(accumulators)
    assert got[:5] == [[9, 2, 8], [9, 2, 8], [9, 2, 8], [1, 1, 1], [[9], [2], [8]]]
    assert got[5:10] == [["z", "b", "y"]] * 3 + [[1, 1, 1], [["z"], ["b"], ["y"]]]
    assert got[10:] == [[9, 2, 8], [9.0, 2.0, 8.0], ["z", "b", "y"]]


def test_cleared_entries_have_no_value() -> None:
    batch = pa.record_batch({"x": [1, 2, 3]})
    accumulators = Accumulators(
        batch.schema, [(f, "x", None) for f in ("sum", "max", "mean", "first", "count")]
    )
    accumulators.reserve(3)
    accumulators.update(batch, numbers([0, 1, 2]))
    accumulators.clear(numbers([2]))
    accumulators.clear_range(0, 1)
    accumulators.emit_range(0, 3)
    assert results(accumulators) == [[None, 2, None]] * 4 + [[0, 1, 0]]


def test_emitting_keeps_what_the_entries_hold() -> None:
    batch = pa.record_batch({"x": [1, 2]})
    accumulators = Accumulators(batch.schema, [("sum", "x", None), ("collect", "x", None)])
    accumulators.reserve(1)
    for _ in range(3):
        accumulators.update(batch, numbers([0, 0]))
        accumulators.emit(numbers([0]))
    assert results(accumulators) == [[3, 6, 9], [[1, 2], [1, 2] * 2, [1, 2] * 3]]


def test_taking_starts_new_columns() -> None:
    batch = pa.record_batch({"x": [1], "s": ["a"], "f": [True]})
    accumulators = Accumulators(batch.schema, [*[("max", c, None) for c in "xsf"], ("collect", "s", None)])
    assert results(accumulators) == [[], [], [], []]
    accumulators.reserve(2)
    accumulators.update(batch, numbers([1]))
    accumulators.emit_range(0, 2)
    assert results(accumulators) == [[None, 1], [None, "a"], [None, True], [[], ["a"]]]
    accumulators.emit_range(1, 1)
    assert results(accumulators) == [[1], ["a"], [True], [["a"]]]
    accumulators.emit_range(0, 0)
    assert results(accumulators) == [[], [], [], []]


def test_a_table_without_aggregates_has_no_columns() -> None:
    accumulators = Accumulators(pa.schema([("x", pa.int64())]), [])
    accumulators.reserve(1)
    accumulators.update(pa.record_batch({"x": [1]}), numbers([0]))
    accumulators.emit_range(0, 1)
    assert accumulators.take() == []


def test_columns_are_found_by_name_in_any_order() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    accumulators = Accumulators(schema, [("sum", "b", None), ("sum", "a", None)])
    accumulators.reserve(1)
    accumulators.update(pa.record_batch({"a": [1], "b": [10]}), numbers([0]))
    accumulators.update(pa.record_batch({"b": [20], "c": ["?"], "a": [2]}), numbers([0]))
    accumulators.emit_range(0, 1)
    assert results(accumulators) == [[30], [3]]


def test_entries_and_rows_beyond_the_end_are_refused() -> None:
    batch = pa.record_batch({"x": [1, 2]})
    accumulators = Accumulators(batch.schema, [("sum", "x", None)])
    accumulators.reserve(2)
    with pytest.raises(IndexError, match="entry 2 does not exist; 2 are reserved"):
        accumulators.update(batch, numbers([0, 2]))
    with pytest.raises(IndexError, match="row 2 does not exist; the batch has 2"):
        accumulators.update(batch, numbers([0]), numbers([2]))
    with pytest.raises(ValueError, match="1 entries for the 2 rows"):
        accumulators.update(batch, numbers([0]))
    with pytest.raises(ValueError, match="1 entries but 2 rows"):
        accumulators.update(batch, numbers([0]), numbers([0, 1]))
    for verb in (accumulators.emit, accumulators.clear):
        with pytest.raises(IndexError, match="entry 5 does not exist"):
            verb(numbers([5]))
    for range_verb in (accumulators.emit_range, accumulators.clear_range):
        with pytest.raises(IndexError, match="entries 1 to 2; 2 are reserved"):
            range_verb(1, 2)
    with pytest.raises(IndexError, match="entries 0 and 2; 2 are reserved"):
        accumulators.merge(0, 2)
    with pytest.raises(ValueError, match="cannot be merged into itself"):
        accumulators.merge(1, 1)
    with pytest.raises(ValueError, match="entries: 0 to 4294967295 are possible"):
        accumulators.reserve(2**32)
    accumulators.emit_range(0, 2)
    assert results(accumulators) == [[None, None]]


# ---- merging -----------------------------------------------------------------------------------------------


def merged(first: dict[str, list[Any]], second: dict[str, list[Any]], *specs: Spec) -> list[list[Any]]:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string()), ("by", pa.float64())])
    accumulators = Accumulators(schema, specs)
    accumulators.reserve(2)
    for entry, columns in enumerate((first, second)):
        batch = pa.RecordBatch.from_pydict(columns, schema=schema)
        accumulators.update(batch, numbers([entry] * batch.num_rows))
    accumulators.merge(0, 1)
    accumulators._check()
    accumulators.emit_range(0, 2)
    return results(accumulators)


def test_merging_puts_the_others_elements_after_ones_own() -> None:
    got = merged(
        {"x": [1, None], "s": ["a", "b"], "by": [2.0, 1.0]},
        {"x": [7, 1], "s": ["c", None], "by": [1.0, 3.0]},
        ("count", None, None),
        ("count", "x", None),
        ("sum", "x", None),
        ("mean", "x", None),
        ("min", "x", None),
        ("max", "s", None),
        ("first", "s", None),
        ("last", "s", None),
        ("min_by", "s", "by"),
        ("max_by", "s", "by"),
        ("count_distinct", "x", None),
        ("count_distinct", "s", None),
        ("collect", "x", None),
        ("collect", "s", None),
    )
    expected = [4, 3, 9, 3.0, 1, "c", "a", None, "b", None, 2, 3, [1, None, 7, 1], ["a", "b", "c", None]]
    assert [column[0] for column in got] == expected
    assert [column[1] for column in got] == [0, 0] + [None] * 8 + [0, 0, [], []]


def test_merging_with_an_empty_entry_changes_nothing() -> None:
    rows: dict[str, list[Any]] = {"x": [3, None], "s": ["a", "b"], "by": [2.0, 1.0]}
    empty: dict[str, list[Any]] = {"x": [], "s": [], "by": []}
    specs: list[Spec] = [
        (f, c, None) for c in "xs" for f in ("min", "first", "last", "count_distinct", "collect")
    ]
    specs += [("sum", "x", None), ("mean", "by", None), ("max_by", "s", "by"), ("count", None, None)]
    expected = [3, 3, None, 1, [3, None], "a", "a", "b", 2, ["a", "b"], 3, 1.5, "a", 2]
    assert [column[0] for column in merged(rows, empty, *specs)] == expected
    assert [column[0] for column in merged(empty, rows, *specs)] == expected


def test_merging_large_sets_gives_their_union() -> None:
    first: dict[str, list[Any]] = {
        "x": list(range(300)),
        "s": [str(i) for i in range(300)],
        "by": [0.0] * 300,
    }
    second: dict[str, list[Any]] = {
        "x": list(range(200, 900)),
        "s": [str(i) for i in range(200, 900)],
        "by": [0.0] * 700,
    }
    specs: list[Spec] = [("count_distinct", "x", None), ("count_distinct", "s", None)]
    assert merged(first, second, *specs) == [[900, 0], [900, 0]]
    assert merged(second, first, *specs) == [[900, 0], [900, 0]]


# ---- memory ------------------------------------------------------------------------------------------------


def test_clearing_gives_back_what_entries_own() -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    specs: list[Spec] = [(f, c, None) for c in "xs" for f in ("count_distinct", "collect")]
    specs += [("last", "s", None), ("max_by", "x", "s")]
    accumulators = Accumulators(schema, specs)
    accumulators.reserve(100)
    empty = accumulators.memory_bytes()
    batch = pa.record_batch([list(range(5000)), [str(i) * 10 for i in range(5000)]], schema=schema)
    entries = numbers([i % 100 for i in range(5000)])
    accumulators.update(batch, entries)
    full = accumulators.memory_bytes()
    assert full > empty + 5000 * 2 * 50
    for _ in range(3):
        accumulators.clear_range(0, 100)
        assert accumulators.memory_bytes() == empty
        accumulators.update(batch, entries)
        assert accumulators.memory_bytes() == full


def test_a_million_counts_and_sums_take_eight_bytes_each() -> None:
    accumulators = Accumulators(pa.schema([("x", pa.int64())]), [("count", None, None), ("sum", "x", None)])
    accumulators.reserve(1_000_000)
    assert accumulators.memory_bytes() == 17_000_000


def test_memory_grows_with_entries_that_come_in_blocks() -> None:
    accumulators = Accumulators(pa.schema([("x", pa.int64())]), [("sum", "x", None)])
    for n in range(256, 256 * 1000, 256):
        accumulators.reserve(n)
        assert 9 * n <= accumulators.memory_bytes() <= 9 * (n * 3 // 2 + 256)


STARVED = """
import numpy as np, pyarrow as pa
from flinkcore._native.aggregates import Accumulators

batch = pa.record_batch({"x": [1, 2], "s": ["a", "b" * 1_000_000]})
specs = [("sum", "x", None), ("count_distinct", "s", None), ("collect", "s", None)]
accumulators = Accumulators(batch.schema, specs)
entries, last = np.array([0, 1], dtype=np.uint32), np.array([1], dtype=np.uint32)
accumulators.reserve(2)
accumulators.update(batch, entries)
limit_memory(96 << 20)

def fails(act):
    try:
        for _ in range(1000):
            act()
    except MemoryError:
        accumulators._check()
        return True

assert fails(lambda: accumulators.reserve(2**32 - 1)) and len(accumulators) == 2
assert fails(lambda: accumulators.update(batch, last, last))
assert fails(lambda: accumulators.emit_range(1, 1))
assert len({len(column) for column in accumulators.take()}) == 1
accumulators.clear_range(0, 2)
accumulators._check()
accumulators.update(batch, entries)
accumulators.emit_range(0, 2)
print([pa.array(column).to_pylist() for column in accumulators.take()][:2])
"""


def test_too_little_memory_is_an_error_and_the_entries_can_be_used_again() -> None:
    script = limit_memory() + STARVED
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stdout == "[[1, 2], [1, 1]]\n", run.stderr


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_results_beyond_two_gibibytes_of_strings_are_refused_whole(kind: pa.DataType) -> None:
    batch = pa.record_batch({"x": [1], "text": pa.array(["a" * 1_000_000], kind)})
    accumulators = Accumulators(batch.schema, [("count", None, None), ("max", "text", None)])
    accumulators.reserve(1)
    accumulators.update(batch, numbers([0]))
    accumulators.emit_range(0, 1)
    with pytest.raises(
        DataError,
        match=rf"column 'text' .* 2 GiB; cast it to large_{kind} after it is read, by with_columns\(text=",
    ):
        accumulators.emit(numbers([0] * 2200))
    accumulators._check()
    assert [len(column) for column in results(accumulators)] == [1, 1]


def test_results_beyond_two_billion_elements_are_refused_whole() -> None:
    batch = pa.record_batch({"x": np.zeros(1_000_000, dtype=np.int8)})
    accumulators = Accumulators(batch.schema, [("count", None, None), ("collect", "x", None)])
    accumulators.reserve(1)
    accumulators.update(batch, numbers(np.zeros(1_000_000)))
    with pytest.raises(DataError, match=r"collect of column 'x': .* more than 2,147,483,647 elements"):
        accumulators.emit(numbers([0] * 2200))
    accumulators._check()
    assert results(accumulators) == [[], []]
