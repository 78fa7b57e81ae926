"""A file that changes while its log is replayed is an error, embedded and by Spark's tasks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pytest

pytest.importorskip("pyspark")

from equipment.small_batches import limit
from equipment.spark_tasks import results_by_tasks

from flinkcore._native.event_log import add_to_checksum
from flinkcore.columnar.local import embedded_replay
from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.common import ExecutionConfig, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import DataError, SourceError

ROWS = 50
Change = Callable[[Path], None]


def events() -> pa.Table:
    return pa.table(
        {
            "ts": [i * 10 for i in range(ROWS)],
            "at": [i * 10 + i % 3 for i in range(ROWS)],
            "part": [i % 2 for i in range(ROWS)],
            "user": [i % 5 for i in range(ROWS)],
        }
    )


def write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".csv":
        pacsv.write_csv(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")


def windows(path: Path) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(1)
    limit(env, kept_bytes=0)  # else the rows of the first reading are taken
    return (
        env.from_event_log(path, timestamp="ts", arrival="at", split="part")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .aggregate(n=count())
    )


def replay_embedded(path: Path, change: Change, monkeypatch: pytest.MonkeyPatch) -> Any:
    first_pass = embedded_replay.time_planes_of

    def then_changed(*given: Any, **settings: Any) -> Any:
        found = first_pass(*given, **settings)
        change(path)
        return found

    monkeypatch.setattr(embedded_replay, "time_planes_of", then_changed)
    return windows(path).execute().to_arrow()


def replay_by_tasks(path: Path, change: Change, monkeypatch: pytest.MonkeyPatch) -> Any:
    plan = make_plan(StreamGraph(windows(path)._transformation), ExecutionConfig())
    return results_by_tasks(plan, 1, 2, between_passes=lambda: change(path))


def unnoticed(table: pa.Table) -> Change:
    """Writes a table of the same size, and sets the time of modification back."""

    def change(path: Path) -> None:
        before = path.stat()
        write(table, path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size

    return change


def append(path: Path) -> None:
    path.write_text(path.read_text() + "500,500,0,1\n")


def with_value(column: str, row: int, value: int) -> pa.Table:
    values = events()[column].to_numpy().copy()
    values[row] = value
    return events().set_column(events().schema.get_field_index(column), column, pa.array(values))


both = pytest.mark.parametrize("replay", [replay_embedded, replay_by_tasks])


@both
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            append,
            r"log\.csv has grown from \d+ to \d+ bytes.*still",
        ),
        (
            lambda path: write(events().slice(1), path),
            r"log\.csv was overwritten .*\d+ bytes of \d{4}-",
        ),
        (lambda path: os.utime(path, ns=(1, 1)), r"overwritten .* now\)\. Run the replay again"),
        (lambda path: path.unlink(), r"log\.csv is not there any more"),
    ],
    ids=["append", "rewrite", "touch", "remove"],
)
def test_a_file_of_another_size_or_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: Any, change: Change, message: str
) -> None:
    path = tmp_path / "log.csv"
    write(events(), path)
    with pytest.raises(SourceError, match=message):
        replay(path, change, monkeypatch)


@both
@pytest.mark.parametrize(
    "table",
    [
        with_value("ts", 49, 489),
        with_value("ts", 0, -1),
        with_value("at", 30, 299),
        with_value("part", 7, 0),
        events().take([1, 0, *range(2, ROWS)]),
        events().take([0, 1, 3, 2, *range(4, 40), 41, 40, *range(42, ROWS)]),
    ],
    ids=["last ts", "first ts", "at", "part", "swapped", "swapped twice"],
)
def test_other_times_of_events_in_a_file_of_the_same_size_and_time_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: Any, table: pa.Table
) -> None:
    path = tmp_path / "log.arrow"
    write(events(), path)
    with pytest.raises(SourceError, match=r"log\.arrow has other timestamps, arrivals or splits than when"):
        replay(path, unnoticed(table), monkeypatch)


@both
def test_a_file_that_stays_is_replayed_however_its_first_pass_cut_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: Any
) -> None:
    path = tmp_path / "log.arrow"
    feather.write_feather(events(), path, compression="uncompressed", chunksize=7)
    assert len(replay(path, stays, monkeypatch)) > 0


def stays(path: Path) -> None:
    """Leave the file as it is."""


def test_a_log_that_was_written_anew_before_a_replay_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write(events().slice(0, 10), path)
    stream = windows(path)
    write(events(), path)
    assert sum(stream.execute().to_arrow()["n"].to_pylist()) == ROWS


# ---- the checksum


def checksum(timestamps: Any, arrivals: Any, codes: Any, splits: Any, cuts: list[int]) -> list[int]:
    sums = np.array([1, 0], np.uint64)
    for start, stop in zip([0, *cuts], [*cuts, len(timestamps)], strict=True):
        add_to_checksum(
            sums, timestamps[start:stop], arrivals[start:stop], codes[start:stop], np.array(splits, np.int32)
        )
    return sums.tolist()


def test_checksums_are_the_same_however_events_are_cut_and_differ_for_any_other_order() -> None:
    random = np.random.default_rng(3)
    times = np.sort(random.integers(-(2**63), 2**63 - 1, 300))
    arrivals = random.integers(0, 50, 300)
    codes = random.integers(0, 3, 300).astype(np.int32)
    whole = checksum(times, arrivals, codes, [4, 5, 6], [])
    assert whole == checksum(times, arrivals, codes, [4, 5, 6], [0, 1, 1, 7, 150, 299])
    assert whole != checksum(times, arrivals, codes, [4, 6, 5], [])
    seen = {tuple(whole)}
    for row in range(299):
        order = np.arange(300)
        order[[row, row + 1]] = row + 1, row
        seen.add(tuple(checksum(times[order], arrivals[order], codes[order], [4, 5, 6], [])))
    assert len(seen) == 300


def test_the_checksum_of_one_split_is_that_of_many() -> None:
    times, codes = np.arange(9), np.zeros(9, np.int32)
    assert checksum(times, times, codes, [3], []) == checksum(times, times, codes, [3, 8], [])


def test_columns_that_do_not_fit_have_no_checksum() -> None:
    times, codes = np.arange(3), np.zeros(3, np.int32)
    one = np.zeros(1, np.int32)
    sums = np.zeros(2, np.uint64)
    for given in (
        (sums, times, times[:2], codes, one),
        (sums, times, times, codes[:2], one),
        (sums[:1], times, times, codes, one),
        (sums, times, times, codes + np.int32(2), np.zeros(2, np.int32)),
        (sums, times, times, codes, one[:0]),
    ):
        with pytest.raises(DataError):
            add_to_checksum(*given)
