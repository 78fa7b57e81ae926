"""What windows give when they fire again: all of it, with the last result withdrawn, or the difference."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, max_, sum_
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    CumulativeEventTimeWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
)
from flinkcore.datastream.windowed_streams import WindowedStream
from flinkcore.errors import ConfigurationError

TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
LATE = {"key": ["a"] * 4, "ts": [1, 30, 4, 2], "value": [1, 2, 3, 4]}


def events(log: dict[str, list[Any]]) -> DataStream:
    """Rows arrive a millisecond apart, and so do watermarks."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    return env.from_event_log(
        pa.table(log), timestamp="ts", integer_times=True
    ).assign_timestamps_and_watermarks(strategy)


def windowed(log: dict[str, list[Any]], assigner: Any) -> WindowedStream:
    return events(log).key_by("key").window(assigner).allowed_lateness(40)


def rows(stream: DataStream, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in stream.to_arrow().to_pylist()]


def test_windows_without_keys_withdraw_results_and_give_differences_as_those_of_one_key_do() -> None:
    columns = ("window_start", "n", "late_firing")
    of_all = events(LATE).window_all(TUMBLING).allowed_lateness(40)
    retracting = of_all.retracting().aggregate(n=count())
    of_one_key = windowed(LATE, TUMBLING).retracting().aggregate(n=count())
    assert rows(retracting, "row_kind", *columns) == rows(of_one_key, "row_kind", *columns)
    delta = windowed(LATE, TUMBLING).delta().aggregate(n=count())
    assert rows(of_all.delta().aggregate(n=count()), *columns) == rows(delta, *columns)


def test_a_late_row_withdraws_the_last_result_before_the_new_one() -> None:
    stream = windowed(LATE, TUMBLING).retracting().aggregate(values=collect("value"))
    assert rows(stream, "row_kind", "window_start", "values", "late_firing") == [
        ("+I", 0, [1], False),
        ("-U", 0, [1], True),
        ("+U", 0, [1, 3], True),
        ("-U", 0, [1, 3], True),
        ("+U", 0, [1, 3, 4], True),
        ("+I", 30, [2], False),
    ]


def test_sessions_that_merge_withdraw_the_results_of_all_that_had_fired() -> None:
    log = {"key": ["a"] * 4, "ts": [1, 8, 30, 5], "value": [1, 2, 3, 4]}
    stream = windowed(log, SESSIONS).retracting().aggregate(values=collect("value"))
    assert rows(stream, "row_kind", "window_start", "window_end", "values") == [
        ("+I", 1, 6, [1]),
        ("+I", 8, 13, [2]),
        ("-D", 1, 6, [1]),
        ("-D", 8, 13, [2]),
        ("+I", 1, 13, [1, 2, 4]),
        ("+I", 30, 35, [3]),
    ]


def test_triggers_that_fire_again_withdraw_too() -> None:
    log = {"key": ["a"] * 4, "ts": [1, 2, 3, 4], "value": [1, 2, 3, 4]}
    for assigner, kinds in ((GlobalWindows.create(), ("+I", "-U", "+U")), (SESSIONS, ("+I", "-D", "+I"))):
        stream = (
            windowed(log, assigner).trigger(CountTrigger.of(2)).retracting().aggregate(n=collect("value"))
        )
        assert rows(stream, "row_kind", "n") == list(zip(kinds, [[1, 2], [1, 2], [1, 2, 3, 4]], strict=True))


def test_differences_are_those_to_the_last_firing() -> None:
    stream = windowed(LATE, TUMBLING).delta().aggregate(n=count(), total=sum_("value"))
    assert rows(stream, "window_start", "n", "total") == [(0, 1, 1), (0, 1, 3), (0, 1, 4), (30, 1, 2)]


