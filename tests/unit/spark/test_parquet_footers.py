"""Footers of the files of a DataFrame."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.logs import parquet_footers
from flinkcore.spark.logs.parquet_footers import ParquetFooters, RebaseModes
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
