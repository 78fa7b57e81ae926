"""Windows of a checkpoint that the assigner, the trigger or the watermark of the job does not allow are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.forged_checkpoints import forge_table, with_column

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, first, mean, sum_
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import CheckpointError

LOG = pa.table(
    {
        "user": ["a", "b", "a", "c", "b"],
        "number": [1, 2, 3, 4, 5],
        "ts": [100, 103, 131, 135, 139],
        "name": ["x", "é", "y", None, "z"],
    }
)
TEN = Time.milliseconds(10)
NO_TIME = -(2**63)


def windows(stream: Any) -> DataStream:
    result: DataStream = stream.allowed_lateness(5).aggregate(
        n=count(), total=sum_("number"), middle=mean("number"), names=collect("name"), one=first("name")
    )
    return result


JOBS: dict[str, Callable[[Any], DataStream]] = {
    "tumbling": lambda keyed: windows(keyed.window(TumblingEventTimeWindows.of(TEN, Time.milliseconds(3)))),
    "sliding": lambda keyed: keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(30), TEN)).aggregate(
        n=count()
    ),
    "cumulative": lambda keyed: keyed.window(
        CumulativeEventTimeWindows.of(Time.milliseconds(30), TEN)
    ).aggregate(n=count()),
    "unshared": lambda keyed: windows(keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(15), TEN))),
    "session": lambda keyed: windows(keyed.window(EventTimeSessionWindows.with_gap(TEN))),
    "counted": lambda keyed: windows(
        keyed.window(TumblingEventTimeWindows.of(TEN)).trigger(CountTrigger.of(3))
    ),
    "continuous": lambda keyed: windows(
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(40))).trigger(
            ContinuousEventTimeTrigger.of(TEN)
        )
    ),
    "retracting": lambda keyed: (
        keyed.window(EventTimeSessionWindows.with_gap(TEN))
        .allowed_lateness(50)
        .retracting()
        .aggregate(n=count())
    ),
    "global": lambda keyed: (
        keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3)).aggregate(n=count())
    ),
    "elements": lambda keyed: keyed.count_window(3).aggregate(n=count()),
}


def run(kind: str, log: pa.Table, **checkpoints: Any) -> list[dict[str, Any]]:
    env = StreamExecutionEnvironment().set_parallelism(1)
    events = env.from_event_log(log, timestamp="ts", arrival="ts").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    )
    env.get_config().set_auto_watermark_interval(1)
    rows: list[dict[str, Any]] = (
        JOBS[kind](events.key_by("user")).execute(**checkpoints).to_arrow().to_pylist()
    )
    return rows


def shifted(name: str, by: int, row: int = 0) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(name).to_pylist()
        values[row] += by
        return with_column(batch, name, values)

    return change


def moved(by: int) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda batch: shifted("window_end", by)(shifted("window_start", by)(batch))


def first_as(name: str, value: Any) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda batch: with_column(batch, name, [value, *batch.column(name).to_pylist()[1:]])


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([batch, batch.slice(0, 1)])


def other_key(batch: pa.RecordBatch) -> pa.RecordBatch:
    return first_as("key.user", "zz")(batch)


@pytest.mark.parametrize("kind", JOBS)
def test_a_checkpoint_that_nobody_changed_is_restored(tmp_path: Path, kind: str) -> None:
    before = run(kind, LOG, stop_with_checkpoint=tmp_path)
    forge_table(tmp_path, "windows", lambda batch: batch)
    more = pa.concat_tables([LOG.slice(4)] * 3)
    assert before + run(kind, more, restore_from=tmp_path) == run(kind, pa.concat_tables([LOG, more]))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        *((kind, other_key, "is in the key group .*, which is not that of the key") for kind in JOBS),
        *(
            (kind, twice, "twice|touches another|is no window of this operator|each window has one")
            for kind in JOBS
        ),
        *(
            (kind, lambda b: b.append_column("more", b.column(0)), "has the columns|have the columns")
            for kind in JOBS
        ),
        *((kind, first_as("flags", 8), "has unknown flags") for kind in JOBS),
        *((kind, first_as("touched", 2), "'touched' of the windows has the state 2") for kind in JOBS),
        *(
            (kind, moved(1), "none that the assigner")
            for kind in ("tumbling", "sliding", "cumulative", "unshared")
        ),
        *((kind, moved(1), "none that the assigner") for kind in ("counted", "continuous")),
        *(
            (kind, shifted("window_end", 10), "none that the assigner")
            for kind in ("tumbling", "sliding", "counted")
        ),
        *(
            (kind, moved(-6000), "is over at the watermark")
            for kind in ("tumbling", "sliding", "cumulative", "session", "counted", "continuous")
        ),
        ("tumbling", moved(-(2**62)), "is none that the assigner"),
        ("sliding", moved(10 * ((2**63 - 1 - 143) // 10)), "is beyond all timestamps"),
        ("tumbling", first_as("trigger_state", 7), "has a trigger that the job has not"),
        (
            "tumbling",
            lambda b: with_column(b, "flags", [1 - f for f in b.column("flags").to_pylist()]),
            "has fired, or not, against the watermark 134",
        ),
        ("tumbling", first_as("1.states", 3), "'1.states' of the windows has the state 3"),
        ("tumbling", first_as("2.counts", -1), "'2.counts' of the windows has the count -1"),
        ("tumbling", first_as("2.counts", None), "'2.counts' of the windows has 1 nulls"),
        ("tumbling", first_as("3.list", [b"\xff"]), "'3.list' of the windows has text that is not UTF-8"),
        ("tumbling", first_as("4.strings", b"\xff"), "'4.strings' of the windows has text that is not UTF-8"),
        ("tumbling", first_as("3.list", None), "'3.list' of the windows has 1 nulls"),
        ("tumbling", lambda b: b.drop_columns(["4.strings"]), "the windows have the columns"),
        ("session", shifted("window_end", -3), "is shorter than the gap of 10 ms"),
        ("session", first_as("flags", 17), "has fired, or not, against the watermark 134"),
        ("session", moved(-(2**63 - 2**20)), "is beyond all timestamps|is over"),
        ("counted", first_as("trigger_state", 3), "has a count beyond a firing each 3"),
        ("counted", first_as("trigger_state", -1), "has a count beyond a firing each 3"),
        ("continuous", first_as("trigger_state", 141), "fires at no multiple of 10 ms"),
        ("retracting", lambda b: b.slice(0, b.num_rows - 1), "each window has one"),
        ("global", first_as("window_start", 5), "has bounds, and the windows of the job have none"),
        ("elements", first_as("window_end", 5), "has bounds, and the windows of the job have none"),
    ],
)
def test_windows_that_the_job_cannot_have_are_refused(
    tmp_path: Path, kind: str, change: Callable[[pa.RecordBatch], pa.RecordBatch], message: str
) -> None:
    run(kind, LOG, stop_with_checkpoint=tmp_path)
    forge_table(tmp_path, "windows", change)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}.*({message})"):
        run(kind, LOG.slice(5), restore_from=tmp_path)