@pytest.mark.parametrize(
    "assigner",
    [
        TUMBLING,
        SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(4)),
        CumulativeEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(4)),
    ],
    ids=["tumbling", "sliding", "cumulate"],
)
@pytest.mark.parametrize(
    "trigger", [None, CountTrigger.of(2), ContinuousEventTimeTrigger.of(Time.milliseconds(3))]
)
def test_differences_add_up_to_the_results_that_are_not_withdrawn(assigner: Any, trigger: Any) -> None:
    log = {
        "ts": [(i * 37) % 50 + i for i in range(300)],
        "key": [f"k{i * 7 % 3}" for i in range(300)],
        "value": list(range(300)),
    }
    windows = windowed(log, assigner) if trigger is None else windowed(log, assigner).trigger(trigger)
    sums: Counter[tuple[Any, ...]] = Counter()
    for *window, total in rows(windows.delta().aggregate(total=sum_("value")), "key", "window_end", "total"):
        sums[tuple(window)] += total
    standing: dict[tuple[Any, ...], int] = {}
    for kind, *window, total in rows(
        windows.retracting().aggregate(total=sum_("value")), "row_kind", "key", "window_end", "total"
    ):
        if kind == "-U":
            assert standing.pop(tuple(window)) == total
        else:
            standing[tuple(window)] = total
    assert len(standing) > 50
    assert dict(sums) == standing


def test_what_is_withdrawn_is_counted_by_itself() -> None:
    result = windowed(LATE, TUMBLING).retracting().aggregate(n=count()).execute()
    assert result.to_arrow().num_rows == 6
    assert (result.report.on_time_firings, result.report.late_firings, result.report.retractions) == (2, 2, 2)
    assert "4 results: 2 on time, 2 fired by late events; 2 withdrawn" in str(result.report)


@pytest.mark.parametrize(
    ("aggregate", "problem"),
    [
        (lambda w: w(SESSIONS).delta().aggregate(n=count()), "windows that merge have no difference"),
        (
            lambda w: w(TUMBLING).delta().aggregate(n=count(), m=max_("value")),
            r"m = max\(value\) has no difference",
        ),
        (
            lambda w: (
                w(TUMBLING).trigger(PurgingTrigger.of(EventTimeTrigger())).retracting().aggregate(n=count())
            ),
            "retracting windows remember what they gave",
        ),
        (
            lambda w: w(TUMBLING).retracting().aggregate(row_kind=count()),
            "an aggregate cannot be named 'row_kind'",
        ),
        (
            lambda w: w(TUMBLING).delta().reduce(lambda a, b: a, output_type=pa.schema([("n", pa.int64())])),
            "a function gives what it gives",
        ),
    ],
)
def test_what_cannot_be_is_refused(aggregate: Callable[[Any], DataStream], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        aggregate(lambda assigner: windowed(LATE, assigner))


WITHDRAWN = (
    r"reads withdrawn rows \(row_kind -U and -D\) as ordinary ones: take delta\(\) .* filter by row_kind"
)


def summed(results: DataStream) -> list[tuple[Any, ...]]:
    counted = results.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    return rows(counted.aggregate(n=sum_("n")), "n")


def test_another_operator_behind_results_that_are_withdrawn_is_warned_of() -> None:
    results = windowed(LATE, TUMBLING).retracting().aggregate(n=count())
    with pytest.warns(UserWarning, match=WITHDRAWN):
        assert summed(results) == [(10,)]
    assert summed(windowed(LATE, TUMBLING).delta().aggregate(n=count())) == [(4,)]


def test_what_looks_at_the_row_kind_is_not_warned_of() -> None:
    results = windowed(LATE, TUMBLING).retracting().aggregate(n=count())
    signed = pc.if_else(
        pc.is_in(pc.field("row_kind"), pa.array(["-U", "-D"])), pc.field("n") * -1, pc.field("n")
    )
    assert summed(results.with_columns(n=signed)) == [(4,)]
    assert summed(results.filter(pc.field("row_kind") == "+I")) == [(2,)]
    by_kind = results.key_by("row_kind").window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    assert sorted(rows(by_kind.aggregate(m=count()), "row_kind", "m")) == [("+I", 2), ("+U", 2), ("-U", 2)]


def test_the_name_row_kind_is_free_where_nothing_is_withdrawn() -> None:
    assert (
        "row_kind"
        in windowed(LATE, TUMBLING).accumulating().aggregate(row_kind=count()).to_arrow().column_names
    )


def test_the_mode_is_explained() -> None:
    assert ", retracting: n = count()" in windowed(LATE, TUMBLING).retracting().aggregate(n=count()).explain()
