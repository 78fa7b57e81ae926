"""Time planes of a checkpoint that contradict themselves or the operators are refused; so are missing tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.forged_checkpoints import forge, forge_table, with_column

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.errors import CheckpointError

LOG = pa.table({"part": ["a", "b", "a"], "user": ["x", "y", "x"], "ts": [100, 110, 120]})
NEXT = pa.table({"part": ["a", "b"], "user": ["x", "y"], "ts": [130, 140]})


class Users(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield (value.user,)


def run(log: pa.Table, **checkpoints: Any) -> pa.Table:
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    events = env.from_event_log(
        log, timestamp="ts", arrival="ts", split="part"
    ).assign_timestamps_and_watermarks(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)))
    result = events.key_by("user").process(Users(), pa.schema({"user": pa.string()}))
    return result.execute(**checkpoints).to_arrow()


def column(name: str, *values: Any) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda batch: with_column(batch, name, list(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (column("split", "a", "a"), "has a split twice"),
        (column("rows", -2, 1), "rows of the split 'a' in a checkpoint, row 0, is -2: less than 0"),
        (column("rows", 2, 0), "rows of the split 'b' .* is 0: none, though it had events"),
        (column("unseen", 2, 0), "unseen of the split 'a' .* is 2: neither 0 nor 1"),
        (column("channel_idle", 0, -1), "channel_idle of the split 'b'"),
        (
            column("last_arrival_ms", 121, 110),
            "last_arrival_ms of the split 'a' .* is 121: after the last of the log",
        ),
        (
            column("last_arrival_ms", 119, 110),
            "recorded_arrival_ms of the split 'a' .* after the last arrival",
        ),
        (column("recorded_arrival_ms", 120, 111), "recorded_arrival_ms of the split 'b'"),
        (column("channel_ms", -(2**63), -(2**63)), "the watermark .*, and no split has reached it"),
        (column("rows", None, 1), "int64 with 1 nulls"),
        (lambda batch: batch.slice(0, 0), "no split"),
        (lambda batch: batch.append_column("more", batch.column(1)), "has the columns"),
        (lambda batch: batch.drop_columns(["idle_since_ms"]), "has the columns"),
    ],
)
def test_a_time_plane_that_no_replay_wrote_is_refused(
    tmp_path: Path, change: Callable[[pa.RecordBatch], pa.RecordBatch], message: str
) -> None:
    run(LOG, stop_with_checkpoint=tmp_path)
    forge_table(tmp_path, "time_plane", change)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}.*{message}"):
        run(NEXT, restore_from=tmp_path)


def attributes(content: dict[str, Any]) -> dict[str, Any]:
    (found,) = [t for p in content["parts"] for t in p["tables"] if t["kind"] == "time_plane"]
    told: dict[str, Any] = found["attributes"]
    return told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: attributes(c).update(last_arrival_ms=200),
            "no split of a checkpoint has the last arrival, 200",
        ),
        (
            lambda c: attributes(c).update(opened_ms=200),
            "was opened at 200 ms, after its last arrival 120 ms",
        ),
        (lambda c: attributes(c).update(opened_ms=None), "one of last_arrival_ms and opened_ms"),
        (lambda c: attributes(c).update(last_arrival_ms=None, opened_ms=None), "though there was no event"),
        (
            lambda c: attributes(c).update(watermark_ms=-7),
            "has the watermark .*, and the time plane has -7 for it",
        ),
        (lambda c: attributes(c).update(watermark_ms=2**62), "no split has reached it"),
        (lambda c: c["parts"][1].update(watermark_ms=99_999), "of the operator .* has the watermark 99999"),
        (lambda c: c["parts"][1].update(tables=[]), "lacks its timers"),
        (lambda c: c["parts"][0].update(tables=[]), "lacks its time plane"),
    ],
)
def test_operators_and_time_planes_stand_at_one_watermark_with_all_their_tables(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    run(LOG, stop_with_checkpoint=tmp_path)
    forge(tmp_path, change)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}.*{message}"):
        run(NEXT, restore_from=tmp_path)


def test_a_checkpoint_that_nobody_changed_is_restored(tmp_path: Path) -> None:
    run(LOG, stop_with_checkpoint=tmp_path)
    forge_table(tmp_path, "time_plane", lambda batch: batch)
    assert run(NEXT, restore_from=tmp_path).to_pydict() == {"user": ["x", "y"]}
