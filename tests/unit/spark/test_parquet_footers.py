"""Footers of the files of a DataFrame."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.logs import parquet_footers
from flinkcore.spark.logs.parquet_footers import ParquetFooters, RebaseModes, lie_between
from flinkcore.spark.logs.plan_expressions import NotJustFiles


def test_every_file_is_checked_however_many_wait_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        column = pa.array([1], pa.int32() if number == 6 else pa.int64())
        pq.write_table(pa.table({"n": column}), tmp_path / f"{number}.parquet")
    monkeypatch.setattr(parquet_footers, "_FILES_AT_ONCE", 2)
    files = LogFiles.discover(tmp_path).files
    modes = RebaseModes("CORRECTED", "CORRECTED")
    footers = ParquetFooters(pa.schema([("n", pa.int64())]), StoredColumns(), modes)
    footers.check(files[:6])
    with pytest.raises(NotJustFiles, match=r"'n' of .*6\.parquet is int32"):
        footers.check(files)


def test_statistics_prove_that_a_column_has_no_nulls_and_lies_between_numbers(tmp_path: Path) -> None:
    rows = {"n": [1, 5], "none": pa.array([None, 2], pa.int64()), "text": ["a", "b"]}
    pq.write_table(pa.table(rows), tmp_path / "0.parquet")
    pq.write_table(pa.table({**rows, "n": [3, 9]}), tmp_path / "1.parquet")
    files = LogFiles.discover(tmp_path)
    assert lie_between(files, "n", None)
    assert lie_between(files, "n", (1, 9))
    assert not lie_between(files, "n", (1, 8))
    assert not lie_between(files, "n", (2, 9))
    assert not lie_between(files, "none", None)
    assert lie_between(files, "text", None)
    assert not lie_between(files, "missing", None)


def test_files_without_statistics_or_without_the_column_prove_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1], "m": [1]}), tmp_path / "0.parquet")
    assert lie_between(LogFiles.discover(tmp_path), "n", None)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "1.parquet", write_statistics=False)
    assert not lie_between(LogFiles.discover(tmp_path), "n", None)
    assert not lie_between(LogFiles.discover(tmp_path), "m", None)
