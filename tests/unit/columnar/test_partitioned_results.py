"""Results in directories of partitions, and results that are appended to those of earlier runs."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from jobs.nightly import LATE, MIDNIGHT_MS, USERS, job, sorted_rows, two_days, write_days

from flinkcore.columnar.outputs import parquet_parts
from flinkcore.columnar.outputs.hive_partitions import hive_folder
from flinkcore.columnar.outputs.parquet_directory import ParquetOutput
from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import ConfigurationError, DataError, SchemaError

LOG = two_days(1_000)
REPLACES = r"mode='append' replaces the [0-9,]+ rows? of this run in "
TYPES = pa.schema({"user": pa.string(), "day": pa.date32()})


def read(path: Path, *columns: str) -> list[dict[str, Any]]:
    fields = pa.schema([TYPES.field(name) for name in columns])
    return sorted_rows(ds.dataset(path, partitioning=ds.partitioning(fields, flavor="hive")).to_table())


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("open_files", [1, 100])
def test_partitions_are_directories_whose_files_lack_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: int
) -> None:
    monkeypatch.setattr(parquet_parts, "_OPEN_FILES", open_files)
    result = job(LOG).execute()
    result.write_parquet(tmp_path / "out", partition_by=["day", "user"])
    assert read(tmp_path / "out", "day", "user") == sorted_rows(result.to_arrow())
    folders = {path.parent.name for path in (tmp_path / "out").rglob("*.parquet")}
    assert folders == {
        *("user=ann", "user=b%3Dc%2Fd", "user=ä é", "user=50%25 off", "user=x%3Ay", "user=null"),
        "user=__HIVE_DEFAULT_PARTITION__",
    }
    some = next((tmp_path / "out" / "day=2001-01-03" / "user=ann").iterdir())
    assert pq.read_schema(some).names == [
        name for name in result.to_arrow().column_names if name not in TYPES.names
    ]


def test_partitioned_results_are_a_log_with_the_same_columns(tmp_path: Path) -> None:
    job(LOG).write_parquet(tmp_path / "out", partition_by="user")
    env = StreamExecutionEnvironment()
    stream = env.from_event_log(tmp_path / "out", timestamp="window_start", position=["window_start"])
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    keyed = (
        stream.assign_timestamps_and_watermarks(strategy).filter(~ds.field("user").is_null()).key_by("user")
    )
    again = keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=count()).to_arrow()
    assert set(again["user"].to_pylist()) == {user for user in USERS if user is not None}


def test_duckdb_reads_the_rows_of_partitions(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", minversion="2")  # earlier ones read the text "null" as no value
    result = job(LOG).execute()
    result.write_parquet(tmp_path / "out", partition_by=["day", "user"])
    found = duckdb.sql(
        f"select day::varchar as day, user, n, size, split from read_parquet('{tmp_path}/out/**/*.parquet', "
        "hive_partitioning=true, hive_types={'user': varchar, 'day': date})"
    ).fetchall()
    expected = result.to_arrow().select(["day", "user", "n", "size", "split"]).to_pylist()
    assert sorted(map(str, found)) == sorted(str((str(row.pop("day")), *row.values())) for row in expected)


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        (pa.scalar(-3), "a%2Fb=-3"),
        (pa.scalar(True), "a%2Fb=true"),
        (pa.scalar(datetime.date(2001, 1, 3)), "a%2Fb=2001-01-03"),
        (pa.scalar(None, pa.string()), "a%2Fb=__HIVE_DEFAULT_PARTITION__"),
        (pa.scalar("\"#%'*/:=?\\{[]^\x7f\n"), "a%2Fb=%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E%7F%0A"),
        (pa.scalar("ü }+~&"), "a%2Fb=ü }+~&"),
    ],
)
def test_directories_have_the_names_that_spark_gives_them(value: pa.Scalar, folder: str) -> None:
    assert hive_folder("a/b", value) == folder


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__", "a\0"])
def test_a_text_that_readers_would_take_for_another_value_is_an_error(tmp_path: Path, text: str) -> None:
    log = LOG.set_column(3, "user", pa.array([text] * LOG.num_rows))
    with pytest.raises(DataError, match=r"column 'user' has .*, for which there is no directory") as failure:
        job(log).write_parquet(tmp_path / "out", partition_by="user")
    assert failure.value.column == "user"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("partition_by", "message"),
    [
        ("nobody", "partition_by names 'nobody'"),
        (["user", "user"], "partition_by names 'user'; it takes different ones"),
        ("window_start", "Partition by its day, such as with_columns"),
    ],
)
def test_columns_that_are_no_partitions_are_refused(tmp_path: Path, partition_by: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        job(LOG).write_parquet(tmp_path / "out", partition_by=partition_by)


def test_overwriting_replaces_the_whole_directory(tmp_path: Path) -> None:
    job(LOG.slice(0, 500)).write_parquet(tmp_path / "out", partition_by=["day", "user"])
    only = LOG.filter(ds.field("user") == "ann").slice(100)
    result = job(only).execute()
    result.write_parquet(tmp_path / "out", mode="overwrite", partition_by=["day", "user"])
    assert read(tmp_path / "out", "day", "user") == sorted_rows(result.to_arrow())
    assert {path.name for path in (tmp_path / "out").rglob("user=*")} == {"user=ann"}
    with pytest.raises(ConfigurationError, match="also has 'day="):
        job(LOG).write_parquet(tmp_path / "out", mode="overwrite", partition_by="user")


def test_a_failed_write_leaves_the_partitions_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(LOG.slice(0, 500)).write_parquet(tmp_path / "out", partition_by="user")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet")}
    for mode in ("append", "overwrite"):
        with monkeypatch.context() as patched:
            publish = ParquetOutput.publish

            def failing(self: ParquetOutput, *given: Any, publish: Any = publish) -> None:
                publish(self, *given)
                raise KeyboardInterrupt

            patched.setattr(ParquetOutput, "publish", failing)
            with pytest.raises(KeyboardInterrupt):
                job(LOG).write_parquet(tmp_path / "out", mode=mode, partition_by="user")
        assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet")} == before
        assert not list(tmp_path.rglob("_temporary"))
    assert len(list((tmp_path / "out").iterdir())) == len(before)


def test_runs_that_append_give_the_rows_of_all(tmp_path: Path) -> None:
    parts = [job(LOG.slice(0, 500)).execute(), job(LOG.slice(500)).execute()]
    for part in parts:
        part.write_parquet(tmp_path / "out", {LATE: tmp_path / "late"}, mode="append", partition_by="user")
    rows = pa.concat_tables(part.to_arrow() for part in parts)
    late = pa.concat_tables(part.get_side_output(LATE).to_arrow() for part in parts)
    assert read(tmp_path / "out", "user") == sorted_rows(rows)
    assert sorted_rows(pq.read_table(tmp_path / "late")) == sorted_rows(late)
    assert sum(1 for _ in parts[1].report._source.results(["n"])) > 0
    shown = sum(batch.num_rows for batch in job(LOG.slice(500)).execute().to_batches())
    again = job(LOG.slice(500)).execute()
    again.write_parquet(tmp_path / "out", mode="append", partition_by="user")
    assert sum(batch.num_rows for batch in again.report._source.results(["n", "user"])) == shown


def test_what_does_not_go_with_the_rows_that_are_there_is_refused(tmp_path: Path) -> None:
    job(LOG).write_parquet(tmp_path / "flat", mode="append")
    job(LOG).write_parquet(tmp_path / "by user", mode="append", partition_by="user")
    for path, by in (("flat", ["user"]), ("by user", []), ("by user", ["day"]), ("by user", ["user", "day"])):
        before = files_of(tmp_path)
        with pytest.raises(ConfigurationError, match="give the partition_by that it was written with"):
            job(LOG).write_parquet(tmp_path / path, mode="append", partition_by=by)
        assert files_of(tmp_path) == before
    with pytest.raises(SchemaError, match=r"'split' is missing in the results and int64 in .*flat"):
        job(LOG).select("user", "size").write_parquet(tmp_path / "flat", mode="append")
    (tmp_path / "flat" / "notes.txt").write_text("")
    with pytest.raises(ConfigurationError, match=r"has 'notes\.txt'"):
        job(LOG).write_parquet(tmp_path / "flat", mode="append")


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ([3, 4], ["x"], "'d' is string in the results and int64 in"),
        (["3", "4"], [3], "'d' is int64 in the results and string in"),
        ([3], [datetime.date(2001, 1, 3)], r"'d' is date32\[day\] in the results and int64 in"),
    ],
)
def test_partitions_keep_the_type_of_their_column(
    tmp_path: Path, before: list[Any], now: list[Any], message: str
) -> None:
    """Names of directories do not say whether 3 is a number or a text, so the files do."""
    partitioned_by(tmp_path / "out", before)
    partitioned_by(tmp_path / "out", before)
    there = files_of(tmp_path)
    with pytest.raises(SchemaError, match=message):
        partitioned_by(tmp_path / "out", now)
    assert files_of(tmp_path) == there


@pytest.mark.parametrize(
    ("before", "now", "folder"),
    [
        (["3", "x y", None], [5], "d=x y"),
        (["2001-01-03", "2001-01"], [datetime.date(2001, 1, 3)], "d=2001-01"),
        (["true", "3"], [True], "d=3"),
        (["3", None], [5], None),
        (["2001-01-03", None], [datetime.date(2001, 1, 3)], None),
        (["true", None], [False], None),
        (["3", "x:y", None], ["a"], None),
    ],
)
def test_partitions_that_another_program_has_written_are_compared_by_their_values(
    tmp_path: Path, before: list[Any], now: list[Any], folder: str | None
) -> None:
    partitioned_by(tmp_path / "out", before)
    for path in (tmp_path / "out").rglob("*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata(), path)
    with (
        nullcontext()
        if folder is None
        else pytest.raises(SchemaError, match=f"which {tmp_path}/out/{folder} is not: give")
    ):
        partitioned_by(tmp_path / "out", now)


def test_the_columns_of_the_newest_file_count(tmp_path: Path) -> None:
    job(LOG).write_parquet(tmp_path / "out", mode="append")
    (old,) = (tmp_path / "out").iterdir()
    pq.write_table(pa.table({"other": [1]}), old.with_name("z.parquet"))
    os.utime(old.with_name("z.parquet"), (0, 0))
    job(LOG).write_parquet(tmp_path / "out", mode="append")
    os.utime(old.with_name("z.parquet"), (2**32, 2**32))
    with pytest.raises(
        SchemaError, match=r"'other' is missing in the results|'split' is int64 in the results"
    ):
        job(LOG).write_parquet(tmp_path / "out", mode="append")


def partitioned_by(path: Path, values: list[Any]) -> None:
    log = pa.table({"ts": [978_480_000_000] * len(values), "d": values})
    stream = StreamExecutionEnvironment().from_event_log(log, timestamp="ts", arrival="ts")
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    windows = (
        stream.assign_timestamps_and_watermarks(strategy)
        .key_by("ts", "d")  # a part of a key may be null
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
    )
    windows.aggregate(n=count()).write_parquet(path, mode="append", partition_by="d")


def test_results_are_not_appended_to_the_log_of_the_job(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "0.parquet")
    with pytest.raises(
        ConfigurationError, match="mode='append' would add results to a log that the job reads"
    ):
        job(str(tmp_path)).write_parquet(tmp_path, mode="append")


def night(folder: Path, number: int, out: Path) -> None:
    """Run the job of the first or the second day, with its checkpoint."""
    log = [folder / "first", folder / "second"][:number]
    until = [MIDNIGHT_MS, MIDNIGHT_MS + 200_000][number - 1]
    result = job(log, until=until).execute(
        restore_from=None if number == 1 else folder / "checkpoint 1",
        stop_with_checkpoint=folder / f"checkpoint {number}",
    )
    result.write_parquet(out, {LATE: out.with_name("late")}, mode="append", partition_by="day")


def test_a_run_that_a_scheduler_repeats_replaces_what_it_has_appended(tmp_path: Path) -> None:
    write_days(tmp_path, LOG)
    for number in (1, 2):
        night(tmp_path, number, tmp_path / "once" / "out")
    for number, is_first in ((1, True), (1, False), (2, True), (2, False), (1, False), (2, False)):
        with nullcontext() if is_first else pytest.warns(UserWarning, match=REPLACES):
            night(tmp_path, number, tmp_path / "again" / "out")
    for name in ("out", "late"):
        once, again = (read(tmp_path / run / name, *(["day"] * (name == "out"))) for run in ("once", "again"))
        assert again == once
        assert once


def write_clicks(path: Path, first: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(LOG.slice(first, 100), path)
    return path


@pytest.mark.parametrize(
    "other", ["another log", "another directory", "a table in memory", "another job", "another cut"]
)
def test_a_run_over_another_log_or_of_another_job_keeps_the_rows_that_are_there(
    tmp_path: Path, other: str
) -> None:
    write_clicks(tmp_path / "a" / "1.parquet", 0)
    write_clicks(tmp_path / "a" / "2.parquet", 100)
    write_clicks(tmp_path / "b" / "1.parquet", 200)
    write_clicks(tmp_path / "b" / "2.parquet", 300)
    is_file = other == "another log"
    logs: dict[str, Any] = {
        "another log": tmp_path / "a" / "2.parquet",
        "another directory": tmp_path / "b",
        "a table in memory": LOG.slice(200, 100),
    }
    jobs = [
        job(tmp_path / "a" / "1.parquet" if is_file else tmp_path / "a"),
        job(logs.get(other, tmp_path / "a"), until=MIDNIGHT_MS if other == "another cut" else None),
    ]
    if other == "another job":
        jobs[1] = job(tmp_path / "a", seconds=20)
    rows = []
    for each in jobs:
        shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)
        result = each.execute(stop_with_checkpoint=tmp_path / "checkpoint")
        result.write_parquet(tmp_path / "out", mode="append", partition_by="day")
        rows.append(each.execute(stop_with_checkpoint=tmp_path / "other").to_arrow())
    assert read(tmp_path / "out", "day") == sorted_rows(pa.concat_tables(rows))


@pytest.mark.parametrize(
    "name", ["day=2/hour=1/0.parquet", "day=1/hour=1/2.parquet", "day=0/hour=1/0.parquet"]
)
def test_a_run_is_repeated_although_its_log_has_more_files(tmp_path: Path, name: str) -> None:
    """Which partition comes first does not say which log it is, and neither does how many files it has."""
    log = tmp_path / "log"
    rows: list[dict[str, Any]] = []
    for number, file in enumerate(["day=1/hour=1/1.parquet", name]):
        write_clicks(log / file, 100 * number)
        result = job(log).execute(stop_with_checkpoint=tmp_path / "checkpoint")
        with pytest.warns(UserWarning, match=REPLACES) if rows else nullcontext():
            result.write_parquet(tmp_path / "out", mode="append")
        rows = sorted_rows(pq.read_table(tmp_path / "out"))
    assert rows == sorted_rows(job(log).execute(stop_with_checkpoint=tmp_path / "other").to_arrow())


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_run_that_was_killed_anywhere_and_is_repeated_appends_its_rows_once(
    tmp_path: Path, has_checkpoint: bool
) -> None:
    """A process dies before each step of the write in turn; what was there stays, and the next run adds its rows."""
    log = LOG.slice(0, 300)
    job(log).write_parquet(tmp_path / "out", mode="append", partition_by="day")
    before = read(tmp_path / "out", "day")
    stop = {"stop_with_checkpoint": tmp_path / "checkpoint"} if has_checkpoint else {}
    rows = sorted_rows(job(log).execute(**stop).to_arrow())
    steps, killed = 0, True
    while killed:
        child = os.fork()
        if child == 0:
            kill_before(steps)
            warnings.filterwarnings("ignore", REPLACES)
            job(log).execute(**stop).write_parquet(tmp_path / "out", mode="append", partition_by="day")
            os._exit(0)
        killed = os.waitpid(child, 0)[1] != 0
        steps += 1
        if killed:
            with warnings.catch_warnings():  # a run that was killed when all was in place is replaced
                warnings.filterwarnings("ignore", REPLACES)
                job(log).execute(**stop).write_parquet(tmp_path / "out", mode="append", partition_by="day")
        assert not list(tmp_path.rglob("_temporary"))
        expected = sorted([*before, *rows], key=lambda row: tuple(map(str, row.values())))
        assert read(tmp_path / "out", "day") == expected, steps
        if not has_checkpoint:
            before = expected
    assert steps > 5


def kill_before(step: int) -> None:
    steps = iter(range(step, -1, -1))

    def killing(works: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if next(steps, None) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return works(*arguments)

        return call

    for owner, names in (
        (ParquetOutput, ("prepare", "publish", "finish", "_make_folders", "_remove_empty_folders")),
        (parquet_parts.ParquetPart, ("__init__", "close")),
    ):
        for name in names:
            setattr(owner, name, killing(getattr(owner, name)))


def test_a_partitioned_result_without_rows_is_an_empty_directory(tmp_path: Path) -> None:
    job(LOG.slice(0, 0)).write_parquet(tmp_path / "out", partition_by="user")
    assert files_of(tmp_path) == []
    assert (tmp_path / "out").is_dir()
