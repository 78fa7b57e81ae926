"""Why the results of a key are what they are, told of small logs."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.analysis import key_run
from flinkcore.columnar import planned_job
from flinkcore.common import Configuration, Duration, Row, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedStream, StreamExecutionEnvironment, WindowedStream
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError
from flinkcore.log.sources.file_chunks import FileChunk

ROWS = pa.table(
    {
        "ts": [0, 4, 12, 3, 25, 14, 8],
        "arrival": [10, 20, 30, 40, 50, 60, 70],
        "split": ["a", "b", "a", "b", "a", "a", "b"],
        "key": ["k", "k", "k", "k", "l", "k", "k"],
        "value": [1, 2, 3, 4, 5, 6, 7],
    }
)
"""With a bound of 2 and two splits the watermark is -3 from 20 on, by split a, and 1 from 30 on, by split b."""


def keyed(log: Any, *keys: str, bound_ms: int = 2, split: str | None = None, **settings: Any) -> KeyedStream:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(10)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return (
        environment.from_event_log(
            log, timestamp="ts", integer_times=True, arrival="arrival", split=split, **settings
        )
        .assign_timestamps_and_watermarks(strategy)
        .key_by(*(keys or ("key",)))
    )


def counted(log: Any, *keys: str, **settings: Any) -> DataStream:
    windows = keyed(log, *keys, **settings).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.aggregate(n=count(), total=sum_("value"))


def column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table.column(name).to_pylist()
    return values


def test_events_meet_the_watermark_and_the_split_that_holds_it() -> None:
    events = counted(ROWS, split="split").why("k").events
    assert column(events, "event") == [1, 2, 3, 4, 5, 6]
    assert column(events, "watermark") == [None, None, -3, 1, 1, 1]
    assert column(events, "held_by") == [None, "b", "a", "b", "b", "b"]
    assert column(events, "position") == [0, 0, 1, 1, 3, 2]


def test_where_there_is_no_watermark_yet_the_split_without_one_is_told() -> None:
    told = str(counted(ROWS, split="split").why("k"))
    assert "no watermark yet: split 'b' has none\n" in told
    assert "held by split 'a'\n" in told


def test_a_late_event_has_the_least_bound_and_lateness_that_save_it() -> None:
    history = counted(ROWS).why("k")
    assert column(history.events, "fate") == ["in window", "in window", "in window", "late", "late", "late"]
    assert column(history.events, "saving_out_of_orderness_ms")[3:] == [3, 6, 16]
    assert column(history.events, "saving_allowed_lateness_ms")[3:] == [1, 4, 14]
    assert column(history.events, "reason")[3] == "dropped"
    (late,) = [row for row in history.events.to_pylist() if row["event"] == 4]
    assert late["missed_windows"] == [{"start": 0, "end": 10}]
    assert column(counted(ROWS, bound_ms=3).why("k").events, "fate")[3] == "in window"


def test_a_firing_has_the_events_that_it_was_made_of() -> None:
    first, second = counted(ROWS).why("k").firings.to_pylist()
    assert (first["window_start"], first["events"], first["cause"]) == (0, [1, 2], "watermark")
    assert first["results"] == [{"n": 2, "total": 3}]
    assert (first["arrival"], first["watermark"]) == (30, 9)
    assert (second["window_start"], second["events"], second["arrival"]) == (10, [3], 50)


def test_one_window_can_be_asked_for() -> None:
    history = counted(ROWS).why("k", window=13)
    assert column(history.firings, "window_start") == [10]
    assert column(history.events, "event") == [3, 5]
    assert column(counted(ROWS).why("k", window=(0, 10)).events, "event") == [1, 2, 4, 6]


def test_rows_that_are_no_events_are_told_of_with_the_windows_of_their_time() -> None:
    rows = ROWS.set_column(0, "ts", pa.array([0, 4, 12, 3, 25, 14, None], pa.int64()))
    windows = (
        StreamExecutionEnvironment.get_execution_environment()
        .from_event_log(rows, timestamp="ts", integer_times=True, arrival="arrival", on_bad_row="drop")
        .filter((pc.field("value") != 2) & (pc.field("value") != 6))
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(total=sum_("value"))
    )
    for window in (5, (0, 10)):
        events = windows.why("k", window).events
        assert {row["value"] for row in column(events, "row")} == {1, 2, 4, 7}
    # Nothing says which windows this time falls into.
    assert {row["value"] for row in column(windows.why("k", 100).events, "row")} == {2, 6, 7}


def test_events_that_are_late_for_a_session_are_told_of_with_it() -> None:
    rows = ROWS.set_column(0, "ts", pa.array([0, 4, 40, 6, 80, 41, 2]))
    windows = keyed(rows).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    history = windows.aggregate(n=count()).why("k")
    assert column(history.events, "fate") == ["in window", "in window", "in window", "late", "late", "late"]
    for window in (3, (0, 9)):
        assert column(history.at(window).events, "event") == [1, 2, 4, 6]
        assert column(history.at(window).firings, "window_end") == [9]
    assert column(history.at((36, 50)).events, "event") == [3, 5]


def test_a_process_function_has_no_windows_to_ask_for() -> None:
    with pytest.raises(ConfigurationError, match="the job has no windows: leave window= out"):
        reminded(ROWS).why("k", 3)
    with pytest.raises(ConfigurationError, match="the job has no windows"):
        reminded(ROWS).why("k").at(3)


def test_times_of_windows_may_be_text() -> None:
    instants = ROWS.set_column(0, "ts", ROWS.column("ts").cast(pa.timestamp("ms")))
    history = counted(instants).why("k", window="1970-01-01T00:00:00.013")
    assert column(history.events, "event") == [3, 5]


def test_times_that_are_numbers_of_numpy_are_those_of_python() -> None:
    events = counted(ROWS).why("k", np.int64(13)).events
    assert events.equals(counted(ROWS).why("k", 13).events)
    assert counted(ROWS).why("k", (np.int32(10), np.uint16(20))).events.equals(events)


@pytest.mark.parametrize("window", ["noon", (1, 2, 3), int, True, 13.0, np.float32(13), np.bool_(True)])
def test_what_is_no_window_is_refused(window: Any) -> None:
    with pytest.raises(ConfigurationError, match="window= is a time within it"):
        counted(ROWS).why("k", window=window)


def test_keys_of_several_columns_are_given_in_order_or_by_name() -> None:
    expected = [1, 3, 6]
    for key in (("k", "a"), ["k", "a"], {"split": "a", "key": "k"}):
        rows = column(counted(ROWS, "key", "split").why(key).events, "row")
        assert [row["value"] for row in rows] == expected


def test_text_stands_for_a_key_of_any_type() -> None:
    rows = ROWS.append_column("number", pa.array([1, 2, 1, 2, 1, 1, 2]))
    assert counted(rows, "number").why("2").events.equals(counted(rows, "number").why(2).events)


@pytest.mark.parametrize("key", [math.nan, 0.0, -0.0])
def test_keys_that_are_floats_are_equal_as_in_a_replay(key: float) -> None:
    rows = ROWS.set_column(3, "key", pa.array([math.nan, 0.0, -0.0, math.nan, 0.0, None, -0.0]))
    whole = counted(rows, on_bad_row="drop")
    own = [row["total"] for row in whole.to_arrow().to_pylist() if repr(row["key"]) == repr(key)]
    given = [each["total"] for results in column(whole.why(key).firings, "results") for each in results]
    assert given == own


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("k", "a"), "not a value of the key column 'key'"),
        (None, "no event has null as its key"),
        (1, "not a value of the key column 'key'"),
    ],
)
def test_what_is_no_key_is_refused(key: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        counted(ROWS).why(key)


def test_a_key_that_no_event_has_gives_an_empty_history_that_says_so() -> None:
    history = counted(ROWS).why("m")
    assert (history.events.num_rows, history.firings.num_rows) == (0, 0)
    assert str(history).splitlines() == ["key = 'm'", "  0 rows; 0 firings", "  note: no row has this key"]
    assert history.at(4).notes == history.notes == ["no row has this key"]


def test_keys_that_come_near_are_named() -> None:
    log = ROWS.set_column(3, "key", pa.array(["k", "K ", "k", "k", "l", " m", "kk"])).append_column(
        "number", pa.array([1, 2, 1, 1, 1, 1, 1])
    )
    near = "no row has this key, but there are rows with 'K ' and with 'k'"
    assert counted(log).why("K").notes == [near]
    assert counted(log, "key", "number").why(("K", 1)).notes == [
        "no row has this key, but there are rows with 'k', 1"
    ]
    assert counted(log, "number").why(3).notes == ["no row has this key"]


def test_keys_that_the_job_computes_have_none_that_come_near() -> None:
    computed = keyed(ROWS).with_columns(key=pc.utf8_upper(pc.field("key"))).key_by("key")
    windows = computed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    notes = windows.aggregate(n=count()).why("k").notes
    assert notes[-1] == "no row has this key"
    assert "computes the key" in notes[0]


def test_a_window_that_has_no_row_of_the_key_is_told_of_with_the_times_that_there_are() -> None:
    history = counted(ROWS).why("k", 100)
    assert (history.events.num_rows, history.firings.num_rows) == (0, 0)
    note = "no window that was asked for has a row of this key: it has 6, of event times from 0 to 14"
    assert history.notes == [note]
    assert counted(ROWS).why("k", 4).notes == []


def test_rows_that_are_filtered_or_rejected_are_told_of() -> None:
    rows = pa.concat_tables([ROWS, ROWS.slice(0, 1).set_column(0, "ts", pa.array([None], pa.int64()))])
    environment = StreamExecutionEnvironment.get_execution_environment()
    stream = (
        environment.from_event_log(
            rows, timestamp="ts", integer_times=True, arrival="arrival", split="split", on_bad_row="drop"
        )
        .filter(pc.field("value") != 2)
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .filter(pc.field("value") != 3)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    events = stream.why("k").events
    told = {
        (row["fate"], row["reason"], row["timestamp"], row["split"])
        for row in events.to_pylist()
        if row["fate"] in ("filtered", "rejected")
    }
    assert told == {
        ("filtered", "(value != 2)", 4, "b"),
        ("filtered", "(value != 3)", 12, "a"),
        ("rejected", "null timestamp", None, "a"),
    }
    assert events.num_rows == 7


def test_a_key_that_the_job_computes_has_a_note_on_rows_that_are_not_known() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    stream = (
        environment.from_event_log(ROWS, timestamp="ts", integer_times=True, arrival="arrival")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .with_columns(large=pc.field("value") > 3)
        .filter(pc.field("value") < 7)
        .key_by("large")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    history = stream.why(True)
    assert history.events.num_rows == 3  # of four, one of which was filtered
    assert "the job computes the key (large)" in history.notes[0]


def test_sessions_that_merge_are_told_as_they_were_in_the_end() -> None:
    windows = keyed(ROWS, bound_ms=50).window(EventTimeSessionWindows.with_gap(Time.milliseconds(6)))
    history = windows.aggregate(n=count()).why("k")
    assert column(history.events, "windows") == [[{"start": 0, "end": 20}]] * 6
    assert column(history.firings, "events") == [[1, 2, 4, 3, 5, 6]]  # as sessions merged


def test_windows_without_bounds_fire_by_the_events_that_complete_them() -> None:
    windows = keyed(ROWS).window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    firings = windows.aggregate(n=count()).why("k").firings.to_pylist()
    assert [(firing["event"], firing["events"]) for firing in firings] == [
        (2, [1, 2]),
        (4, [1, 2, 3, 4]),
        (6, [1, 2, 3, 4, 5, 6]),
    ]
    counts = keyed(ROWS).count_window(3).aggregate(n=count()).why("k").firings
    assert column(counts, "events") == [[1, 2, 3], [4, 5, 6]]


def test_logs_of_a_union_are_told_apart() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    streams = [
        environment.from_event_log(
            ROWS.take([0, 2, 4] if log == 0 else [1, 3, 5, 6]),
            timestamp="ts",
            integer_times=True,
            arrival="arrival",
        ).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        for log in (0, 1)
    ]
    windows = (
        streams[0].union(streams[1]).key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    )
    events = windows.aggregate(n=count()).why("k").events
    assert column(events, "log") == [0, 1, 0, 1, 1, 1]


class RemindsLater(KeyedProcessFunction):
    """Gives each value, and after a while without another one how many there were."""

    def open(self, runtime_context: Any) -> None:
        from flinkcore.common import Types
        from flinkcore.datastream.state import ValueStateDescriptor

        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        due = self.last.value()
        if due is not None:
            ctx.timer_service().delete_event_time_timer(due)
        self.last.update(ctx.timestamp() + 8)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 8)
        if value.value % 2:
            yield Row("odd", value.value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        yield Row("timer", timestamp)


class Values(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Row]:
        yield Row([element.value for element in elements])


class Twice(KeyedProcessFunction):
    """Gives each value, and two reminders of it."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        for after_ms in (2, 1):
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + after_ms)
        yield Row("value", value.value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        yield Row("timer", timestamp)


def test_the_story_of_a_process_function_has_calls_in_their_order() -> None:
    rows = pa.concat_tables(
        [
            ROWS.slice(0, 1).set_column(0, "ts", pa.array([1_500])),
            ROWS.slice(4, 1).set_column(0, "ts", pa.array([9_000])),
        ]
    )
    rows = rows.set_column(rows.schema.get_field_index("key"), "key", pa.array(["k", "l"]))
    schema = pa.schema([("what", pa.string()), ("value", pa.int64())])
    story = str(keyed(rows).process(Twice(), schema).why("k")).splitlines()
    told = [line[12:].strip() for line in story if "timer" in line or "event 1" in line]
    assert told == [
        "event 1 of 1,500, position 0",
        "timer of event time at 1,502 registered by event 1",
        "timer of event time at 1,501 registered by event 1",
        "event 1 gives",
        "timer of event time at 1,501 fired",
        "the timer at 1,501 gives",
        "what = timer, value = 1501",
        "timer of event time at 1,502 fired",
        "the timer at 1,502 gives",
        "what = timer, value = 1502",
    ]


VALUES = pa.schema([("values", pa.list_(pa.int64()))])


class FirstTen(WindowAssigner[Any, TimeWindow]):
    """Assigns events of an even value to the first 10 ms, whatever their time, and others to none."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return [TimeWindow(0, 10)] if element.value % 2 == 0 else []

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


class FirstTenOfTheClock(FirstTen):
    def is_event_time(self) -> bool:
        return False


class Merged(FirstTen, MergingWindowAssigner[Any, TimeWindow]):
    def merge_windows(self, windows: Any, callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        TimeWindow.merge_windows(windows, callback)


def test_windows_of_ones_own_tell_what_they_took_in_and_what_would_have_saved_late_events() -> None:
    rows = ROWS.set_column(0, "ts", pa.array([0, 4, 12, 20, 25, 60, 8]))

    def job(bound_ms: int = 2, lateness_ms: int = 0) -> DataStream:
        windows = keyed(rows, bound_ms=bound_ms).window(FirstTen()).allowed_lateness(lateness_ms)
        return windows.process(Values(), output_type=VALUES)

    history, report = job().why("k"), job().execute().report
    assert column(job().why("l").events, "fate") == ["in no window"]
    fates = [(event["row"]["value"], event["fate"]) for event in history.events.to_pylist()]
    assert fates == [
        (1, "in no window"),
        (2, "in window"),
        (3, "in no window"),
        (4, "in no window"),  # behind the end of its window, but not late itself
        (6, "in no window"),
        (7, "late"),
    ]
    assert Counter(fate for _, fate in fates) == {
        "in window": report.windowed,
        "in no window": report.in_no_window - 1,
        "late": report.late,
    }
    first_ten = [{"start": 0, "end": 10}]
    assert column(history.events, "missed_windows") == [[], [], [], first_ten, first_ten, []]
    assert column(history.events, "saving_allowed_lateness_ms")[5] is None

    rows = rows.set_column(4, "value", pa.array([1, 2, 3, 4, 5, 6, 8]))
    (event,) = [row for row in job().why("k").events.to_pylist() if row["fate"] == "late"]
    assert event["missed_windows"] == first_ten
    bound_ms, lateness_ms = event["saving_out_of_orderness_ms"], event["saving_allowed_lateness_ms"]

    def values(job: DataStream) -> set[int]:
        return {value for row in job.to_arrow().to_pylist() for value in row["values"]}

    assert 8 in values(job(bound_ms)) & values(job(lateness_ms=lateness_ms))
    assert 8 not in values(job(bound_ms - 1)) | values(job(lateness_ms=lateness_ms - 1))


def test_windows_of_the_clock_are_never_late_and_may_be_none() -> None:
    job = keyed(ROWS).window(FirstTenOfTheClock()).process(Values(), output_type=VALUES)
    events = job.why("k").events
    assert column(events, "fate") == [
        "in window" if row["value"] % 2 == 0 else "in no window" for row in column(events, "row")
    ]
    assert column(events, "fate").count("in window") == job.execute().report.windowed


@pytest.mark.parametrize("key", ["k", None, ()])
def test_windows_of_all_keys_are_refused_in_words(key: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = StreamExecutionEnvironment.get_execution_environment().from_event_log(
        ROWS, timestamp="ts", integer_times=True, arrival="arrival"
    )
    windows = stream.assign_timestamps_and_watermarks(strategy).window_all(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    with pytest.raises(ConfigurationError, match="the windows of window_all have no key"):
        windows.aggregate(n=count()).why(key)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (Merged(), "Merged merges windows in its own way"),
        (
            TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(0), WindowStagger.NATURAL),
            "the first event of a key group staggers the windows of all its keys",
        ),
    ],
)
def test_windows_that_other_keys_or_merges_decide_are_refused(windows: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        keyed(ROWS).window(windows).process(Values(), output_type=VALUES).why("k")


@pytest.mark.parametrize(
    "windows",
    [
        TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(0), WindowStagger.RANDOM),
        EventTimeSessionWindows.with_dynamic_gap(lambda row: 3 + row.value % 3),
    ],
)
def test_staggered_windows_and_sessions_of_many_gaps_tell_what_would_have_saved_late_events(
    windows: Any,
) -> None:
    def job(bound_ms: int = 2, lateness_ms: int = 0) -> DataStream:
        stream = keyed(ROWS, bound_ms=bound_ms).window(windows).allowed_lateness(lateness_ms)
        return stream.process(Values(), output_type=VALUES)

    def late(history: Any) -> dict[int, Any]:
        return {row["row"]["value"]: row for row in history.events.to_pylist() if row["fate"] == "late"}

    events = late(job().why("k"))
    assert len(events) == job().execute().report.late > 1
    for value, event in events.items():
        bound_ms, lateness_ms = event["saving_out_of_orderness_ms"], event["saving_allowed_lateness_ms"]
        assert value not in late(job(bound_ms).why("k")) | late(job(lateness_ms=lateness_ms).why("k"))
        assert value in late(job(bound_ms - 1).why("k"))
        assert value in late(job(lateness_ms=lateness_ms - 1).why("k"))


def test_savings_in_sessions_need_no_further_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = np.arange(0, 3_000, 10)
    rows = pa.table(
        {
            "ts": arrivals - np.where(np.arange(300) % 3, 0, 700),
            "arrival": arrivals,
            "key": ["k"] * 300,
            "value": arrivals,
        }
    )
    runs: list[int] = []
    opened = key_run.opened_stage
    monkeypatch.setattr(key_run, "opened_stage", lambda *arguments: (runs.append(1), opened(*arguments))[1])
    windows = keyed(rows).window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
    events = windows.aggregate(n=count()).why("k").events
    assert column(events, "fate").count("late") > 50
    assert len(runs) == 1


def test_savings_beyond_64_bits_are_none() -> None:
    far = 3 * 2**61
    rows = ROWS.set_column(0, "ts", pa.array([far, -far, far + 1_000, 5, 0, far, far]))
    for history in (
        counted(rows).why("k"),
        keyed(rows)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
        .aggregate(n=count())
        .why("k"),
    ):
        late = [row for row in history.events.to_pylist() if row["fate"] == "late"]
        by_time = {row["timestamp"]: row["saving_out_of_orderness_ms"] for row in late}
        assert by_time[-far] is None
        assert by_time[5] > 2**62
        assert "event" in str(history)


def reminded(log: pa.Table) -> DataStream:
    return keyed(log).process(RemindsLater(), pa.schema([("what", pa.string()), ("value", pa.int64())]))


def test_the_timers_and_the_results_of_a_process_function_are_told() -> None:
    history = reminded(ROWS).why("k")
    results = [row for rows in column(history.firings, "results") for row in rows]
    assert {row["value"] for row in results if row["what"] == "odd"} == {1, 3, 7}
    assert set(column(history.events, "fate")) == {"processed"}
    timers = [(row["action"], row["timestamp"], row["event"]) for row in history.timers.to_pylist()]
    assert timers[:3] == [("registered", 8, 1), ("deleted", 8, 2), ("registered", 12, 2)]
    fired = {row["timestamp"] for row in history.timers.to_pylist() if row["action"] == "fired"}
    assert {
        firing["timer"] for firing in history.firings.to_pylist() if firing["cause"] == "event-time timer"
    } == fired
    assert "timer of event time at 12 registered by event 2" in str(history)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            lambda: (
                counted(ROWS)
                .key_by("key")
                .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
                .aggregate(n=count())
            ),
            "the job has 2 operators",
        ),
        (
            lambda: StreamExecutionEnvironment.get_execution_environment().from_collection([1]),
            "element by element",
        ),
    ],
)
def test_jobs_of_other_kinds_are_refused(job: Callable[[], DataStream], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        job().why("k")


def test_a_job_that_goes_on_from_a_checkpoint_is_not_told_of_as_if_it_began(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    counted(ROWS.slice(0, 4)).execute(stop_with_checkpoint=state).to_arrow()
    today = counted(ROWS.slice(4))
    today.get_execution_environment().configure(
        Configuration().set_string("execution.state-recovery.path", state)
    )
    assert today.execute().report.late == 2
    with pytest.raises(ConfigurationError, match=rf"why\(\) judges .*{state}: leave"):
        today.why("k")


def test_parts_of_a_file_that_cannot_have_the_key_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = ROWS.sort_by("key")
    pq.write_table(ordered, tmp_path / "log.parquet", row_group_size=3)
    monkeypatch.setattr(planned_job, "CHUNK_BYTES", 1)
    read: list[tuple[str, tuple[str, ...]]] = []
    reads = FileChunk.read

    def noted(self: FileChunk, columns: Any, *others: Any) -> Any:
        for batch in reads(self, columns, *others):
            read.append((self.label, tuple(columns)))
            yield batch

    monkeypatch.setattr(FileChunk, "read", noted)
    events = counted(str(tmp_path / "log.parquet")).why("l").events
    assert events.num_rows == 1
    values_read = {label for label, columns in read if "value" in columns}
    assert len(values_read) == 1
    assert len({label for label, columns in read if "ts" in columns}) == 3


def test_files_of_other_partitions_are_not_read(tmp_path: Path) -> None:
    for key in ("k", "l"):
        directory = tmp_path / f"key={key}"
        directory.mkdir()
        pq.write_table(ROWS.filter(pc.field("key") == key).drop_columns("key"), directory / "log.parquet")
    history = counted(str(tmp_path)).why("l")
    assert [row["value"] for row in column(history.events, "row")] == [5]


def test_a_late_event_between_windows_is_saved_by_nothing() -> None:
    windows = keyed(ROWS).window(SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(10)))
    late = [row for row in windows.aggregate(n=count()).why("k").events.to_pylist() if row["fate"] == "late"]
    assert [(row["timestamp"], row["missed_windows"]) for row in late] == [(3, []), (14, []), (8, [])]
    assert {row["saving_out_of_orderness_ms"] for row in late} == {None}


@pytest.mark.parametrize("mode", ["accumulating", "retracting", "delta"])
def test_firings_have_the_results_of_a_replay_in_every_output_mode(mode: str) -> None:
    def stream() -> DataStream:
        windows = keyed(ROWS).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).allowed_lateness(50)
        return getattr(windows, mode)().aggregate(n=count(), total=sum_("value"))

    firings = stream().why("k").firings.to_pylist()
    own = [row for row in stream().to_arrow().to_pylist() if row["key"] == "k"]
    assert [firing["results"] for firing in firings] == [
        [{name: row[name] for name in ("n", "total", "row_kind") if name in row}] for row in own
    ]
    of_first = [firing["events"] for firing in firings if firing["window_start"] == 0]
    assert (
        of_first
        == {
            "accumulating": [[1, 2], [1, 2, 4], [1, 2, 4, 6]],
            "retracting": [[1, 2], [1, 2], [1, 2, 4], [1, 2, 4], [1, 2, 4, 6]],
            "delta": [[1, 2], [4], [6]],
        }[mode]
    )


def test_windows_with_an_evictor_fire_with_what_it_leaves() -> None:
    windows = (
        keyed(ROWS).window(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3))
    )
    schema = pa.schema([("values", pa.list_(pa.int64()))])
    firings = windows.process(Values(), output_type=schema).why("k").firings.to_pylist()
    assert [firing["events"] for firing in firings] == [[1, 2], [2, 3, 4], [4, 5, 6]]
    assert [firing["results"] for firing in firings] == [
        [{"values": [1, 2]}],
        [{"values": [2, 3, 4]}],
        [{"values": [4, 6, 7]}],
    ]


class Nested(FirstTen):
    """Assigns events to windows of 20 ms, and those of a second half to that, too."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        start = timestamp - timestamp % 20
        inner = [TimeWindow(start + 10, start + 20)] if timestamp % 20 >= 10 else []
        return [TimeWindow(start, start + 20), *inner]


class OddValues(ProcessWindowFunction):
    """Gives the end of the window and a value, for each odd one."""

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Row]:
        for element in elements:
            if element.value % 2:
                yield Row(context.window().end, element.value)


