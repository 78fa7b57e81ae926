"""The history of a key says what a whole replay does with its events, and what it says would save an event does."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import MIN_TIMESTAMP, Duration, OutputTag, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import DataStream, RuntimeContext, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count
from flinkcore.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    CountTrigger,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

LATE = OutputTag("late")


def ms(milliseconds: int) -> Time:
    return Time.milliseconds(milliseconds)


class Job(NamedTuple):
    assigner: WindowAssigner[Any, Any]
    trigger: Any
    of_functions: bool
    bound_ms: int
    lateness_ms: int
    idleness_ms: int | None
    filters: bool


class Rows(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[tuple[str, list[int]]]:
        yield key, [element.row for element in elements]


FIXED = [
    TumblingEventTimeWindows.of(ms(10)),
    TumblingEventTimeWindows.of(ms(7), ms(3)),
    SlidingEventTimeWindows.of(ms(12), ms(5)),
    SlidingEventTimeWindows.of(ms(4), ms(9)),
    CumulativeEventTimeWindows.of(ms(12), ms(3)),
]
ASSIGNERS = [*FIXED, EventTimeSessionWindows.with_gap(ms(4))]
JOBS = st.builds(
    Job,
    st.sampled_from(ASSIGNERS),
    st.sampled_from([None, None, None, CountTrigger.of(2), PurgingTrigger.of(CountTrigger.of(3))]),
    st.booleans(),
    st.sampled_from([0, 3, 15]),
    st.sampled_from([0, 0, 2, 9]),
    st.sampled_from([None, 6]),
    st.booleans(),
)


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    splits = draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]))
    clocks = dict.fromkeys(splits, 0)
    rows = []
    for number, split in enumerate(draw(st.lists(st.sampled_from(splits), min_size=1, max_size=40))):
        clocks[split] += draw(st.sampled_from([0, 1, 1, 2, 5, 11, -3]))
        delay = draw(st.sampled_from([0, 1, 3, 8, 20, 45]))
        is_bad = draw(st.integers(0, 19)) == 0
        rows.append(
            {
                "ts": None if is_bad else clocks[split] - delay,
                "arrival": clocks[split],
                "split": split,
                "key": draw(st.sampled_from(["k", "l"])),
                "row": number,
                "value": draw(st.integers(0, 9)),
            }
        )
    return pa.Table.from_pylist(
        rows,
        pa.schema(
            [(name, pa.int64()) for name in ("ts", "arrival")]
            + [("split", pa.string()), ("key", pa.string()), ("row", pa.int64()), ("value", pa.int64())]
        ),
    )


def stream_of_events(job: Job, log: pa.Table) -> DataStream:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    environment.get_config().set_auto_watermark_interval(4)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(job.bound_ms))
    if job.idleness_ms is not None:
        strategy = strategy.with_idleness(Duration.of_millis(job.idleness_ms))
    stream = environment.from_event_log(
        log, timestamp="ts", integer_times=True, arrival="arrival", split="split", on_bad_row="drop"
    )
    if job.filters:
        stream = stream.filter(pc.field("value") > 0)
    stream = stream.assign_timestamps_and_watermarks(strategy)
    if job.filters:
        stream = stream.filter(pc.field("value") < 9)
    return stream


def stream_of(job: Job, log: pa.Table) -> DataStream:
    windows = stream_of_events(job, log).key_by("key").window(job.assigner)
    if job.trigger is not None:
        windows = windows.trigger(job.trigger)
    windows = windows.allowed_lateness(job.lateness_ms).side_output_late_data(LATE)
    if job.of_functions:
        schema = pa.schema([("key", pa.string()), ("rows", pa.list_(pa.int64()))])
        return windows.process(Rows(), output_type=schema)
    return windows.aggregate(rows=collect("row"), n=count())


def late_rows(job: Job, log: pa.Table) -> list[int]:
    rows: list[int] = stream_of(job, log).execute().get_side_output(LATE).to_arrow().column("row").to_pylist()
    return rows


def check(job: Job, log: pa.Table) -> None:
    result = stream_of(job, log).execute()
    results, late = result.to_arrow().to_pylist(), result.get_side_output(LATE).to_arrow().to_pylist()
    fates: Counter[str] = Counter()
    for key in set(log.column("key").to_pylist()):
        history = stream_of(job, log).why(key)
        events = {event["event"]: event for event in history.events.to_pylist()}
        fates.update(event["fate"] for event in events.values())
        assert sorted(event["row"]["row"] for event in events.values()) == sorted(
            log.filter(pc.field("key") == key).column("row").to_pylist()
        )
        told = [
            ([events[number]["row"]["row"] for number in firing["events"]], given["rows"])
            for firing in history.firings.to_pylist()
            for given in firing["results"]
        ]
        assert [made_of for made_of, _ in told] == [rows for _, rows in told]
        assert [rows for _, rows in told] == [row["rows"] for row in results if row["key"] == key]
        if not job.of_functions:
            own = [row for row in results if row["key"] == key]
            firings = history.firings.to_pylist()
            for name in ("window_start", "window_end", "late_firing"):
                assert [each[name] for each in firings] == [row[name] for row in own]
            watermarks = [row["watermark"] if row["watermark"] > MIN_TIMESTAMP else None for row in own]
            assert [each["watermark"] for each in firings] == watermarks
        assert [event["row"]["row"] for event in events.values() if event["fate"] == "late"] == [
            row["row"] for row in late if row["key"] == key
        ]
        check_windows(job, history, events)
        check_savings(job, log, events)
    report = result.report
    assert fates["in window"] == report.windowed
    assert fates["late"] == report.late
    assert fates["in no window"] == report.in_no_window
    assert fates["filtered"] == report.filtered
    assert fates["rejected"] == report.rejected.total()


def check_windows(job: Job, history: Any, events: dict[int, Any]) -> None:
    """Where every window fires at its end, an event is in the results of the windows that took it in."""
    if job.trigger is not None or job.assigner not in FIXED:
        return
    fired: dict[int, set[tuple[int, int]]] = {}
    for firing in history.firings.to_pylist():
        for number in firing["events"]:
            fired.setdefault(number, set()).add((firing["window_start"], firing["window_end"]))
    for number, event in events.items():
        assert {(each["start"], each["end"]) for each in event["windows"]} == fired.get(number, set())


def check_savings(job: Job, log: pa.Table, events: dict[int, Any]) -> None:
    late = [event for event in events.values() if event["fate"] == "late"]
    for event in late[:2]:
        row = event["row"]["row"]
        if not event["missed_windows"]:
            assert event["saving_out_of_orderness_ms"] is event["saving_allowed_lateness_ms"] is None
            continue
        bound_ms, lateness_ms = event["saving_out_of_orderness_ms"], event["saving_allowed_lateness_ms"]
        assert row not in late_rows(job._replace(bound_ms=bound_ms), log)
        assert row in late_rows(job._replace(bound_ms=bound_ms - 1), log)
        assert row not in late_rows(job._replace(lateness_ms=lateness_ms), log)
        assert row in late_rows(job._replace(lateness_ms=lateness_ms - 1), log)


@settings(max_examples=examples(30), deadline=None)
@given(JOBS, logs())
def test_the_history_of_a_key_is_what_a_whole_replay_does_with_it(job: Job, log: pa.Table) -> None:
    check(job, log)


class Reminders(KeyedProcessFunction):
    """Remembers how much there was; tells it with each even value, and when a time has passed without an event."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.due = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Row]:
        timers = ctx.timer_service()
        if self.due.value() is not None:
            timers.delete_event_time_timer(self.due.value())
        self.due.update(ctx.timestamp() + 6)
        timers.register_event_time_timer(ctx.timestamp() + 6)
        timers.register_processing_time_timer(timers.current_processing_time() + 9)
        self.total.update((self.total.value() or 0) + value.value)
        if value.value % 2 == 0:
            yield Row(value.key, "event", value.row, self.total.value())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        yield Row(ctx.get_current_key(), ctx.time_domain().name, timestamp, self.total.value())


REMINDED = pa.schema(
    [("key", pa.string()), ("by", pa.string()), ("number", pa.int64()), ("total", pa.int64())]
)


@settings(max_examples=25, deadline=None)
@given(JOBS, logs())
def test_the_history_of_a_process_function_has_its_results_and_what_they_were_given_for(
    job: Job, log: pa.Table
) -> None:
    def reminded() -> DataStream:
        return stream_of_events(job, log).key_by("key").process(Reminders(), REMINDED)

    whole = reminded().execute()
    results = whole.to_arrow().to_pylist()
    timers = 0
    for key in set(log.column("key").to_pylist()):
        history = reminded().why(key)
        firings = history.firings.to_pylist()
        given = [(firing, row) for firing in firings for row in firing["results"]]
        assert [row for _, row in given] == [row for row in results if row["key"] == key]
        rows = {event["event"]: event["row"]["row"] for event in history.events.to_pylist()}
        for firing, row in given:
            expected = rows[firing["event"]] if row["by"] == "event" else firing["timer"]
            assert (row["number"], row["by"] == "event") == (expected, firing["cause"] == "event")
        timers += history.timers.column("action").to_pylist().count("fired")
    assert timers == whole.report.event_time_timers + whole.report.processing_time_timers
