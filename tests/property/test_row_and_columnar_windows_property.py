"""The row path and the columnar path give the same rows for random jobs that both can run."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast
from unittest.mock import patch

import pyarrow as pa
import pytest
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.columnar.operator_plans import native_windows
from flinkcore.columnar.stages import result_batches
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, OutputTag, Row, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, max_, min_, sum_
from flinkcore.datastream.functions import (
    AggregateFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
)
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.datastream.windowed_streams import WindowedStream
from flinkcore.errors import DataError

LATE = OutputTag("late")
RESULT = pa.schema(
    [
        ("user", pa.string()),
        *(
            (name, pa.int64())
            for name in ("window_start", "window_end", "n", "total", "low", "high", "watermark")
        ),
    ]
)
Accumulator = tuple[int, int, int, int]
Window = tuple[WindowAssigner[Any, Any], Trigger[Any, Any] | None, Evictor[Any] | None]


def bounds(context: WindowContext[Any]) -> tuple[int | None, int | None]:
    window = context.window()
    return (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)


class Statistics(AggregateFunction[Row, Accumulator | None, Accumulator | None]):
    def create_accumulator(self) -> Accumulator:
        return 0, 0, 2**62, -(2**62)

    def add(self, value: Row, accumulator: Any) -> Accumulator:
        n, total, low, high = accumulator
        return n + 1, total + value.v, min(low, value.v), max(high, value.v)

    def get_result(self, accumulator: Any) -> Accumulator:
        return accumulator  # type: ignore[no-any-return]

    def merge(self, acc_a: Any, acc_b: Any) -> Accumulator:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1], min(acc_a[2], acc_b[2]), max(acc_a[3], acc_b[3])


class WithWindow(ProcessWindowFunction[Any, Any, str, Any]):
    def process(self, key: str, context: WindowContext[Any], elements: Iterable[Any]) -> Iterator[Any]:
        (statistics,) = elements
        yield (key, *bounds(context), *statistics, context.current_watermark())


class OfElements(ProcessWindowFunction[Any, Any, str, Any]):
    """The same, of the rows themselves."""

    def process(self, key: str, context: WindowContext[Any], elements: Iterable[Any]) -> Iterator[Any]:
        values = [element.v for element in elements]
        statistics = len(values), sum(values), min(values), max(values)
        yield (key, *bounds(context), *statistics, context.current_watermark())


lengths = st.integers(1, 12)
tumbling = st.builds(
    lambda size, offset: TumblingEventTimeWindows(size, offset % size), lengths, st.integers(0, 11)
)
sliding = st.builds(
    lambda size, slide, offset: SlidingEventTimeWindows(size, slide, offset % slide),
    lengths,
    lengths,
    st.integers(0, 11),
)
sessions = st.builds(EventTimeSessionWindows, st.integers(1, 8))
cumulative = st.builds(
    lambda step, steps, offset: CumulativeEventTimeWindows(step * steps, step, offset % (step * steps)),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 9),
)
fired = st.one_of(
    st.none(),
    st.builds(CountTrigger, st.integers(1, 4)),
    st.builds(ContinuousEventTimeTrigger, st.integers(1, 5)),
)
triggers = st.one_of(
    fired,
    st.builds(lambda trigger: PurgingTrigger(EventTimeTrigger() if trigger is None else trigger), fired),
)
of_time = st.tuples(st.one_of(tumbling, sliding, cumulative, sessions), triggers, st.none())
counts = st.builds(CountTrigger, st.integers(0, 5))
counted = st.one_of(
    st.tuples(st.builds(CountTumblingWindowAssigner, st.integers(1, 4)), st.none(), st.none()),
    st.tuples(
        st.builds(CountSlidingWindowAssigner, st.integers(1, 7), st.integers(1, 5)), st.none(), st.none()
    ),
    st.tuples(st.just(GlobalWindows.create()), triggers.filter(bool), st.none()),
    st.tuples(
        st.just(GlobalWindows.create()),
        st.one_of(counts, st.builds(PurgingTrigger, counts)),
        st.builds(CountEvictor, st.integers(0, 7), st.booleans()).filter(
            lambda evictor: evictor.max_count or evictor.do_evict_after
        ),
    ),
    st.tuples(st.just(GlobalWindows.create_with_end_of_stream_trigger()), st.none(), st.none()),
)
windows = st.one_of(of_time, counted)
events = st.lists(
    st.tuples(
        st.integers(0, 3),  # arrival after the one before
        st.integers(0, 1),  # split
        st.integers(-9, 9),  # timestamp after arrival
        st.sampled_from("abc"),
        st.integers(-5, 5),
    ),
    max_size=30,
)


def table_of(drawn: list[tuple[int, int, int, str, int]]) -> pa.Table:
    rows, arrival = [], 0
    for pause, split, delay, user, value in drawn:
        arrival += pause
        rows.append({"arr": arrival, "split": split, "ts": arrival + delay, "user": user, "v": value})
    schema = pa.schema(
        [
            ("arr", pa.int64()),
            ("split", pa.int64()),
            ("ts", pa.int64()),
            ("user", pa.string()),
            ("v", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema)


def log_of(
    table: pa.Table, bound: int, interval: int, parallelism: int, on_bad_row: Literal["fail", "drop"] = "fail"
) -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(interval)
    env.set_parallelism(parallelism)
    log = env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="arr", split="split", on_bad_row=on_bad_row
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return log.assign_timestamps_and_watermarks(strategy)


def windowed(
    table: pa.Table,
    assigner: WindowAssigner[Any, Any],
    trigger: Trigger[Any, Any] | None,
    evictor: Evictor[Any] | None,
    lateness: int,
    has_late_output: bool,
    bound: int,
    interval: int,
    parallelism: int,
    on_bad_row: Literal["fail", "drop"] = "fail",
) -> WindowedStream:
    stream = log_of(table, bound, interval, parallelism, on_bad_row).key_by("user").window(assigner)
    stream = stream.allowed_lateness(lateness)
    stream = stream if trigger is None else stream.trigger(trigger)
    stream = stream if evictor is None else stream.evictor(evictor)
    return stream.side_output_late_data(LATE) if has_late_output else stream


def by_window(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Firings of each window in order; those of timers at one time have none among windows."""
    found = defaultdict(list)
    for row in rows:
        row.pop("late_firing", None)
        found[row.get("user"), row.get("window_start"), row.get("window_end")].append(row)
    return found


