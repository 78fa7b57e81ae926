"""`with_emitted_at`: results say when they were emitted, on the clock of the replay."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.common import Duration, OutputTag, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import (
    KeyedBatchProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError, UserCodeError

#          arrival, split, timestamp: ticks at 10, 20, ...; bound 2
EVENTS = [
    (0, "A", 1),
    (0, "B", 2),
    (3, "A", 14),
    (4, "B", 16),  # the tick at 10 brings 11: [0, 10) fires
    (12, "A", 5),  # late
    (12, "B", 24),
    (25, "A", 26),  # the tick at 30 brings 21
    (35, "A", 40),
    (41, "B", 31),  # not known: the end brings 28, then the maximum
]


def log_of(events: Iterable[tuple[int, str, int]] = EVENTS) -> pa.Table:
    rows = [{"at": at, "split": split, "ts": ts, "key": "k"} for at, split, ts in events]
    schema = {"at": pa.int64(), "split": pa.string(), "ts": pa.int64(), "key": pa.string()}
    return pa.Table.from_pylist(rows, pa.schema(schema))


def keyed(log: pa.Table | None = None) -> KeyedStream:
    env = StreamExecutionEnvironment()
    env.get_config().set_auto_watermark_interval(10)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
    stream = env.from_event_log(
        log_of() if log is None else log, timestamp="ts", integer_times=True, arrival="at", split="split"
    )
    return stream.assign_timestamps_and_watermarks(strategy).key_by("key")


def hopping(log: pa.Table | None = None) -> Any:
    return keyed(log).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))


def emitted(stream: DataStream, *columns: str, **checkpoints: Any) -> list[tuple[Any, ...]]:
    table = stream.execute(**checkpoints).to_arrow()
    return list(zip(*(table.column(name).to_pylist() for name in (*columns, "emitted_at")), strict=True))


def test_a_window_says_at_which_tick_or_late_row_it_fired_and_not_what_the_end_brings() -> None:
    stream = hopping().allowed_lateness(Time.milliseconds(5)).aggregate(n=count()).with_emitted_at()
    assert emitted(stream, "window_start", "n") == [
        (0, 2, 10),
        (0, 3, 12),
        (10, 2, 30),
        (20, 2, None),
        (30, 1, None),
        (40, 1, None),
    ]


def test_a_job_that_stops_with_a_checkpoint_gives_what_has_a_time_and_the_next_one_the_rest(
    tmp_path: Path,
) -> None:
    def job(log: pa.Table) -> Any:
        return hopping(log).allowed_lateness(Time.milliseconds(5)).aggregate(n=count()).with_emitted_at()

    whole = emitted(job(log_of()), "window_start", "n")
    for cut in range(2, len(EVENTS) + 1):
        path = tmp_path / str(cut)
        first = emitted(job(log_of(EVENTS[:cut])), "window_start", "n", stop_with_checkpoint=path)
        rest = emitted(job(log_of(EVENTS[cut:])), "window_start", "n", restore_from=path)
        assert first == [row for row in whole if row[-1] is not None and row[-1] <= EVENTS[cut - 1][0]]
        assert first + rest == whole


def test_a_checkpoint_may_be_restored_by_a_job_that_asks_for_times_only_now(tmp_path: Path) -> None:
    hopping(log_of(EVENTS[:6])).aggregate(n=count()).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    stream = hopping(log_of(EVENTS[6:])).aggregate(n=count()).with_emitted_at()
    assert emitted(stream, "window_start", restore_from=tmp_path / "c")[0] == (10, 30)


def test_windows_that_rows_fire_have_the_arrivals_of_these_rows() -> None:
    arrivals = [at for at, _, _ in EVENTS]
    triggered = keyed().window(TumblingEventTimeWindows.of(Time.milliseconds(100))).trigger(CountTrigger(2))
    assert emitted(triggered.aggregate(n=count()).with_emitted_at(), "n") == list(
        zip((2, 4, 6, 8), arrivals[1::2], strict=True)
    )
    counted = keyed().count_window(2).aggregate(n=count()).with_emitted_at()
    assert emitted(counted, "n") == [(2, at) for at in arrivals[1::2]]
    sliding = keyed().count_window(4, 2).aggregate(n=count()).with_emitted_at()
    assert [at for _, at in emitted(sliding, "n")] == arrivals[3::2]


def test_sessions_withdraw_and_give_results_at_the_arrival_of_the_row_that_merges_them() -> None:
    sessions = keyed().window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
    stream = sessions.allowed_lateness(Time.milliseconds(9)).retracting().aggregate(n=count())
    table = stream.with_emitted_at("known").execute().to_arrow()
    rows = list(zip(*(table.column(name).to_pylist() for name in ("row_kind", "n", "known")), strict=True))
    assert rows[:4] == [("+I", 2, 10), ("-D", 2, 12), ("+I", 3, 12), ("+I", 2, 30)]
    assert table.column_names[-2:] == ["row_kind", "known"]


def test_the_column_has_the_type_of_the_bounds_of_windows() -> None:
    log = log_of()
    at = log.schema.get_field_index("ts")
    moments = log.set_column(
        at, "ts", log.column("ts").cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
    )
    table = hopping(moments).aggregate(n=count()).with_emitted_at().execute().to_arrow()
    assert table.schema.field("emitted_at").type == table.schema.field("window_end").type
    assert table.column("emitted_at").cast(pa.int64()).to_pylist()[:2] == [10, 30]


class Told(KeyedProcessFunction):
    """Gives what the clock shows at elements and at timers of both kinds."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_event_time_timer(value.ts + 5)
        timers.register_processing_time_timer(timers.current_processing_time() + 7)
        yield "element", timers.current_processing_time()
        yield OutputTag("side"), (timers.current_processing_time(),)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.time_domain().name, ctx.timer_service().current_processing_time()


