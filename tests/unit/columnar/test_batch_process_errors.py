"""What functions over batches can do wrong, and what is said of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from jobs.batch_calls import NUMBERS, SIDE, Calls, given, keyed, nothing, run

from flinkcore.datastream import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, SchemaError, UserCodeError


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
        (give_of({"n": ["x"]}), "the output got values for the column 'n' that are not int64"),
        (give_of({"n": [1.5]}), "that are not int64: it cannot hold 1.5"),
        (give_of({"n": np.array([1.5])}), "that are not int64: Float value 1.5"),
        (give_of({"n": 1}), "got 1 as the column 'n': that is not a column"),
        (give_of((1, 2)), "the output got .1, 2., which is not a RecordBatch, Table or dict"),
        (
            give_of((SIDE, {"n": [1], "m": [1, 2]})),
            "the side output 'side' got .* not equally long: n: 1, m: 2 rows|do not fit",
        ),
        (lambda elements, ctx: 7, "it gave 7. Yield batches"),
        (lambda elements, ctx: elements.timestamps.sort(), "ValueError: .* read-only"),
        (lambda elements, ctx: elements.key_ids.put([0], [0]), "ValueError: .* read-only"),
        (lambda elements, ctx: "text", "it gave 'text'. Yield batches"),
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
            "row 1: the key id 7 is not in the current batch",
        ),
        (timers_of("delete_event_time_timers", [-1]), "row 0: the key id -1 is not in the current batch"),
        (timers_of("delete_event_time_timers", 0), "key_ids has 0 dimensions"),
        (timers_of("delete_processing_time_timers", [0.5]), "key_ids is float64"),
        (
            timers_of("register_processing_time_timers", [0], 99),
            "register no processing-time timers, as min_processing",
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
        match=r"Calls\.process_batch failed at a batch of 5 elements of 2 keys, from the key 'a' at 1 ms to the key "
        "'a' at 60 ms, with timestamps from 1 to 60: ZeroDivisionError",
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

    assert {what for what, *_ in run(Calls(register))} == {"elements"}


def test_timers_cannot_be_registered_after_the_call() -> None:
    def at_timers(timers: Any, ctx: Any) -> None:
        with pytest.raises(DataError, match="not in the current batch"):
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
        (lambda context: context.get_column_state("n", "nonsense"), "'nonsense' is not a numpy dtype"),
        (lambda context: context.get_column_state("n", "3i4"), "is not a type of one value per key"),
        (lambda context: context.get_column_state("n", [("a", int)]), "is not a type of one value per key"),
        (lambda context: context.get_column_state("n", np.int8, 300), "the default 300 is not int8"),
        (lambda context: context.get_column_state("n", int, 1.5), "the default 1.5 is not int64"),
        (lambda context: context.get_column_state("n", int, None), "the default None is not int64"),
        (lambda context: context.get_column_state("n", object, []), "all keys would share the default"),
        (lambda context: context.get_column_state("", int), "named by a string that is not empty"),
        (lambda context: [context.get_column_state("n", int) for _ in range(2)], "two states named 'n'"),
        (lambda context: context.get_column_list_state("", NUMBERS), "named by a string that is not empty"),
        (
            lambda context: [context.get_column_list_state("n", NUMBERS), context.get_column_state("n", int)],
            "two states named 'n'",
        ),
        (lambda context: context.get_column_list_state("n", pa.int64()), "'n' has a pyarrow.Schema .* not"),
        (
            lambda context: context.get_column_list_state("n", pa.schema([])),
            "'n' has a pyarrow.Schema .* not",
        ),
        (
            lambda context: context.get_column_list_state("n", pa.schema([("a", "i8"), ("a", "i8")])),
            "'n': two columns are named 'a'",
        ),
        (
            lambda context: context.get_column_list_state("n", pa.schema({"a": pa.string_view()})),
            "'n': the column 'a' has the type string_view, which no column of a checkpoint has",
        ),
        (
            lambda context: context.get_column_list_state(
                "n", pa.schema({"a": pa.list_(pa.dictionary(pa.int8(), pa.string()))})
            ),
            "'n': the column 'a' has the type .*, and a dictionary would keep the values of cleared rows",
        ),
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


@pytest.mark.parametrize(
    ("ids", "rows", "message"),
    [
        ([0], {"number": [1, 2]}, "the state 'n' got 2 rows, and 1 key ids"),
        (
            [0, 99],
            {"number": [1, 2]},
            "DataError: the state 'n' got .* which are not ids of keys; there are ",
        ),
        ([-1], {"number": [1]}, "DataError: the state 'n' got .* not ids of keys"),
        ([0.5], {"number": [1]}, "DataError: the state 'n' got .* not ids of keys"),
        (
            [0],
            {"numbers": [1]},
            "SchemaError: the state 'n' got a batch whose columns do not fit: it lacks the columns number",
        ),
        (
            [0],
            {"number": ["x"]},
            "SchemaError: the state 'n' got values for the column 'number' that are not int64",
        ),
        ([0], {"number": [None]}, "DataError: the state 'n' got a null in row 0 of the column 'number'"),
        ([0], [1], "SchemaError: the state 'n' got .* which is not a RecordBatch"),
    ],
)
def test_rows_that_a_list_cannot_take_are_refused(ids: Any, rows: Any, message: str) -> None:
    class Holds(KeyedBatchProcessFunction):
        def open(self, runtime_context: Any) -> None:
            schema = pa.schema([pa.field("number", pa.int64(), nullable=False)])
            self.held = runtime_context.get_column_list_state("n", schema)

        def process_batch(self, elements: Any, ctx: Any) -> None:
            self.held.add(ids, rows)

    with pytest.raises(UserCodeError, match=message):
        keyed().process(Holds(), NUMBERS).to_arrow()


class RowFunction(KeyedProcessFunction):
    def __init__(self, method: str) -> None:
        self.method = method

    def open(self, runtime_context: Any) -> None:
        getattr(runtime_context, self.method)("n", int)

    def process_element(self, value: Any, ctx: Any) -> None:
        pass


@pytest.mark.parametrize("method", ["get_column_state", "get_column_list_state"])
def test_a_function_of_elements_has_no_columns(method: str) -> None:
    with pytest.raises(UserCodeError, match=r"column (list )?state 'n' is for a KeyedBatchProcessFunction"):
        keyed().process(RowFunction(method), NUMBERS).to_arrow()


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
