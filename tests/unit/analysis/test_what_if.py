"""What a job would give under other strategies is what replays with these give."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, Row, Time, WatermarkStrategy
from flinkcore.common.watermark_generators import AscendingTimestampsWatermarks
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    KeyedProcessFunction,
    OutputTag,
    StreamExecutionEnvironment,
    TimeDomain,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, max_, sum_
from flinkcore.datastream.window import GlobalWindows
from flinkcore.errors import ConfigurationError
from flinkcore.log.sources.table_chunks import TableChunk

MS = Time.milliseconds


def bounded(bound_ms: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))


OWN = bounded(200)
OTHERS = [
    bounded(3_000),
    WatermarkStrategy.for_generator(AscendingTimestampsWatermarks),
    WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_seconds(1), 0.9, 10),
    WatermarkStrategy.no_watermarks(),
]


def events(strategy: WatermarkStrategy = OWN) -> DataStream:
    random = np.random.default_rng(7)
    n = 400
    arrival = np.cumsum(random.integers(0, 100, n))
    log = pa.table(
        {
            "ts": arrival - random.exponential(600, n).astype(np.int64),
            "arrival": arrival,
            "key": [f"k{number}" for number in random.integers(0, 4, n)],
            "price": random.integers(1, 100, n),
        }
    )
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .set_parallelism(1)
        .from_event_log(log, timestamp="ts", arrival="arrival")
        .assign_timestamps_and_watermarks(strategy)
    )


def hourly(strategy: WatermarkStrategy = OWN, assigner: Any = None) -> DataStream:
    return (
        events(strategy)
        .key_by("key")
        .window(assigner or TumblingEventTimeWindows.of(MS(700)))
        .allowed_lateness(300)
        .side_output_late_data(OutputTag("late"))
        .aggregate(n=count(), spent=sum_("price"))
        .uid("windows")
    )


@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows.of(MS(700)), EventTimeSessionWindows.with_gap(MS(90))]
)
def test_each_strategy_gives_the_results_of_its_own_replay(assigner: Any) -> None:
    found = hourly(assigner=assigner).what_if(OTHERS)
    rows = found.to_arrow().to_pylist()
    finals = []
    for row, strategy in zip(rows, [OWN, *OTHERS], strict=True):
        result = hourly(strategy, assigner).execute()
        fired: dict[Any, list[Any]] = {}
        for each in result.to_arrow().to_pylist():
            of_window = fired.setdefault((each["key"], each["window_start"], each["window_end"]), [])
            of_window.append((each["n"], each["spent"]))
        withdrawn = [
            (key, start, end)
            for number, (key, start, end) in enumerate(fired)
            if any(
                other == key and first <= start and end <= last and (first, last) != (start, end)
                for other, first, last in list(fired)[number:]
            )
            and isinstance(assigner, EventTimeSessionWindows)
        ]
        for each in withdrawn:
            del fired[each]
        assert row["withdrawn"] == len(withdrawn)
        assert row["strategy"] == str(strategy)
        assert row["late"] == result.report.late
        assert row["results"] == len(fired)
        assert row["firings"] == sum(map(len, fired.values()))
        assert row["refired"] == sum(each[0] != each[-1] for each in fired.values())
        finals.append({key: each[-1] for key, each in fired.items()})
    own = finals[0]
    assert rows[0]["late"] > 0
    for number, (row, final) in enumerate(zip(rows[1:], finals[1:], strict=True), start=1):
        differ = [key for key in own.keys() & final.keys() if own[key] != final[key]]
        expected = len(own.keys() - final.keys()), len(final.keys() - own.keys()), len(differ)
        assert (row["missing"], row["additional"], row["different"]) == expected
        by = [abs(own[key][1] - final[key][1]) for key in differ]
        assert (row["spent_difference"], row["spent_largest"]) == (sum(by), max(by, default=0))
        differences = found.differences(number)
        kinds = differences["difference"].to_pylist()
        assert (kinds.count("missing"), kinds.count("additional"), kinds.count("different")) == expected
        for each in differences.to_pylist():
            key = each["key"], each["window_start"], each["window_end"]
            assert (each["n"], each["spent"]) == own.get(key, (None, None))
            assert (each["n_if"], each["spent_if"]) == final.get(key, (None, None))


@pytest.mark.parametrize("name", ["kind", "row_kind_", "given", "given_kind"])
def test_results_may_have_any_names(name: str) -> None:
    sessions = events().key_by("key").window(EventTimeSessionWindows.with_gap(MS(90))).allowed_lateness(300)
    expected = sessions.aggregate(n=count()).what_if(OTHERS).to_arrow()
    found = sessions.aggregate(**{name: count()}).what_if(OTHERS).to_arrow()
    assert found.rename_columns(expected.column_names) == expected
    keyed = (
        events()
        .with_columns(**{name: pc.field("key")})
        .key_by(name)
        .window(EventTimeSessionWindows.with_gap(MS(90)))
        .allowed_lateness(300)
    )
    assert keyed.aggregate(n=count()).what_if(OTHERS).to_arrow() == expected


def test_late_events_of_all_operators_of_a_job_count() -> None:
    def job(strategy: WatermarkStrategy) -> DataStream:
        windows = hourly(strategy).key_by("key").window(TumblingEventTimeWindows.of(MS(2_000)))
        return windows.aggregate(total=sum_("spent"))

    rows = job(OWN).what_if([bounded(500)]).to_arrow().to_pylist()
    for row, strategy in zip(rows, (OWN, bounded(500)), strict=True):
        report = job(strategy).execute().report
        assert row["late"] == sum(each.late for each in report.by_operator)
        assert row["late"] > report.late > 0


class Deviation(KeyedProcessFunction):
    """Tells how far each event is above the watermark, if it is not late."""

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, bool]]:
        yield value["number"], ctx.timestamp() <= ctx.timer_service().current_watermark()


def test_the_log_is_read_as_often_as_for_one_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    read_chunk = TableChunk._read

    def counted(chunk: TableChunk, *settings: Any) -> Any:
        read.append(chunk.index)
        return read_chunk(chunk, *settings)

    monkeypatch.setattr(TableChunk, "_read", counted)
    stream = hourly()
    stream._environment.get_config().set_late_share_warning(1)  # it would look for the cause
    stream.to_arrow()
    once = len(read)
    hourly().what_if([bounded(500), bounded(1_000)])
    assert len(read) == 2 * once


def test_results_of_functions_are_compared_by_keys_that_are_named() -> None:
    job = (
        events()
        .with_columns(number=pc.field("arrival") * 1000 + pc.field("price"))
        .key_by("key")
        .process(Deviation(), pa.schema({"number": pa.int64(), "late": pa.bool_()}))
    )
    own, other = job.what_if([bounded(10_000)], keys="number").to_arrow().to_pylist()
    assert own["results"] == other["results"]
    late = [row["late"] for row in job.to_arrow().to_pylist()]
    assert other["different"] == sum(late) > 0
    with pytest.raises(ConfigurationError, match="name their columns in keys="):
        job.what_if([bounded(10_000)])


class Reminds(KeyedProcessFunction):
    """Says a while after each event how far the watermark has come by then."""

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 250)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[Any, ...]]:
        if ctx.time_domain() is TimeDomain.PROCESSING_TIME:
            yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


def test_results_of_processing_time_timers_are_compared() -> None:
    reminders = pa.schema({"key": pa.string(), "at": pa.int64(), "reached": pa.int64()})
    found = events().key_by("key").process(Reminds(), reminders).what_if([bounded(500)], keys=["key", "at"])
    own, other = found.to_arrow().to_pylist()
    assert other["results"] == own["results"] > 300
    assert (other["missing"], other["additional"]) == (0, 0)
    differences = found.differences(1)
    assert differences.num_rows == other["different"] > 300
    assert pc.subtract(differences["reached"], differences["reached_if"]).unique().to_pylist() == [300]


ODD = {
    "ts": [1_000, 2_000, 50_000, 1_500, 60_000],
    "arrival": [0, 1_000, 2_000, 3_000, 4_000],
    "key": ["k"] * 5,
    "big": [2**53 + 1, 2**53 + 2, 5, 2**63 - 1, 6],
    "least": [-(2**63), -(2**63), 5, 2**63 - 1, 6],
    "f": [None, None, 1.0, float("nan"), 2.0],
}


def odd(**aggregates: Any) -> DataStream:
    return (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(pa.table(ODD), timestamp="ts", arrival="arrival")
        .assign_timestamps_and_watermarks(bounded(0))
        .key_by("key")
        .window(TumblingEventTimeWindows.of(MS(5_000)))
        .aggregate(**aggregates)
    )


def test_integers_of_any_size_are_subtracted_exactly() -> None:
    found = odd(n=max_("big"), m=max_("least")).what_if([bounded(60_000)])
    row = found.to_arrow().to_pylist()[1]
    assert row["different"] == 1
    assert row["n_difference"] == row["n_largest"] == float(2**63 - 1 - (2**53 + 2))
    assert row["m_largest"] == float(2**64 - 1)
    assert "n by " in str(found)


def test_lists_are_compared_value_by_value() -> None:
    found = odd(n=collect("big")).what_if([bounded(60_000)])
    assert found.to_arrow().to_pylist()[1]["different"] == 1
    (row,) = found.differences(1).to_pylist()
    assert (row["n"], row["n_if"]) == ([2**53 + 1, 2**53 + 2], [2**53 + 1, 2**53 + 2, 2**63 - 1])
    assert odd(n=collect("f")).what_if([bounded(0)]).to_arrow().to_pylist()[1]["different"] == 0


def test_nan_is_not_null() -> None:
    found = odd(f=sum_("f")).what_if([bounded(60_000), bounded(0)])
    (row,) = found.differences(1).to_pylist()
    assert row["f"] is None
    assert math.isnan(row["f_if"])
    other, same = found.to_arrow().to_pylist()[1:]
    assert (other["different"], other["f_difference"], other["f_largest"]) == (1, 0.0, 0.0)
    assert (same["different"], same["f_difference"]) == (0, 0.0)


def test_windows_without_bounds_are_refused_before_anything_is_read() -> None:
    keyed = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log("no-such-file.parquet", timestamp="ts", arrival="arrival")
        .assign_timestamps_and_watermarks(bounded(0))
        .key_by("key")
    )
    windows = keyed.count_window(2), keyed.window(GlobalWindows.create_with_end_of_stream_trigger())
    for each in windows:
        with pytest.raises(ConfigurationError, match="belong to none: take windows of time"):
            each.aggregate(n=count()).what_if([bounded(1)])


def test_the_text_tells_how_many_results_change_and_by_how_much() -> None:
    lines = str(hourly().what_if(bounded(3_000))).splitlines()
    assert lines[0].startswith("out of order by at most 200 ms: ")
    assert lines[1].startswith("out of order by at most 3 s: ")
    assert "results are different" in lines[1]
    assert lines[2].startswith("  n by ")


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="names no strategy"):
        hourly().what_if([])
    with pytest.raises(ConfigurationError, match="takes watermark strategies, not 5"):
        hourly().what_if([5])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="takes watermark strategies, not 5"):
        hourly().what_if(5)  # type: ignore[arg-type]
    with pytest.raises(
        ConfigurationError, match="keys names 'nothing', which is not a column of the results"
    ):
        hourly().what_if([bounded(1)], keys=["nothing"])
    with pytest.raises(ConfigurationError, match="numbered from 1 to 1, not 2"):
        hourly().what_if([bounded(1)]).differences(2)
    windowed = events().key_by("key").window(TumblingEventTimeWindows.of(MS(700)))
    retracting = windowed.retracting().aggregate(n=count())
    with pytest.raises(ConfigurationError, match="retracting"):
        retracting.what_if([bounded(1)])
    unstrategic = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(pa.table({"ts": [1], "key": ["k"]}), timestamp="ts")
        .key_by("key")
        .process(Deviation(), pa.schema({"number": pa.int64(), "late": pa.bool_()}))
    )
    with pytest.raises(ConfigurationError, match="this one has 0"):
        unstrategic.what_if([bounded(1)], keys="number")