TOLD = pa.schema({"what": pa.string(), "clock": pa.int64()})
SIDE = OutputTag("side", pa.schema({"clock": pa.int64()}))


def test_what_a_function_gives_has_the_time_of_the_clock_also_in_side_outputs() -> None:
    stream = keyed().process(Told(), TOLD, side_outputs=[SIDE], timestamp_column="ts").with_emitted_at()
    result = stream.execute()
    table = result.to_arrow()
    assert table.column_names == ["what", "clock", "ts", "emitted_at"]
    rows = list(
        zip(*(table.column(name).to_pylist() for name in ("what", "clock", "emitted_at")), strict=True)
    )
    assert {what for what, _, at in rows if at is not None} == {"element", "EVENT_TIME", "PROCESSING_TIME"}
    assert all(at in (clock, None) for _, clock, at in rows)
    assert {(what, clock) for what, clock, at in rows if at is None} == {("EVENT_TIME", 41)}
    side = result.get_side_output(SIDE).to_arrow()
    assert side.column("emitted_at").to_pylist() == side.column("clock").to_pylist()


class ToldInBatches(KeyedBatchProcessFunction):
    """Gives the same over batches, backwards."""

    min_event_time_delay_ms = 5
    min_processing_time_delay_ms = 7

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_event_time_timers(elements.key_ids, elements.timestamps + 5)
        timers.register_processing_time_timers(elements.key_ids, elements.processing_times + 7)
        yield self.told(elements, "element")
        yield OutputTag("side"), elements.results({"clock": elements.processing_times})
        yield OutputTag("unknown"), {"n": [1]}

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield self.told(timers, timers.time_domain.name)

    def told(self, subject: Any, what: str) -> Any:
        rows = np.arange(len(subject))[::-1]
        clock = subject.processing_times[rows]
        return subject.results({"what": [what] * len(rows), "clock": clock}, rows)


def test_a_function_over_batches_has_the_times_of_the_one_by_element() -> None:
    told = keyed().process(ToldInBatches(), TOLD, side_outputs=[SIDE]).with_emitted_at().execute()
    by_element = keyed().process(Told(), TOLD, side_outputs=[SIDE]).with_emitted_at().execute()
    assert told.to_arrow().schema == by_element.to_arrow().schema
    assert sorted(map(repr, told.to_arrow().to_pylist())) == sorted(
        map(repr, by_element.to_arrow().to_pylist())
    )
    side = told.get_side_output(SIDE).to_arrow()
    assert side.schema == by_element.get_side_output(SIDE).to_arrow().schema
    assert side.column("emitted_at").to_pylist() == side.column("clock").to_pylist()


def test_batches_that_do_not_say_what_their_results_are_for_have_no_times() -> None:
    class Forgets(ToldInBatches):
        def told(self, subject: Any, what: str) -> Any:
            return super().told(subject, what).batch

    class ForgetsSide(ToldInBatches):
        def process_batch(self, elements: Any, ctx: Any) -> Any:
            return SIDE, {"clock": elements.processing_times}

    for function in (Forgets(), ForgetsSide()):
        stream = keyed().process(function, TOLD, side_outputs=[SIDE])
        assert stream.execute().get_side_output(SIDE).to_arrow().num_rows > 0
        with pytest.raises(
            UserCodeError,
            match=r"with_emitted_at\('known'\) says of each when .*elements.results\(batch, rows\)",
        ):
            stream.with_emitted_at("known").to_arrow()


