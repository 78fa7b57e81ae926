"""Results of a replay in batches of limited size."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of

from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.columnar.stages import window_stage
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, last, max_, min_, sum_

LATE = OutputTag("late")
ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(50)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(5)),
}
LOG = pa.table(
    {
        "ts": [(i * 37) % 400 + i for i in range(600)],
        "key": [f"k{i % 29}" for i in range(600)],
        "name": [None if i % 11 == 0 else "x" * (i % 40) for i in range(600)],
        "value": list(range(600)),
    }
)


def outputs(
    assigner: Any, lateness: int, parallelism: int, batch_bytes: int = BATCH_BYTES
) -> tuple[list[pa.RecordBatch], list[dict[str, Any]], str]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(20)
    read_in_batches_of(len(LOG), env, batch_bytes)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
    result = (
        env.from_event_log(LOG, timestamp="ts")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(assigner)
        .allowed_lateness(lateness)
        .side_output_late_data(LATE)
        .aggregate(n=count(), total=sum_("value"), names=collect("name"), name=last("name"))
        .execute()
    )
    batches = [batch for batch in result.to_arrow().to_batches() if batch.num_rows]
    late = result.get_side_output(LATE).to_arrow().to_pylist()
    return batches, late if parallelism == 1 else sorted(late, key=str), str(result.report)


def rows_in_order(batches: list[pa.RecordBatch], parallelism: int) -> list[dict[str, Any]]:
    return by_key(pa.Table.from_batches(batches).to_pylist(), parallelism)


def by_key(rows: list[dict[str, Any]], parallelism: int) -> list[dict[str, Any]]:
    """Rows of a key keep their order; partitions take turns at the ends of batches."""
    return rows if parallelism == 1 else sorted(rows, key=lambda row: str(row["key"]))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("lateness", [0, 40])
@pytest.mark.parametrize("assigner", ASSIGNERS)
def test_small_batches_hold_the_same_rows_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, assigner: str, lateness: int, parallelism: int
) -> None:
    whole, late, report = outputs(ASSIGNERS[assigner], lateness, parallelism)
    assert sum(batch.num_rows for batch in whole) > 100
    assert late
    for rows, batch_bytes in ((1, BATCH_BYTES), (7, BATCH_BYTES), (1 << 18, 200)):
        with monkeypatch.context() as patch:
            patch.setattr(window_stage, "RESULT_ROWS", rows)
            cut, cut_late, cut_report = outputs(ASSIGNERS[assigner], lateness, parallelism, batch_bytes)
        assert len(cut) > len(whole)
        assert rows_in_order(cut, parallelism) == rows_in_order(whole, parallelism)
        assert by_key(cut_late, parallelism) == by_key(late, parallelism)
        assert cut_report == report


def test_one_watermark_fires_in_batches_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_stage, "RESULT_ROWS", 10)
    endless = TumblingEventTimeWindows.of(Time.days(1))
    batches, _, _ = outputs(endless, 0, 1)
    assert [batch.num_rows for batch in batches] == [10, 10, 9]


def test_a_result_that_is_larger_than_the_limit_comes_alone() -> None:
    endless = TumblingEventTimeWindows.of(Time.days(1))
    batches, _, _ = outputs(endless, 0, 1, batch_bytes=1)
    assert [batch.num_rows for batch in batches] == [1] * 29


def test_many_windows_that_fire_at_once_come_in_batches_of_few_bytes() -> None:
    log = pa.table({"ts": np.arange(150_000), "key": np.arange(150_000)})
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    events = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(strategy)
    endless = events.key_by("key").window(TumblingEventTimeWindows.of(Time.days(1)))
    batches = list(endless.aggregate(n=count(), first=min_("ts"), last=max_("ts")).to_batches())
    assert sum(batch.num_rows for batch in batches) == 150_000
    assert max(batch.nbytes for batch in batches) < 5_000_000