class ApplyOddValues(WindowFunction):
    def apply(self, key: Any, window: TimeWindow, inputs: Any) -> list[Row]:
        return [Row(window.end, element.value) for element in inputs if element.value % 2]


@pytest.mark.parametrize("function", [OddValues(), ApplyOddValues()])
@pytest.mark.parametrize(
    ("windows", "trigger"),
    [
        (
            TumblingEventTimeWindows.of(Time.milliseconds(20)),
            ContinuousEventTimeTrigger.of(Time.milliseconds(3)),
        ),
        (
            SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)),
            ContinuousEventTimeTrigger.of(Time.milliseconds(3)),
        ),
        (Nested(), EventTimeTrigger.create()),
        (Nested(), CountTrigger.of(1)),
    ],
    ids=["continuous", "continuous, sliding", "of one end", "of one end, by event"],
)
def test_windows_that_fire_at_once_have_each_their_own_results(
    windows: Any, trigger: Any, function: Any
) -> None:
    log = ROWS.filter(pc.field("key") == "k")
    windowed = keyed(log).window(windows).trigger(trigger)
    call = windowed.process if isinstance(function, OddValues) else windowed.apply
    results = call(function, pa.schema([("end", pa.int64()), ("value", pa.int64())]))
    firings = results.why("k").firings.to_pylist()
    values = log["value"].to_pylist()
    assert [firing["results"] for firing in firings] == [
        [
            {"end": firing["window_end"], "value": values[event - 1]}
            for event in firing["events"]
            if values[event - 1] % 2
        ]
        for firing in firings
    ]
    assert [row for firing in firings for row in firing["results"]] == results.to_arrow().to_pylist()


