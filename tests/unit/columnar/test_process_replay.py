"""Replays of keyed process functions in one process, end to end."""

import copy
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from flinkcore._native.key_groups import assign_key_to_parallel_operator
from flinkcore.columnar.stages import result_batches
from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    OutputTag,
    Row,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, SchemaError, UserCodeError

SEEN = pa.schema({"key": pa.string(), "what": pa.string(), "watermark": pa.int64(), "clock": pa.int64()})
SIDE = OutputTag("side", pa.schema({"n": pa.int64()}))
BAD = OutputTag("bad")
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))


def table(*rows: tuple[Any, ...], names: str = "ts at key value") -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=names.split())


def environment(parallelism: int = 1, interval: int = 10) -> StreamExecutionEnvironment:
    found = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    found.get_config().set_auto_watermark_interval(interval)
    return found


def keyed(log: pa.Table, env: StreamExecutionEnvironment | None = None, *keys: str, **options: Any) -> Any:
    settings = {"timestamp": "ts", "arrival": "at", "integer_times": True} | options
    stream = (env or environment()).from_event_log(log, **settings)
    return stream.assign_timestamps_and_watermarks(STRATEGY).key_by(*(keys or ("key",)))


class Calls(KeyedProcessFunction):
    """Does at elements and timers what a test says, and tells what it sees."""

    def __init__(
        self, at_element: Callable[[Any, Any], Any], at_timer: Any = lambda timestamp, timers: None
    ) -> None:
        self.at_element = at_element
        self.at_timer = at_timer

    def process_element(self, value: Row, ctx: Any) -> Any:
        timers = ctx.timer_service()
        self.at_element(value, timers)
        yield self._seen(f"element {value.value}", ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self._seen(f"{ctx.time_domain().name} {timestamp}", ctx)
        self.at_timer(timestamp, ctx.timer_service())

    def _seen(self, what: str, ctx: Any) -> tuple[Any, ...]:
        timers = ctx.timer_service()
        return ctx.get_current_key(), what, timers.current_watermark(), timers.current_processing_time()


def seen(stream: DataStream) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:] for row in stream.to_arrow().to_pylist()]


class Give(KeyedProcessFunction):
    """Gives what a function makes of an element."""

    def __init__(self, body: Callable[[Row, Any], Any]) -> None:
        self.body = body

    def process_element(self, value: Row, ctx: Any) -> Any:
        return self.body(value, ctx)


# ---- what happens when ----


def test_a_processing_time_timer_comes_before_the_tick_of_its_time_and_after_the_events() -> None:
    def at_element(value: Row, timers: Any) -> None:
        if value.value == 1:
            timers.register_processing_time_timer(20)
            timers.register_event_time_timer(15)

    log = table((1, 11, "a", 1), (17, 20, "a", 2), (17, 20, "a", 3), (30, 31, "a", 4))
    assert seen(keyed(log).process(Calls(at_element), SEEN)) == [
        ("element 1", MIN_TIMESTAMP, 11),
        ("element 2", MIN_TIMESTAMP, 20),
        ("element 3", MIN_TIMESTAMP, 20),
        ("PROCESSING_TIME 20", MIN_TIMESTAMP, 20),
        ("EVENT_TIME 15", 15, 20),
        ("element 4", 15, 31),
    ]


def test_a_timer_for_a_time_that_has_passed_fires_after_all_events_of_the_present_arrival() -> None:
    def at_element(value: Row, timers: Any) -> None:
        if value.value == 1:
            timers.register_processing_time_timer(-5)

    log = table((1, 11, "a", 1), (1, 11, "a", 2), (1, 12, "a", 3))
    assert [what for what, *_ in seen(keyed(log).process(Calls(at_element), SEEN))] == [
        "element 1",
        "element 2",
        "PROCESSING_TIME -5",
        "element 3",
    ]


