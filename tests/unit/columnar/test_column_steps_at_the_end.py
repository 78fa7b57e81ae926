"""Steps over columns behind the last operator of a job, and jobs without an operator."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, max_
from flinkcore.datastream.window import CountTrigger
from flinkcore.errors import ConfigurationError, DataError, SchemaError

LATE = OutputTag("late")
TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))
# User, timestamp and arrival; the last one is late.
ROWS = [("a", 1, 1), ("b", 12, 2), ("a", 3, 3), ("c", 24, 15), ("b", 25, 16), ("a", 2, 45)]


def events(rows: list[tuple[str, int, int]] = ROWS, parallelism: int = 1, **options: Any) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(10)
    return env.from_event_log(table(rows), timestamp="ts", integer_times=True, arrival="at", **options)


def table(rows: list[tuple[str, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = pa.string(), pa.int64(), pa.int64()
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, ["user", "ts", "at"])


def timed(stream: DataStream) -> DataStream:
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    )


def counted(stream: DataStream) -> DataStream:
    windows = timed(stream).key_by("user").window(TENS).side_output_late_data(LATE)
    return windows.aggregate(n=count(), last=max_("ts"))


# ---- without an operator ----


def test_a_log_gives_its_rows() -> None:
    assert events().to_arrow() == table(ROWS)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_steps_over_a_log_give_rows_in_the_order_of_arrival(parallelism: int) -> None:
    stream = events(parallelism=parallelism).filter(pc.field("user") != "b")
    stream = stream.select("user", delay=pc.field("at") - pc.field("ts")).with_columns(
        twice=pc.field("delay") * 2
    )
    assert stream.to_arrow().to_pydict() == {
        "user": ["a", "a", "c", "a"],
        "delay": [0, 0, -9, 43],
        "twice": [0, 0, -18, 86],
    }


def test_splits_are_merged_by_arrival() -> None:
    rows = [("a", 1, 5), ("a", 2, 9), ("b", 3, 1), ("b", 4, 7)]
    assert events(rows, split="user").to_arrow()["ts"].to_pylist() == [3, 1, 4, 2]


def test_late_rows_are_rows() -> None:
    assert timed(events()).to_arrow() == table(ROWS)


def test_a_union_at_the_end_gives_the_rows_of_all_streams_by_arrival() -> None:
    env = StreamExecutionEnvironment().set_parallelism(2)
    first, second = (
        env.from_event_log(table(rows), timestamp="ts", integer_times=True, arrival="at")
        for rows in (ROWS[::2], ROWS[1::2])
    )
    assert first.union(second).to_arrow() == table(ROWS)
    assert first.union(second).filter(pc.field("at") > 15).to_arrow()["user"].to_pylist() == ["b", "a"]


def test_windows_of_several_streams_may_be_united_at_the_end() -> None:
    stream = timed(events())
    by_user = stream.key_by("user").window(TENS).aggregate(n=count()).select("n", key=pc.field("user"))
    of_all = stream.window_all(TENS).aggregate(n=count()).select("n", key=pc.scalar("all"))
    found = by_user.union(of_all).filter(pc.field("n") > 1).to_arrow()
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(2, "a"), (2, "all"), (2, "all")]


def test_bad_rows_of_a_log_go_to_their_side_output() -> None:
    bad = OutputTag("bad")
    log = pa.table({"ts": pa.array([1, None, 3]), "at": [1, 2, 3]})
    env = StreamExecutionEnvironment()
    result = env.from_event_log(
        log, timestamp="ts", integer_times=True, arrival="at", on_bad_row=bad
    ).execute()
    assert result.to_arrow()["ts"].to_pylist() == [1, 3]
    assert result.get_side_output(bad).to_arrow()["at"].to_pylist() == [2]
    assert (result.report.events_read, result.report.processed, result.report.results) == (3, 2, 2)


def test_the_report_of_a_log_with_steps_accounts_for_all_rows() -> None:
    report = events().filter(pc.field("user") == "a").execute().report
    assert (report.events_read, report.filtered, report.processed, report.results) == (6, 3, 3, 3)


def test_an_empty_log_gives_its_columns() -> None:
    stream = events([]).with_columns(x=pc.field("ts") + 1)
    assert stream.to_arrow().schema.names == ["user", "ts", "at", "x"]
    assert stream.to_arrow().num_rows == 0


def test_a_log_is_written_to_files(tmp_path: Path) -> None:
    events().filter(pc.field("ts") > 2).write_parquet(tmp_path / "out")
    assert pq.read_table(tmp_path / "out")["ts"].to_pylist() == [12, 3, 24, 25]


def test_a_job_without_an_operator_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    first, second = (timed(events(rows)).select("user") for rows in (ROWS[:4], ROWS[4:]))
    stopped = first.execute(stop_with_checkpoint=tmp_path / "checkpoint").to_arrow()
    gone_on = second.execute(restore_from=tmp_path / "checkpoint").to_arrow()
    assert stopped["user"].to_pylist() + gone_on["user"].to_pylist() == [user for user, _, _ in ROWS]
    with pytest.raises(ConfigurationError, match="operator: none then, process function now"):
        timed(events(ROWS[4:])).key_by("user").process(Copies(), pa.schema({"user": pa.string()})).execute(
            restore_from=tmp_path / "checkpoint"
        ).to_arrow()


class Copies(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value.user


def test_rows_need_columns_and_steps_their_columns() -> None:
    with pytest.raises(SchemaError, match="there is no column nobody"):
        events().filter(pc.field("nobody") > 1).execute()


def test_rows_as_they_come_run_in_the_mode_batch() -> None:
    stream = events()
    stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert stream.to_arrow() == table(ROWS)


def test_why_needs_an_operator() -> None:
    with pytest.raises(ConfigurationError, match="passes rows on unchanged, but why"):
        events().why("a")


# ---- behind the last operator ----


@pytest.mark.parametrize("parallelism", [1, 3])
def test_steps_behind_windows_apply_to_their_results(parallelism: int) -> None:
    stream = counted(events(parallelism=parallelism)).with_columns(n=pc.field("n") * 10)
    found = stream.filter(pc.field("last") > 3).select("user", "n", start=pc.field("window_start")).to_arrow()
    assert found.schema.names == ["user", "n", "start"]
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        ("b", 10, 10),
        ("b", 10, 20),
        ("c", 10, 20),
    ]


def test_side_outputs_are_as_without_the_steps() -> None:
    result = counted(events()).filter(pc.field("n") > 1).execute()
    assert result.to_arrow()["user"].to_pylist() == ["a"]
    assert result.get_side_output(LATE).to_arrow()["at"].to_pylist() == [45]
    assert (result.report.on_time_firings, result.report.late) == (4, 1)
    assert counted(events()).filter(pc.field("n") > 1).get_side_output(LATE).to_arrow().num_rows == 1


def test_withdrawn_rows_that_look_like_others_are_warned_of() -> None:
    rows = [("a", 1, 1), ("b", 32, 2), ("a", 3, 13)]
    windows = timed(events(rows)).key_by("user").window(TENS).allowed_lateness(100).retracting()
    counted = windows.aggregate(n=count())
    with pytest.warns(UserWarning, match=r"the job gives .* withdrawn rows \(-U and -D\) look like"):
        found = counted.select("user", "n").to_arrow().to_pylist()
    assert [row["n"] for row in found if row["user"] == "a"] == [1, 1, 2]
    assert counted.select("user", "n", "row_kind").to_arrow().num_rows == 4
    assert counted.filter(pc.field("row_kind") != "-U").select("n").to_arrow().num_rows == 3


def test_steps_behind_a_function_see_its_columns(tmp_path: Path) -> None:
    schema = pa.schema({"user": pa.string()})
    users = timed(events()).key_by("user").process(Copies(), schema, timestamp_column="when")
    late = users.filter(pc.field("when") < 10).with_columns(upper=pc.utf8_upper(pc.field("user")))
    late.write_parquet(tmp_path / "out")
    assert pq.read_table(tmp_path / "out").to_pylist() == [
        {"user": "a", "when": when, "upper": "A"} for when in (1, 3, 2)
    ]


def test_dictionaries_of_a_function_are_plain_columns_for_the_steps() -> None:
    schema = pa.schema({"user": pa.dictionary(pa.int32(), pa.string())})
    users = timed(events()).key_by("user").process(Copies(), schema)
    assert users.filter(pc.field("user") == "c").to_arrow().to_pydict() == {"user": ["c"]}


def test_steps_that_do_not_fit_the_results_are_refused_before_anything_runs() -> None:
    with pytest.raises(SchemaError, match="there is no column ts"):
        counted(events()).filter(pc.field("ts") > 1).execute()


def test_a_value_for_which_a_step_fails_is_named() -> None:
    with pytest.raises(DataError, match="divide by zero"):
        counted(events()).with_columns(x=pc.divide(pc.field("n"), pc.field("n") - 1)).to_arrow()


def test_a_checkpoint_does_not_depend_on_the_steps_behind_the_operator(tmp_path: Path) -> None:
    first = counted(events(ROWS[:4])).filter(pc.field("n") > 1)
    assert first.execute(stop_with_checkpoint=tmp_path / "one").to_arrow().num_rows == 0
    found = counted(events(ROWS[4:])).select("user", "n").execute(restore_from=tmp_path / "one").to_arrow()
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [("a", 2), ("b", 1), ("b", 1), ("c", 1)]


def test_what_if_compares_what_the_steps_give() -> None:
    stream = counted(events()).select("user", "window_start", "n")
    wider = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    assert "1" in str(stream.what_if(wider, keys=["user", "window_start"]))


def test_a_watermark_becomes_a_timestamp_that_is_null_at_both_ends_of_the_log() -> None:
    every = timed(events()).key_by("user").window(TENS).trigger(CountTrigger.of(1)).aggregate(n=count())
    ends = [-(2**63), 2**63 - 1]
    seen: list[int] = []
    for results in (every, counted(events())):
        watermark = pc.if_else(pc.field("watermark").isin(ends), None, pc.field("watermark"))
        found = results.with_columns(at=watermark.cast(pa.timestamp("ms", "UTC"))).to_arrow()
        seen += found["watermark"].to_pylist()
        assert found["at"].cast("int64").to_pylist() == [
            None if watermark_ms in ends else watermark_ms for watermark_ms in found["watermark"].to_pylist()
        ]
    assert set(seen) > set(ends)