class SumOfThree(AggregateFunction):
    """The sum of three values at least; of fewer it has no result."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Row, accumulator: list[int]) -> list[int]:
        return [*accumulator, value.value]

    def get_result(self, accumulator: list[int]) -> Any:
        return Row(sum(accumulator)) if len(accumulator) > 2 else None

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return a + b


def test_firings_of_aggregates_without_a_result_have_none() -> None:
    def windows_of(log: pa.Table) -> WindowedStream:
        return (
            keyed(log, bound_ms=50)
            .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
            .trigger(CountTrigger.of(1))
        )

    results = windows_of(ROWS).aggregate(SumOfThree(), output_type=pa.schema([("sum", pa.int64())]))
    firings = results.why("k").firings.to_pylist()
    assert [len(firing["events"]) for firing in firings] == [1, 2, 3, 4, 5, 6]
    assert [firing["results"] for firing in firings] == [[], [], *([{"sum": n}] for n in (6, 10, 16, 23))]
    at_once = ROWS.set_column(1, "arrival", pa.array([10] * 7)).filter(pc.field("key") == "k")
    again = windows_of(at_once).aggregate(SumOfThree(), output_type=pa.schema([("sum", pa.int64())]))
    assert [firing["results"] for firing in again.why("k").firings.to_pylist()] == [
        firing["results"] for firing in firings
    ]


@pytest.mark.parametrize("order", list(permutations([46, 61, 56])))
def test_evictors_leave_the_events_of_merged_sessions_that_the_story_names(order: tuple[int, ...]) -> None:
    log = pa.table({"ts": [*order, 66], "arrival": range(4), "key": ["k"] * 4, "value": range(1, 5)})
    sessions = EventTimeSessionWindows.with_dynamic_gap(lambda element: 11)
    windows = keyed(log, bound_ms=50).window(sessions).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(2))
    firings = windows.process(Values(), VALUES).why("k").firings.to_pylist()
    assert firings
    for firing in firings:
        assert [{"values": sorted(firing["events"])}] == [
            {"values": sorted(row["values"])} for row in firing["results"]
        ]
