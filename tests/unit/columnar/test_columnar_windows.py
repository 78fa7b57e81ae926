"""Windows and triggers of jobs over columns: what fires, and what is refused."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import (
    Duration,
    Time,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.aggregates import Aggregate, collect, count, max_, mean, min_, sum_
from flinkcore.datastream.graph.columnar_windows import why_not_columnar
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    EndOfStreamTrigger,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from flinkcore.errors import ConfigurationError

TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))


def job(
    log: dict[str, list[Any]],
    assigner: WindowAssigner[Any, Any],
    trigger: Any = None,
    aggregates: dict[str, Aggregate] | None = None,
    bound_ms: int = 0,
    lateness_ms: int = 0,
) -> DataStream:
    """Rows arrive a millisecond apart; watermarks come every 1 ms."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    windowed = (
        env.from_event_log(pa.table(log), timestamp="ts", integer_times=True)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(assigner)
        .allowed_lateness(lateness_ms)
    )
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    return windowed.aggregate(**(aggregates or {"values": collect("value")}))


def rows(stream: DataStream, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in stream.to_arrow().to_pylist()]


def test_cumulate_windows_start_together_and_grow_step_by_step() -> None:
    log = {"key": ["a"] * 4, "ts": [1, 5, 9, 12], "value": [1, 2, 3, 4]}
    stream = job(log, CumulativeEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(4)))
    assert rows(stream, "window_start", "window_end", "values") == [
        (0, 4, [1]),
        (0, 8, [1, 2]),
        (0, 12, [1, 2, 3]),
        (12, 16, [4]),
        (12, 20, [4]),
        (12, 24, [4]),
    ]


def test_count_windows_fire_when_full_and_need_no_watermark() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    log = pa.table({"key": ["a", "a", "b", "a", "a", "a"], "ts": range(6), "value": range(6)})
    for windowed in (
        env.from_event_log(log, timestamp="ts", integer_times=True)
        .key_by("key")
        .window(CountTumblingWindowAssigner.of(2)),
        env.from_event_log(log, timestamp="ts", integer_times=True)
        .key_by("key")
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(2))),
    ):
        stream = windowed.aggregate(values=collect("value"))
        assert rows(stream, "key", "window_start", "window_end", "values", "late_firing") == [
            ("a", None, None, [0, 1], False),
            ("a", None, None, [3, 4], False),
        ]


def test_a_count_trigger_takes_the_place_of_the_windows_own() -> None:
    log = {"key": ["a"] * 5, "ts": [1, 2, 3, 12, 30], "value": [1, 2, 3, 4, 5]}
    assert rows(job(log, TUMBLING, CountTrigger.of(2)), "window_end", "values") == [(10, [1, 2])]


def test_a_continuous_trigger_fires_before_the_end_and_at_it() -> None:
    log = {"key": ["a"] * 4, "ts": [1, 3, 7, 20], "value": [1, 2, 3, 4]}
    trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(3))
    firings = rows(job(log, TUMBLING, trigger), "window_end", "values", "watermark")
    at_end = [(30, [4], 2**63 - 1)]
    assert firings == [*[(10, [1, 2, 3], 6)] * 2, (10, [1, 2, 3], 19), *at_end * 4]
    purged = rows(job(log, TUMBLING, PurgingTrigger.of(trigger)), "window_end", "values", "watermark")
    assert purged == [(10, [1, 2, 3], 6), *at_end]


def test_global_windows_fire_at_the_end_of_the_log() -> None:
    log = {"key": ["a", "b", "a"], "ts": [1, 2, 3], "value": [1, 2, 3]}
    windows = GlobalWindows.create_with_end_of_stream_trigger()
    assert rows(job(log, windows), "key", "values") == [("a", [1, 3]), ("b", [2])]


