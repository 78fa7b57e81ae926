"""Batches that become one."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._internal.arrow.joined_batches import empty_batch, joined, taken
from flinkcore.errors import DataError

SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False, metadata={"unit": "m"}),
        pa.field("text", pa.dictionary(pa.int32(), pa.string())),
        pa.field("list", pa.list_(pa.float64())),
    ],
    metadata={"of": "the schema"},
)


def batch(*numbers: int) -> pa.RecordBatch:
    texts = pa.array(
        [None if number % 3 == 0 else str(number) for number in numbers], pa.string()
    ).dictionary_encode()
    lists = pa.array([[number] * (number % 4) for number in numbers], pa.list_(pa.float64()))
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), texts, lists], schema=SCHEMA)


@pytest.mark.parametrize(
    "batches",
    [
        [batch(1, 2)],
        [batch(1, 2), batch(3)],
        [batch(1, 2, 3, 4).slice(1, 2), batch(), batch(5, 6, 7).slice(2)],
    ],
)
def test_batches_are_joined_with_all_that_their_schema_has(batches: list[pa.RecordBatch]) -> None:
    found = joined(batches)
    assert found.schema.equals(SCHEMA, check_metadata=True)
    assert found.to_pylist() == [row for each in batches for row in each.to_pylist()]
    found.validate(full=True)


def test_batches_without_columns_keep_their_number_of_rows() -> None:
    rows = [batch(*range(n)).select([]) for n in (3, 0, 4)]
    assert joined(rows).num_rows == 7


@pytest.mark.parametrize("rows", [[2, 0, 2], []])
def test_rows_are_taken_of_batches_with_views(rows):
    columns = {
        "text": pa.array(["a", None, "c" * 20], pa.string_view()),
        "nested": pa.array([{"x": b"a"}, None, {"x": None}], pa.struct([("x", pa.binary_view())])),
        "number": pa.array([1, 2, 3]),
    }
    batch = pa.record_batch(columns)
    found = taken(batch, np.array(rows, np.uint32))
    assert found.schema == batch.schema
    assert found.to_pylist() == [batch.to_pylist()[row] for row in rows]


def long_text(n_bytes: int) -> pa.Array:
    zeros = np.zeros(n_bytes, np.uint8)  # memory that nobody touches
    return pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, n_bytes], np.int32)), pa.py_buffer(zeros)]
    )


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (long_text(1 << 30), "type string holds.* cast it to large_string where"),
        (
            pa.StructArray.from_arrays([long_text(1 << 30)], ["of"]),
            "type struct<of: string> holds.* cast it to a type with",
        ),
    ],
    ids=["text", "struct"],
)
def test_more_text_than_a_column_can_count_is_refused(column: pa.Array, advice: str) -> None:
    rows = pa.record_batch({"number": pa.array([1]), "long": column})
    with pytest.raises(
        DataError, match=f"the column 'long' of rows that come together has more than .*{advice}"
    ):
        joined([rows, rows])


class Full:
    """As an array, or a batch of it, whose rows are too long for one."""

    type = pa.binary()
    schema = pa.schema({"long": pa.binary()})

    @property
    def columns(self) -> list[Any]:
        return [self]

    def take(self, rows: pa.Array) -> pa.Array:
        raise pa.ArrowInvalid("offset overflow")


def test_more_text_than_a_column_can_count_is_not_taken() -> None:
    with pytest.raises(DataError, match=r"the column 'long' of rows .* cast it to large_binary where"):
        taken(Full(), np.array([0, 0]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    [
        pa.sparse_union([pa.field("n", pa.int64()), pa.field("text", pa.string())]),
        pa.list_(pa.dense_union([pa.field("n", pa.int64())])),
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.int64()),
        pa.list_view(pa.int64()),
        pa.uuid(),
    ],
    ids=str,
)
def test_a_batch_without_rows_has_columns_of_any_type(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("x", kind, metadata={"unit": "m"})])
    found = empty_batch(schema)
    found.validate(full=True)
    assert found.num_rows == 0
    assert found.schema.equals(schema, check_metadata=True)
