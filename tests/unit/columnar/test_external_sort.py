"""Results that do not fit into memory, on their way to the next operator."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from equipment.full_disks import most_bytes_of_a_file
from equipment.process_limits import limit_memory

from flinkcore._internal.io.spill_file import SpillFile
from flinkcore.columnar.stages import external_sort
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents, PlacedMerge
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import SourceError

FIRED_AT_THE_END = """
import sys
import numpy as np, pyarrow as pa
from flinkcore.common import ExecutionConfig, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.stages.kinds import opened_stage, prepared_batches
from flinkcore.columnar.stages.kinds import opened_stage, prepared_batches
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.time_pass import time_planes_of

N = 1 << 19
log = pa.table({"key": [f"{n:0200}" for n in range(N)], "ts": np.zeros(N, np.int64)})
stream = StreamExecutionEnvironment().from_event_log(log, timestamp="ts", rate=1e9)
ten = TumblingEventTimeWindows(10)
windows = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
counts = windows.key_by("key").window(ten).aggregate(n=count())
last = counts.key_by("n").window(ten).aggregate(m=count())
plan = make_plan(StreamGraph(last._transformation), ExecutionConfig())
chunks = plan.logs[0].log.chunks(1)
planes = time_planes_of(plan.logs, [chunks], 1)
time = JobTime(plan.streams, planes, None).replay_times()[0]
context = StageContext.of(plan, 0, time, 1)
with opened_stage(context, 0) as stage:
    batches, events = prepared_batches(context), ChunkReader(plan.logs[0], planes[0])
    for read in events.read(chunks[0]):
        placed = read.events.in_timeline(time.timeline)
        assert list(stage.process(batches.prepare(placed), None)) == []
    limit_memory(int(sys.argv[1]) << 20)
    before, rows = (), 0
    for output in stage.finish():
        order = list(zip(*(column.tolist() for column in output.events.order)))
        assert order == sorted(order) and before < order[0]
        before, rows = order[-1], rows + len(order)
assert rows == N, rows
"""

MERGED = """
import sys
import numpy as np, pyarrow as pa
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents, PlacedMerge

BLOCKS, ROWS = 240, 1 << 10
limit_memory(int(sys.argv[1]) << 20)
merge = PlacedMerge()
for block in range(BLOCKS):
    sequence = np.arange(block, BLOCKS * ROWS, BLOCKS)
    zeros = np.zeros(ROWS, np.int64)
    batch = pa.record_batch({"text": [f"{n:01000}" for n in sequence]})
    merge.add(PlacedEvents.of(batch, zeros, (*[zeros] * FIXED_COLUMNS, sequence)))
rows = 0
for events, _ in merge.release(None):
    assert [int(text) for text in events.batch["text"].to_pylist()] == list(range(rows, rows + len(events.steps)))
    rows += len(events.steps)
assert rows == BLOCKS * ROWS, rows
"""


@pytest.mark.parametrize("script", [FIRED_AT_THE_END, MERGED], ids=["fired at the end", "merged"])
def test_what_one_watermark_fires_for_the_next_operator_need_not_fit_into_memory(script: str) -> None:
    command = [sys.executable, "-c", limit_memory() + script, "320"]
    # Without address space that allocators take for each thread, and do not use.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("kind", ["string", "int", "float"])
def test_results_that_waited_in_a_file_come_to_the_next_operator_in_the_same_order(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {
        "string": [None, *(f"k{n * 7 % 501}" for n in range(999))],
        "int": [n * 7 % 501 for n in range(1000)],
        "float": [[-0.0, 0.0, float("nan"), 0.5][n % 4] + n * 7 % 501 for n in range(1000)],
    }
    log = pa.table({"key": keys[kind], "user": ["a"] * 1000, "ts": range(1000)})

    def rows() -> str:
        stream = StreamExecutionEnvironment().from_event_log(log, timestamp="ts")
        stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        counts = stream.key_by("key", "user").window(TumblingEventTimeWindows(100)).aggregate(n=count())
        again = counts.key_by("key", "user").window(TumblingEventTimeWindows(400))
        return repr(again.aggregate(windows=count(), total=sum_("n")).to_arrow().to_pylist())

    expected = rows()
    monkeypatch.setattr(external_sort.ExternalSort.__init__, "__defaults__", (1 << 9, 1 << 7))
    with patch.object(SpillFile, "append", autospec=True, side_effect=SpillFile.append) as spilled:
        assert rows() == expected
    assert spilled.call_count > 100


def events_of(n: int) -> PlacedEvents:
    zeros = np.zeros(n, np.int64)
    return PlacedEvents.of(pa.record_batch({"n": zeros}), zeros, (zeros,) * (FIXED_COLUMNS + 1))


def test_a_disk_without_room_for_results_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    merge = PlacedMerge(held_bytes=0)
    with (
        most_bytes_of_a_file(1 << 10),
        pytest.raises(SourceError, match=r"results of operators, .* bytes so far, do not fit into .* room"),
    ):
        merge.add(events_of(100))
    merge.close()


def test_nothing_of_a_merge_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    merge = PlacedMerge(held_bytes=0)
    open_before = len(os.listdir("/dev/fd"))
    merge.add(events_of(100))
    assert len(os.listdir("/dev/fd")) == open_before + 1
    assert list(tmp_path.iterdir()) == []
    assert sum(len(events.steps) for events, _ in merge.release(None)) == 100
    assert len(os.listdir("/dev/fd")) == open_before
