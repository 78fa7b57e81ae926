"""A planned job has the times of its logs, and runs tasks on their chunks."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.timelines import steps_of

from flinkcore.columnar import planned_job
from flinkcore.common import Duration, ExecutionConfig, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.elements.local_executor import LocalExecutor
from flinkcore.log.sources.chunks import Chunk

ROWS = pa.table({"ts": [0, 5, 9, 30], "arrival": [0, 10, 20, 30], "key": ["a", "b", "a", "b"]})


def keys_of(chunk: Chunk) -> Iterator[bytes]:
    for batch in chunk.read(["key"], 2):
        yield ",".join(batch.column("key").to_pylist()).encode()


def planned(log: object, parallelism: int) -> planned_job.EmbeddedPlannedJob:
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(log, timestamp="ts", arrival="arrival")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
        )
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    configuration = ExecutionConfig().set_auto_watermark_interval(10).set_parallelism(parallelism)
    return LocalExecutor().planned(StreamGraph(stream._transformation), configuration)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_tasks_run_on_all_chunks_of_a_log_in_its_order(parallelism: int) -> None:
    given = b",".join(planned(ROWS, parallelism).on_chunks(0, keys_of))
    assert given == b"a,b,a,b"


def test_the_times_of_a_planned_job_are_those_of_its_logs() -> None:
    (plane,) = planned(ROWS, 2).time_planes
    steps = steps_of(plane.timeline)
    assert steps.watermark_ms.tolist()[:3] == [-4, 1, 5]
    assert plane.holders.at(steps.clock_ms[:3]).tolist() == [-1, 0, 0]


def test_files_are_cut_finely_so_that_parts_of_them_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_job, "CHUNK_BYTES", 1)
    pq.write_table(ROWS, tmp_path / "log.parquet", row_group_size=1)
    given = list(planned(str(tmp_path / "log.parquet"), 1).on_chunks(0, lambda chunk: [chunk.label.encode()]))
    assert len(given) == 4