class MaximumAt20(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp == 20:
            output.emit_watermark(Watermark(MAX_TIMESTAMP))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_a_processing_time_timer_due_at_the_end_fires_also_behind_the_maximum_watermark() -> None:
    def at_element(value: Row, timers: Any) -> None:
        timers.register_processing_time_timer(0)

    log = table((1, 11, "a", 1), (20, 12, "a", 2), (3, 13, "a", 3))
    stream = environment().from_event_log(log, timestamp="ts", integer_times=True, arrival="at")
    stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(MaximumAt20))
    assert seen(stream.key_by("key").process(Calls(at_element), SEEN)) == [
        ("element 1", MIN_TIMESTAMP, 11),
        ("PROCESSING_TIME 0", MIN_TIMESTAMP, 11),
        ("element 2", MIN_TIMESTAMP, 12),
        ("PROCESSING_TIME 0", MAX_TIMESTAMP, 12),
        ("element 3", MAX_TIMESTAMP, 13),
        ("PROCESSING_TIME 0", MAX_TIMESTAMP, 13),
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_behind_the_maximum_watermark_timers_wait_for_the_end_and_the_clock_goes_on(parallelism: int) -> None:
    def at_element(value: Row, timers: Any) -> None:
        timers.register_event_time_timer(value.ts + 100)
        timers.register_processing_time_timer(value.at + 3)

    def at_timer(timestamp: int, timers: Any) -> None:
        if timestamp == 101:
            timers.register_event_time_timer(5)

    log = table((1, 11, "before", 1), (20, 12, "ends", 2), (3, 20, "behind", 3), (4, 40, "last", 4))
    stream = environment(parallelism).from_event_log(log, timestamp="ts", integer_times=True, arrival="at")
    stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(MaximumAt20))
    stream = stream.key_by("key").process(Calls(at_element, at_timer), SEEN)
    found: dict[str, list[Any]] = {}
    for row in stream.to_arrow().to_pylist():
        found.setdefault(row["key"], []).append((row["what"], row["watermark"], row["clock"]))
    assert found == {
        "before": [
            ("element 1", MIN_TIMESTAMP, 11),
            ("EVENT_TIME 101", MAX_TIMESTAMP, 12),
            ("EVENT_TIME 5", MAX_TIMESTAMP, 12),
            ("PROCESSING_TIME 14", MAX_TIMESTAMP, 14),
        ],
        "ends": [
            ("element 2", MIN_TIMESTAMP, 12),
            ("EVENT_TIME 120", MAX_TIMESTAMP, 12),
            ("PROCESSING_TIME 15", MAX_TIMESTAMP, 15),
        ],
        "behind": [
            ("element 3", MAX_TIMESTAMP, 20),
            ("PROCESSING_TIME 23", MAX_TIMESTAMP, 23),
            ("EVENT_TIME 103", MAX_TIMESTAMP, 40),
        ],
        "last": [("element 4", MAX_TIMESTAMP, 40), ("EVENT_TIME 104", MAX_TIMESTAMP, 40)],
    }


def test_what_a_watermark_registers_for_the_past_fires_before_later_events() -> None:
    log = table((1, 1, "a", 1), (50, 2, "a", 2), (51, 25, "a", 3))
    stream = keyed(log).process(
        Calls(
            lambda value, timers: timers.register_event_time_timer(value.ts + 3),
            lambda timestamp, timers: timestamp == 4 and timers.register_processing_time_timer(7),
        ),
        SEEN,
    )
    assert seen(stream)[2:5] == [
        ("EVENT_TIME 4", 48, 10),
        ("PROCESSING_TIME 7", 48, 10),
        ("element 3", 48, 25),
    ]


