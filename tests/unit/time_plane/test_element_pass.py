"""Replays whose strategy has a watermark generator of its own, in one process."""

from collections import defaultdict
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from jobs.even_timestamps import EvenTimestamps
from models.timed_log import table_of
from models.watermarks import Event, Punctuated, ReplayModel
from models.windows import Firing, WindowModel

from flinkcore.common import Duration, OutputTag, Time, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.common.watermark_generators import BoundedOutOfOrdernessWatermarks
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect
from flinkcore.datastream.timestamps import AssignerWithPunctuatedWatermarks, as_watermark_strategy
from flinkcore.errors import ConfigurationError, UserCodeError
from flinkcore.examples.flights import LOG as FLIGHTS

LATE = OutputTag("late")
MIN_TIMESTAMP, MAX_TIMESTAMP = -(2**63), 2**63 - 1


PUNCTUATED = WatermarkStrategy.for_generator(EvenTimestamps)


def random_log(seed: int, n: int = 400) -> list[Event]:
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.choice([0, 0, 0, 1, 1, 2, 30], n)) + random.choice([0, 0, 0, -2], n)
    timestamp = arrival + random.integers(-40, 6, n)
    split = random.choice(["b", "a", "c"], n)
    return [Event(*row) for row in zip(split.tolist(), arrival.tolist(), timestamp.tolist(), strict=True)]


def job(
    data: Any,
    strategy: WatermarkStrategy,
    window: Any,
    *,
    parallelism: int = 1,
    lateness: int = 0,
    interval: int = 10,
    **options: Any,
) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    return (
        env.from_event_log(
            data,
            **({"timestamp": "ts", "arrival": "arrival", "split": "split", "integer_times": True} | options),
        )
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(window)
        .allowed_lateness(lateness)
        .side_output_late_data(LATE)
        .aggregate(rows=collect("row"))
    )


def model_rows(
    log: list[Event], window: dict[str, int], idleness_ms: int | None, interval: int
) -> tuple[list[Firing], list[object]]:
    timeline = ReplayModel(log, None, idleness_ms, interval, make_generator=Punctuated)
    windows = WindowModel(**window)
    order = sorted(range(len(log)), key=timeline.place_of)
    items = sorted(
        chain(
            ((timeline.place_of(row), 0, row) for row in order),
            (
                (place, 1, watermark)
                for place, (_, watermark) in zip(timeline.places, timeline.steps, strict=True)
            ),
        )
    )
    for _, kind, item in items:
        if kind:
            windows.advance(item)
        else:
            windows.element(f"k{item % 5}", log[item].timestamp_ms, item)
    return windows.firings, windows.late


def fired(firings: list[Firing]) -> list[Any]:
    return sorted((f.key, f.start, f.end, f.elements, f.late, f.watermark) for f in firings)


def rows(table: pa.Table) -> list[Any]:
    names = ("key", "window_start", "window_end", "rows", "late_firing", "watermark")
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