def assert_equal_counts(rows: Any, columnar: Any) -> None:
    for name in ("windowed", "late", "in_no_window", "events_read"):
        assert getattr(rows.report, name) == getattr(columnar.report, name)


@settings(deadline=None, max_examples=examples(60))
@given(
    events,
    windows,
    st.integers(0, 6),
    st.booleans(),
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([1, 100]),
    st.sampled_from([1, 2, 1 << 15]),
)
def test_functions_over_windows_give_what_aggregates_of_columns_give(
    drawn: list[tuple[int, int, int, str, int]],
    window: Window,
    lateness: int,
    has_late_output: bool,
    bound: int,
    interval: int,
    parallelism: int,
    pre_aggregates: bool,
    sharing_pays: int,
    result_rows: int,
) -> None:
    stream = windowed(table_of(drawn), *window, lateness, has_late_output, bound, interval, parallelism)
    with patch.object(native_windows, "_SHARING_PAYS", sharing_pays):
        columnar = stream.aggregate(n=count(), total=sum_("v"), low=min_("v"), high=max_("v")).execute()
        columnar.to_arrow()
    if pre_aggregates:
        rows = stream.aggregate(Statistics(), WithWindow(), output_type=RESULT).execute()
    else:
        rows = stream.process(OfElements(), RESULT).execute()
    with patch.object(result_batches, "BATCH_ROWS", result_rows):
        by_functions = rows.to_arrow()
    assert by_window(by_functions.to_pylist()) == by_window(columnar.to_arrow().to_pylist())
    if has_late_output:
        late = [each.get_side_output(LATE).to_arrow() for each in (rows, columnar)]
        assert late[0].schema == late[1].schema
        assert by_window(late[0].to_pylist()) == by_window(late[1].to_pylist())
    assert_equal_counts(rows, columnar)


last_steps = st.integers(0, 30)
times_near_the_ends = st.lists(
    st.one_of(
        last_steps.map(lambda step: MIN_TIMESTAMP + 1 + step),
        last_steps.map(lambda step: MAX_TIMESTAMP - step),
    ),
    max_size=20,
)
long_tumbling = st.builds(
    lambda size, offset: TumblingEventTimeWindows(size, offset % size),
    st.integers(2**61, MAX_TIMESTAMP),
    st.integers(0, 2**62),
)


