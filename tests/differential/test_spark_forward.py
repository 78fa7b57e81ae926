"""Jobs that end with their logs on Spark: the tasks that read the logs also emit the rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from fuzz.local_spark import LocalFrame

from flinkcore.common import OutputTag, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import DataError, InternalError
from flinkcore.spark.columnar.forward_task import ForwardTask

BAD = OutputTag("bad")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two logs in three files each; of one row in seven the time is null."""
    for name, first in (("some", 0), ("more", 1000)):
        (tmp_path / name).mkdir()
        for file in range(3):
            numbers = range(first + 100 * file, first + 100 * file + 100)
            times = [None if number % 7 == 0 else number for number in numbers]
            columns = {"at": pa.array(times, pa.timestamp("ms")), "n": numbers, "arrival": numbers}
            pq.write_table(pa.table(columns), tmp_path / name / f"{file}.parquet")
    return tmp_path


def rows_of(environment: Any, folder: Path) -> Any:
    """Return rows of both logs, those of one on two ways."""
    logs = [
        environment.from_event_log(
            str(folder / name), timestamp="at", arrival="arrival", on_bad_row=BAD
        ).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        for name in ("some", "more")
    ]
    some, more = (log.select("n", "at") for log in logs)
    odd = some.filter(pc.bit_wise_and(pc.field("n"), 1) == 1).with_columns(n=pc.negate(pc.field("n")))
    return some.union(odd, more)


def without_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("there is a shuffle")

    monkeypatch.setattr(LocalFrame, "repartitionById", refused)


def test_rows_are_written_by_the_tasks_that_read_them(
    tasks_here: Callable[[int], Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_shuffle(monkeypatch)
    embedded = rows_of(StreamExecutionEnvironment.get_execution_environment(), folder).execute()
    on_spark = rows_of(tasks_here(3), folder).execute()
    on_spark.write_parquet(folder / "results", {BAD: folder / "bad"})

    for found, rows in (
        (folder / "results", embedded.to_arrow()),
        (folder / "bad", embedded.get_side_output(BAD)),
    ):
        expected = rows if isinstance(rows, pa.Table) else rows.to_arrow()
        written = pq.read_table(found, schema=expected.schema)
        by_content = [(name, "ascending") for name in ("n", "at")]
        assert written.select(["n", "at"]).sort_by(by_content) == expected.select(["n", "at"]).sort_by(
            by_content
        )
    assert str(on_spark.report) == str(embedded.report)


def test_rows_of_files_come_in_the_order_of_the_log(tasks_here: Callable[[int], Any], folder: Path) -> None:
    log = tasks_here(2).from_event_log(
        str(folder / "some"), timestamp="at", arrival="arrival", on_bad_row="drop"
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    numbers = log.assign_timestamps_and_watermarks(strategy).select("n").to_arrow()["n"].to_pylist()
    assert numbers == [number for number in range(300) if number % 7]


def test_a_parallelism_of_one_still_puts_the_rows_of_all_logs_into_one_order(
    tasks_here: Callable[[int], Any], folder: Path
) -> None:
    environment = tasks_here(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    (folder / "again").mkdir()
    (folder / "again" / "0.parquet").write_bytes((folder / "some" / "0.parquet").read_bytes())
    once, twice = (
        environment.from_event_log(
            str(folder / name), timestamp="at", arrival="arrival", on_bad_row="drop"
        ).assign_timestamps_and_watermarks(strategy)
        for name in ("some", "again")
    )
    numbers = once.union(twice).select("n").to_arrow()["n"].to_pylist()
    assert numbers == [number for number in sorted([*range(300), *range(100)]) if number % 7]


def test_a_log_without_rows_still_has_a_file_of_its_columns(
    tasks_here: Callable[[int], Any], folder: Path
) -> None:
    none = rows_of(tasks_here(3), folder).filter(pc.field("n") > 5000)
    none.write_parquet(folder / "results")
    assert pq.read_table(folder / "results").schema.names == ["n", "at"]


def test_a_fault_of_a_row_is_an_error_of_the_job(tasks_here: Callable[[int], Any], folder: Path) -> None:
    log = tasks_here(2).from_event_log(str(folder / "some"), timestamp="at", arrival="arrival")
    with pytest.raises(DataError, match=r"0\.parquet: null timestamp"):
        log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).to_arrow()


def test_a_partition_that_is_missing_is_an_error(
    tasks_here: Callable[[int], Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ForwardTask.__call__
    monkeypatch.setattr(
        ForwardTask, "__call__", lambda self, rows: call(self, rows) if self.first_partition else iter(())
    )
    with pytest.raises(InternalError, match="partitions of operator 1 came back"):
        rows_of(tasks_here(2), folder).execute().to_arrow()
