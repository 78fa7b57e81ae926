"""Batches that become one."""

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.replay.log.joined_batches import joined, taken

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
