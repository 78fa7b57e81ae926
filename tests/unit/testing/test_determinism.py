"""Races are found in functions that have them, with the smallest log that shows each, and not in others."""

import datetime
import pickle
import time
from collections.abc import Iterator
from datetime import date as Date
from datetime import datetime as Datetime
from pathlib import Path
from time import time as now
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.common import Duration, OutputTag, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import FILE, DataStream, RuntimeContext
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import KeyedProcessFunction
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError, DataError, SchemaError, UserCodeError
from flinkcore.testing import assert_deterministic, find_races

LOG = pa.table(
    {
        "ts": [0, 3, 5, 9, 12, 14, 18, 21],
        "arrival": [0, 10, 10, 20, 30, 30, 40, 50],
        "split": ["a", "b", "b", "a", "b", "a", "a", "b"],
        "key": ["k", "l", "l", "k", "k", "l", "k", "l"],
        "value": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)
COLUMNS: dict[str, Any] = {"timestamp": "ts", "arrival": "arrival", "split": "split", "interval_ms": 10}
RESULT = pa.schema([("key", pa.string()), ("total", pa.int64())])


def keyed(events: DataStream, bound_ms: int = 100) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return events.assign_timestamps_and_watermarks(strategy).key_by("key")


class Totals(KeyedProcessFunction):
    """Gives the total of each key after each event."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        self.total.update((self.total.value() or 0) + value.value)
        yield Row(value.key, self.total.value())


class TotalsInTheFunction(KeyedProcessFunction):
    """Has its totals in itself, where no checkpoint looks."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        self.totals[value.key] = self.totals.get(value.key, 0) + value.value
        yield Row(value.key, self.totals[value.key])


class DayOfTheMachine(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        yield Row(value.key, int(time.time()) // 86_400)


def windows(bound_ms: int) -> Any:
    def job(events: DataStream) -> DataStream:
        hour = TumblingEventTimeWindows.of(Time.milliseconds(10))
        return keyed(events, bound_ms).window(hour).aggregate(n=count())

    return job


def test_a_job_whose_results_depend_on_nothing_else_has_no_race() -> None:
    assert_deterministic(windows(bound_ms=100), LOG, **COLUMNS)


def test_a_function_that_depends_on_the_order_of_ties_is_found() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Totals(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS, histories=("again", "parallelism", "restart", "ties"))
    assert (race.history.kind, race.history.may_count) == ("ties", True)
    assert race.keys[0] == "key = 'l'"
    (smallest,) = race.logs
    assert smallest.column("value").to_pylist() == [2, 3]
    assert race.expected == ["{'key': 'l', 'total': 2}"]
    assert race.found == ["{'key': 'l', 'total': 3}"]


class Again(KeyedProcessFunction):
    """Gives each event once more, whatever came before."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        yield Row(value.key, value.value)


@pytest.mark.parametrize(("functions", "sensitive"), [("TA", 0), ("AT", 1), ("ATA", 1), ("T", 0)])
def test_the_first_step_whose_results_change_is_named(functions: str, sensitive: int) -> None:
    values = RESULT.set(1, pa.field("value", pa.int64()))

    def job(events: DataStream) -> DataStream:
        stream = keyed(events)
        for number, name in enumerate(functions):
            stream = stream if number == 0 else stream.key_by("key")
            stream = stream.process(Totals() if name == "T" else Again(), values)
        return stream

    (race,) = find_races(job, LOG, **COLUMNS, histories=["ties"])
    function = {"T": "Totals", "A": "Again"}[functions[sensitive]]
    assert race.step == f"process by {function}, Python called for each row and timer: key, value"
    assert f"  first in the results of {race.step}\n" in str(race)


def test_a_function_that_reads_the_clock_of_the_machine_is_found() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(DayOfTheMachine(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS)
    assert (race.history.kind, race.history.may_count) == ("clock", False)
    assert race.logs[0].num_rows == 1


@pytest.mark.filterwarnings(r"ignore:datetime.datetime.utcnow\(\):DeprecationWarning")  # since Python 3.12
@pytest.mark.parametrize(
    "seconds",
    [
        lambda: now(),
        lambda: time.time_ns() // 10**9,
        lambda: datetime.datetime.now().timestamp(),
        lambda: datetime.datetime.now(datetime.timezone.utc).timestamp(),
        lambda: datetime.datetime.utcnow().timestamp(),
        lambda: datetime.datetime.today().timestamp(),
        lambda: Datetime.now().timestamp(),
        lambda: datetime.date.today().toordinal() * 86_400,
        lambda: Date.today().toordinal() * 86_400,
    ],
)
def test_the_usual_ways_to_read_the_clock_are_found(seconds: Any) -> None:
    class Day(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            yield Row(value.key, int(seconds()) // 86_400)

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Day(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS, histories=["clock"])
    assert race.history.kind == "clock"
    assert (now, Datetime, datetime.datetime.__name__) == (time.time, datetime.datetime, "datetime")


def test_times_that_a_program_makes_are_the_same_on_another_day() -> None:
    class Times(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            made = [
                Datetime(2001, 2, 3),
                datetime.datetime.fromtimestamp(0, datetime.timezone.utc),
                Datetime.strptime("2001", "%Y"),
                datetime.datetime.combine(Date(2001, 2, 3), datetime.time(4)),
            ]
            assert all(
                isinstance(each, Datetime) and pickle.loads(pickle.dumps(each)) == each for each in made
            )
            assert issubclass(type(Datetime.now()), datetime.date)
            yield Row(
                str(made), Datetime.now().replace(year=2001, month=1, day=1, hour=0, minute=0).second * 0
            )

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Times(), RESULT)

    assert_deterministic(job, LOG, **COLUMNS, histories=["clock"])


def test_a_function_that_forgets_its_state_on_a_restore_is_found() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(TotalsInTheFunction(), RESULT)

    with pytest.raises(AssertionError) as raised:
        assert_deterministic(job, LOG, **COLUMNS, histories=("again", "parallelism", "restart"))
    message = str(raised.value)
    assert message.startswith(
        "1 kind of histories changes the results:\n\nrestart: stopped with a checkpoint after"
    )
    assert "(a defect: no result may depend on this)" in message
    assert "the smallest log that shows it (2 rows):" in message or "(3 rows):" in message


def test_a_function_that_depends_on_the_delay_of_a_split_is_found() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Totals(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS, histories=("delay",))
    assert race.history.what == "split 'a' is delayed by 12 ms"
    assert race.logs[0].column("split").to_pylist() == ["a", "b"]


def test_windows_whose_splits_hold_the_watermark_back_lose_nothing_by_a_delay() -> None:
    assert_deterministic(windows(bound_ms=0), LOG, **COLUMNS, histories=("restart", "delay"))


def test_windows_of_a_split_that_is_idle_lose_what_it_brings_later() -> None:
    def job(events: DataStream) -> DataStream:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(5))
        window = TumblingEventTimeWindows.of(Time.milliseconds(10))
        return (
            events.assign_timestamps_and_watermarks(strategy)
            .key_by("key")
            .window(window)
            .aggregate(n=count())
        )

    log = pa.table(
        {
            "ts": [0, 5, 12, 15, 60],
            "arrival": [0, 5, 40, 45, 50],
            "split": ["a", "b", "a", "b", "a"],
            "key": ["k"] * 5,
        }
    )
    (race,) = find_races(job, log, **COLUMNS, histories=("delay",))
    assert race.history.what == "split 'b' is delayed by 10 ms"


def test_side_outputs_are_compared_where_they_are_named() -> None:
    small = OutputTag("small", pa.schema([("value", pa.int64())]))

    class SideTotals(Totals):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
            for row in super().process_element(value, ctx):
                yield small, Row(row[1])

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(SideTotals(), RESULT)

    assert list(find_races(job, LOG, **COLUMNS, histories=("ties",))) == []
    (race,) = find_races(job, LOG, **COLUMNS, histories=("ties",), side_outputs=[small])
    assert race.keys == ["side output 'small', all keys"]


def test_logs_of_a_union_that_arrive_together_change_places() -> None:
    def job(first: DataStream, second: DataStream) -> DataStream:
        return keyed(first.union(second)).process(Totals(), RESULT)

    logs = LOG.take([0, 3]), LOG.take([1, 4]).set_column(1, "arrival", pa.array([0, 20]))
    same = tuple(log.set_column(3, "key", pa.array(["k", "k"])) for log in logs)
    (race,) = find_races(job, same, timestamp="ts", arrival="arrival", interval_ms=10, histories=("ties",))
    assert race.history.what.startswith("of events that arrive together, those of log 0")
    assert [log.num_rows for log in race.logs] == [1, 1]


def test_a_log_may_be_files_and_have_no_arrival(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    races = find_races(windows(bound_ms=100), str(tmp_path / "log.parquet"), timestamp="ts")
    assert list(races) == []
    assert [history.kind for history in races.tried] == [
        "again",
        "clock",
        "parallelism",
        "parallelism",
        "ticks",
        "ticks",
    ]
    without = "the log has no arrivals; name their column"
    assert races.untried.pop("clock").startswith("reads other than time.time(), time.time_ns(), and now()")
    assert races.untried == {"restart": without, "ties": without, "delay": without}
    assert str(races).endswith(
        "tried: again, clock, parallelism (2), ticks (2)\n"
        + "\n".join(f"not tried: {kind}: {without}" for kind in races.untried)
    )


def test_histories_that_there_are_not_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="there are no histories tides; there are: again, clock"):
        find_races(windows(0), LOG, **COLUMNS, histories=("tides",))


@pytest.mark.parametrize(
    ("kind", "log", "columns", "message"),
    [
        ("restart", LOG, {"arrival": None}, r"not possible: restart \(the log has no arrivals"),
        ("restart", LOG.take([0, 1]), {}, r"restart \(nothing arrives after all splits have begun"),
        ("ties", LOG.take([0, 1, 3]), {}, r"ties \(no two events arrive together"),
        ("delay", LOG, {"split": None}, r"delay \(the log has one split"),
        ("ticks", LOG, {"interval_ms": 0}, r"ticks \(with an interval of 0"),
        ("again", LOG.slice(0, 0), {}, r"again \(the log has no rows"),
    ],
)
def test_a_history_that_is_named_and_not_possible_is_refused(
    kind: str, log: pa.Table, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        assert_deterministic(windows(100), log, **(COLUMNS | columns), histories=[kind])


def test_nothing_passes_that_was_not_replayed() -> None:
    with pytest.raises(ConfigurationError, match=r"again \(the log has no rows\); clock"):
        assert_deterministic(windows(100), LOG.slice(0, 0), **COLUMNS)
    with pytest.raises(ConfigurationError, match="histories= names none of again"):
        assert_deterministic(windows(100), LOG, **COLUMNS, histories=())
    with pytest.raises(ConfigurationError, match="is a collection, such as"):
        assert_deterministic(windows(100), LOG, **COLUMNS, histories="restart")


def test_splits_that_are_not_delayed_are_told() -> None:
    log = pa.table({"ts": range(10), "arrival": range(10), "split": range(10), "key": ["k"] * 10})
    races = find_races(windows(100), log, **COLUMNS, histories=("delay",))
    assert list(races) == []
    assert races.untried == {"delay": "2 of 10 splits, after the first 8 by name"}


def test_a_log_of_a_union_may_be_empty() -> None:
    def job(first: DataStream, second: DataStream) -> DataStream:
        return keyed(first.union(second)).process(Totals(), RESULT)

    races = find_races(job, (LOG, LOG.slice(0, 0)), **COLUMNS)
    assert {"restart", "ties", "delay", "ticks"} <= {history.kind for history in races.tried}


class Arrivals(KeyedProcessFunction):
    """Gives when each event arrived."""

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        yield Row(value.key, ctx.timer_service().current_processing_time())


def test_periodic_watermarks_that_come_later_move_no_arrival() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Arrivals(), RESULT)

    assert_deterministic(job, LOG, **COLUMNS, histories=("again", "parallelism", "restart", "ticks"))


def test_a_function_that_depends_on_the_place_of_periodic_watermarks_is_found() -> None:
    class Watermarks(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            yield Row(value.key, max(0, ctx.timer_service().current_watermark()))

    def job(events: DataStream) -> DataStream:
        return keyed(events, bound_ms=0).process(Watermarks(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS, histories=("ticks",))
    assert race.history.what.startswith("each periodic watermark comes")


@pytest.mark.parametrize("setting", ["timestamp", "arrival", "split"])
def test_a_column_that_there_is_not_is_refused(setting: str) -> None:
    with pytest.raises(SchemaError, match=f"{setting}= names column 'nowhere', which the log does not have"):
        find_races(windows(100), LOG, **(COLUMNS | {setting: "nowhere"}))


@pytest.mark.parametrize(("column", "kind"), [("arrival", pa.int64()), ("split", pa.string())])
def test_rows_without_an_arrival_or_a_split_are_dropped_or_named(column: str, kind: pa.DataType) -> None:
    at = LOG.column_names.index(column)
    values = LOG.column(column).to_pylist()
    log = LOG.set_column(at, column, pa.array([*values[:3], None, *values[4:]], kind))

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Totals(), RESULT)

    with pytest.raises(DataError, match=f"row 3 .*: null {column} .column '{column}'"):
        find_races(job, log, **COLUMNS)
    (race,) = find_races(job, log, **COLUMNS, on_bad_row="drop", histories=["ties"])
    assert race.logs[0].column("value").to_pylist() == [2, 3]
    with pytest.raises(ConfigurationError, match='on_bad_row= is "fail" or "drop" here'):
        find_races(job, log, **(COLUMNS | {"on_bad_row": OutputTag("bad", log.schema)}))


def test_a_job_may_filter_rows_without_a_timestamp() -> None:
    log = LOG.set_column(0, "ts", pa.array([None, 3, 5, 9, 12, 14, 18, 21]))

    def job(events: DataStream) -> DataStream:
        return windows(100)(events.filter(pc.is_valid(pc.field("ts"))))  # type: ignore[no-any-return]

    assert_deterministic(job, log, **COLUMNS)


def test_times_may_be_expressions_and_files_be_splits(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(LOG.filter(pc.field("split") == name).drop(["split"]), tmp_path / f"{name}.data")

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Totals(), RESULT)

    races = find_races(
        job,
        [tmp_path / "a.data", tmp_path / "b.data"],
        timestamp=pc.field("ts") * 1000,
        arrival=pc.field("arrival") * 1000,
        split=FILE,
        format="parquet",
        interval_ms=10_000,
        histories=["delay"],
    )
    assert [race.history.what for race in races] == [
        f"split {str(tmp_path / 'a.data')!r} is delayed by 12,500 ms"
    ]
    assert races[0].logs[0].column_names == ["ts", "arrival", "key", "value"]


def test_a_log_without_arrivals_may_have_a_rate() -> None:
    seen = []

    class Seen(Arrivals):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            for row in super().process_element(value, ctx):
                seen.append(row[1])
                yield row

    def job(events: DataStream) -> DataStream:
        return keyed(events).process(Seen(), RESULT)

    assert_deterministic(
        job, LOG.slice(0, 3), timestamp="ts", rate=1.0, arrival_start_ms=5_000, histories=["again"]
    )
    assert seen == [5_000, 6_000, 7_000] * 2


class FailsAfterARestore(Totals):
    """Makes in itself what only its first event makes, and needs it for all."""

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self.names: dict[str, str] = {}

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        if self.total.value() is None:
            self.names[value.key] = value.key
        self.total.update(1)
        yield Row(self.names[value.key], 1)


def test_a_function_that_fails_only_after_a_restore_is_found() -> None:
    def job(events: DataStream) -> DataStream:
        return keyed(events).process(FailsAfterARestore(), RESULT)

    (race,) = find_races(job, LOG, **COLUMNS)
    assert race.history.kind == "restart"
    assert race.keys == []
    assert race.failure is not None
    assert race.failure.startswith("UserCodeError: FailsAfterARestore.process_element failed")
    assert "KeyError: 'k'" in race.failure
    assert race.logs[0].num_rows == 2
    with pytest.raises(
        AssertionError,
        match=r"may depend on this\)\n  in process by FailsAfterARestore, .*\n  fails with UserCodeError",
    ):
        assert_deterministic(job, LOG, **COLUMNS)


def test_a_job_that_fails_in_all_histories_fails_as_ever() -> None:
    class Fails(Totals):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            raise ValueError("no")

    with pytest.raises(UserCodeError, match="ValueError: no"):
        find_races(lambda events: keyed(events).process(Fails(), RESULT), LOG, **COLUMNS)


def test_a_function_that_goes_by_chance_is_found() -> None:
    calls = iter(range(10**6))

    class Alternates(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
            if next(calls) == len(LOG) + 3:  # once only, in the second replay
                yield Row(value.key, -1)

    (race,) = find_races(
        lambda events: keyed(events).process(Alternates(), RESULT), LOG, **COLUMNS, histories=["again"]
    )
    assert race.found[0].endswith("'total': -1}")
    assert race.logs[0].num_rows == len(LOG)
