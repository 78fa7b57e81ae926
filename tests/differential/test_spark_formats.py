"""Files of awkward formats on Spark: the same reports, errors and recoveries as in this process."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.errors import PythonException

from flinkcore.columnar.outputs.staging_owner import StagingOwner
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import DataStream
from flinkcore.errors import FlinkcoreError
from flinkcore.spark import SparkExecutionEnvironment


def events(spark: Any, source: Any) -> DataStream:
    log = SparkExecutionEnvironment(spark).from_event_log(source, timestamp="ts")
    return log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def fault(call: Callable[[], object]) -> str | None:
    """The message of the error of a call, which Spark wraps if it reads a DataFrame; None if it works."""
    try:
        call()
    except (FlinkcoreError, PythonException) as error:
        return str(error)
    return None


def test_keys_that_spark_tasks_leave_out_are_reported(spark: Any, tmp_path: Path) -> None:
    known = [json.dumps({"ts": n, "payload": {"id": n}}) + "\n" for n in range(10)]
    for number in range(40):
        grown = [json.dumps({"ts": 10, "payload": {"size": 1}}) + "\n"] if number == 6 else []
        (tmp_path / f"{number}.json").write_text("".join([*known, *grown]))
    result = events(spark, str(tmp_path)).execute()
    with pytest.warns(UserWarning, match=r"6\.json has keys .*'payload\.size' \(1 times, first in line 11\)"):
        result.to_arrow()
    assert any("'payload.size'" in warning for warning in result.report.warnings)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([1], pa.duration("ns")),
        pa.array([1], pa.time64("ns")),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["x"])]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_that_spark_does_not_take_is_named(spark: Any, tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"ts": [1], "v": column})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    result = events(spark, str(tmp_path)).execute()
    assert events(spark, str(tmp_path)).select("ts").execute().to_arrow().num_rows == 1
    for take in (
        result.to_arrow,
        lambda: result.to_dataframe().collect(),
        lambda: result.write_parquet(tmp_path / "out"),
    ):
        message = fault(take)
        assert message is None or "'v'" in message


def test_what_a_killed_run_has_left_is_replaced(spark: Any, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    staging = tmp_path / "out" / "_temporary"
    staging.mkdir(parents=True)
    (staging / "part-00000-1.parquet").write_text("half")
    killed = replace(StagingOwner.of_this_process(), process=process.pid, started="1")
    killed.write(fs.LocalFileSystem(), str(staging))
    log = pa.table({"ts": [1, 2]})
    events(spark, log).execute().write_parquet(tmp_path / "out", mode="overwrite")
    assert pq.read_table(tmp_path / "out").num_rows == 2
    assert not staging.exists()
