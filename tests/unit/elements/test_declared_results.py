"""Results that are not of the declared type name the function, what they are for, and what to do."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import OutputTag, Row, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    DataStream,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.functions import JoinFunction, ProcessAllWindowFunction
from flinkcore.datastream.window import CountTrigger, GlobalWindows
from flinkcore.errors import DataError, UserCodeError

PAIR = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
PAIR_OF_NUMBERS = Types.TUPLE([Types.INT(), Types.INT()])
COLUMNS = pa.schema(
    [pa.field("user", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)]
)
LOG = pa.table({"ts": [1, 12, 3], "user": ["a", "b", "a"], "n": [1, 2, 3]})
TEN_MS = TumblingEventTimeWindows.of(Time.milliseconds(10))


class Gives(
    MapFunction,
    FlatMapFunction,
    CoMapFunction,
    ReduceFunction[Any],
    JoinFunction[Any, Any, Any],
):
    def __init__(self, result: Any) -> None:
        self.result = result

    def map(self, value: Any) -> Any:
        return self.result

    def map1(self, value: Any) -> Any:
        return self.result

    def map2(self, value: Any) -> Any:
        return self.result

    def flat_map(self, value: Any) -> Any:
        yield self.result

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.result

    def join(self, first: Any, second: Any) -> Any:
        return self.result


class GivesOfTwo(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        yield "a", "x"

    def flat_map2(self, value: Any) -> Any:
        yield "a", "x"


class Emits(ProcessFunction):
    tag = OutputTag("side", PAIR)

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield self.tag, ("a", "x")


class Shows(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield repr(value)


class GivesOfKeys(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield "a", "x"


class GivesOfWindows(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, result: Any) -> None:
        self.result = result

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield self.result


class GivesOfAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        yield ("a",)


class GivesAggregate(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + 1

    def get_result(self, accumulator: Any) -> Any:
        return "a", None

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


BAD = ("a", "x")


def keyed(stream: DataStream) -> Any:
    return stream.key_by(lambda value: value[0])


@pytest.mark.parametrize(
    ("step", "by"),
    [
        (lambda s: s.map(Gives(BAD), PAIR), r"Gives\.map gave \('a', 'x'\) at the element \('a', 1\.0\)"),
        (lambda s: s.flat_map(Gives(BAD), PAIR), r"Gives\.flat_map gave \('a', 'x'\) at the element \('a', 1\.0\)"),
        (lambda s: s.connect(s).map(Gives(BAD), PAIR), r"Gives\.map1 gave \('a', 'x'\) at the element \('a', 1\.0\)"),
        (lambda s: s.connect(s).flat_map(GivesOfTwo(), PAIR), r"GivesOfTwo gave \('a', 'x'\)"),
        (lambda s: keyed(s).reduce(Gives(BAD)), r"Gives\.reduce gave \('a', 'x'\) at .* of the key 'a'"),
        (lambda s: keyed(s).process(GivesOfKeys(), PAIR), r"GivesOfKeys gave \('a', 'x'\) for the key 'a'"),
        (
            lambda s: keyed(s).count_window(2).process(GivesOfWindows(BAD), PAIR),
            r"GivesOfWindows gave \('a', 'x'\) for the key 'a'",
        ),
        (
            lambda s: keyed(s).count_window(2).reduce(lambda a, b: BAD, output_type=PAIR),
            r"<lambda> gave \('a', 'x'\) for the key 'a'",
        ),
    ],
)  # fmt: skip
def test_a_result_of_an_element_that_is_not_of_its_type_is_told(
    step: Callable[[DataStream], DataStream], by: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = step(env.from_collection([("a", 1.0), ("a", 2.0)], PAIR))
    remedy = "let it give what its declared type says, or declare another"
    message = rf"{by}.*: field 1: 'x' is not of type Double; {remedy}$"
    with pytest.raises(DataError, match=message):
        list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("declared", "given", "told"),
    [
        (Types.INT(), "x", "'x' is not of type Integer"),
        (Types.INT(), 1.5, "1.5 is not of type Integer"),
        (Types.INT(), 2**31, "2147483648 is not of type Integer, which has 32 bits"),
        (Types.BYTE(), -129, "-129 is not of type Byte, which has 8 bits"),
        (Types.LONG(), 2**63, "9223372036854775808 is not of type Long, which has 64 bits"),
        (Types.STRING(), 5, "5 is not of type String"),
        (Types.BOOLEAN(), 1, "1 is not of type Boolean"),
        (Types.SQL_TIMESTAMP(), "now", "'now' is not of type TimestampTypeInfo"),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, 2), "field 1: 2 is not of type String"),
        (Types.TUPLE([Types.SHORT()]), (2**15,), "field 0: 32768 is not of type Short, which has 16 bits"),
        (Types.TUPLE([Types.INT()]), (1, 2), r"\(1, 2\) has 2 fields, not 1"),
        (Types.ROW_NAMED(["a"], [Types.STRING()]), Row(a=1), "field 'a': 1 is not of type String"),
        (Types.LIST(Types.INT()), ["a"], "item 0: 'a' is not of type Integer"),
        (
            Types.MAP(Types.STRING(), Types.INT()),
            {"a": "b"},
            "value of the key 'a': 'b' is not of type Integer",
        ),
    ],
)
@pytest.mark.parametrize(
    "leave",
    [
        lambda stream: stream,
        lambda stream: stream.rebalance().map(str),
        lambda stream: stream.key_by(lambda value: 1).map(str),
        lambda stream: stream.filter(lambda value: True),
        lambda stream: stream.filter(lambda value: True).key_by(lambda value: 1).map(str),
    ],
    ids=["collected", "rebalanced", "keyed", "filtered", "filtered and keyed"],
)
def test_what_is_not_of_its_type_leaves_no_chain(
    leave: Callable[[DataStream], DataStream], declared: Any, given: Any, told: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = leave(env.from_collection([0], Types.INT()).map(lambda value: given, declared))
    with pytest.raises(DataError, match=f"<lambda>.*: {told}"):
        list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("declared", "given", "shown"),
    [
        (Types.INT(), "x", "'x'"),
        (Types.TUPLE([Types.INT()]), {"a": 1}, "{'a': 1}"),
        (Types.TUPLE([Types.INT()]), [1, 2], "[1, 2]"),
        (Types.FLOAT(), 0.1, "0.1"),
        (Types.DOUBLE(), 1, "1"),
        (Types.ROW_NAMED(["a"], [Types.INT()]), (1,), "(1,)"),
    ],
)
def test_between_the_functions_of_a_chain_values_pass_as_they_are(
    declared: Any, given: Any, shown: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = env.from_collection([0], Types.INT())
    mapped = source.map(lambda value: given, declared).filter(lambda value: True).map(repr, Types.STRING())
    assert list(mapped.execute_and_collect()) == [shown]
    both = source.map(lambda value: given, declared)
    processed = both.flat_map(lambda value: [repr(value)], Types.STRING()).union(
        source.map(lambda value: given, declared).process(Shows(), Types.STRING())
    )
    assert list(processed.execute_and_collect()) == [shown, shown]


def test_a_step_with_two_readers_gives_both_what_is_of_its_type() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    given = env.from_collection([0], Types.INT()).map(lambda value: [value, 1], PAIR_OF_NUMBERS)
    shown = given.map(repr, Types.STRING()).union(given.map(repr, Types.STRING()))
    assert list(shown.execute_and_collect()) == ["(0, 1)", "(0, 1)"]


def test_without_chaining_each_step_gives_what_is_of_its_type() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.disable_operator_chaining()
    given = env.from_collection([0], Types.INT()).map(lambda value: [value, 1], PAIR_OF_NUMBERS)
    assert list(given.map(repr, Types.STRING()).execute_and_collect()) == ["(0, 1)"]


def test_what_is_no_element_of_a_side_output_is_told() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1]).process(Emits()).get_side_output(Emits.tag)
    with pytest.raises(
        DataError, match=r"the side output 'side' got \('a', 'x'\): field 1: 'x' is not of type Double; emit"
    ):
        list(stream.execute_and_collect())


def log() -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    return logs_of(env)


def logs_of(env: StreamExecutionEnvironment) -> DataStream:
    stream = env.from_event_log(LOG, timestamp="ts")
    return stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def joined() -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    both = logs_of(env).join(logs_of(env)).where("user").equal_to("user")
    return both.window(TEN_MS).apply(Gives(("a",)), COLUMNS)


def windows() -> Any:
    return log().key_by("user").window(TEN_MS)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            lambda: windows().process(GivesOfWindows(BAD), COLUMNS),
            r"GivesOfWindows got \('a', 'x'\) from the window up to 10 ms of the key 'a': 'x' \(str\) in the column",
        ),
        (
            lambda: windows().aggregate(GivesAggregate(), output_type=COLUMNS),
            r"GivesAggregate got \('a', None\) from the window up to 10 ms of the key 'a': None in the column 'n', "
            "which cannot be null",
        ),
        (
            lambda: windows().allowed_lateness(50).reduce(Gives(Row(1)), output_type=LOG.schema),
            r"Gives got <Row\(1\)> from the window up to 10 ms of the key 'a': 1 values for the 3 columns ts, user, n",
        ),
        (
            lambda: (
                log()
                .key_by("user")
                .window(GlobalWindows.create())
                .trigger(CountTrigger.of(2))
                .process(GivesOfWindows(5), COLUMNS)
            ),
            "GivesOfWindows got 5 from the window without end of the key 'a': neither a Row",
        ),
        (
            lambda: log().window_all(TEN_MS).process(GivesOfAll(), COLUMNS),
            r"GivesOfAll got \('a',\) from the window up to 10 ms: 1 values",
        ),
        (joined, r"Gives got \('a',\) from the window up to 10 ms of the key 'a': 1 values"),
    ],
)
def test_a_result_of_a_window_that_does_not_fit_its_columns_names_the_window(
    stream: Callable[[], DataStream], message: str
) -> None:
    with pytest.raises(
        UserCodeError, match=rf"^the output of {message}.*; let the function give the declared columns"
    ):
        stream().to_arrow()
