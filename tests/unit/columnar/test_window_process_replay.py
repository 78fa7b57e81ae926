"""Functions over windows in embedded replays: results, late rows, the clock, settings, and the report."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from jobs.window_programs import Count, Given

from flinkcore.common import Duration, OutputTag, Row, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowContext,
    WindowFunction,
)
from flinkcore.datastream.window import (
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError, UserCodeError

# arrival, event time, user, value
EVENTS = [
    (1, 1, "a", 1),
    (2, 3, "b", 2),
    (3, 12, "a", 3),
    (4, 2, "a", 4),
    (5, 25, "b", 5),
    (6, 4, "a", 6),
    (7, 8, "b", 7),
]
TABLE = pa.table(dict(zip(("arr", "ts", "user", "v"), map(list, zip(*EVENTS, strict=True)), strict=True)))
LATE, SIDE = OutputTag("late"), OutputTag("side", pa.schema({"text": pa.string()}))
TEN = TumblingEventTimeWindows(10)
WINDOW_OF_VALUES = pa.schema({"user": pa.string(), "start": pa.int64(), "values": pa.list_(pa.int64())})


def log(parallelism: int = 1, table: pa.Table = TABLE) -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return env.from_event_log(
        table, timestamp="ts", integer_times=True, arrival="arr"
    ).assign_timestamps_and_watermarks(strategy)


def keyed(parallelism: int = 1) -> KeyedStream:
    return log(parallelism).key_by("user")


class Values(ProcessWindowFunction[Row, Any, str, Any]):
    def process(self, key: str, context: WindowContext[Any], elements: Iterable[Row]) -> Iterator[Any]:
        yield key, getattr(context.window(), "start", None), [element.v for element in elements]


class Sum(ReduceFunction[Row]):
    def reduce(self, value1: Row, value2: Row) -> Row:
        return Row(arr=value2.arr, ts=value2.ts, user=value1.user, v=value1.v + value2.v)


def rows(stream: DataStream) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in stream.to_arrow().to_pylist()]


# ---- results ----


def test_a_reduce_function_gives_rows_like_those_that_came() -> None:
    reduced = keyed().window(TEN).reduce(Sum())
    assert reduced.to_arrow().schema == TABLE.schema
    assert rows(reduced) == [(1, 1, "a", 1), (2, 3, "b", 2), (3, 12, "a", 3), (5, 25, "b", 5)]


def test_a_plain_function_reduces_too_and_a_window_function_gets_the_one_row() -> None:
    class OfOne(WindowFunction[Row, Any, str, Any]):
        def apply(self, key: str, window: Any, inputs: Iterable[Row]) -> Any:
            return [(key, window.start, [row.v for row in inputs])]

    add = lambda a, b: Row(v=a.v + b.v)  # noqa: E731
    windows = keyed().window(TumblingEventTimeWindows(30))
    assert sorted(rows(windows.reduce(add, OfOne(), WINDOW_OF_VALUES))) == [("a", 0, [14]), ("b", 0, [14])]
    assert sorted(rows(windows.apply(OfOne(), WINDOW_OF_VALUES))) == [
        ("a", 0, [1, 3, 4, 6]),
        ("b", 0, [2, 5, 7]),
    ]


def test_an_aggregate_function_gives_a_column() -> None:
    counted = (
        keyed()
        .window(EventTimeSessionWindows(10))
        .aggregate(Count(), output_type=pa.schema({"n": pa.int32()}))
    )
    assert counted.to_arrow().schema == pa.schema({"n": pa.int32()})
    assert sorted(rows(counted)) == [(1,), (1,), (1,), (2,)]


def test_results_can_have_the_largest_timestamp_of_the_window_as_a_column() -> None:
    def both(context: WindowContext[Any], elements: list[Row]) -> Any:
        yield len(elements)
        yield SIDE, str(len(elements))

    stream = keyed().window(TEN).process(Given(both), pa.schema({"n": pa.int64()}), timestamp_column="at")
    assert rows(stream) == [(1, 9), (1, 9), (1, 19), (1, 29)]
    assert stream.get_side_output(SIDE).to_arrow().to_pylist()[0] == {"text": "1", "at": 9}


def test_late_rows_go_out_as_they_came_and_the_report_counts_them() -> None:
    windows = keyed().window(TEN).allowed_lateness(5).side_output_late_data(LATE)
    result = windows.process(Values(), WINDOW_OF_VALUES, side_outputs=[SIDE]).execute()
    assert sorted(map(tuple, (row.values() for row in result.to_arrow().to_pylist()))) == [
        ("a", 0, [1]),
        ("a", 0, [1, 4]),
        ("a", 10, [3]),
        ("b", 0, [2]),
        ("b", 20, [5]),
    ]
    late = result.get_side_output(LATE).to_arrow()
    assert late.schema == TABLE.schema
    assert late.to_pylist() == TABLE.slice(5).to_pylist()
    report = result.report
    assert (report.windowed, report.late, report.processed, report.results) == (5, 2, 0, 5)
    assert "5 in windows" in str(report)
    assert "5 results, 0 rows in side outputs" in str(report)


def test_rows_between_windows_are_counted() -> None:
    sliding = keyed().window(SlidingEventTimeWindows(2, 10))
    report = sliding.process(Values(), WINDOW_OF_VALUES).execute()
    report.to_arrow()
    assert (report.report.in_no_window, report.report.windowed, report.report.late) == (3, 1, 3)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_windows_of_all_rows_are_in_one_place(parallelism: int) -> None:
    class OfAll(ProcessAllWindowFunction[Row, Any, Any]):
        def process(self, context: WindowContext[Any], elements: Iterable[Row]) -> Any:
            yield context.window().start, [element.v for element in elements]

    class Applied(AllWindowFunction[Row, Any, Any]):
        def apply(self, window: Any, inputs: Iterable[Row]) -> Any:
            return [(window.start, [element.v for element in inputs])]

    schema = pa.schema({"start": pa.int64(), "values": pa.list_(pa.int64())})
    expected = [(0, [1, 2]), (10, [3]), (20, [5])]
    assert rows(log(parallelism).window_all(TEN).process(OfAll(), schema)) == expected
    assert rows(log(parallelism).window_all(TEN).apply(Applied(), schema)) == expected
    late = log(parallelism).window_all(TEN).side_output_late_data(LATE).process(OfAll(), schema)
    windows = log(parallelism).window_all(TEN).allowed_lateness(5)
    counted = windows.aggregate(Count(), output_type=pa.schema({"n": pa.int64()}))
    assert rows(counted) == [(2,), (3,), (1,), (1,)]
    twice = windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(1)).reduce(Sum())
    assert [row[-1] for row in rows(twice)] == [2]
    assert late.get_side_output(LATE).to_arrow().column("v").to_pylist() == [4, 6, 7]


def test_count_windows_need_no_watermarks_and_fire_when_full() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(TABLE, timestamp="ts", integer_times=True, arrival="arr").key_by("user")
    assert rows(stream.count_window(2).process(Values(), WINDOW_OF_VALUES)) == [
        ("a", None, [1, 3]),
        ("b", None, [2, 5]),
        ("a", None, [4, 6]),
    ]
    assert rows(stream.count_window(3, 1).process(Values(), WINDOW_OF_VALUES)) == [
        ("a", None, [1, 3, 4]),
        ("a", None, [3, 4, 6]),
        ("b", None, [2, 5, 7]),
    ]


def test_windows_of_processing_time_end_on_the_replay_clock() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(TABLE, timestamp="ts", integer_times=True, arrival="arr").key_by("user")
    windows = stream.window(TumblingProcessingTimeWindows(3)).process(Values(), WINDOW_OF_VALUES)
    # The window [6, 9) would end behind the last arrival.
    assert sorted(rows(windows)) == [("a", 0, [1]), ("a", 3, [3, 4]), ("b", 0, [2]), ("b", 3, [5])]
    report = windows.execute()
    report.to_arrow()
    assert report.report.pending_processing_time_timers == 2


def test_triggers_and_evictors_of_other_windows_run() -> None:
    windows = keyed().window(GlobalWindows.create())
    last_two = (
        windows.trigger(CountTrigger.of(1)).evictor(CountEvictor.of(2)).process(Values(), WINDOW_OF_VALUES)
    )
    assert [values for user, _, values in rows(last_two) if user == "b"] == [[2], [2, 5], [5, 7]]
    purged = windows.trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Values(), WINDOW_OF_VALUES)
    assert [values for user, _, values in rows(purged) if user == "a"] == [[1, 3], [4, 6]]
    ticking = windows.trigger(ContinuousProcessingTimeTrigger.of(Time.milliseconds(2)))
    assert [
        values for user, _, values in rows(ticking.process(Values(), WINDOW_OF_VALUES)) if user == "b"
    ] == [
        [2],
        [2, 5],
    ]


def test_ticks_of_processing_time_end_with_a_window_that_lies_behind_it() -> None:
    late_by_far = pa.table({"arr": [100, 103, 200], "ts": [1, 3, 2], "user": ["a"] * 3, "v": [1, 2, 3]})
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    stream = env.from_event_log(
        late_by_far, timestamp="ts", integer_times=True, arrival="arr"
    ).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by("user").window(TEN).trigger(ContinuousProcessingTimeTrigger(2))
    given = windows.process(Values(), WINDOW_OF_VALUES)
    assert rows(given) == [("a", 0, [1]), ("a", 0, [1, 2]), ("a", 0, [1, 2, 3])]  # each element once


@pytest.mark.parametrize("stagger", [WindowStagger.RANDOM, WindowStagger.NATURAL])
def test_staggered_windows_do_not_depend_on_the_parallelism(stagger: WindowStagger) -> None:
    windows = TumblingEventTimeWindows(10, 0, stagger)
    results = [
        sorted(rows(keyed(parallelism).window(windows).process(Values(), WINDOW_OF_VALUES)))
        for parallelism in (1, 3)
    ]
    assert results[0] == results[1]
    assert any(start % 10 for _, start, _ in results[0])


def test_two_threads_give_what_one_does() -> None:
    results = [
        sorted(
            rows(keyed(parallelism).window(EventTimeSessionWindows(4)).process(Values(), WINDOW_OF_VALUES))
        )
        for parallelism in (1, 2)
    ]
    assert results[0] == results[1]


def test_each_run_starts_with_the_functions_as_they_were_given() -> None:
    class Remembers(Values):
        def __init__(self) -> None:
            self.seen = 0

        def process(self, key: str, context: WindowContext[Any], elements: Iterable[Row]) -> Iterator[Any]:
            self.seen += 1
            yield key, self.seen, []

    stream = keyed().window(TEN).process(Remembers(), WINDOW_OF_VALUES)
    assert rows(stream) == rows(stream)


# ---- what explain says ----


def test_explain_tells_which_path_windows_take_and_why() -> None:
    windows = keyed().window(TEN).allowed_lateness(5)
    assert (
        windows.aggregate(n=count()).explain().splitlines()[-1].startswith("  4. [columnar] tumbling windows")
    )
    by_functions = (
        windows.aggregate(Count(), Values(), output_type=WINDOW_OF_VALUES).explain().splitlines()[-1]
    )
    assert by_functions == (
        "  4. [rows] tumbling windows of 10 ms, allowed lateness 5 ms, late rows counted and dropped: user, start, "
        "values; row by row, as Count and Values in Python"
    )
    evicting = keyed().window(GlobalWindows.create()).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(2))
    text = evicting.reduce(Sum()).explain().splitlines()[-1]
    assert "the global window, trigger CountTrigger(window_size=3), evictor CountEvictor(max_count=2" in text
    assert "the columns of the rows; row by row, as Sum in Python" in text

    class OfAll(AllWindowFunction[Any, Any, Any]):
        def apply(self, window: Any, inputs: Any) -> Any:
            return []

    assert (
        "[columnar] all rows under one key"
        in log().window_all(TEN).apply(OfAll(), WINDOW_OF_VALUES).explain()
    )


# ---- what is refused ----


class NoWindowFunction(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        return []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: w.process(Values()).to_arrow(), "the job runs element by element"),
        (lambda w: w.aggregate(Count()).to_arrow(), "the job runs element by element"),
        (lambda w: w.process(Values(), {"user": "string"}), "takes an output_type that is a pyarrow.Schema"),
        (
            lambda w: w.process(Count(), WINDOW_OF_VALUES),
            "is a ProcessWindowFunction or a WindowFunction, not",
        ),
        (lambda w: w.process(NoWindowFunction(), WINDOW_OF_VALUES), "is a ProcessWindowFunction or a Window"),
        (
            lambda w: w.apply(None, WINDOW_OF_VALUES),
            "is a ProcessWindowFunction or a WindowFunction, not None",
        ),
        (
            lambda w: w.reduce(Sum(), 5, WINDOW_OF_VALUES),
            "is a ProcessWindowFunction or a WindowFunction, not 5",
        ),
        (lambda w: w.reduce(5), "takes a ReduceFunction or a function of two values, not 5"),
        (lambda w: w.aggregate(5), "takes an AggregateFunction, or aggregates of columns by name"),
        (
            lambda w: w.aggregate(Count(), n=count()),
            r"belongs to an AggregateFunction\. Give one instead",
        ),
        (
            lambda w: w.aggregate(output_type=WINDOW_OF_VALUES),
            r"belongs to an AggregateFunction\. Give one; no",
        ),
        (lambda w: w.evictor(5), "evictor takes one such as"),
        (lambda w: w.trigger(5), "trigger takes one such as"),
        (lambda w: w.allowed_lateness(-1), "allowed_lateness cannot be negative"),
        (
            lambda w: w.side_output_late_data(SIDE).process(Values(), WINDOW_OF_VALUES, side_outputs=[SIDE]),
            "'side' is named for both late rows and the function's",
        ),
    ],
)
def test_windows_that_cannot_run_are_refused_when_they_are_described(
    make: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(keyed().window(TEN))


@pytest.mark.parametrize(
    ("call", "make"),
    [
        ("process", lambda w, type_info, tags: w.process(Values(), type_info, side_outputs=tags)),
        ("apply", lambda w, type_info, tags: w.apply(Values(), type_info, side_outputs=tags)),
        ("reduce", lambda w, type_info, tags: w.reduce(Sum(), Values(), type_info, side_outputs=tags)),
        (
            "aggregate",
            lambda w, type_info, tags: w.aggregate(
                Count(), Values(), output_type=type_info, side_outputs=tags
            ),
        ),
    ],
)
def test_what_is_refused_of_outputs_names_the_method_that_was_called(call: str, make: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^the output_type of {call} needs at least one column"):
        make(keyed().window(TEN), pa.schema([]), ())
    with pytest.raises(ConfigurationError, match=f"^{call} names the side output 'side' twice"):
        make(keyed().window(TEN), WINDOW_OF_VALUES, [SIDE, SIDE])
    with pytest.raises(ConfigurationError, match=f"of OutputTag.'bare'., a side output of {call}, is a pya"):
        make(keyed().window(TEN), WINDOW_OF_VALUES, [OutputTag("bare")])


def test_windows_that_merge_need_a_trigger_that_does() -> None:
    with pytest.raises(ConfigurationError, match="NeverTrigger does not support merging"):
        keyed().window(EventTimeSessionWindows(5)).trigger(NeverTrigger())


def test_windows_of_all_rows_take_functions_of_their_own() -> None:
    with pytest.raises(ConfigurationError, match="is a ProcessAllWindowFunction or a AllWindowFunction"):
        log().window_all(TEN).process(Values(), WINDOW_OF_VALUES)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="takes an AggregateFunction, or aggregates of columns"):
        log().window_all(TEN).aggregate(5, output_type=WINDOW_OF_VALUES)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="window_all takes an assigner"):
        log().window_all(10)  # type: ignore[arg-type]


def test_windows_of_event_time_need_watermarks() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(TABLE, timestamp="ts", integer_times=True, arrival="arr").key_by("user")
    with pytest.raises(
        ConfigurationError, match="windows need event time: call assign_timestamps_and_watermarks"
    ):
        stream.window(TEN).process(Values(), WINDOW_OF_VALUES).execute()


# ---- what fails ----


def test_a_function_that_raises_is_named_with_window_and_key() -> None:
    def fails(context: WindowContext[Any], elements: list[Row]) -> Any:
        raise ValueError("no")

    stream = keyed().window(TEN).process(Given(fails), WINDOW_OF_VALUES)
    with pytest.raises(UserCodeError, match=r"Given.process failed at the window TimeWindow.* of the key"):
        stream.to_arrow()


def test_a_function_cannot_give_rows_of_its_own_to_the_side_output_of_late_rows() -> None:
    windows = keyed().window(TEN).side_output_late_data(LATE)
    stream = windows.process(Given(lambda context, elements: [(LATE, ("a", 1))]), WINDOW_OF_VALUES)
    with pytest.raises(
        UserCodeError, match=r"Given gave \('a', 1\) to the side output 'late', .* of late rows"
    ):
        stream.to_arrow()


@pytest.mark.parametrize("result", [("a", 1), "abc", ("a", "x", [])])
def test_a_result_of_another_type_is_an_error_that_names_function_and_key(result: Any) -> None:
    stream = keyed().window(TEN).process(Given(lambda context, elements: [result]), WINDOW_OF_VALUES)
    with pytest.raises(UserCodeError, match=r"the output of Given got .* of the key 'a'"):
        stream.to_arrow()


def test_a_reduced_row_of_another_form_is_an_error() -> None:
    stream = keyed().window(TumblingEventTimeWindows(30)).reduce(lambda a, b: Row(v=1))
    with pytest.raises(UserCodeError, match=r"output of .*lambda> got .* without the columns arr, ts, user"):
        stream.to_arrow()


def test_functions_that_cannot_be_copied_are_an_error() -> None:
    class Uncopyable(Values):
        def __init__(self) -> None:
            self.generator = iter(lambda: 1, 2)
            self.lock = (number for number in ())

    stream = keyed().window(TEN).process(Uncopyable(), WINDOW_OF_VALUES)
    with pytest.raises(UserCodeError, match="cannot be copied"):
        stream.to_arrow()


def test_rows_whose_windows_are_beyond_64_bits_are_bad_rows() -> None:
    table = pa.concat_tables([TABLE, pa.table({"arr": [8], "ts": [2**63 - 1], "user": ["a"], "v": [1]})])
    bad = OutputTag("bad")
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="arr", on_bad_row=bad)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30))
    windows = stream.assign_timestamps_and_watermarks(strategy).key_by("user").window(TEN)
    result = windows.process(Values(), WINDOW_OF_VALUES).execute()
    assert result.to_arrow().num_rows == 4
    assert result.get_side_output(bad).to_arrow().column("ts").to_pylist() == [2**63 - 1]


def test_columns_computed_before_the_key_reach_the_functions() -> None:
    stream = (
        log()
        .with_columns(w=pc.multiply(pc.field("v"), 10))
        .key_by("user")
        .window(TumblingEventTimeWindows(30))
    )
    sums = stream.process(
        Given(lambda context, elements: [sum(element.w for element in elements)]),
        pa.schema({"sum": pa.int64()}),
    )
    assert sorted(rows(sums)) == [(140,), (140,)]


def test_a_custom_window_that_is_no_time_window_runs() -> None:
    class Parity(Window):
        def __init__(self, rest: int) -> None:
            self.rest = rest

        def max_timestamp(self) -> int:
            return 2**63 - 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Parity) and other.rest == self.rest

        def __hash__(self) -> int:
            return self.rest

    class ByParity(GlobalWindows):
        def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
            return [Parity(element.v % 2)]

    windows = (
        keyed()
        .window(ByParity())
        .trigger(CountTrigger.of(2))
        .process(
            Given(lambda context, elements: [(context.window().rest, [element.v for element in elements])]),
            pa.schema({"rest": pa.int64(), "values": pa.list_(pa.int64())}),
        )
    )
    assert sorted(rows(windows)) == [(0, [4, 6]), (1, [1, 3]), (1, [5, 7])]
