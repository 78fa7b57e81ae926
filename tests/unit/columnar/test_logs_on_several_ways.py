"""Logs that a job uses on several ways: each is read once for all of them, and gives what as many logs would."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.small_batches import limit

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import JoinFunction
from flinkcore.datastream.window import EventTimeSessionWindows
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.file_chunks import FileChunk

REJECTED = OutputTag("rejected")
PAIRS = pa.schema({"user": pa.string(), "first": pa.int64(), "second": pa.int64()})


class Pairs(JoinFunction[Any, Any, Any]):
    def join(self, first: Any, second: Any) -> Any:
        return first.user, first.n, second.number


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = 600
    table = pa.table(
        {
            "user": [f"u{number % 7}" for number in range(rows)],
            "ts": [number - number * 7 % 11 for number in range(rows)],
            "at": list(range(rows)),
            "number": [number % 5 for number in range(rows)],
        }
    )
    for part in range(3):
        pq.write_table(table.slice(part * 200, 200), tmp_path / f"part-{part}.parquet", row_group_size=100)
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read."""
    found: Counter[str] = Counter()
    read = Chunk.read

    def counted(self: Chunk, *given: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        assert isinstance(self, FileChunk)
        found[self.label] += 1
        return read(self, *given, **named)

    monkeypatch.setattr(Chunk, "read", counted)
    return found


def environment(parallelism: int) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(10)
    limit(env, packed_bytes=0)  # else small files are read together, and once for both passes
    return env


def log_of(env: StreamExecutionEnvironment, files: Path, **settings: Any) -> DataStream:
    return env.from_event_log(files, timestamp="ts", **({"arrival": "at"} | settings))


def bounded(log: DataStream, bound_ms: int = 12) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return log.assign_timestamps_and_watermarks(strategy)


def counted(log: DataStream) -> DataStream:
    windows = log.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return windows.aggregate(n=count())


def joined_with_its_counts(first: DataStream, second: DataStream) -> DataStream:
    """Its counts come to another operator than its events: they are of two levels on Spark."""
    joined = counted(bounded(first)).join(bounded(second)).where("user").equal_to("user")
    return joined.window(TumblingEventTimeWindows.of(Time.milliseconds(40))).apply(Pairs(), PAIRS)


def united_with_itself(first: DataStream, second: DataStream) -> DataStream:
    some = bounded(first.filter(pc.field("number") == 3)).with_columns(number=pc.field("number") + 10)
    united = some.union(bounded(second, 40))
    windows = united.key_by("user").window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    return windows.aggregate(n=count(), total=sum_("number"))


def nothing_on_one_way(first: DataStream, second: DataStream) -> DataStream:
    none = bounded(first.filter(pc.field("number") > 99))
    return counted(none.union(bounded(second)))


JOBS = [joined_with_its_counts, united_with_itself, nothing_on_one_way]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("job", JOBS)
def test_a_log_on_two_ways_is_read_once_in_each_pass(
    files: Path, reads: Counter[str], job: Callable[..., DataStream], parallelism: int
) -> None:
    log = log_of(environment(parallelism), files)
    found = job(log, log).to_arrow()
    assert set(reads.values()) == {2}
    env = environment(parallelism)
    expected = job(log_of(env, files), log_of(env, files)).to_arrow()
    assert found.num_rows > 9
    assert found.equals(expected)


def test_a_log_without_arrivals_is_counted_once(files: Path, reads: Counter[str]) -> None:
    log = log_of(environment(2), files, arrival=None, split="user")
    found = united_with_itself(log, log).to_arrow()
    assert set(reads.values()) == {3}
    env = environment(2)
    logs = [log_of(env, files, arrival=None, split="user") for _ in range(2)]
    assert found.equals(united_with_itself(*logs).to_arrow())


def test_rejected_rows_come_from_each_way(files: Path) -> None:
    def rejected(log: DataStream, other: DataStream) -> pa.Table:
        late = pc.if_else(pc.field("number") == 1, None, pc.field("ts"))
        result = nothing_on_one_way(log.with_columns(ts=late), other).execute()
        return result.get_side_output(REJECTED).to_arrow()

    log = log_of(environment(1), files, on_bad_row=REJECTED)
    env = environment(1)
    logs = [log_of(env, files, on_bad_row=REJECTED) for _ in range(2)]
    assert rejected(log, log).equals(rejected(*logs))
