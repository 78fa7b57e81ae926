"""What accumulators hold as columns: into others, and what does not fit."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.accumulator_state import (
    accumulator_parts,
    restore_accumulator_parts,
    touched_entries,
)
from flinkcore._native.aggregates import Accumulators
from flinkcore.errors import SchemaError

BATCH = pa.record_batch(
    {
        "number": pa.array([3, None, -1, 7, None], pa.int32()),
        "real": pa.array([0.5, -0.0, float("nan"), None, 2.0]),
        "text": pa.array(["b", None, "", "ä" * 40, "b"]),
        "price": pa.array([1, 2, None, 4, 5], pa.decimal128(9, 2)),
        "flag": pa.array([True, False, None, True, True]),
        "items": pa.array(
            [[{"n": 1, "of": "ä"}], None, [], [None, {"n": None, "of": ""}], [{"n": 4, "of": None}]],
            pa.list_(pa.struct([("n", pa.int8()), ("of", pa.string())])),
        ),
    }
)
PLAIN = [name for name in BATCH.schema.names if name != "items"]
SPECS = [
    ("count", None, None),
    *((function, column, None) for function in ("sum", "mean") for column in ("number", "real")),
    *(
        (function, column, None)
        for function in ("min", "max", "first", "last", "count_distinct", "approx_count_distinct", "collect")
        for column in PLAIN
    ),
    *((function, "items", None) for function in ("first", "last", "collect")),
    *(
        (function, column, None)
        for function in ("sum", "mean", "stddev", "var_pop")
        for column in ("price", "real")
    ),
    *((function, column, None) for function in ("bit_or", "bit_and") for column in ("number", "flag")),
    *(("approx_percentile", column, None, 0.5) for column in ("number", "real", "price", "flag")),
    ("min_by", "items", "number"),
    ("min_by", "text", "real"),
    ("max_by", "number", "text"),
    ("min_by", "price", "price"),
]
ENTRIES = np.array([0, 2, 0, 2, 3], np.uint32)


def accumulators(entries: np.ndarray | None = None) -> Accumulators:
    made = Accumulators(BATCH.schema, SPECS)
    made.reserve(6)
    if entries is not None:
        made.update(BATCH, entries)
    return made


def results(of: Accumulators, entries: list[int]) -> list[list[Any]]:
    of.emit(np.array(entries, np.uint32))
    taken = [pa.array(column).to_pylist() for column in of.take()]
    # The elements of a set have no order, but only their number is a result.
    return [[repr(value) for value in column] for column in taken]


def test_entries_go_on_elsewhere_as_they_were() -> None:
    given = accumulators(ENTRIES)
    numbers = np.array([3, 0, 1, 2], np.uint32)  # 1 is empty
    taken = accumulators()
    into = np.array([4, 5, 1, 0], np.uint32)
    restore_accumulator_parts(taken, into, touched_entries(given, numbers), accumulator_parts(given, numbers))
    taken._check()
    assert results(taken, into.tolist()) == results(given, numbers.tolist())
    more = np.array([4, 5, 1, 0, 5], np.uint32), np.array([3, 0, 1, 2, 0], np.uint32)
    taken.update(BATCH, more[0])
    given.update(BATCH, more[1])
    assert results(taken, into.tolist()) == results(given, numbers.tolist())
    taken.merge(4, 5)
    given.merge(3, 0)
    taken._check()
    assert results(taken, [4]) == results(given, [3])


def test_sums_without_a_value_stay_without_one() -> None:
    """Entries whose rows were all null, beside such as have had no row, where states are kept and where not yet."""
    only_null = BATCH.slice(1, 1)
    given = Accumulators(BATCH.schema, [("sum", "number", None)])
    given.reserve(2)
    given.update(only_null, np.array([1], np.uint32))
    numbers = np.array([0, 1], np.uint32)
    taken = Accumulators(BATCH.schema, [("sum", "number", None)])
    taken.reserve(2)
    restore_accumulator_parts(
        taken, numbers, touched_entries(given, numbers), accumulator_parts(given, numbers)
    )
    taken.emit(numbers)
    assert pa.array(taken.take()[0]).to_pylist() == [None, None]


def test_no_entries_give_empty_parts() -> None:
    none = np.empty(0, np.uint32)
    given = accumulators(ENTRIES)
    taken = accumulators(ENTRIES)
    touched = touched_entries(given, none)
    assert len(touched) == 0
    restore_accumulator_parts(taken, none, touched, accumulator_parts(given, none))
    taken._check()
    assert results(taken, [0, 1, 2, 3]) == results(given, [0, 1, 2, 3])


def test_parts_that_do_not_fit_are_refused() -> None:
    given = accumulators(ENTRIES)
    numbers = np.array([0, 2], np.uint32)
    touched, parts = touched_entries(given, numbers), accumulator_parts(given, numbers)
    with pytest.raises(SchemaError, match=f"1 aggregates of a checkpoint for {len(SPECS)}"):
        restore_accumulator_parts(accumulators(), numbers, touched, parts[:1])
    with pytest.raises(SchemaError, match="aggregate 0 of a checkpoint lacks its 'words'"):
        restore_accumulator_parts(accumulators(), numbers, touched, [{}, *parts[1:]])
    at = SPECS.index(("collect", "text", None))
    ends, *values = parts[at]["list"]
    for broken in (ends[:-1], ends + 1, ends[::-1].copy()):
        damaged = [*parts[:at], {"list": (broken, *values)}, *parts[at + 1 :]]
        with pytest.raises(SchemaError, match="do not fit"):
            restore_accumulator_parts(accumulators(), numbers, touched, damaged)
    at = SPECS.index(("last", "items", None))
    ends, data = parts[at]["strings"]
    for broken in (
        data[:-1],
        np.append(data, np.uint8(0)),
        np.where(data == 1, 7, data).astype(np.uint8),
        data ^ 0x80,
    ):
        moved = np.array([*ends[:-1], len(broken)])
        damaged = [*parts[:at], {**parts[at], "strings": (moved, broken)}, *parts[at + 1 :]]
        with pytest.raises(SchemaError, match="is none of the type of its column"):
            restore_accumulator_parts(accumulators(), numbers, touched, damaged)
    at = SPECS.index(("collect", "items", None))
    ends, value_ends, data, nulls = parts[at]["list"]
    damaged = [*parts[:at], {"list": (ends, value_ends, data ^ 0x40, nulls)}, *parts[at + 1 :]]
    with pytest.raises(SchemaError, match="is none of the type of its column"):
        restore_accumulator_parts(accumulators(), numbers, touched, damaged)
    with pytest.raises(IndexError, match="entry 6 does not exist; 6 are reserved"):
        accumulator_parts(given, np.array([6], np.uint32))


@pytest.mark.parametrize("length", [0, 7, 39, 41])
@pytest.mark.parametrize(
    ("function", "column", "by", "part"),
    [
        ("min", "code", None, "strings"),
        ("last", "code", None, "strings"),
        ("max_by", "code", "number", "strings"),
        ("collect", "code", None, "list"),
        ("first", "price", None, "strings"),
        ("min_by", "number", "price", "key_strings"),
        ("collect", "price", None, "list"),
    ],
)
def test_values_of_another_width_than_their_columns_are_refused(
    function: str, column: str, by: str | None, part: str, length: int
) -> None:
    batch = pa.record_batch(
        {
            "code": pa.array([b"c" * 40], pa.binary(40)),
            "price": pa.array([7], pa.decimal128(9, 2)),
            "number": pa.array([1]),
        }
    )

    def made() -> Accumulators:
        accumulators = Accumulators(batch.schema, [(function, column, by)])
        accumulators.reserve(1)
        return accumulators

    at, given = np.array([0], np.uint32), made()
    given.update(batch, at)
    touched, (parts,) = touched_entries(given, at), accumulator_parts(given, at)
    data = np.resize(parts[part][1 if part != "list" else 2], length)
    ends = np.array([0, length])
    forged = (parts[part][0], ends, data, parts[part][3]) if part == "list" else (ends, data)
    taken = made()
    restore_accumulator_parts(taken, at, touched, [parts])
    with pytest.raises(SchemaError, match="value 0 of an aggregate in a checkpoint is none of the type"):
        restore_accumulator_parts(made(), at, touched, [{**parts, part: forged}])


@pytest.mark.parametrize("text", [False, True])
def test_a_set_has_room_for_all_of_another_before_it_takes_that_in(text: bool) -> None:
    # They come in the order of its slots, and would crowd the first slots of a table that is too small for all of them.
    numbers = np.arange(3_000) * 1_000  # so far apart that they are not in pages
    batch = pa.record_batch({"x": [str(number) for number in numbers] if text else numbers})
    one, two = (Accumulators(batch.schema, [("count_distinct", "x", None)]) for _ in range(2))
    for made in (one, two):
        made.reserve(2)
        made.update(batch, np.zeros(len(numbers), np.uint32))
    two.update(batch, np.ones(len(numbers), np.uint32))
    two.merge(0, 1)
    two._check()
    assert results(two, [0]) == [["3000"]]
    one.take()
    assert two.memory_bytes() - one.memory_bytes() == 4096 * (16 if text else 8)


def sketches(values: range) -> Accumulators:
    batch = pa.record_batch({"x": pa.array(values, pa.int64())})
    made = Accumulators(batch.schema, [("approx_count_distinct", "x", None)])
    made.reserve(2)
    made.update(batch, np.zeros(len(values), np.uint32))
    return made


def test_a_sketch_goes_on_elsewhere_as_it_was() -> None:
    at, more = np.array([0], np.uint32), pa.record_batch({"x": pa.array(range(4000, 9000))})
    given, taken = sketches(range(5000)), sketches(range(0))
    restore_accumulator_parts(taken, at, touched_entries(given, at), accumulator_parts(given, at))
    taken._check()
    for each in (given, taken):
        each.update(more, np.zeros(more.num_rows, np.uint32))
    assert results(taken, [0]) == results(given, [0]) == results(sketches(range(9000)), [0])


def test_a_sketch_that_no_values_make_is_refused() -> None:
    at = np.array([0], np.uint32)
    given = sketches(range(5000))
    touched, (parts,) = touched_entries(given, at), accumulator_parts(given, at)
    _, registers = parts["strings"]
    for broken in (
        registers[:-1],
        np.append(registers, np.uint8(0)),
        registers + np.uint8(54),
        registers * np.uint8(0),
    ):
        damaged = {**parts, "strings": (np.array([0, len(broken)]), broken)}
        with pytest.raises(
            SchemaError, match="row 0 of the windows of a checkpoint has a sketch that no values make"
        ):
            restore_accumulator_parts(sketches(range(0)), at, touched, [damaged])
    many = np.arange(1, 600, dtype=np.uint64)
    damaged = {"strings": (np.array([0, 0]), registers[:0]), "word_set": (np.array([0, len(many)]), many)}
    with pytest.raises(SchemaError, match="has a sketch that no values make"):
        restore_accumulator_parts(sketches(range(0)), at, touched, [damaged])


def distribution(values: Any, n_entries: int = 1) -> Accumulators:
    batch = pa.record_batch({"x": pa.array(values, pa.float64())})
    made = Accumulators(batch.schema, [("approx_percentile", "x", None, 0.5)])
    made.reserve(n_entries)
    made.update(batch, np.zeros(len(values), np.uint32))
    return made


def test_a_count_beyond_the_numbers_that_a_double_tells_apart_finds_the_last_bucket() -> None:
    at, count = np.array([0], np.uint32), 2**60 + 129
    given = distribution([1.0])
    touched, (parts,) = touched_entries(given, at), accumulator_parts(given, at)
    data = set_word(set_word(parts["strings"][1], 1, count), 5, count)
    batch = pa.record_batch({"x": pa.array([], pa.float64())})
    taken = Accumulators(batch.schema, [("approx_percentile", "x", None, 1.0)])
    taken.reserve(1)
    restore_accumulator_parts(taken, at, touched, [{"strings": (np.array([0, len(data)]), data)}])
    assert results(taken, [0]) == [["1.0"]]


@pytest.mark.parametrize("n", [1, 900, 5000])
def test_a_distribution_goes_on_elsewhere_as_it_was(n: int) -> None:
    at, rest = np.array([0], np.uint32), pa.record_batch({"x": np.arange(n, 3 * n) / 7})
    given, taken = distribution(np.arange(n) / 7), distribution([])
    restore_accumulator_parts(taken, at, touched_entries(given, at), accumulator_parts(given, at))
    taken._check()
    for each in (given, taken):
        each.update(rest, np.zeros(rest.num_rows, np.uint32))
    assert results(taken, [0]) == results(given, [0]) == results(distribution(np.arange(3 * n) / 7), [0])


def set_word(data: np.ndarray, word: int, value: int) -> np.ndarray:
    words = np.array(data).view(np.int64)
    words[word] = value
    return words.view(np.uint8)


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda data: data[:-8], id="half a bucket"),
        pytest.param(lambda data: data[:32], id="no bucket"),
        pytest.param(lambda data: data[:8], id="half a head"),
        pytest.param(lambda data: set_word(data, 0, 45), id="too few bits"),
        pytest.param(lambda data: set_word(data, 0, -1), id="negative bits"),
        pytest.param(lambda data: set_word(data, 1, 4), id="another count"),
        pytest.param(lambda data: set_word(data, 2, 7), id="a least number that is none"),
        pytest.param(lambda data: set_word(data, 3, 0x7FF8000000000001), id="a greatest number that is none"),
        pytest.param(lambda data: set_word(data, 5, 0), id="a bucket without numbers"),
        pytest.param(lambda data: set_word(set_word(data, 5, 2**63 - 1), 7, 3), id="counts that overflow"),
        pytest.param(lambda data: set_word(data, 6, int(data.view(np.int64)[4])), id="a bucket twice"),
        pytest.param(lambda data: set_word(data, 8, 0x7FF8000000000001), id="no number"),
        pytest.param(lambda data: set_word(data, 4, -(2**63)), id="below all numbers"),
        pytest.param(
            lambda data: np.concatenate(
                [
                    np.array([0, 2000, 0, 1999], np.int64),
                    np.stack([np.arange(2000), np.ones(2000, np.int64)], 1).ravel(),
                ]
            ).view(np.uint8),
            id="more buckets than there can be",
        ),
    ],
)
def test_a_distribution_that_no_values_make_is_refused(damaged: Any) -> None:
    at = np.array([0], np.uint32)
    given = distribution([1.0, 2.0, float("inf")])
    touched, (parts,) = touched_entries(given, at), accumulator_parts(given, at)
    _, data = parts["strings"]
    forged = damaged(np.array(data))
    with pytest.raises(
        SchemaError, match="row 0 of the windows of a checkpoint has a distribution that no values"
    ):
        restore_accumulator_parts(
            distribution([]), at, touched, [{"strings": (np.array([0, len(forged)]), forged)}]
        )