def test_at_the_end_event_time_timers_fire_in_order_and_later_processing_time_timers_do_not() -> None:
    def at_element(value: Row, timers: Any) -> None:
        timers.register_event_time_timer(value.value)
        timers.register_processing_time_timer(40 + value.value)

    log = table((1, 35, "a", 300), (1, 36, "b", 100), (2, 45, "a", 5), (3, 45, "b", MAX_TIMESTAMP - 40))
    stream = keyed(log).process(Calls(at_element), SEEN)
    assert seen(stream)[4:] == [
        ("PROCESSING_TIME 45", -1, 45),
        ("EVENT_TIME 5", MAX_TIMESTAMP, 45),
        ("EVENT_TIME 100", MAX_TIMESTAMP, 45),
        ("EVENT_TIME 300", MAX_TIMESTAMP, 45),
        (f"EVENT_TIME {MAX_TIMESTAMP - 40}", MAX_TIMESTAMP, 45),
    ]
    report = stream.execute().report
    assert (report.event_time_timers, report.processing_time_timers) == (4, 1)
    assert report.pending_processing_time_timers == 3


@pytest.mark.parametrize("parallelism", [1, 5])
def test_the_log_ends_at_one_time_in_all_partitions(parallelism: int) -> None:
    log = table((1, 1, "early", 1), (1, 90, "late", 2))
    function = Calls(lambda value, timers: timers.register_processing_time_timer(value.at + 70))
    stream = keyed(log, environment(parallelism)).process(function, SEEN)
    assert [row["what"] for row in stream.to_arrow().to_pylist() if row["key"] == "early"] == [
        "element 1",
        "PROCESSING_TIME 71",
    ]


def test_without_a_strategy_there_are_no_watermarks_but_timestamps() -> None:
    log = table((7, 1, "a", 1), (9, 1000, "a", 2))
    stream = (
        environment()
        .from_event_log(log, timestamp="ts", integer_times=True, arrival="at")
        .select("key", "value", "at")
        .key_by("key")
        .process(
            Calls(lambda value, timers: timers.register_event_time_timer(3)), SEEN, timestamp_column="time"
        )
    )
    result = stream.execute()
    warning = (
        r"1 event-time timer of Calls \(process-1\) fired at the end of the log only: the log has no watermark strategy"
        r".* Call assign_timestamps_and_watermarks\("
    )
    with pytest.warns(UserWarning, match=warning):
        rows = result.to_arrow().to_pylist()
    assert re.fullmatch(f"{warning}.*", *result.report.warnings)
    assert [(row["what"], row["watermark"], row["time"]) for row in rows] == [
        ("element 1", MIN_TIMESTAMP, 7),
        ("element 2", MIN_TIMESTAMP, 9),
        ("EVENT_TIME 3", MAX_TIMESTAMP, 3),
    ]


def test_a_log_without_events_gives_no_rows() -> None:
    log = table((7, 1, "a", 1)).slice(0, 0)
    stream = keyed(log, environment(2)).process(Calls(lambda value, timers: None), SEEN)
    assert stream.to_arrow().num_rows == 0
    assert stream.to_arrow().schema == SEEN
    assert stream.execute().report.processed == 0


# ---- elements, keys, results ----


def test_elements_are_rows_of_the_columns_that_the_steps_leave() -> None:
    stream = (
        environment()
        .from_event_log(
            table((5, 1, "a", 2), (6, 2, "a", 9)), timestamp="ts", integer_times=True, arrival="at"
        )
        .filter(pc.field("value") < 5)
        .assign_timestamps_and_watermarks(STRATEGY)
        .select("key", double=pc.field("value") * 2)
        .key_by("key")
        .process(Give(lambda value, ctx: [{"x": repr(value)}]), pa.schema({"x": pa.string()}))
    )
    result = stream.execute()
    assert result.to_arrow().column("x").to_pylist() == ["Row(key='a', double=4)"]
    assert (result.report.filtered, result.report.processed) == (1, 1)
    assert "1 processed" in str(result.report)
    assert "1 filtered" in str(result.report)


def test_timestamps_of_records_have_the_type_of_the_event_time() -> None:
    log = table((7, 1, "a", 1))
    log = log.set_column(0, "ts", log["ts"].cast(pa.timestamp("ms", "Europe/Berlin")))
    stream = keyed(log, integer_times=False).process(
        Give(lambda value, ctx: [1]), pa.schema({"n": pa.int64()}), timestamp_column="t"
    )
    assert stream.to_arrow().schema.field("t").type == pa.timestamp("ms", "Europe/Berlin")
    assert stream.to_arrow().column("t").cast(pa.int64()).to_pylist() == [7]


