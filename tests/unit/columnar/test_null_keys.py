"""Null as a key of a single column: `key_by(..., null_keys=True)`, as in Flink SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import KeyedProcessFunction
from flinkcore.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError, DataError

ROWS = [(3, "a", 1), (1, None, 2), (14, "b", 4), (12, None, 8), (25, "a", 16), (26, None, 32), (2, None, 64)]
BOUND = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))

Job = Callable[[Any], Any]
JOBS: dict[str, Job] = {
    "tumbling": lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(
        n=count(), v=sum_("v")
    ),
    "sliding": lambda keyed: keyed.window(
        SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))
    ).aggregate(v=sum_("v")),
    "sessions": lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(6))).aggregate(
        v=sum_("v")
    ),
    "count": lambda keyed: keyed.count_window(2).aggregate(v=sum_("v")),
    "triggered": lambda keyed: (
        keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).aggregate(v=sum_("v"))
    ),
    "aggregate": lambda keyed: keyed.aggregate(v=sum_("v"), changes=True),
    "top": lambda keyed: keyed.top(2, by="v", changes=True),
    "deduplicate": lambda keyed: keyed.deduplicate("last", "arrival", changes=True),
    "over": lambda keyed: keyed.over().aggregate(s=sum_("v")),
}


def keyed_rows(rows: list[tuple[int, Any, int]], kind: pa.DataType, **key_by: Any) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(1)
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    log = pa.table(
        {
            "ts": pa.array(columns[0], pa.int64()),
            "k": pa.array(columns[1], kind),
            "v": pa.array(columns[2], pa.int64()),
        }
    )
    stream = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(BOUND)
    return stream.key_by("k", **key_by)


def rows_of(results: Any, null: Any = None) -> list[tuple[Any, ...]]:
    """Return the rows of results in an order of their own, with null for this key."""
    rows = results.to_arrow().to_pylist()
    shown = [tuple(None if name == "k" and v == null else v for name, v in row.items()) for row in rows]
    return sorted(shown, key=repr)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_null_is_a_key_like_any_other_value(job: Job) -> None:
    named = [(ts, "none" if key is None else key, v) for ts, key, v in ROWS]
    found = rows_of(job(keyed_rows(ROWS, pa.string(), null_keys=True)))
    assert any(None in row for row in found)
    assert found == rows_of(job(keyed_rows(named, pa.string())), "none")


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 60), st.none() | st.integers(0, 3), st.integers(0, 9)),
        min_size=1,
        max_size=25,
    ),
    name=st.sampled_from(["tumbling", "sessions", "top", "aggregate", "over"]),
)
def test_results_are_those_of_a_value_in_place_of_null(
    rows: list[tuple[int, int | None, int]], name: str
) -> None:
    named = [(ts, -1 if key is None else key, v) for ts, key, v in rows]
    found = rows_of(JOBS[name](keyed_rows(rows, pa.int64(), null_keys=True)))
    assert found == rows_of(JOBS[name](keyed_rows(named, pa.int64())), -1)


@pytest.mark.parametrize("name", ["tumbling", "top", "over", "sessions"])
def test_a_null_key_is_in_checkpoints(name: str, tmp_path: Path) -> None:
    whole = rows_of(JOBS[name](keyed_rows(ROWS, pa.string(), null_keys=True)))
    strategy, job = BOUND, JOBS[name]

    def cut(part: list[tuple[int, Any, int]], first: int) -> Any:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.get_config().set_auto_watermark_interval(1)
        ts, keys, values = zip(*part, strict=True)
        log = pa.table(
            {"ts": ts, "k": pa.array(keys, pa.string()), "v": values, "at": range(first, first + len(part))}
        )
        stream = env.from_event_log(log, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(
            strategy
        )
        return job(stream.select("ts", "k", "v").key_by("k", null_keys=True))

    place = str(tmp_path / "checkpoint")
    before = rows_of(cut(ROWS[:4], 1).execute(stop_with_checkpoint=place))
    after = cut(ROWS[4:], 5).execute(restore_from=place)
    assert sorted(before + rows_of(after), key=repr) == whole


def test_joins_match_null_keys_only_when_they_are_equal() -> None:
    left, right = (keyed_rows(rows, pa.string(), null_keys=True) for rows in (ROWS[:2], ROWS[:2]))
    env = left._environment
    log = pa.table({"ts": [3, 1], "k": pa.array(["a", None]), "w": [1, 2]})
    right = (
        env.from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(BOUND)
        .key_by("k", null_keys=True)
    )
    pairs = left.join_regular(right, how="left").select("v", "w").to_arrow().to_pylist()
    assert sorted(pairs, key=repr) == [{"v": 1, "w": 1}, {"v": 2, "w": None}]
    pairs = left.join_regular(right, nulls_equal=True).select("v", "w").to_arrow().to_pylist()
    assert sorted(pairs, key=repr) == [{"v": 1, "w": 1}, {"v": 2, "w": 2}]


def test_why_explains_the_null_key() -> None:
    history = JOBS["tumbling"](keyed_rows(ROWS, pa.string(), null_keys=True)).why(None)
    assert history.events.num_rows == 4
    with pytest.raises(ConfigurationError, match="null_keys=True"):
        JOBS["tumbling"](keyed_rows(ROWS[:1], pa.string())).why(None)


def test_null_keys_are_refused_by_default() -> None:
    with pytest.raises(DataError, match="key column 'k' is null"):
        JOBS["top"](keyed_rows(ROWS, pa.string())).to_arrow()


def test_functions_refuse_null_keys() -> None:
    class Nothing(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value

    results = keyed_rows(ROWS, pa.string(), null_keys=True).process(Nothing(), pa.schema([("v", pa.int64())]))
    with pytest.raises(ConfigurationError, match="does not take null as a key"):
        results.to_arrow()


def test_results_by_a_null_key_go_to_the_next_operator() -> None:
    counts = keyed_rows(ROWS, pa.string(), null_keys=True).aggregate(n=count())
    named = counts.select(k=pc.field("k"), n=pc.field("n")).key_by("k", null_keys=True).top(1, by="n")
    assert {row["k"] for row in named.to_arrow().to_pylist()} == {"a", "b", None}
