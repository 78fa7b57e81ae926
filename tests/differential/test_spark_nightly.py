"""Nightly runs on Spark: cut at a time of arrival, resumed, and appended; the rows of one embedded run over all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest
from equipment.sampling import sampled
from equipment.spark_sessions import evaluated
from jobs.nightly import LATE, MIDNIGHT_MS, job, sorted_rows, two_days, write_days

from flinkcore.cli import main
from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.spark import SparkExecutionEnvironment

LOG = two_days()
CUTS = [MIDNIGHT_MS - 100_000, MIDNIGHT_MS, None]


def rows_of(spark: Any, path: Path) -> list[dict[str, Any]]:
    """The rows as Spark reads them back."""
    frame = spark.read.parquet(str(path))
    names = sorted(frame.columns)
    rows = [dict(zip(names, row, strict=True)) for row in frame.select(names).collect()]
    return sorted((_plain(row) for row in rows), key=lambda row: tuple(map(str, row.values())))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value).removesuffix("+00:00") for name, value in row.items()}


@pytest.mark.parametrize(
    "source", sampled(["path", "DataFrame", "computed DataFrame", "evaluated DataFrame", "table"], 3)
)
def test_runs_that_are_cut_append_the_rows_of_one_run(spark: Any, tmp_path: Path, source: str) -> None:
    first, second = write_days(tmp_path, LOG)
    whole = job(LOG).execute()
    env = SparkExecutionEnvironment(spark)
    files = [[str(first)], [str(first)], [str(first), str(second)]]
    out, late = tmp_path / "out", tmp_path / "late"
    counts = 0
    for number, until in enumerate(CUTS):
        log: Any = files[number]
        if source == "table":
            log = LOG
        elif source != "path":
            log = spark.read.parquet(*files[number])
            if source == "computed DataFrame":
                log = log.withColumn("size", log["size"] * 2 - log["size"])
            if source == "evaluated DataFrame":
                log = evaluated(log)
        result = job(log, env, until).execute(
            restore_from=tmp_path / str(number - 1) if number else None,
            stop_with_checkpoint=None if until is None else tmp_path / str(number),
        )
        result.write_parquet(out, {LATE: late}, mode="append", partition_by=["day", "user"])
        counts += result.report.events_read
    assert counts == LOG.num_rows
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        assert rows_of(spark, out) == [_plain(row) for row in _as_spark(whole.to_arrow())]
        assert rows_of(spark, late) == [
            _plain(row) for row in _as_spark(whole.get_side_output(LATE).to_arrow())
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def _as_spark(table: pa.Table) -> list[dict[str, Any]]:
    naive = pa.table(
        {
            name: table[name].cast(pa.timestamp("us"))
            if pa.types.is_timestamp(table[name].type)
            else table[name]
            for name in table.column_names
        }
    )
    return sorted_rows(naive)


def test_element_jobs_that_are_cut_give_the_elements_of_one_run(spark: Any, tmp_path: Path) -> None:
    def elements(env: Any, until: Any = None, **checkpoints: Any) -> list[Any]:
        stream = env.from_event_log(
            LOG.slice(0, 600), timestamp="ts", arrival="at", split="split", until=until
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
        rows = stream.assign_timestamps_and_watermarks(strategy).elements()
        counted = (
            rows.map(lambda row: (row.split, 1))
            .key_by(lambda row: row[0])
            .reduce(lambda one, other: (one[0], one[1] + other[1]))
        )
        return list(counted.execute_and_collect(**checkpoints))

    whole = elements(StreamExecutionEnvironment().set_parallelism(1))
    env = SparkExecutionEnvironment(spark)
    until = LOG["at"][300].as_py()
    first = elements(env, until, stop_with_checkpoint=tmp_path / "cut")
    second = elements(env, restore_from=tmp_path / "cut")
    assert 0 < len(first) < len(whole)
    assert sorted(first + second) == sorted(whole)


def test_commands_cut_resume_append_and_partition_on_both_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = write_days(tmp_path, LOG)
    options = [
        "--timestamp",
        "ts",
        "--arrival",
        "at",
        "--split",
        "split",
        "--key",
        "user",
        "--key",
        "split",
        "--window",
        "tumbling:10s",
        "--quiet",
    ]
    options += ["--out-of-orderness", "2s", "--aggregate", "n=count()"]
    engines = [["--engine", "embedded"], ["--engine", "spark", "--master", "local[2]"]]
    to = ["--output", str(tmp_path / "out"), "--mode", "append", "--partition-by", "user"]
    cut = ["--until", "2001-01-03", "--checkpoint", str(tmp_path / "cut")]
    assert main(["replay", str(first), *options, *engines[1], *to, *cut]) == 0
    assert "cut at the arrival 2001-01-03 00:00:00.000Z: " in capsys.readouterr().out
    resumed = ["--restore-from", str(tmp_path / "cut")]
    assert main(["replay", str(first), str(second), *options, *engines[0], *to, *resumed]) == 0
    one = ["--output", str(tmp_path / "one"), "--partition-by", "user"]
    assert main(["replay", str(first), str(second), *options, *engines[0], *one]) == 0
    found = [
        sorted_rows(pa.dataset.dataset(tmp_path / name, partitioning="hive").to_table())
        for name in ("out", "one")
    ]
    assert found[0] == found[1]
    assert found[0]