WINDOWS = [
    (TumblingEventTimeWindows.of(Time.milliseconds(8)), {"size": 8, "slide": 8}),
    (EventTimeSessionWindows.with_gap(Time.milliseconds(6)), {"gap": 6}),
]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("idleness_ms", [None, 15])
@pytest.mark.parametrize("lateness", [0, 9])
@pytest.mark.parametrize(("window", "parameters"), WINDOWS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_punctuated_generator_fires_what_the_row_by_row_model_fires(
    window: Any,
    parameters: dict[str, int],
    lateness: int,
    idleness_ms: int | None,
    parallelism: int,
    seed: int,
) -> None:
    log = random_log(seed)
    strategy = PUNCTUATED if idleness_ms is None else PUNCTUATED.with_idleness(Time(idleness_ms))
    result = job(table_of(log), strategy, window, parallelism=parallelism, lateness=lateness).execute()
    firings, late = model_rows(log, parameters | {"lateness": lateness}, idleness_ms, 10)
    assert rows(result.to_arrow()) == fired(firings)
    assert sorted(result.get_side_output(LATE).to_arrow()["row"].to_pylist()) == sorted(late)
    assert lateness or len(late) > 10
    assert result.report.late == len(late)


def test_a_punctuated_watermark_is_in_force_for_the_next_event_of_the_same_arrival() -> None:
    # In total order: split 0's events, then split 1's, all at arrival 5. Split 1 waits for the watermark 20 of both.
    log = pa.table(
        {
            "ts": [20, 3, 20, 3, 4],
            "arrival": [5, 5, 5, 5, 6],
            "split": [0, 0, 1, 1, 0],
            "key": ["k"] * 5,
            "row": range(5),
        }
    )
    result = job(log, PUNCTUATED, TumblingEventTimeWindows.of(Time.milliseconds(10))).execute()
    assert result.get_side_output(LATE).to_arrow()["row"].to_pylist() == [3, 4]
    assert rows(result.to_arrow()) == [
        ("k", 0, 10, [1], False, 20),
        ("k", 20, 30, [0, 2], False, MAX_TIMESTAMP),
    ]


def test_steps_of_events_and_ticks_mix() -> None:
    class EvenAndPeriodic(BoundedOutOfOrdernessWatermarks):
        def __init__(self) -> None:
            super().__init__(Duration.of_millis(5))

        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            super().on_event(event, event_timestamp, output)
            if event_timestamp % 2 == 0:
                output.emit_watermark(Watermark(event_timestamp))

    log = pa.table(
        {
            "ts": [25, 10, 17, 18, 60],
            "arrival": [1, 2, 10, 11, 12],
            "split": ["s"] * 5,
            "key": ["k"] * 5,
            "row": range(5),
        }
    )
    strategy = WatermarkStrategy.for_generator(EvenAndPeriodic)
    result = job(log, strategy, TumblingEventTimeWindows.of(Time.milliseconds(10))).execute()
    # 10 after the event at 2; 19 at the tick at 10, which comes after the event of that arrival; 60 after the last.
    assert [(row[1], row[3], row[5]) for row in rows(result.to_arrow())] == [
        (10, [1, 2], 19),
        (20, [0], 60),
        (60, [4], MAX_TIMESTAMP),
    ]
    assert result.get_side_output(LATE).to_arrow()["row"].to_pylist() == [3]
    assert result.report.split_watermarks == {"s": 60}


def test_each_split_has_a_generator_of_its_own_made_once() -> None:
    made: list[WatermarkGenerator[Any]] = []
    seen = defaultdict(list)

    class Recording(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            seen[self].append((event, event_timestamp))

    def supply() -> WatermarkGenerator[Any]:
        made.append(Recording())
        return made[-1]

    log = random_log(3, 60)
    job(table_of(log), WatermarkStrategy.for_generator(supply), WINDOWS[0][0], parallelism=2).to_arrow()
    expected = {
        split: [(None, event.timestamp_ms) for event in log if event.split == split] for split in "abc"
    }
    assert [seen[generator] for generator in made] == list(expected.values())


def test_splits_share_no_state_of_an_assigner_of_before() -> None:
    class EveryThird(AssignerWithPunctuatedWatermarks):
        def __init__(self) -> None:
            self.seen = 0

        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            raise AssertionError("event time is a column")

        def check_and_get_next_watermark(
            self, last_element: Any, extracted_timestamp: int
        ) -> Watermark | None:
            self.seen += 1
            return Watermark(extracted_timestamp) if self.seen == 3 else None

    log = [Event(split, at, at) for at in range(3) for split in "ab"]
    strategy = as_watermark_strategy(EveryThird()).with_timestamp_assigner("ts")
    assert job(table_of(log), strategy, WINDOWS[0][0]).execute().report.split_watermarks == {"a": 2, "b": 2}


def test_a_declared_generator_is_not_called_over_a_gap_of_a_thousand_years() -> None:
    calls = []

    class Declared(EvenTimestamps):
        changes_at_events_only = True

        def on_periodic_emit(self, output: Any) -> None:
            calls.append(len(calls))

    year = 31_536_000_000
    log = [Event("a", 0, 2), Event("a", 1000 * year, 1000 * year), Event("b", 5, 3)]
    strategy = WatermarkStrategy.for_generator(Declared).with_idleness(Time.seconds(1))
    result = job(table_of(log), strategy, WINDOWS[0][0], interval=200).execute()
    assert result.report.idle_spans("b") == [(1600, 1000 * year)]
    assert result.report.idle_spans("a") == [(1400, 1000 * year)]
    assert len(calls) < 10


def test_a_subclass_with_another_periodic_call_is_called_at_every_tick_again() -> None:
    class Counting(BoundedOutOfOrdernessWatermarks):
        def on_periodic_emit(self, output: Any) -> None:
            super().on_periodic_emit(output)

    class CountingEvents(BoundedOutOfOrdernessWatermarks):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            super().on_event(event, event_timestamp, output)

    assert not Counting.changes_at_events_only
    assert CountingEvents.changes_at_events_only
    assert not EvenTimestamps.changes_at_events_only


def test_a_generator_that_raises_is_named_with_split_position_and_timestamp() -> None:
    class Failing(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            if event_timestamp == 13:
                raise ValueError("unlucky")

    log = [Event("a", 1, 1), Event("b", 2, 2), Event("b", 3, 13), Event("a", 4, 4)]
    stream = job(table_of(log), WatermarkStrategy.for_generator(Failing), WINDOWS[0][0])
    with pytest.raises(UserCodeError) as caught:
        stream.to_arrow()
    assert str(caught.value) == (
        "Failing.on_event of split 'b' failed at the event with timestamp 13: ValueError: unlucky "
        "(position 1 of the split, arrival 3 ms)"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_generator_that_raises_at_a_tick_is_named_with_split_and_clock() -> None:
    class Failing(EvenTimestamps):
        def on_periodic_emit(self, output: Any) -> None:
            raise ValueError("unlucky")

    stream = job(
        table_of([Event("a", 1, 1), Event("a", 25, 2)]),
        WatermarkStrategy.for_generator(Failing),
        WINDOWS[0][0],
    )
    with pytest.raises(UserCodeError, match=r"split 'a' failed: .*\(at 10 ms of the replay clock\)"):
        stream.to_arrow()


def test_a_generator_that_emits_no_watermark_is_refused_with_the_place() -> None:
    class Confused(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(event_timestamp)

    stream = job(table_of([Event("a", 1, 7)]), WatermarkStrategy.for_generator(Confused), WINDOWS[0][0])
    with pytest.raises(UserCodeError, match=r"emitted 7: .*\(position 0 of the split, arrival 1 ms\)"):
        stream.to_arrow()


def test_a_generator_that_goes_backwards_has_no_effect_until_it_has_caught_up() -> None:
    class LastTimestamp(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(Watermark(event_timestamp))

    log = [Event("a", at, timestamp) for at, timestamp in enumerate([20, 5, 21, 9, 40])]
    result = job(table_of(log), WatermarkStrategy.for_generator(LastTimestamp), WINDOWS[0][0]).execute()
    assert result.report.split_watermarks == {"a": 40}
    assert result.get_side_output(LATE).to_arrow()["row"].to_pylist() == [1, 3]
    assert result.report.timeline_steps == 4


def test_a_supplier_that_gives_something_else_is_refused() -> None:
    stream = job(table_of([Event("a", 1, 7)]), WatermarkStrategy.for_generator(dict), WINDOWS[0][0])
    with pytest.raises(ConfigurationError, match=r"made \{\} for split 'a'"):
        stream.to_arrow()


def test_a_supplier_that_gives_one_generator_to_two_splits_is_refused() -> None:
    generator = EvenTimestamps()
    strategy = WatermarkStrategy.for_generator(lambda: generator)
    with pytest.raises(ConfigurationError, match=r"same EvenTimestamps for split 'b' that split 'a' holds"):
        job(table_of([Event("a", 1, 7), Event("b", 1, 8)]), strategy, WINDOWS[0][0]).to_arrow()
    one_split = job(table_of([Event("a", 1, 8)]), strategy, WINDOWS[0][0])
    for _ in range(2):
        assert one_split.execute().report.split_watermarks == {"a": 8}


def test_a_log_without_events_needs_no_generator() -> None:
    empty = table_of([Event("a", 1, 7)]).slice(0, 0)
    result = job(empty, WatermarkStrategy.for_generator(dict), WINDOWS[0][0]).execute()
    assert result.to_arrow().num_rows == 0
    assert result.report.split_watermarks == {}
    assert result.report.watermark_ms == MIN_TIMESTAMP


def test_arrivals_by_rate_and_filtered_rows_keep_their_places() -> None:
    log = pa.table({"ts": [2, 99, 4, 6, 3], "key": ["k"] * 5, "row": range(5)})
    env = StreamExecutionEnvironment().set_parallelism(1)
    result = (
        env.from_event_log(log, timestamp="ts", integer_times=True, rate=1000.0)
        .filter(pc.field("ts") < 50)
        .assign_timestamps_and_watermarks(PUNCTUATED)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
        .side_output_late_data(LATE)
        .aggregate(rows=collect("row"))
        .execute()
    )
    assert result.get_side_output(LATE).to_arrow()["row"].to_pylist() == [4]
    assert result.to_arrow()["watermark"].to_pylist() == [4, MAX_TIMESTAMP]
    assert result.report.watermark_ms == 6


# ---- the report --------------------------------------------------------------------------------------------


def test_the_report_has_the_watermark_of_each_split_and_of_all() -> None:
    log = [Event("a", 1, 100), Event("b", 2, 40), Event("c", 3, 7)]
    result = job(table_of(log), WatermarkStrategy.for_monotonous_timestamps(), WINDOWS[0][0]).execute()
    assert result.report.split_watermarks == {"a": 99, "b": 39, "c": 6}
    assert result.report.watermark_ms == 6
    assert "watermark before the end of the log: 1970-01-01 00:00:00.006Z" in str(result.report)
    assert result.report.idle_spans("a") == []
    with pytest.raises(ConfigurationError, match="no split 'd'"):
        result.report.idle_spans("d")


def test_what_comes_behind_the_maximum_watermark_is_late() -> None:
    class EndsAt50(EvenTimestamps):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(Watermark(MAX_TIMESTAMP if event_timestamp == 50 else event_timestamp))

    log = [Event("a", at, timestamp) for at, timestamp in enumerate([4, 50, 60])]
    result = job(table_of(log), WatermarkStrategy.for_generator(EndsAt50), WINDOWS[0][0]).execute()
    assert result.to_arrow()["rows"].to_pylist() == [[0], [1]]
    assert result.get_side_output(LATE).to_arrow()["row"].to_pylist() == [2]
    assert (result.report.timeline_steps, result.report.watermark_ms) == (3, MAX_TIMESTAMP)
    assert "watermark before the end of the log: the maximum" in str(result.report)


# ---- a maximum and a percentile on real data ---------------------------------------------------------------


def flights(data: Any, strategy: WatermarkStrategy) -> Any:
    return job(
        data,
        strategy,
        TumblingEventTimeWindows.of(Time.hours(1)),
        timestamp="date",
        split=None,
        interval=60_000,
    ).execute()


def test_early_rows_poison_a_maximum_and_not_a_percentile() -> None:
    log = pq.read_table(FLIGHTS)
    log = log.append_column("key", log["origin"]).append_column("row", pa.array(range(log.num_rows)))
    by_hand = log.slice(5000, 3)
    far = pc.add(by_hand["date"], pa.scalar(6 * 3_600_000, pa.duration("ms")))
    early = by_hand.set_column(0, "date", far.cast(pa.timestamp("ms")))
    poisoned = pa.concat_tables([log.slice(0, 5000), early, log.slice(5003)])
    bound = Duration.of_minutes(120)
    maximum = WatermarkStrategy.for_bounded_out_of_orderness(bound)
    percentile = WatermarkStrategy.for_percentile_out_of_orderness(bound, 0.99, 1000)
    late = {
        (name, data is poisoned): flights(data, strategy).report.late
        for name, strategy in (("maximum", maximum), ("percentile", percentile))
        for data in (log, poisoned)
    }
    assert late["maximum", True] > 4 * late["maximum", False]
    assert late["percentile", True] == late["percentile", False] <= late["maximum", False]
