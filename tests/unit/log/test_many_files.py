"""Logs of many files: what their columns mean is found out once for files that have the same schema."""

import pickle
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.event_logs import event_log

from flinkcore.errors import SchemaError
from flinkcore.log.event_log import EventLog
from flinkcore.log.formats import file_format
from flinkcore.log.sources.file_chunks import FileChunk


def written(folder: Path, number: int, **columns: pa.Array) -> None:
    rows = {"ts": pa.array([number, number + 1]), **columns}
    pq.write_table(pa.table(rows), folder / f"{number:03}.parquet")


def read(log: EventLog) -> tuple[list[dict[str, object]], list[str]]:
    warnings: list[str] = []
    batches = [
        batch for chunk in log.chunks(1) for batch in chunk.read(["ts", "value"], 100, warnings=warnings)
    ]
    return pa.Table.from_batches(batches).to_pylist(), warnings


def log_of(folder: Path) -> EventLog:
    return event_log(str(folder), timestamp="ts")


def test_types_are_compared_once_for_files_of_one_schema(tmp_path: Path) -> None:
    for number in range(30):
        written(tmp_path, number, value=pa.array([number, None]))
    log = log_of(tmp_path)
    assert log.schema.names == ["ts", "value"]
    with patch.object(file_format, "fits", side_effect=file_format.fits) as fits:
        rows, _ = read(log)
    assert fits.call_count == 2  # of both columns
    assert [row["value"] for row in rows] == [value for number in range(30) for value in (number, None)]


def test_a_file_of_another_schema_between_others_is_read_by_its_own(tmp_path: Path) -> None:
    for number in range(9):
        kind = pa.int32() if number % 3 == 1 else pa.int64()
        columns = {} if number % 3 == 2 else {"value": pa.array([number, number], kind)}
        written(tmp_path, number, **columns)
    rows, _ = read(log_of(tmp_path))
    assert [row["value"] for row in rows[::2]] == [None if n % 3 == 2 else n for n in range(9)]


def test_each_file_with_columns_that_the_log_lacks_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, number, value=pa.array([1, 2]))
    log = log_of(tmp_path)
    assert log.schema.names == ["ts", "value"]
    for number in (0, 2):
        written(tmp_path, number, value=pa.array([1, 2]), more=pa.array([1, 2]))
    _, warnings = read(log)
    found = [text.partition(" has columns")[0][-11:] for text in warnings]
    assert found == ["000.parquet", "002.parquet"]


def test_a_contradiction_is_found_after_files_that_fit(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, number, value=pa.array([1, 2]))
    log = log_of(tmp_path)
    assert log.schema.field("value").type == pa.int64()
    written(tmp_path, 2, value=pa.array(["a", "b"]))
    with pytest.raises(SchemaError, match=r"'value' is int64 in .* but string in"):
        read(log)


def test_what_a_process_found_out_does_not_travel(tmp_path: Path) -> None:
    written(tmp_path, 0, value=pa.array([1, 2]))
    log = log_of(tmp_path)
    (chunk,) = log.chunks(1)
    before = len(pickle.dumps(chunk))
    read(log)
    list(chunk.read(["value"], 10))
    assert isinstance(chunk, FileChunk)
    assert chunk.log_schema.plans
    assert len(pickle.dumps(chunk)) == before
    assert not pickle.loads(pickle.dumps(chunk)).log_schema.plans
