"""Rows of Flink SQL are written as Flink writes them, with their types and hash codes."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.arrow import RecordBatch
from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.row_data import row_data
from flinkcore.savepoints.sql.accumulators import rows_of_columns
from flinkcore.savepoints.writing.java_hashes import key_groups
from flinkcore.sql.types.logical_types import type_of

PLANS = Path(__file__).parents[2] / "golden" / "savepoints" / "plans"
TEXT = "VARCHAR(2147483647)"


def test_a_row_is_written_and_read_again() -> None:
    serializer = row_data([type_of(each) for each in (TEXT, "DECIMAL(30, 2)", "TIMESTAMP(9)", "BOOLEAN")])
    columns = [
        pa.array(["seven77", "eight888", None, ""]),
        pa.array([Decimal("-0.01"), Decimal(10) ** 27, None, Decimal(0)], pa.decimal128(30, 2)),
        pa.array([-1, 1_500_000_001, None, 0], pa.timestamp("ns")),
        pa.array([True, False, None, True]),
    ]
    rows = rows_of_columns(serializer, columns, 4)
    writer, reader = serializer.column(False), serializer.column(False)
    writer.bind_batch(RecordBatch(pa.RecordBatch.from_arrays([rows], ["row"]), any_type=True), 0)
    for row in range(4):
        data = writer.write_value(row)
        assert reader.read_value(data, 0, 100) == len(data)
    assert pa.array(reader.array()).to_pylist() == rows.to_pylist()


def test_the_snapshot_of_a_serializer_is_that_of_flink() -> None:
    writer = ByteWriter()
    types = ["CHAR(3)", "TINYINT", "SMALLINT", "INT", "BIGINT NOT NULL", "FLOAT", "DOUBLE", "DECIMAL(10, 2)"]
    types += ["DECIMAL(25, 3)", "DATE", "TIMESTAMP(6)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"]
    row_data([type_of(each) for each in types]).write_snapshot(writer)
    assert writer.data() in (PLANS / "group_by_all_types" / "savepoint" / "_metadata").read_bytes()


def test_rows_in_sliced_arrays_have_the_hash_codes_of_their_own() -> None:
    serializer = row_data([type_of(TEXT), type_of("INT")])
    rows = rows_of_columns(serializer, [pa.array(["a", "b", "c"]), pa.array([1, None, 3], pa.int32())], 3)
    groups = key_groups(rows, serializer, 32_768)
    assert len(set(groups.tolist())) == 3
    np.testing.assert_array_equal(key_groups(rows.slice(1), serializer, 32_768), groups[1:])


def test_rows_within_rows_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="ARRAY<INT> in states of SQL cannot be written"):
        row_data([type_of("ARRAY<INT>")])
