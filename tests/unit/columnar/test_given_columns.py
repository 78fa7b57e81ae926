"""Columns that functions over batches give."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from flinkcore.columnar.batch_functions.given_columns import GivenColumns
from flinkcore.errors import DataError, SchemaError

INTS = pa.list_(pa.int64())


def given(column: Any, kind: pa.DataType) -> list[Any]:
    batch = GivenColumns({"n": column}, "the output").batch(pa.schema({"n": kind}))
    values: list[Any] = batch["n"].to_pylist()
    return values


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1.5], pa.int64()),
        ([1, 1.5], pa.uint64()),
        ([None, [1, None, 1.5]], INTS),
        ([[np.float32(1.5)]], INTS),
        ([[[1], [Decimal("1.5")]]], pa.large_list(INTS)),
        ([[float("nan")]], INTS),
        ([{"a": [1]}, {"a": [1.5]}], pa.struct({"a": INTS})),
        ([[("a", 1), ("b", 1.5)]], pa.map_(pa.string(), pa.int64())),
        ([{"a": 1.5}], pa.map_(pa.string(), pa.int64())),
        ([1.5], pa.dictionary(pa.int8(), pa.int64())),
        ([1.5], pa.run_end_encoded(pa.int32(), pa.int64())),
        ([datetime(2024, 1, 1)], pa.int64()),
        ([datetime(2024, 1, 1, 0, 0, 0, 5)], pa.timestamp("ms")),
        (np.array(["2024-01-01T03"], "M8[s]"), pa.date32()),
        (pa.array([1.5]), pa.int64()),
    ],
    ids=str,
)
def test_what_its_column_would_cut_is_refused(column: Any, kind: pa.DataType) -> None:
    with pytest.raises(
        SchemaError, match=r"the output got values for the column 'n' that are not .*; give such"
    ):
        given(column, kind)


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ([2**64 - 1, None, 1.0], pa.uint64(), [2**64 - 1, None, 1]),
        ([[2**64 - 1]], pa.list_(pa.uint64()), [[2**64 - 1]]),
        ([None, [], [None, 1, 2.0]], INTS, [None, [], [None, 1, 2]]),
        ([np.array([1, 2]), (3,)], INTS, [[1, 2], [3]]),
        ([{"a": 1}, {}, None], pa.struct({"a": pa.int8()}), [{"a": 1}, {"a": None}, None]),
        ([[("k", 2.0)], None], pa.map_(pa.string(), pa.int64()), [[("k", 2)], None]),
        ([1.5, 2], pa.float64(), [1.5, 2.0]),
        (pd.Series([1.0, None]), pa.int64(), [1, None]),
        (pd.Series([2**64 - 1, None, np.nan], dtype=object), pa.uint64(), [2**64 - 1, None, None]),
        (pd.Series([{"k": 1}, None]), pa.map_(pa.string(), pa.int64()), [[("k", 1)], None]),
        (pd.Series([[{"x": 1}]]), pa.list_(pa.map_(pa.string(), pa.int64())), [[[("x", 1)]]]),
        (pd.Series([(1, "a")]), pa.struct({"a": pa.int8(), "b": pa.string()}), [{"a": 1, "b": "a"}]),
        (pd.Series(["a", None], dtype="category"), pa.string(), ["a", None]),
        (pd.Series([Decimal(10**20)]), pa.decimal128(38, 0), [Decimal(10**20)]),
        (pd.Series([10**20]), pa.decimal128(38, 0), [Decimal(10**20)]),
        (pl.Series([[1], None]), pa.list_(pa.int64()), [[1], None]),
        (pl.Series(["a", None]), pa.string(), ["a", None]),
    ],
    ids=str,
)
def test_lists_of_python_become_columns(column: Any, kind: pa.DataType, expected: list[Any]) -> None:
    assert given(column, kind) == expected


def test_chunks_with_dictionaries_that_have_no_common_one_become_one_column() -> None:
    chunks = [pa.array([text, None]).dictionary_encode("encode") for text in ("a", "b")]
    assert given(pa.chunked_array(chunks), pa.string()) == ["a", None, "b", None]


def test_a_null_within_a_value_that_takes_none_is_refused() -> None:
    kind = pa.list_(pa.field("item", pa.int64(), nullable=False))
    assert given([[1], None], kind) == [[1], None]
    with pytest.raises(DataError, match=r"the output got a null in 'n\.item', which cannot be null"):
        given([[1], [None]], kind)