def test_a_key_of_several_columns_is_a_tuple_and_null_keys_are_bad_rows() -> None:
    stream = keyed(table((1, 1, "a", 2), (2, 2, None, 3)), None, "key", "value").process(
        Give(lambda value, ctx: [repr(ctx.get_current_key())]), pa.schema({"k": pa.string()})
    )
    assert stream.to_arrow().column("k").to_pylist() == ["('a', 2)", "(None, 3)"]
    with pytest.raises(DataError, match="key column 'key' is null"):
        keyed(table((1, 1, "a", 2), (2, 2, None, 3))).process(Give(lambda value, ctx: []), SEEN).to_arrow()


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([-1, 5, -(2**31), 70000] * 20, pa.int32()),
        pa.array([0.0, -0.0, float("nan"), -1.5] * 20),
        pa.array([b"x", b"", b"yy", b"z"] * 20),
        pa.array([True, False] * 40),
        pa.array([0, 86_400_000, 3_600_000, -5] * 20, pa.timestamp("ms", "Europe/Berlin")),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_all_types_are_counted_apart_and_in_the_subtask_of_their_key_group(keys: pa.Array) -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.task = runtime_context
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value: Row, ctx: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            task = self.task
            name = task.get_task_name_with_subtasks()
            yield value.value, self.count.value(), task.get_index_of_this_subtask(), name

    log = pa.table({"ts": range(80), "at": range(80), "key": keys, "value": range(80)})
    schema = pa.schema({"value": pa.int64(), "n": pa.int64(), "subtask": pa.int64(), "name": pa.string()})
    results = {}
    for parallelism in (1, 3):
        rows = keyed(log, environment(parallelism)).process(Count(), schema).to_arrow().sort_by("value")
        results[parallelism] = rows.column("n").to_pylist()
        subtasks = assign_key_to_parallel_operator(keys, 128, parallelism).tolist()
        assert rows.column("subtask").to_pylist() == subtasks
        assert rows.column("name").to_pylist() == [
            f"{Count.__qualname__} ({subtask + 1}/{parallelism})" for subtask in subtasks
        ]
    distinct = len({str(key) for key in keys.to_pylist()})
    assert results[1] == results[3] == [row // distinct + 1 for row in range(80)]


# ---- side outputs ----


def numbers(value: Row, ctx: Any) -> Any:
    yield SIDE, value.value
    yield OutputTag("other"), value.value
    yield value.value * 10


NUMBERS = pa.schema({"x": pa.int64()})
LOG = table((1, 1, "a", 1), (2, 2, "b", 2))


def test_side_outputs_may_be_named_with_the_function() -> None:
    result = keyed(LOG).process(Give(numbers), NUMBERS, side_outputs=[SIDE], timestamp_column="t").execute()
    assert result.to_arrow().to_pylist() == [{"x": 10, "t": 1}, {"x": 20, "t": 2}]
    side = result.get_side_output(OutputTag("side")).to_arrow()
    assert side.to_pylist() == [{"n": 1, "t": 1}, {"n": 2, "t": 2}]
    assert (result.report.results, result.report.side_results, result.report.dropped_side_results) == (
        2,
        2,
        2,
    )
    assert "2 rows for side outputs that nobody asked for, dropped" in str(result.report)


def test_side_outputs_may_be_asked_for_later(tmp_path: Path) -> None:
    stream = keyed(LOG).process(Give(numbers), NUMBERS)
    assert stream.get_side_output(SIDE).to_arrow().column("n").to_pylist() == [1, 2]
    assert stream.execute().report.dropped_side_results == 4
    report = stream.write_parquet(tmp_path / "main", {SIDE: tmp_path / "side"})
    assert ds.dataset(tmp_path / "side").to_table().column("n").to_pylist() == [1, 2]
    assert ds.dataset(tmp_path / "main").to_table().column("x").to_pylist() == [10, 20]
    assert report.side_results == 2


def test_rejected_rows_have_a_side_output_beside_those_of_the_function() -> None:
    log = table((1, 1, "a", 1), (None, 2, "b", 2))
    stream = keyed(log, on_bad_row=BAD).process(Give(numbers), NUMBERS, side_outputs=[SIDE])
    result = stream.execute()
    assert result.get_side_output(BAD).to_arrow().column("reason").to_pylist() == ["null timestamp"]
    assert result.get_side_output(SIDE).to_arrow().column("n").to_pylist() == [1]
    assert (result.report.processed, result.report.rejected.total()) == (1, 1)
    with pytest.raises(ConfigurationError, match="'side' is named for both the function's and rejected rows"):
        keyed(log, on_bad_row=SIDE).process(Give(numbers), NUMBERS, side_outputs=[SIDE]).execute()


# ---- the function's life ----


class Life(KeyedProcessFunction):
    """Writes down, in a list that copies share, what is called."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.called: list[str] = []
        self.elements = 0

    def __deepcopy__(self, memo: Any) -> "Life":
        return copy.copy(self)

    def _call(self, method: str) -> None:
        self.called.append(method)
        if method == self.failing:
            raise ValueError("unlucky")

    def open(self, runtime_context: RuntimeContext) -> None:
        self._call("open")

    def process_element(self, value: Row, ctx: Any) -> Any:
        self.elements += 1
        ctx.timer_service().register_event_time_timer(1)
        self._call("process_element")

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self._call("on_timer")

    def close(self) -> None:
        self._call("close")


def test_every_partition_opens_and_closes_a_copy_of_its_own_at_every_run() -> None:
    life = Life()
    stream = keyed(LOG, environment(3)).process(life, NUMBERS)
    for _ in range(2):
        list(stream.to_batches())
        assert [life.called.count(method) for method in ("open", "close")] == [3, 3]
        assert life.called[-1] == "close"
        life.called.clear()
    assert life.elements == 0


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("open", "Life.open failed: ValueError: unlucky"),
        (
            "process_element",
            r"Life.process_element failed at the element Row\(ts=1, at=1, key='.', value=1\) of the key '.' "
            "with the timestamp 1: ValueError: unlucky",
        ),
        ("on_timer", "Life.on_timer failed at the timer at 1 ms of the key '.': ValueError: unlucky"),
        ("close", "Life.close failed: ValueError: unlucky"),
    ],
)
def test_failures_name_what_was_called_and_every_opened_copy_is_closed(
    parallelism: int, failing: str, message: str
) -> None:
    life = Life(failing)
    with pytest.raises(UserCodeError, match=message) as failure:
        keyed(LOG.slice(0, 1), environment(parallelism)).process(life, NUMBERS).to_arrow()
    assert isinstance(failure.value.__cause__, ValueError)
    assert life.called.count("close") == life.called.count("open")


def test_the_failure_of_a_processing_time_timer_is_told_like_others() -> None:
    class Failing(Life):
        def process_element(self, value: Row, ctx: Any) -> Any:
            ctx.timer_service().register_processing_time_timer(2)

    with pytest.raises(UserCodeError, match="on_timer failed at the timer at 2 ms of the key 'a'") as failure:
        keyed(LOG).process(Failing("on_timer"), NUMBERS).to_arrow()
    assert isinstance(failure.value.__cause__, ValueError)


def test_an_error_of_a_call_hides_one_of_the_closing() -> None:
    class Failing(Life):
        def close(self) -> None:
            raise KeyError("close")

    with pytest.raises(UserCodeError, match="unlucky"):
        keyed(LOG).process(Failing("process_element"), NUMBERS).to_arrow()


def test_a_result_that_does_not_fit_is_named_with_column_key_and_element() -> None:
    stream = keyed(LOG).process(Give(lambda value, ctx: ["x"] if value.value == 2 else [1]), NUMBERS)
    with pytest.raises(
        UserCodeError,
        match=r"the output of Give got 'x' from the element Row\(ts=2, at=2, key='b', value=2\) of the key 'b' with "
        r"the timestamp 2: 'x' \(str\) in the column 'x', which is int64: ",
    ):
        stream.to_arrow()


@pytest.mark.parametrize(
    ("register", "result", "message"),
    [
        (
            "register_event_time_timer",
            "x",
            "the output of .* got 'x' from the timer at 2 ms of the key 'a': ",
        ),
        (
            "register_processing_time_timer",
            "x",
            "the output of .* got 'x' from a processing-time timer of the key 'a': ",
        ),
        (
            "register_processing_time_timer",
            (SIDE, "x"),
            "the side output 'side' of .* got 'x' from the timer at 2 ms of the key 'a': ",
        ),
    ],
)
def test_a_result_of_a_timer_that_does_not_fit_is_named_with_the_timer(
    register: str, result: Any, message: str
) -> None:
    class AtTimer(KeyedProcessFunction):
        def process_element(self, value: Row, ctx: Any) -> Any:
            getattr(ctx.timer_service(), register)(2)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            return [result]

    with pytest.raises(UserCodeError, match=message):
        keyed(LOG).process(AtTimer(), NUMBERS, side_outputs=[SIDE]).to_arrow()


def test_a_function_that_cannot_be_copied_is_refused() -> None:
    function = Give(numbers)
    function.numbers = (number for number in [1])  # type: ignore[attr-defined]
    with pytest.raises(
        UserCodeError, match=r"Give cannot be copied, .* Make what cannot be copied in open\(\)"
    ):
        keyed(LOG).process(function, NUMBERS).to_arrow()


def test_a_result_that_is_not_read_to_its_end_closes_its_functions() -> None:
    life = Life()
    batches = keyed(LOG, environment(2)).process(life, NUMBERS).to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert life.called.count("close") == life.called.count("open") == 2


# ---- what is refused ----


class Unkeyed(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.process(Unkeyed(), NUMBERS), "takes a KeyedProcessFunction or .*, not .*Unkeyed"),
        (lambda s: s.process(Give, NUMBERS), "takes a KeyedProcessFunction or .*, not <class"),
        (
            lambda s: s.process(Give(numbers)).to_arrow(),
            "runs element by element, because of the step 'process by .*process\\(function, schema\\) with the ",
        ),
        (
            lambda s: s.elements().filter(lambda row: True).to_arrow(),
            "runs element by element, because of the step 'filter by .* pyarrow.compute.field\\('price'\\) > 100",
        ),
        (
            lambda s: s.map(lambda row: row).to_arrow(),
            "runs element by element, because of the step 'map by .* columns of the log: with_columns\\(x=...\\)",
        ),
        (
            lambda s: s.process(Give(numbers), pa.int64()),
            "takes an output_type that is a pyarrow.Schema, .*, not DataType",
        ),
        (
            lambda s: s.process(Give(numbers), Types.INT()),
            r"a type of Types is for .*: call elements\(\) first",
        ),
        (lambda s: s.filter(lambda row: True), r"goes to map, .*, or to filter of elements\(\)"),
        (
            lambda s: s.process(Give(numbers), pa.schema([])),
            "the output_type of process needs at least one column",
        ),
        (
            lambda s: s.process(Give(numbers), pa.schema([("a", pa.int8()), ("a", pa.int8())])),
            "names columns twice: a",
        ),
        (
            lambda s: s.process(
                Give(numbers), pa.schema({"a": pa.list_(pa.dictionary(pa.uint16(), pa.string()))})
            ),
            r"the column 'a' .* Declare indices of 32 bits, as in pyarrow.dictionary\(pyarrow.int32\(\), ",
        ),
        (
            lambda s: s.process(Give(numbers), NUMBERS, side_outputs=[OutputTag("s")]),
            r"type_info of OutputTag\('s'\), a side output of process, is a pyarrow.Schema",
        ),
        (
            lambda s: s.process(Give(numbers), NUMBERS, side_outputs=[SIDE, SIDE]),
            "the side output 'side' twice",
        ),
        (lambda s: s.process(Give(numbers), NUMBERS, side_outputs=["s"]), "named by an OutputTag, not 's'"),
        (
            lambda s: s.process(Give(numbers), NUMBERS, timestamp_column="x"),
            "timestamp_column='x' is a column of the output_type of process already",
        ),
        (
            lambda s: s.process(Give(numbers), NUMBERS, side_outputs=[SIDE], timestamp_column="n"),
            "timestamp_column='n' is a column of the type_info of OutputTag",
        ),
        (
            lambda s: s.process(Give(numbers), NUMBERS).get_side_output(OutputTag("s")),
            r"type_info of OutputTag\('s'\), a side output of process, is a pyarrow.Schema",
        ),
        (
            lambda s: s.process(Give(numbers), NUMBERS).execute().get_side_output(SIDE),
            r"no side output is named 'side'; this job has: none; name it in side_outputs=",
        ),
        (
            lambda s: DataStream.process(s, Give(numbers), NUMBERS),
            "on a stream without keys takes a ProcessFunction",
        ),
        (
            lambda s: OutputTag("s", int),
            r"the type of OutputTag\('s'\) is a type such as .*, or a pyarrow.Schema",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_with_what_to_do(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(keyed(LOG))


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(SchemaError, match="the key: there is no column 'who'; columns: ts, at, key, value"):
        keyed(LOG, None, "who").process(Give(numbers), NUMBERS).to_arrow()


def test_explain_tells_that_rows_are_python_objects() -> None:
    text = keyed(LOG).process(Give(numbers), NUMBERS, side_outputs=[SIDE], timestamp_column="t").explain()
    assert text.endswith(
        "4. [rows] process by Give, Python called for each row and timer: x, t; side outputs side"
    )
    assert "3. [columnar] key by key" in text


class Endless(KeyedProcessFunction):
    """Gives for each element numbers without end, and notes how far it has come."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def __deepcopy__(self, memo: Any) -> "Endless":
        return self

    def process_element(self, value: Row, ctx: Any) -> Any:
        for number in count():
            self.seen[0] = number
            assert (ctx.get_current_key(), ctx.timestamp()) == (value.key, value.ts)
            yield (number,) if number % 3 else (SIDE, (number,))


def test_what_a_call_gives_is_taken_as_it_comes_however_much_that_is() -> None:
    seen = [0]
    stream = keyed(table((1, 11, "a", 1))).process(
        Endless(seen), pa.schema({"n": pa.int64()}), side_outputs=[SIDE]
    )
    batches = stream.to_batches()
    found: list[int] = []
    while len(found) < 100_000:
        found += next(batches)["n"].to_pylist()
        assert seen[0] < 3 * len(found) / 2 + 3 * result_batches.BATCH_ROWS
    batches.close()
    assert found == [number for number in range(2 * len(found)) if number % 3][: len(found)]


def test_a_long_list_and_a_failure_amid_results_come_as_from_a_short_call() -> None:
    def body(value: Row, ctx: Any) -> Any:
        if value.value < 3:
            return [(number,) for number in range(8)]
        return (10 // (5 - number) for number in range(8))

    log = table((1, 11, "a", 1), (2, 12, "b", 2), (3, 13, "c", 3))
    found: list[int] = []

    def take_all() -> None:
        for batch in keyed(log).process(Give(body), pa.schema({"n": pa.int64()})).to_batches():
            found.extend(batch["n"].to_pylist())

    failure = r"Give.process_element failed at the element .*'c'.*ZeroDivisionError"
    with patch.object(result_batches, "BATCH_ROWS", 3), pytest.raises(UserCodeError, match=failure):
        take_all()
    assert found == [*range(8), *range(8), 2, 2, 3, 5, 10]