def has_bounds(assigner: WindowAssigner[Any, Any], timestamp: int) -> bool:
    try:
        assigner.assign_windows(None, timestamp, cast(Any, None))
    except DataError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:column 'ts' was read as milliseconds")
@settings(deadline=None, max_examples=examples(50))
@given(
    times_near_the_ends,
    st.one_of(of_time, st.tuples(long_tumbling, st.none(), st.none())),  # others might fire without end
    st.one_of(st.integers(0, 6), st.integers(MAX_TIMESTAMP - 6, MAX_TIMESTAMP)),
    st.booleans(),
    st.integers(0, 30),
    st.sampled_from([1, 100]),
)
def test_functions_over_windows_and_aggregates_of_columns_take_the_same_rows_near_the_ends_of_64_bits(
    times: list[int],
    window: Window,
    lateness: int,
    has_late_output: bool,
    bound: int,
    sharing_pays: int,
) -> None:
    drawn = [(1, 0, 0, "a", number) for number in range(len(times))]
    table = table_of(drawn).set_column(2, "ts", pa.array(times, pa.int64()))
    stream = windowed(table, *window, lateness, has_late_output, bound, 1, 1, on_bad_row="drop")
    with patch.object(native_windows, "_SHARING_PAYS", sharing_pays):
        columnar = stream.aggregate(n=count(), total=sum_("v"), low=min_("v"), high=max_("v")).execute()
        columnar.to_arrow()
    rows = stream.process(OfElements(), RESULT).execute()
    assert by_window(rows.to_arrow().to_pylist()) == by_window(columnar.to_arrow().to_pylist())
    assert_equal_counts(rows, columnar)
    assert rows.report.rejected == columnar.report.rejected
    assert columnar.report.rejected.total() == sum(not has_bounds(window[0], time) for time in times)


class OfAllElements(ProcessAllWindowFunction[Any, Any, Any]):
    """What `OfElements` gives, without a key."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        values = [element.v for element in elements]
        yield (*bounds(context), len(values), sum(values), min(values), max(values))


@settings(deadline=None, max_examples=examples(30))
@given(
    events,
    windows,
    st.integers(0, 6),
    st.booleans(),
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(1, 2),
)
def test_functions_over_windows_of_all_rows_give_what_aggregates_of_columns_give(
    drawn: list[tuple[int, int, int, str, int]],
    window: Window,
    lateness: int,
    has_late_output: bool,
    bound: int,
    interval: int,
    parallelism: int,
) -> None:
    assigner, trigger, evictor = window
    stream = (
        log_of(table_of(drawn), bound, interval, parallelism).window_all(assigner).allowed_lateness(lateness)
    )
    stream = stream if trigger is None else stream.trigger(trigger)
    stream = stream if evictor is None else stream.evictor(evictor)
    stream = stream.side_output_late_data(LATE) if has_late_output else stream
    columnar = stream.aggregate(n=count(), total=sum_("v"), low=min_("v"), high=max_("v")).execute()
    rows = stream.process(OfAllElements(), pa.schema(list(RESULT)[1:-1])).execute()
    found = columnar.to_arrow().drop_columns(["late_firing", "watermark"])
    assert by_window(rows.to_arrow().to_pylist()) == by_window(found.to_pylist())
    counted_only = stream.aggregate(n=count()).to_arrow()
    assert counted_only["n"].to_pylist() == found["n"].to_pylist()
    if has_late_output:
        late = [each.get_side_output(LATE).to_arrow() for each in (rows, columnar)]
        assert late[0].equals(late[1])
    assert_equal_counts(rows, columnar)


class Numbers(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Row]) -> Iterator[Any]:
        yield (key, [element.number for element in elements])


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=9))
def test_sessions_that_merge_have_their_elements_in_one_order(times: list[int]) -> None:
    log = pa.table(
        {"ts": times, "at": [0] * len(times), "user": ["a"] * len(times), "number": range(len(times))}
    )
    sessions = (
        StreamExecutionEnvironment()
        .from_event_log(log, timestamp="ts", integer_times=True, arrival="at")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("user")
        .window(EventTimeSessionWindows.with_gap(Duration.of_millis(2)))
    )
    schema = pa.schema({"user": pa.string(), "numbers": pa.list_(pa.int64())})
    by_columns = sessions.aggregate(numbers=collect("number")).to_arrow()["numbers"].to_pylist()
    by_function = sessions.process(Numbers(), schema).to_arrow()["numbers"].to_pylist()
    assert by_function == by_columns