class Clock(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.window().start, len(list(elements)), context.current_processing_time()


def test_windows_of_functions_and_over_columns_have_the_same_times() -> None:
    late = OutputTag("late")
    windowed = hopping().allowed_lateness(Time.milliseconds(1)).side_output_late_data(late)
    schema = pa.schema({"window_start": pa.int64(), "n": pa.int64(), "clock": pa.int64()})
    of_function = windowed.process(Clock(), schema).with_emitted_at().execute()
    over_columns = windowed.aggregate(n=count()).with_emitted_at().execute()
    told = of_function.to_arrow().to_pylist()
    assert [(row["window_start"], row["n"], row["emitted_at"]) for row in told] == [
        (row["window_start"], row["n"], row["emitted_at"]) for row in over_columns.to_arrow().to_pylist()
    ]
    assert all(row["emitted_at"] in (row["clock"], None) for row in told)
    for result in (of_function, over_columns):  # late rows stay as they came
        assert result.get_side_output(late).to_arrow().column_names == ["at", "split", "ts", "key"]


class Pair(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: Any) -> Iterator[Any]:
        yield left.at, right.at


def test_a_pair_of_a_join_is_known_when_the_later_row_has_come() -> None:
    rows = keyed()
    both = rows.interval_join(rows).between(Time.milliseconds(-9), Time.milliseconds(9))
    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    pairs = emitted(both.process(Pair(), schema).with_emitted_at(), "left", "right")
    assert len(pairs) > len(EVENTS)
    assert all(at == max(left, right) for left, right, at in pairs)


def test_what_comes_of_a_result_is_known_when_that_was_and_the_column_of_both_can_be_had() -> None:
    hours = hopping().aggregate(n=count()).with_emitted_at("first_at")

    class Passes(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
            yield value.window_start, value.first_at

    schema = pa.schema({"window_start": pa.int64(), "first_at": pa.int64()})
    passed = hours.key_by("key").process(Passes(), schema).with_emitted_at()
    assert emitted(passed, "window_start", "first_at") == [
        (0, 10, 10),
        (10, 30, 30),
        (20, None, None),
        (30, None, None),
        (40, None, None),
    ]
    windows = hours.key_by("key").window(
        SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))
    )
    assert emitted(windows.aggregate(n=count()).with_emitted_at(), "window_start") == [
        (-10, 10),
        (0, 30),
        (10, None),
        (20, None),
        (30, None),
        (40, None),
    ]


def test_files_have_the_column_too(tmp_path: Path) -> None:
    hopping().aggregate(n=count()).with_emitted_at().execute().write_parquet(tmp_path)
    assert pq.read_table(tmp_path).column("emitted_at").to_pylist()[:2] == [10, 30]


def test_a_log_without_events_gives_a_column_without_values() -> None:
    table = hopping(log_of(EVENTS[:1]).slice(1)).aggregate(n=count()).with_emitted_at().execute().to_arrow()
    assert table.num_rows == 0
    assert table.column_names[-1] == "emitted_at"


def test_a_plan_shows_the_column() -> None:
    assert "n = count(), known" in hopping().aggregate(n=count()).with_emitted_at("known").explain()


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            lambda: keyed().with_emitted_at(),
            r"with_emitted_at\('emitted_at'\) comes right after an operator",
        ),
        (
            lambda: hopping().aggregate(n=count()).with_emitted_at(""),
            r"with_emitted_at\(name\) takes the name of a column, not ''",
        ),
        (
            lambda: hopping().aggregate(n=count()).with_emitted_at(3),
            r"with_emitted_at\(name\) takes the name of a column, not 3",
        ),
        (lambda: hopping().aggregate(n=count()).with_emitted_at("n").to_arrow(), "has a column of this name"),
        (
            lambda: keyed().process(Told(), TOLD, side_outputs=[SIDE]).with_emitted_at("clock").to_arrow(),
            "has a column of this name",
        ),
    ],
)
def test_a_column_that_cannot_be_had_is_refused(stream: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        stream()


def test_a_program_that_runs_element_by_element_is_told_to_ask_the_clock() -> None:
    told = keyed().process(Told(), TOLD).with_emitted_at().map(lambda row: row.clock, Types.LONG())
    with pytest.raises(ConfigurationError, match="current_processing_time"):
        list(told.execute_and_collect())
