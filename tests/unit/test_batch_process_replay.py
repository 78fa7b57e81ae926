"""Replays of functions over batches in one process, end to end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, OutputTag, WatermarkStrategy
from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TimeDomain,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, SchemaError, UserCodeError
from flinkcore.examples import flight_inactivity, flight_inactivity_batches

SIDE = OutputTag("side", pa.schema({"n": pa.int64()}))
NUMBERS = pa.schema({"n": pa.int64()})
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))


def table(*rows: tuple[Any, ...], names: str = "ts at key value") -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=names.split())


LOG = table((1, 11, "a", 1), (12, 12, "b", 2), (25, 25, "a", 3), (40, 41, "b", 4), (60, 60, "a", 5))


def keyed(log: pa.Table = LOG, *keys: str, parallelism: int = 1, interval: int = 10) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    stream = env.from_event_log(log, timestamp="ts", arrival="at")
    return stream.assign_timestamps_and_watermarks(STRATEGY).key_by(*(keys or ("key",)))


class Calls(KeyedBatchProcessFunction):
    """Does at batches what a test says, and remembers them."""

    seen: list[Any]  # of the class, as replays work on copies

    def __init__(
        self,
        at_elements: Callable[[Any, Any], Any],
        at_timers: Callable[[Any, Any], Any] | None = None,
        **declared: Any,
    ) -> None:
        self.at_elements = at_elements
        self.at_timers = at_timers
        for name, value in declared.items():
            setattr(self, name, value)
        type(self).seen = []

    def process_batch(self, elements: Any, ctx: Any) -> Any:
        self.seen.append(("elements", elements["value"].to_pylist()))
        return self.at_elements(elements, ctx)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        keys = timers.keys["key"].to_pylist()
        times = timers.timestamps.tolist(), timers.watermarks.tolist(), timers.processing_times.tolist()
        domain = "event" if timers.time_domain is TimeDomain.EVENT_TIME else "processing"
        self.seen += [(domain, *timer) for timer in zip(keys, *times, strict=True)]
        return None if self.at_timers is None else self.at_timers(timers, ctx)


def nothing(subject: Any, ctx: Any) -> None:
    pass


def run(function: Calls, log: pa.Table = LOG, **settings: Any) -> list[Any]:
    keyed(log, **settings).process(function, NUMBERS).to_arrow()
    return function.seen


def given(body: Callable[[Any, Any], Any], output_type: pa.Schema = NUMBERS, **declared: Any) -> pa.Table:
    return keyed().process(Calls(body, **declared), output_type).to_arrow()


# ---- what comes together ----


def test_a_batch_spans_steps_of_the_watermark_that_fire_nothing_of_its_keys() -> None:
    assert run(Calls(nothing, min_event_time_delay_ms=100)) == [("elements", [1, 2, 3, 4, 5])]


def test_without_a_bound_elements_of_one_key_share_a_batch_under_the_same_watermark_only() -> None:
    log = table((1, 11, "a", 1), (2, 12, "a", 2), (30, 30, "b", 3), (31, 31, "a", 4), (32, 32, "b", 5))
    assert run(Calls(nothing), log) == [("elements", [1, 2, 3]), ("elements", [4, 5])]


def test_a_key_may_come_once_in_a_batch() -> None:
    log = table(*[(1, 11, key, row) for row, key in enumerate("aabacb")])
    assert run(Calls(nothing, one_element_per_key=True), log) == [
        ("elements", [0, 2, 4]),
        ("elements", [1, 5]),
        ("elements", [3]),
    ]


def test_a_key_that_waits_for_a_timer_does_not_hold_up_the_others() -> None:
    def register(elements: Any, ctx: Any) -> None:
        rows = np.flatnonzero(elements["value"].to_numpy() == 1)
        ctx.timer_service().register_event_time_timers(elements.key_ids[rows], elements.timestamps[rows] + 9)

    log = table((1, 11, "a", 1), (20, 12, "b", 2), (25, 25, "a", 3), (40, 41, "b", 4), (60, 60, "a", 5))
    assert run(Calls(register, min_event_time_delay_ms=9), log) == [
        ("elements", [1, 2, 4]),
        ("event", "a", 10, 18, 20),
        ("elements", [3]),
        ("elements", [5]),
    ]


def test_a_timer_that_fires_in_the_batch_before_it_is_known_is_an_error_where_it_was_declared_impossible() -> (
    None
):
    def register(elements: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timers(elements.key_ids, elements.timestamps + 9)

    with pytest.raises(
        UserCodeError, match="row 0: the event-time timer at 10 of the key id 0 is earlier than 11: by"
    ):
        run(Calls(register, min_event_time_delay_ms=10))


def test_timers_of_processing_time_fire_between_elements_of_their_key() -> None:
    def register(elements: Any, ctx: Any) -> None:
        first = elements.first_of_keys()
        ctx.timer_service().register_processing_time_timers(
            elements.key_ids[first], elements.processing_times[first] + 2
        )

    assert run(Calls(register, min_processing_time_delay_ms=2, min_event_time_delay_ms=99)) == [
        ("elements", [1, 2]),
        ("processing", "a", 13, MIN_TIMESTAMP, 13),
        ("processing", "b", 14, MIN_TIMESTAMP, 14),
        ("elements", [3, 4]),
        ("processing", "a", 27, 10, 27),
        ("elements", [5]),
        ("processing", "b", 43, 23, 43),
    ]


def test_a_batch_of_timers_has_one_of_each_key_and_what_it_deletes_does_not_fire() -> None:
    def register(elements: Any, ctx: Any) -> None:
        rows = np.flatnonzero(elements["value"].to_numpy() <= 2)
        ids = elements.key_ids[rows]
        for delay in (1, 2, 3, 4):
            ctx.timer_service().register_event_time_timers(ids, 13 + delay)

    def delete(timers: Any, ctx: Any) -> None:
        ctx.timer_service().delete_event_time_timers(timers.key_ids, 15)
        if timers.timestamps[0] == 16:
            ctx.timer_service().delete_event_time_timers(timers.key_ids)

    found = [timer for timer in run(Calls(register, delete)) if timer[0] == "event"]
    assert sorted(found) == [("event", key, time, 23, 30) for key in "ab" for time in (14, 16)]


def test_what_a_timer_registers_for_a_time_that_was_reached_fires_in_the_same_advance() -> None:
    def register(elements: Any, ctx: Any) -> None:
        rows = np.flatnonzero(elements["value"].to_numpy() == 1)
        ctx.timer_service().register_event_time_timers(elements.key_ids[rows], 10)

    def again(timers: Any, ctx: Any) -> None:
        rows = timers.timestamps > 7
        ctx.timer_service().register_event_time_timers(timers.key_ids[rows], timers.timestamps[rows] - 1)

    found = [timer for timer in run(Calls(register, again)) if timer[0] == "event"]
    assert found == [("event", "a", time, 10, 20) for time in (10, 9, 8, 7)]


def test_the_end_of_the_log_fires_event_time_timers_and_no_later_processing_time_timers() -> None:
    def register(elements: Any, ctx: Any) -> None:
        ids = elements.key_ids[elements.last_of_keys()]
        ctx.timer_service().register_event_time_timers(ids, MAX_TIMESTAMP)
        ctx.timer_service().register_processing_time_timers(ids, 61)

    function = Calls(register, one_element_per_key=True)
    result = keyed().process(function, NUMBERS).execute()
    report = result.report
    assert [timer[:2] for timer in function.seen if timer[0] != "elements"] == [
        ("event", "a"),
        ("event", "b"),
    ]
    assert (report.event_time_timers, report.pending_processing_time_timers, report.processed) == (2, 2, 5)


# ---- what a function sees ----


def test_elements_come_with_their_times_and_keys() -> None:
    found: dict[str, Any] = {}

    def look(elements: Any, ctx: Any) -> None:
        found.update(
            ids=elements.key_ids.tolist(),
            timestamps=elements.timestamps.tolist(),
            watermarks=elements.watermarks.tolist(),
            clocks=elements.processing_times.tolist(),
            first=elements.first_of_keys().tolist(),
            last=elements.last_of_keys().tolist(),
            grouped=[column.tolist() for column in elements.grouped_by_key()],
            keys=ctx.keys([1, 0, 1])["key"].to_pylist(),
            columns=elements.batch.schema.names,
            n=len(elements),
        )

    given(look, min_event_time_delay_ms=10**6)
    assert found == {
        "ids": [0, 1, 0, 1, 0],
        "timestamps": [1, 12, 25, 40, 60],
        "watermarks": [MIN_TIMESTAMP, MIN_TIMESTAMP, 10, 23, 38],
        "clocks": [11, 12, 25, 41, 60],
        "first": [0, 1],
        "last": [3, 4],
        "grouped": [[0, 2, 4, 1, 3], [0, 3]],
        "keys": ["b", "a", "b"],
        "columns": ["ts", "at", "key", "value"],
        "n": 5,
    }


def test_results_are_batches_tables_or_dicts_and_their_columns_are_cast() -> None:
    schema = pa.schema({"n": pa.timestamp("ms"), "text": pa.string()})

    def give(elements: Any, ctx: Any) -> Any:
        yield {"text": ["x"], "n": np.array([1])}
        yield pa.record_batch({"n": pa.array([2], pa.int32()).cast(pa.int64()), "text": ["y"]})
        yield pa.table({"text": pa.chunked_array([["z"], [None]]), "n": [3, 4]})
        yield SIDE, {"n": [7]}
        yield OutputTag("unknown"), {"n": [7, 8]}
        yield {"text": [], "n": []}

    result = keyed().process(Calls(give, min_event_time_delay_ms=999), schema, side_outputs=[SIDE]).execute()
    assert result.to_arrow()["n"].cast(pa.int64()).to_pylist() == [1, 2, 3, 4]
    assert result.to_arrow()["text"].to_pylist() == ["x", "y", "z", None]
    assert result.get_side_output(SIDE).to_arrow().to_pylist() == [{"n": 7}]
    assert (result.report.results, result.report.side_results, result.report.dropped_side_results) == (
        4,
        1,
        2,
    )


@pytest.mark.parametrize(
    "returned", [{"n": [5]}, pa.record_batch({"n": [5]}), [{"n": np.array([5])}], pa.table({"n": [5]})]
)
def test_one_batch_may_be_returned_as_it_is(returned: Any) -> None:
    assert given(lambda elements, ctx: returned, min_event_time_delay_ms=999).to_pylist() == [{"n": 5}]


class CountKeys(KeyedBatchProcessFunction):
    one_element_per_key = True

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_column_state("count", np.int32, -1)
        self.text = runtime_context.get_column_state("text", "U3", "no")

    def process_batch(self, elements: Any, ctx: Any) -> Any:
        assert (self.count[elements.key_ids] == -1).all()
        assert len(self.count) == len(self.text)
        self.count[elements.key_ids] += elements["value"].to_numpy() + 2
        self.text[elements.key_ids] = "yes"
        ctx.timer_service().register_event_time_timers(elements.key_ids, elements.timestamps)
        self.count.clear(elements.key_ids[:1])

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        counts = self.count[timers.key_ids]
        assert (self.text[timers.key_ids] == "yes").all()
        return {"n": counts, "key": timers.keys["key"]}


def test_state_grows_with_the_keys() -> None:
    n = 70_000
    log = pa.table(
        {
            "ts": np.arange(n),
            "at": np.arange(n),
            "key": [f"k{row}" for row in range(n)],
            "value": np.arange(n),
        }
    )
    schema = pa.schema({"n": pa.int64(), "key": pa.string()})
    found = keyed(log).process(CountKeys(), schema).to_arrow().to_pylist()
    cleared = {row["key"] for row in found if row["n"] == -1}
    assert len(cleared) < 10
    assert all(row["key"] == f"k{row['n'] - 1}" for row in found if row["n"] != -1)
    assert len({row["key"] for row in found}) == n


def test_a_key_may_have_several_columns() -> None:
    def register(elements: Any, ctx: Any) -> None:
        last = elements.last_of_keys()
        ctx.timer_service().register_event_time_timers(elements.key_ids[last], MAX_TIMESTAMP)

    class Keys(Calls):
        def on_timers(self, timers: Any, ctx: Any) -> Any:
            self.seen.append(timers.keys.to_pylist())

    function = Keys(register)
    keyed(LOG, "key", "value").process(function, NUMBERS).to_arrow()
    assert function.seen[-1] == [{"key": "ababa"[row], "value": row + 1} for row in range(5)]


def test_the_example_over_batches_gives_the_rows_of_the_example_by_flight() -> None:
    def rows(example: Any, columns: list[str]) -> list[list[tuple[Any, ...]]]:
        result = example.silent_airports(StreamExecutionEnvironment.get_execution_environment()).execute()
        side = result.get_side_output(example.RESUMED).to_arrow()
        tables = result.to_arrow().select(columns), side.select(["origin", "silent_for"])
        return [sorted(zip(*table.to_pydict().values(), strict=True)) for table in tables]

    columns = flight_inactivity_batches.ALERTS.names
    alerts, silences = rows(flight_inactivity_batches, columns)
    assert len(alerts) > 500 < len(silences) + 100
    assert [alerts, silences] == rows(flight_inactivity, columns)


def test_a_plan_says_that_the_function_gets_batches() -> None:
    text = keyed().process(Calls(nothing), NUMBERS).explain()
    assert "[columnar] process by Calls, called for batches of rows and timers: n" in text


# ---- what goes wrong ----


def give_of(value: Any) -> Callable[[Any, Any], Any]:
    return lambda elements, ctx: [value]


def timers_of(method: str, ids: Any, *times: Any) -> Callable[[Any, Any], Any]:
    return lambda elements, ctx: getattr(ctx.timer_service(), method)(ids, *times)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            give_of({"n": [1], "m": [2]}),
            "SchemaError: the output got a batch whose columns do not fit: it has the unknown",
        ),
        (give_of({"m": [1]}), "it lacks the columns n; it has the unknown columns m"),
        (give_of({"n": ["x"]}), "the output got values for the column 'n' that are no int64"),
        (give_of({"n": [1.5]}), "that are no int64: Float value 1.5"),
        (give_of({"n": np.array([1.5])}), "that are no int64: Float value 1.5"),
        (give_of({"n": 1}), "got 1 as the column 'n': that is no column"),
        (give_of((1, 2)), "the output got .1, 2., which is no RecordBatch, Table or dict"),
        (
            give_of((SIDE, {"n": [1], "m": [1, 2]})),
            "the side output 'side' got .* not equally long: n: 1, m: 2 rows|do not fit",
        ),
        (lambda elements, ctx: 7, "it gave 7: yield batches"),
        (lambda elements, ctx: "text", "it gave 'text': yield batches"),
        (
            timers_of("register_event_time_timers", [0, 1], [5]),
            r"timestamps has the shape \(1,\), key_ids has 2 rows",
        ),
        (
            timers_of("register_event_time_timers", [0], [5.0]),
            "timestamps is float64; pass integers of 64 bits, times as ms",
        ),
        (timers_of("register_event_time_timers", [0], [None]), "timestamps is object; pass integers"),
        (
            timers_of("register_event_time_timers", [0], pa.array([None], pa.int64())),
            "timestamps has 1 nulls",
        ),
        (
            timers_of("register_event_time_timers", [0], np.array(["2001-01-01"], "M8[ms]")),
            r"timestamps is datetime64\[ms\]",
        ),
        (timers_of("register_event_time_timers", [0], [2**63]), "timestamps is uint64"),
        (
            timers_of("register_event_time_timers", [0, 7], 5),
            "row 1: the key id 7 is none of the batch at hand",
        ),
        (timers_of("delete_event_time_timers", [-1]), "row 0: the key id -1 is none of the batch"),
        (timers_of("delete_event_time_timers", 0), "key_ids has 0 dimensions"),
        (timers_of("delete_processing_time_timers", [0.5]), "key_ids is float64"),
        (
            timers_of("register_processing_time_timers", [0], 99),
            "register no processing-time timers, as min_processing_time",
        ),
        (
            lambda elements, ctx: ctx.keys([0, 2]),
            r"there is no key of some of these ids: \[0, 2\]; there are 2 keys",
        ),
    ],
)
def test_what_a_function_does_wrong_is_named(body: Callable[[Any, Any], Any], message: str) -> None:
    with pytest.raises(UserCodeError, match=message) as raised:
        keyed().process(Calls(body), NUMBERS, side_outputs=[SIDE]).to_arrow()
    assert str(raised.value).startswith(
        "Calls.process_batch failed at a batch of 2 elements of 2 keys, from the key 'a'"
    )


def test_a_failure_names_the_method_and_the_keys_and_timestamps_of_the_batch() -> None:
    with pytest.raises(
        UserCodeError,
        match=r"Calls\.process_batch failed at a batch of 5 elements of 2 keys, from the key 'a' at 1 ms to the key 'a' "
        "at 60 ms, with timestamps from 1 to 60: ZeroDivisionError",
    ) as raised:
        given(lambda elements, ctx: 1 / 0, min_event_time_delay_ms=999)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_failure_of_timers_names_them() -> None:
    def register(elements: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timers(elements.key_ids, 70)

    def fail(timers: Any, ctx: Any) -> Any:
        yield {"n": [1]}
        raise KeyError("lost")

    with pytest.raises(
        UserCodeError,
        match=r"Calls\.on_timers failed at a batch of 2 event-time timers, from the key 'a' at 70 ms to the key 'b' at",
    ):
        run(Calls(register, fail))


def test_nothing_is_registered_where_a_row_is_wrong() -> None:
    def register(elements: Any, ctx: Any) -> None:
        with pytest.raises(DataError):
            ctx.timer_service().register_event_time_timers([*elements.key_ids, 99], 500)

    assert all(what == "elements" for what, *_ in run(Calls(register)))


def test_timers_cannot_be_registered_after_the_call() -> None:
    def at_timers(timers: Any, ctx: Any) -> None:
        with pytest.raises(DataError, match="none of the batch"):
            ctx.timer_service().register_event_time_timers([1 - timers.key_ids[0]], 500)

    def register(elements: Any, ctx: Any) -> None:
        ids = elements.key_ids[elements["value"].to_numpy() == 5]
        ctx.timer_service().register_event_time_timers(ids, 100)

    assert run(Calls(register, at_timers))[-1][:2] == ("event", "a")


def opening(body: Callable[[Any], Any]) -> KeyedBatchProcessFunction:
    class Opening(Calls):
        def open(self, runtime_context: Any) -> None:
            body(runtime_context)

    return Opening(nothing)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda context: context.get_column_state("n", "nonsense"), "'nonsense' is no numpy dtype"),
        (lambda context: context.get_column_state("n", "3i4"), "is no type of one value per key"),
        (lambda context: context.get_column_state("n", [("a", int)]), "is no type of one value per key"),
        (lambda context: context.get_column_state("n", np.int8, 300), "the default 300 is no int8"),
        (lambda context: context.get_column_state("n", int, 1.5), "the default 1.5 is no int64"),
        (lambda context: context.get_column_state("n", int, None), "the default None is no int64"),
        (lambda context: context.get_column_state("n", object, []), "all keys would share the default"),
        (lambda context: context.get_column_state("", int), "named by a string that is not empty"),
        (lambda context: [context.get_column_state("n", int) for _ in range(2)], "two states named 'n'"),
        (
            lambda context: context.get_state(ValueStateDescriptor("v")),
            "the state 'v': a function over batches has no",
        ),
    ],
)
def test_states_that_cannot_be_are_refused(body: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(UserCodeError, match="open failed: ConfigurationError: .*" + message):
        keyed().process(opening(body), NUMBERS).to_arrow()


def test_a_state_is_asked_for_in_open_only() -> None:
    held: list[Any] = []

    def late(elements: Any, ctx: Any) -> None:
        with pytest.raises(LifecycleError, match="'n' is to be asked for in open"):
            held[0].get_column_state("n", int)

    class Late(Calls):
        def open(self, runtime_context: Any) -> None:
            held.append(runtime_context)

    run(Late(late))


class RowFunction(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        runtime_context.get_column_state("n", int)

    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def test_a_function_of_elements_has_no_columns() -> None:
    with pytest.raises(UserCodeError, match="column state 'n' is for a KeyedBatchProcessFunction"):
        keyed().process(RowFunction(), NUMBERS).to_arrow()


@pytest.mark.parametrize("delay", ["5", 1.5, True, 2**63])
def test_a_delay_that_is_none_is_refused(delay: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"Calls\.min_event_time_delay_ms is a number of milliseconds as an int"
    ):
        run(Calls(nothing, min_event_time_delay_ms=delay))


def test_a_column_of_record_timestamps_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"timestamp_column='t': .* make them a column of the output_type"
    ):
        keyed().process(Calls(nothing), NUMBERS, timestamp_column="t")


def test_a_null_key_is_an_error() -> None:
    log = pa.table({"ts": [1], "at": [1], "key": pa.array([None], pa.string()), "value": [1]})
    with pytest.raises(DataError, match="key column 'key' is null"):
        run(Calls(nothing), log)


def test_a_key_column_without_a_type_is_refused() -> None:
    log = pa.table({"ts": [1], "at": [1], "key": pa.nulls(1), "value": [1]})
    with pytest.raises(SchemaError, match="key column 'key' has no type"):
        run(Calls(nothing), log)


def test_the_function_is_closed_after_a_failure_too() -> None:
    closed = []

    class Closing(Calls):
        def close(self) -> None:
            closed.append(True)

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    for body in (nothing, lambda elements, ctx: 1 / 0):
        try:
            run(Closing(body))
        except UserCodeError:
            closed.append(False)
    assert closed == [True, True, False]
