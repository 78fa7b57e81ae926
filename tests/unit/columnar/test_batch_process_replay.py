"""Replays of functions over batches in one process, end to end."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from jobs.batch_calls import LOG, NUMBERS, SIDE, Calls, given, keyed, nothing, run, table

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, OutputTag
from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    StreamExecutionEnvironment,
)
from flinkcore.errors import UserCodeError
from flinkcore.examples import flight_inactivity, flight_inactivity_batches

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


def test_results_stay_as_they_were_given() -> None:
    buffer = np.array([1, 2])

    def give(elements: Any, ctx: Any) -> Any:
        for number in (1, 5):
            buffer[:] = number
            yield {"n": buffer}

    assert given(give, min_event_time_delay_ms=999)["n"].to_pylist() == [1, 1, 5, 5]


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