class Ends(WatermarkGenerator[Any]):
    """Emits the maximum at an event, with more to come."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp == 2:
            output.emit_watermark(Watermark(2**63 - 1))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield key, [element.value for element in elements]


def test_rows_behind_the_maximum_watermark_wait_for_the_end_of_the_log_where_that_fires_windows() -> None:
    table = pa.table({"key": ["a"] * 4, "ts": [1, 2, 3, 4], "value": [1, 2, 3, 4]})
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = (
        env.from_event_log(table, timestamp="ts", integer_times=True)
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(Ends))
        .key_by("key")
        .window(GlobalWindows.create_with_end_of_stream_trigger())
    )
    by_function = windows.process(Values(), pa.schema({"key": pa.string(), "values": pa.list_(pa.int64())}))
    for stream in (windows.aggregate(values=collect("value")), by_function):
        assert rows(stream, "key", "values") == [("a", [1, 2]), ("a", [3, 4])]
    at_every_row = windows.trigger(EventTimeTrigger.create()).aggregate(values=collect("value"))
    assert rows(at_every_row, "values") == [([1, 2],), ([1, 2, 3],), ([1, 2, 3, 4],)]
    replaced = windows.retracting().aggregate(values=collect("value"))
    assert rows(replaced, "row_kind", "values") == [
        ("+I", [1, 2]),
        ("-U", [1, 2]),
        ("+U", [1, 2, 3, 4]),
    ]


@dataclass(frozen=True)
class Mine(CountTrigger):
    """Could do anything."""


@pytest.mark.parametrize(
    ("assigner", "trigger", "reason"),
    [
        (TUMBLING, None, None),
        (TUMBLING, PurgingTrigger.of(EventTimeTrigger()), None),
        (EventTimeSessionWindows.with_gap(Time.seconds(1)), CountTrigger.of(3), None),
        (TUMBLING, Mine(3), "the trigger Mine"),
        (TUMBLING, EndOfStreamTrigger(), "the trigger EndOfStreamTrigger"),
        (TUMBLING, ProcessingTimeTrigger.create(), "the trigger ProcessingTimeTrigger"),
        (TUMBLING, NeverTrigger(), "windows that never fire give no rows"),
        (GlobalWindows.create(), None, "windows that never fire give no rows"),
        (
            TumblingProcessingTimeWindows.of(Time.seconds(1)),
            None,
            "windows of class TumblingProcessingTimeWindows",
        ),
        (CountSlidingWindowAssigner.of(4, 2), None, None),
        (
            CountSlidingWindowAssigner.of(4, 2),
            CountTrigger.of(2),
            "only with the trigger that they have by themselves",
        ),
        (
            CountTumblingWindowAssigner.of(4),
            CountTrigger.of(2),
            "only with the trigger that they have by themselves",
        ),
        (
            TumblingEventTimeWindows.of(Time.seconds(1), window_stagger=WindowStagger.RANDOM),
            None,
            "staggered windows",
        ),
    ],
)
def test_it_is_told_why_windows_do_not_run_over_columns(
    assigner: Any, trigger: Any, reason: str | None
) -> None:
    log = {"key": ["a"], "ts": [1], "value": [1]}
    if reason is None:
        assert why_not_columnar(assigner, trigger) is None
        return
    assert reason in (why_not_columnar(assigner, trigger) or "")
    with pytest.raises(ConfigurationError, match=reason):
        job(log, assigner, trigger).to_arrow()


class MyEvictor(CountEvictor):
    """Could remove anything."""


@pytest.mark.parametrize(
    ("assigner", "trigger", "evictor", "reason"),
    [
        (GlobalWindows.create(), CountTrigger.of(2), CountEvictor.of(3), None),
        (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2)), CountEvictor.of(0, True), None),
        (
            GlobalWindows.create(),
            CountTrigger.of(2),
            CountEvictor.of(0),
            "CountEvictor.* leaves no row to aggregate: let it keep some, or take a function",
        ),
        (
            GlobalWindows.create(),
            CountTrigger.of(2),
            TimeEvictor.of(Time.seconds(1)),
            "the global window with the evictor TimeEvictor.* do not run over columns, but global windows with a "
            "CountTrigger and a CountEvictor do",
        ),
        (GlobalWindows.create(), CountTrigger.of(2), MyEvictor(3), "with the evictor MyEvictor"),
        (
            GlobalWindows.create_with_end_of_stream_trigger(),
            None,
            CountEvictor.of(3),
            "the global window with the evictor CountEvictor.* do not run",
        ),
        (TUMBLING, CountTrigger.of(2), CountEvictor.of(3), "with the evictor CountEvictor.* do not run"),
        (
            CountSlidingWindowAssigner.of(4, 2),
            None,
            CountEvictor.of(3),
            "windows of 4 elements, every 2 with",
        ),
        (GlobalWindows.create(), NeverTrigger(), CountEvictor.of(3), "windows that never fire give no rows"),
    ],
)
def test_only_evictors_by_count_run_over_columns(
    assigner: Any, trigger: Any, evictor: Any, reason: str | None
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = env.from_event_log(
        pa.table({"key": ["a"], "ts": [1]}), timestamp="ts", integer_times=True
    ).key_by("key")
    evicted = windows.window(assigner).evictor(evictor)
    stream = (evicted if trigger is None else evicted.trigger(trigger)).aggregate(n=count())
    if reason is None:
        assert f"evictor {evictor}" in stream.explain()
        assert stream.to_arrow().num_rows == 0
        return
    assert re.search(rf"3\. \[refused: .*{reason}", stream.explain())
    with pytest.raises(ConfigurationError, match=reason):
        stream.to_arrow()


def test_a_trigger_is_a_trigger_and_merges_where_windows_do() -> None:
    with pytest.raises(ConfigurationError, match="trigger takes one such as"):
        job({"key": [], "ts": [], "value": []}, TUMBLING, 5)
    with pytest.raises(ConfigurationError, match="does not support merging"):
        job(
            {"key": [], "ts": [], "value": []},
            EventTimeSessionWindows.with_gap(Time.seconds(1)),
            NeverTrigger(),
        )


@pytest.mark.parametrize(
    ("assigner", "trigger", "refusal"),
    [
        (
            TumblingProcessingTimeWindows.of(Time.seconds(1)),
            None,
            "class TumblingProcessingTimeWindows do not run",
        ),
        (TUMBLING, ProcessingTimeTrigger(), "the trigger ProcessingTimeTrigger.* does not run"),
    ],
)
def test_windows_that_do_not_run_over_columns_say_so_and_what_to_use(
    assigner: Any, trigger: Any, refusal: str
) -> None:
    env = StreamExecutionEnvironment()
    stream = env.from_event_log(pa.table({"key": ["a"], "ts": [1]}), timestamp="ts", integer_times=True)
    windows = stream.key_by("key").window(assigner)
    results = (windows if trigger is None else windows.trigger(trigger)).aggregate(n=count())
    message = rf"{refusal} over columns: take a function.*aggregate\(MyAggregate\(\), output_type="
    assert re.search(rf"3\. \[refused: .*{message}", results.explain())
    with pytest.raises(ConfigurationError, match=message):
        results.to_arrow()


def test_the_trigger_is_explained() -> None:
    assert (
        "trigger CountTrigger"
        in job({"key": [], "ts": [], "value": []}, TUMBLING, CountTrigger.of(7)).explain()
    )


@pytest.mark.parametrize(
    "assigner",
    [
        SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20), Time.milliseconds(7)),
        CumulativeEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20)),
    ],
    ids=["sliding", "cumulate"],
)
@pytest.mark.parametrize("lateness_ms", [0, 40])
def test_windows_give_the_same_whether_they_share_slices_or_not(assigner: Any, lateness_ms: int) -> None:
    log = {
        "ts": [(i * 37) % 130 + i for i in range(500)],
        "key": [f"k{i * 7 % 13}" for i in range(500)],
        "value": [None if i % 7 == 0 else i for i in range(500)],
        "price": [None if i % 5 == 0 else Decimal(i * 7919 % 1000 - 500).scaleb(-2) for i in range(500)],
    }
    shared = {"n": count(), "total": sum_("value"), "most": max_("value")} | {
        f"{name}_price": aggregate("price")
        for name, aggregate in (("sum", sum_), ("mean", mean), ("min", min_), ("max", max_))
    }
    names = ("window_start", "window_end", "key", *shared, "late_firing", "watermark")
    of_slices = rows(job(log, assigner, None, shared, 60, lateness_ms), *names)
    one_by_one = rows(
        job(log, assigner, None, {**shared, "values": collect("value")}, 60, lateness_ms), *names
    )
    assert any(late for *_, late, _ in one_by_one) == (lateness_ms > 0)
    assert sorted(of_slices, key=str) == sorted(one_by_one, key=str)
