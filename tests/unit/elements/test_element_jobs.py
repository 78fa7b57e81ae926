"""Jobs that run element by element: order, parallelism, time, side outputs, sinks and failures."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pytest

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common import Duration, Encoder, OutputTag, Row, TimestampAssigner, Types, WatermarkStrategy
from flinkcore.datastream import (
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors import NumberSequenceSource, collection
from flinkcore.datastream.connectors.file_system import FileSink
from flinkcore.datastream.state import ListStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, UserCodeError

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def collected(stream: DataStream) -> list[Any]:
    return list(stream.execute_and_collect())


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value if isinstance(value, int) else value[1]


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())


class Watermark(ProcessFunction):
    """Gives each value with the timestamp and the watermark that it meets."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_collection_in_ingestion_time_has_the_times_of_the_clock(env: StreamExecutionEnvironment) -> None:
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    env.get_config().set_auto_watermark_interval(2)
    stream = env.from_collection(["a", "b", "c", "d", "e"]).process(Watermark())
    # A watermark is due when the clock has passed a multiple of the interval.
    assert collected(stream) == [("a", 1, MIN_TIMESTAMP), ("b", 2, 0), ("c", 3, 0), ("d", 4, 2), ("e", 5, 2)]
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(ConfigurationError, match="ingestion time is not available"):
        collected(env.from_collection(["a"]))


# ---- steps ----


def test_a_chain_of_functions_gives_what_they_make_in_order(env: StreamExecutionEnvironment) -> None:
    stream = (
        env.from_collection(range(6), Types.INT())
        .map(lambda value: value * 2)
        .filter(lambda value: value % 3)
        .flat_map(lambda value: (value, -value))
    )
    assert collected(stream) == [2, -2, 4, -4, 8, -8, 10, -10]


def test_a_flat_map_may_return_none_or_a_text(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(["ab", "", "c"]).flat_map(lambda value: value or None)
    assert collected(stream) == ["a", "b", "c"]


def test_a_reduce_gives_a_result_for_each_element_of_its_key(env: StreamExecutionEnvironment) -> None:
    pairs = env.from_collection([("a", 1), ("b", 5), ("a", 2)], PAIR).key_by(lambda pair: pair[0])
    assert collected(pairs.reduce(lambda a, b: [a[0], a[1] + b[1]])) == [("a", 1), ("b", 5), ("a", 3)]


def test_fields_of_rows_can_be_keys_by_their_names(env: StreamExecutionEnvironment) -> None:
    rows = env.from_collection(
        [("a", 1), ("b", 2), ("a", 3)], Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.INT()])
    )
    sums = rows.key_by("user").reduce(lambda a, b: Row(user=a.user, n=a.n + b.n))
    assert [(row.user, row.n) for row in collected(sums)] == [("a", 1), ("b", 2), ("a", 4)]


def test_a_map_on_a_keyed_stream_has_the_state_of_its_key(env: StreamExecutionEnvironment) -> None:
    from flinkcore.datastream.state import ValueStateDescriptor

    class Count(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def map(self, value: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            return value, self.count.value()

    stream = env.from_collection(["a", "b", "a"]).key_by(lambda value: value).map(Count())
    assert collected(stream) == [("a", 1), ("b", 1), ("a", 2)]


def test_an_element_that_two_steps_read_is_not_changed_by_either(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1, 2]).map(lambda value: value)
    both = numbers.map(lambda value: value + 10).union(numbers.map(lambda value: value + 100))
    assert collected(both) == [11, 101, 12, 102]


def test_a_step_that_is_read_twice_runs_once(env: StreamExecutionEnvironment) -> None:
    calls: list[int] = []
    numbers = env.from_collection([1, 2]).map(lambda value: calls.append(value) or value)
    assert collected(numbers.union(numbers)) == [1, 1, 2, 2]
    assert calls == [1, 2]


def test_what_is_collected_stays_as_it_was_when_it_was_given(env: StreamExecutionEnvironment) -> None:
    class Growing(ProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.seen: list[int] = []

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.seen.append(value)
            yield self.seen

    assert collected(env.from_collection([1, 2]).process(Growing())) == [[1], [1, 2]]


def test_each_run_works_on_copies_of_the_functions(env: StreamExecutionEnvironment) -> None:
    class Count(MapFunction):
        n = 0

        def map(self, value: Any) -> Any:
            self.n += 1
            return self.n

    count = Count()
    stream = env.from_collection(["a", "b"]).map(count)
    assert collected(stream) == [1, 2]
    assert collected(stream) == [1, 2]
    assert count.n == 0


def test_a_collection_is_taken_when_the_stream_is_made(env: StreamExecutionEnvironment) -> None:
    elements = [1, 2]
    stream = env.from_collection(elements)
    elements.append(3)
    assert collected(stream) == [1, 2]
    assert collected(env.from_collection([])) == []


@pytest.mark.parametrize(
    ("collection", "type_info", "message"),
    [
        ([1, "x"], Types.INT(), "element 1 of the collection: 'x' is not of type Integer"),
        ([("a", 2), ("b", None), None], PAIR, None),
        ([("a", 2), (1, 2)], PAIR, "element 1 of the collection: field 0: 1 is not of type String"),
        ([(1, 2, 3)], PAIR, r"element 0 of the collection: \(1, 2, 3\) has 3 fields, not 2: TupleTypeInfo"),
        (["x"], Types.DOUBLE(), "element 0 of the collection: 'x' is not of type Double"),
    ],
)
def test_elements_of_a_collection_are_of_its_type(
    env: StreamExecutionEnvironment, collection: Any, type_info: Any, message: str | None
) -> None:
    if message is None:
        assert collected(env.from_collection(collection, type_info)) == collection
        return
    with pytest.raises(DataError, match=message):
        env.from_collection(collection, type_info)


# ---- parallelism ----


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7])
@pytest.mark.parametrize("chained", [True, False])
def test_results_of_keys_do_not_depend_on_parallelism_and_chaining(parallelism: int, chained: bool) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_chaining_enabled(chained)
    keys = [0, 1, "a", None, (1, "b"), 2.5, Row(1, 2), frozenset([1])]
    elements = [(keys[n % len(keys)], n) for n in range(100)]
    sums = (
        env.from_collection(elements).rebalance().map(lambda pair: pair).key_by(lambda pair: pair[0]).sum(1)
    )
    last: dict[Any, int] = {}
    for key, total in collected(sums):
        last[key] = total
    assert last == {key: sum(n for k, n in elements if k == key) for key in keys}


def test_subtasks_know_their_number_and_get_their_share(env: StreamExecutionEnvironment) -> None:
    class Subtask(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.place = (
                runtime_context.get_index_of_this_subtask(),
                runtime_context.get_number_of_parallel_subtasks(),
                runtime_context.get_task_name_with_subtasks(),
            )

        def map(self, value: Any) -> Any:
            return value, self.place

    stream = env.from_collection(range(4)).rebalance().map(Subtask()).name("share").set_parallelism(2)
    assert collected(stream) == [
        (0, (0, 2, "share (1/2)")),
        (1, (1, 2, "share (2/2)")),
        (2, (0, 2, "share (1/2)")),
        (3, (1, 2, "share (2/2)")),
    ]


class Place(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return value, self.index


@pytest.mark.parametrize(
    ("partition", "wanted"),
    [
        (lambda s: s.broadcast(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        (lambda s: s.global_(), [(0, 0), (1, 0)]),
        (lambda s: s.rescale(), [(0, 0), (1, 1)]),
        (lambda s: s.partition_custom(lambda key, n: n - 1 - key, lambda value: value), [(0, 2), (1, 1)]),
    ],
)
def test_elements_go_where_the_partitioning_says(
    env: StreamExecutionEnvironment, partition: Callable[[DataStream], DataStream], wanted: Any
) -> None:
    stream = partition(env.from_collection([0, 1])).map(Place()).set_parallelism(3)
    assert collected(stream) == wanted


def test_a_shuffle_deals_alike_in_each_run(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(range(50)).shuffle().map(Place()).set_parallelism(4)
    first = collected(stream)
    assert len({index for _, index in first}) == 4
    assert collected(stream) == first


def test_a_partitioner_that_chooses_no_subtask_is_an_error(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([0]).partition_custom(lambda key, n: 5, lambda value: value).map(Place())
    with pytest.raises(UserCodeError, match="gave 5 for the key 0: there are the subtasks 0 to 0"):
        collected(stream)


def test_forward_needs_equal_parallelism(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([0]).forward().map(Place()).set_parallelism(2)
    with pytest.raises(ConfigurationError, match="forward leads from 1 subtasks of 'Collection Source' to 2"):
        collected(stream)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize(
    "key_of",
    [
        lambda number: number,
        lambda number: (number, "a"),
        lambda number: Row(key=number),
        lambda number: (2**70, (number,)),
    ],
)
def test_nan_is_one_key_and_the_zeros_and_ones_of_different_types_are_several(
    key_of: Callable[[float], Any], parallelism: int
) -> None:
    numbers = [math.nan, 0.0, -0.0, 0, False, -math.nan, 1, 1.0, True, -0.0, float("nan"), 1.0, 1]
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    counts = (
        env.from_collection(numbers)
        .map(lambda number: (number, 1))
        .rebalance()
        .key_by(lambda pair: key_of(pair[0]))
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
    )
    # Three times NaN, twice -0.0, 1 and 1.0; once 0.0, 0, False and True.
    assert sorted(count for _, count in collected(counts)) == sorted([1, 2, 3, *3 * [1, 2], *4 * [1]])


def test_keys_are_of_their_declared_type(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_collection([1, 1.0, 2, True]).key_by(lambda number: number, Types.DOUBLE())
    assert collected(keyed.reduce(lambda left, right: left + right)) == [1, 2.0, 2, 3.0]


def test_more_subtasks_than_key_groups_are_refused(env: StreamExecutionEnvironment) -> None:
    env.set_max_parallelism(2).set_parallelism(3)
    with pytest.raises(
        ConfigurationError, match="the parallelism 3 is higher than the maximum parallelism 2"
    ):
        collected(env.from_collection([0]).key_by(lambda value: value).sum())


def test_a_parallelism_above_the_maximum_that_is_set_is_refused_without_keys_too(
    env: StreamExecutionEnvironment,
) -> None:
    mapped = env.from_collection([0]).map(str).set_parallelism(3).set_max_parallelism(2)
    with pytest.raises(
        ConfigurationError, match="the parallelism 3 is higher than the maximum parallelism 2"
    ):
        collected(mapped)
    env.set_parallelism(200)  # Flink's default is above any parallelism
    assert collected(env.from_collection([0]).map(str)) == ["0"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        *(("set_parallelism", (2,)), ("set_max_parallelism", (2,)), ("name", ("n",)), ("get_name", ())),
        *(("uid", ("u",)), ("set_uid_hash", ("0",)), ("set_description", ("d",)), ("cache", ())),
        *(("start_new_chain", ()), ("disable_chaining", ()), ("slot_sharing_group", ("g",))),
        *(("force_non_parallel", ()), ("set_buffer_timeout", (1,))),
    ],
)
def test_a_keyed_stream_is_no_step(env: StreamExecutionEnvironment, call: str, arguments: Any) -> None:
    keyed = env.from_collection([0]).key_by(lambda value: value)
    with pytest.raises(ConfigurationError, match="for KeyedStream is not supported"):
        getattr(keyed, call)(*arguments)


def test_in_batch_mode_keys_are_told_apart_as_in_streaming_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = [1, 1.0, True, math.nan, -math.nan, 0.0, -0.0, 1]
    pairs = env.from_collection([(number, 1) for number in numbers])
    counts = pairs.key_by(lambda pair: [pair[0]]).reduce(lambda one, other: (one[0], one[1] + other[1]))
    assert [count for _, count in collected(counts)] == [2, 1, 1, 2, 1, 1]


def test_a_key_cannot_be_overridden(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_collection([0]).key_by(lambda value: value)
    for call in (keyed.rebalance, keyed.broadcast, keyed.global_, lambda: keyed.partition_custom(1, 2)):
        with pytest.raises(ConfigurationError, match="cannot take the place of a key"):
            call()


# ---- time ----


def test_periodic_watermarks_come_between_elements_at_their_rate(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(2)
    stream = env.from_collection([10, 20, 30, 40, 50]).assign_timestamps_and_watermarks(MONOTONOUS)
    # Elements arrive at 1, 2, 3, ... ms; ticks at 2 and 4 ms come after those that have arrived.
    assert [watermark for _, _, watermark in collected(stream.process(Watermark()))] == [
        MIN_TIMESTAMP,
        MIN_TIMESTAMP,
        19,
        19,
        39,
    ]
    env.get_config().set_arrival_rate(500)
    assert [watermark for _, _, watermark in collected(stream.process(Watermark()))] == [
        MIN_TIMESTAMP,
        9,
        19,
        29,
        39,
    ]


def test_the_watermark_of_a_union_is_the_least(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    fast = env.from_collection([100, 200, 300, 400]).assign_timestamps_and_watermarks(MONOTONOUS)
    slow = env.from_collection([1, 2, 3, 4]).assign_timestamps_and_watermarks(MONOTONOUS)
    seen = collected(fast.union(slow).process(Watermark()))
    assert [watermark for _, _, watermark in seen] == [MIN_TIMESTAMP, MIN_TIMESTAMP, 0, 0, 1, 1, 2, 2]


def test_an_idle_input_does_not_hold_the_watermark_back(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    busy = env.from_collection([1, 2, 3, 4, 5, 6, 7, 8]).assign_timestamps_and_watermarks(MONOTONOUS)
    silent = (
        env.from_collection(range(8))
        .filter(lambda value: False)
        .assign_timestamps_and_watermarks(MONOTONOUS.with_idleness(Duration.of_millis(2)))
    )
    seen = collected(busy.union(silent).process(Watermark()))
    assert [watermark for _, _, watermark in seen][-3:] == [4, 5, 6]


def test_a_watermark_waits_for_all_subtasks_before(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    stream = (
        env.from_collection([10, 20, 30, 40])
        .rebalance()
        .assign_timestamps_and_watermarks(MONOTONOUS)
        .set_parallelism(2)
        .process(Watermark())
        .set_parallelism(1)
    )
    assert [watermark for _, _, watermark in collected(stream)] == [MIN_TIMESTAMP, MIN_TIMESTAMP, 9, 19]


@pytest.mark.parametrize("parallelism", [1, 4])
def test_an_assigner_has_the_parallelism_of_its_input(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    numbers = env.from_collection([10, 20, 30, 40])

    def watermarks(stream: DataStream) -> list[int]:
        found = stream.assign_timestamps_and_watermarks(MONOTONOUS).process(Watermark()).set_parallelism(1)
        return [watermark for _, _, watermark in collected(found)]

    alone, split = [MIN_TIMESTAMP, 9, 19, 29], [MIN_TIMESTAMP, MIN_TIMESTAMP, 9, 19]
    mapped = numbers.map(lambda value: value)
    assert watermarks(numbers) == alone
    assert watermarks(numbers.rebalance()) == watermarks(numbers.forward()) == alone
    assert watermarks(numbers.union(mapped))[::2] == alone
    assert watermarks(mapped.set_parallelism(2)) == split
    assert watermarks(mapped.set_parallelism(1)) == alone
    sided = numbers.process(ToSide()).set_parallelism(2)
    assert watermarks(sided.get_side_output(NUMBERS)) == split


def test_the_parallelism_of_an_assigner_can_be_set(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    numbers = env.from_collection([10, 20, 30, 40]).assign_timestamps_and_watermarks(MONOTONOUS)
    found = collected(numbers.set_parallelism(2).process(Watermark()).set_parallelism(1))
    assert [watermark for _, _, watermark in found] == [MIN_TIMESTAMP, MIN_TIMESTAMP, 9, 19]


class Lines(MapFunction):
    """Gives generators, of which there is no second one."""

    def map(self, value: Any) -> Any:
        return iter_of(value)


def iter_of(value: Any) -> Iterator[Any]:
    yield value


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "lead_on",
    [
        lambda s: s.key_by(lambda value: 0).reduce(lambda a, b: a),
        lambda s: s.rebalance().map(lambda value: 0),
        lambda s: s.broadcast().map(lambda value: 0),
        lambda s: s,
    ],
)
def test_an_element_that_tasks_would_share_is_refused_with_the_function_that_gave_it(
    env: StreamExecutionEnvironment, parallelism: int, lead_on: Callable[[DataStream], DataStream]
) -> None:
    stream = lead_on(env.set_parallelism(parallelism).from_collection([1, 2]).map(Lines()).name("reading"))
    with pytest.raises(
        UserCodeError, match=r"Lines gave <generator object iter_of .*neither pickled nor copied"
    ):
        collected(stream)


def test_what_operators_of_one_task_hand_on_is_not_copied(env: StreamExecutionEnvironment) -> None:
    assert collected(env.from_collection([1, 2]).map(Lines()).map(next)) == [1, 2]


NUMBERS = OutputTag("numbers", Types.INT())


class ToSide(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield NUMBERS, value


class Timers(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 2)
        yield "element", value, service.current_processing_time()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield "timer", timestamp, ctx.timer_service().current_processing_time()


def test_processing_time_is_that_of_arrival_and_ends_with_the_input(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(["a", "b", "c"]).key_by(lambda value: value).process(Timers())
    # The timer due at 3 comes after the element that arrives then; the others would come after the input.
    assert collected(stream) == [
        ("element", "a", 1),
        ("element", "b", 2),
        ("element", "c", 3),
        ("timer", 3, 3),
    ]


def test_timers_of_a_task_end_with_its_input_while_others_go_on(env: StreamExecutionEnvironment) -> None:
    short = env.from_collection(["a"]).key_by(lambda value: value).process(Timers())
    long = env.from_collection(range(9))
    assert collected(short.union(long)) == [("element", "a", 1), *range(9)]


def test_the_end_of_the_input_fires_event_time_timers(env: StreamExecutionEnvironment) -> None:
    class Later(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(value + 1000)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp, ctx.timer_service().current_watermark()

    stream = env.from_collection([5, 3]).key_by(lambda value: value).process(Later())
    assert collected(stream) == [(1003, MAX_TIMESTAMP), (1005, MAX_TIMESTAMP)]


def test_splits_of_a_source_have_watermarks_of_their_own(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(1)
    numbers = env.from_source(NumberSequenceSource(1, 6), MONOTONOUS, "numbers").set_parallelism(2)
    seen = collected(numbers.process(Watermark()).set_parallelism(1))
    assert [value for value, _, _ in seen] == [1, 4, 2, 5, 3, 6]
    assert [watermark for _, _, watermark in seen] == [MIN_TIMESTAMP, MIN_TIMESTAMP, 0, 0, 1, 1]


def test_batch_mode_gives_final_results_and_no_watermark_before_the_end(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH).get_config().set_auto_watermark_interval(1)
    pairs = env.from_collection([("a", 1), ("b", 5), ("a", 2)], PAIR).assign_timestamps_and_watermarks(
        MONOTONOUS
    )
    assert collected(pairs.key_by(lambda pair: pair[0]).sum(1)) == [("a", 3), ("b", 5)]
    assert {watermark for _, _, watermark in collected(pairs.process(Watermark()))} == {MIN_TIMESTAMP}
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    assert collected(pairs.key_by(lambda pair: pair[0]).sum(1)) == [("a", 1), ("b", 5), ("a", 3)]


# ---- side outputs and connected streams ----


def test_side_outputs_are_streams_of_their_own(env: StreamExecutionEnvironment) -> None:
    odd = OutputTag("odd", Types.TUPLE([Types.INT()]))

    class Split(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield (odd, [value]) if value % 2 else value

    split = env.from_collection([1, 2, 3]).process(Split())
    assert collected(split) == [2]
    assert collected(split.get_side_output(OutputTag("odd", odd.type_info))) == [(1,), (3,)]
    assert collected(split.get_side_output(OutputTag("none"))) == []


def test_connected_streams_need_keys_for_both_or_none(env: StreamExecutionEnvironment) -> None:
    class Both(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return value

        def map2(self, value: Any) -> Any:
            return None

    numbers, words = env.from_collection([1, 2]), env.from_collection(["a"])
    assert collected(numbers.connect(words).map(Both())) == [1, 2]
    with pytest.raises(ConfigurationError, match="stream 1 of the connected streams is keyed"):
        numbers.key_by(lambda value: value).connect(words).map(Both())
    with pytest.raises(ConfigurationError, match="flat_map on connected streams takes a CoFlatMapFunction"):
        numbers.connect(words).flat_map(Both())  # type: ignore[arg-type]


def test_elements_of_two_streams_are_joined_by_time(env: StreamExecutionEnvironment) -> None:
    class Pairs(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            yield left, right, ctx.get_timestamp()

    left = env.from_collection([1, 5, 9]).assign_timestamps_and_watermarks(MONOTONOUS)
    right = env.from_collection([2, 7]).assign_timestamps_and_watermarks(MONOTONOUS)
    joined = left.key_by(lambda value: 0).interval_join(right.key_by(lambda value: 0)).between(-2, 2)
    assert sorted(collected(joined.process(Pairs()))) == [(1, 2, 2), (5, 7, 7), (9, 7, 9)]


class Balance(CoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.amounts = runtime_context.get_list_state(ListStateDescriptor("amounts", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self.amounts.add(value[1])
        ctx.timer_service().register_event_time_timer(100)

    def process_element2(self, value: Any, ctx: Any) -> None:
        self.amounts.add(-value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), sum(self.amounts.get()), timestamp


def test_a_function_of_two_keyed_streams_has_keys_state_and_timers_whatever_its_class(
    env: StreamExecutionEnvironment,
) -> None:
    first, second = (
        env.from_collection(pairs, PAIR).key_by(lambda pair: pair[0], Types.STRING())
        for pairs in ([("a", 7), ("b", 5), ("a", 1)], [("a", 3), ("c", 4)])
    )
    assert sorted(collected(first.connect(second).process(Balance()))) == [("a", 5, 100), ("b", 5, 100)]
    pairs = env.from_collection([("a", 1)], PAIR)
    with pytest.raises(ConfigurationError, match="the keyed state 'amounts' needs a keyed stream"):
        collected(pairs.connect(pairs).process(Balance()))


# ---- sinks ----


def test_printed_lines_tell_sink_and_subtask(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    env.from_collection([("a", 1.0)], Types.TUPLE([Types.STRING(), Types.DOUBLE()])).print()
    env.from_collection([{"a": 1}]).print("any").set_parallelism(1)
    env.from_collection([1, 2], Types.INT()).print("two").set_parallelism(2)
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "(a,1.0)",
        "any> {'a': 1}",
        "two:1> 1",
        "two:2> 2",
    ]


def test_a_row_in_a_row_is_printed_as_a_function_of_the_chain_gave_it(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = Types.ROW([Types.ROW_NAMED(["y"], [Types.BOOLEAN()])])
    number = env.from_collection([1], Types.INT())
    given = number.map(lambda value: Row(Row(True)), nested)
    keyed = number.key_by(lambda value: 1, Types.INT())
    for stream in (
        *(given, number.map(lambda value: Row(Row(True)), nested).filter(lambda row: True)),
        *(
            keyed.map(lambda value: Row(Row(True)), nested),
            number.map(lambda value: Row(Row(x=True)), nested),
        ),
        *(number.map(lambda value: (Row(True),), nested), given.rebalance(), given.key_by(lambda row: 1)),
    ):
        stream.print()
        env.execute()
    assert capsys.readouterr().out.splitlines() == [
        *("+I[<Row(True)>]", "+I[<Row(True)>]"),
        *("+I[<Row(True)>]", "+I[Row(x=True)]"),
        *("+I[Row(y=True)]", "+I[Row(y=True)]", "+I[Row(y=True)]"),
    ]
    number.map(lambda value: Row(Row(1)), nested).print()
    with pytest.raises(DataError, match="field 'f0': field 'y': 1 is not of type Boolean"):
        env.execute()


class Emit(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value


@pytest.mark.parametrize(
    "stream_of",
    [lambda keyed: keyed, lambda keyed: keyed.union(keyed), lambda keyed: keyed.project(0, 1)],
    ids=["print", "union", "project"],
)
def test_elements_of_a_keyed_stream_stay_in_the_subtasks_of_their_keys(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str], stream_of: Any
) -> None:
    env.set_parallelism(4)
    pairs = env.from_collection(
        [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("d", 6)],
        Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    keyed = pairs.key_by(lambda pair: pair[0], Types.STRING())
    by_function = keyed.process(Emit(), pairs.get_type())
    by_function.print()
    env.execute()
    of_function = sorted(set(capsys.readouterr().out.splitlines()))
    assert len({line.partition(">")[0] for line in of_function}) > 1
    stream_of(keyed).print()
    env.execute()
    assert sorted(set(capsys.readouterr().out.splitlines())) == of_function


def test_sinks_of_a_keyed_stream_take_its_elements_in_batch_mode_key_by_key(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection(["b1", "a1", "b2", "a2"], Types.STRING()).key_by(lambda text: text[0]).print()
    env.execute()
    keys = [line[0] for line in capsys.readouterr().out.split()]
    assert keys in (["a", "a", "b", "b"], ["b", "b", "a", "a"])


def test_a_stream_that_is_united_with_none_is_itself(env: StreamExecutionEnvironment) -> None:
    assert collected(env.from_collection([1, 2]).union()) == [1, 2]
    assert collected(env.from_collection([1, 2]).key_by(lambda value: value).union()) == [1, 2]


def test_a_sink_takes_the_rows_of_a_keyed_stream_and_a_sink_function_its_elements(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    Remember.taken.clear()
    pairs = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0], Types.STRING())
    keyed.sink_to(FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build())
    keyed.add_sink(Remember())
    env.execute()
    (written,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert written.read_text() == "+I[a, (a,1)]\n"
    assert Remember.taken == [("a", 1)]


class Remember(SinkFunction):
    taken: list[Any] = []  # noqa: RUF012 - of all copies

    def invoke(self, value: Any) -> None:
        if value == "bad":
            raise ValueError(value)
        self.taken.append(value)


def test_an_environment_runs_its_sinks_once(env: StreamExecutionEnvironment) -> None:
    Remember.taken.clear()
    numbers = env.from_collection([1, 2])
    numbers.add_sink(Remember())
    numbers.map(lambda value: -value).add_sink(Remember()).name("negative")
    env.execute("both")
    assert sorted(Remember.taken) == [-2, -1, 1, 2]
    with pytest.raises(ConfigurationError, match="No operators defined in streaming topology"):
        env.execute()


def test_steps_that_lead_to_no_sink_are_run_once(env: StreamExecutionEnvironment) -> None:
    seen = list[Any]()

    def note(value: Any) -> Any:
        seen.append(value)
        return value

    numbers = env.from_collection([1, 2])
    with pytest.raises(ConfigurationError, match="No operators defined in streaming topology"):
        env.execute()
    numbers.map(note).key_by(lambda value: value).reduce(lambda one, other: note(one + other))
    numbers.connect(numbers).map(Negative()).map(note)
    env.execute("two ends")
    assert sorted(seen) == [-2, -1, 1, 1, 2, 2]
    with pytest.raises(ConfigurationError, match="What was run once is not run again"):
        env.execute()
    numbers.map(note)
    assert collected(numbers.map(str)) == [
        "1",
        "2",
    ]  # runs what leads to it, and the environment forgets the rest
    with pytest.raises(ConfigurationError, match="No operators"):
        env.execute_async()
    numbers.map(lambda value: 1 // 0)
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        env.execute()


class Negative(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return -value


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_keyed_stream_is_collected_with_its_keys(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0], Types.STRING())
    expected = [Row(f0="a", f1=("a", 1)), Row(f0="b", f1=("b", 2)), Row(f0="a", f1=("a", 3))]
    results = collected(keyed)
    assert sorted(map(repr, results)) == sorted(map(repr, expected))
    assert len(keyed.execute_and_collect(limit=2)) == 2
    assert keyed.get_type() == Types.ROW_NAMED(["f0", "f1"], [Types.STRING(), pairs.get_type()])
    by_element = env.from_collection([5]).key_by(lambda value: [value, {"is": value % 2}])
    assert collected(by_element) == [Row(f0=[5, {"is": 1}], f1=5)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_keys_can_be_lists_dictionaries_and_other_values_that_change(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    numbers = env.from_collection(list(range(12)), Types.INT())
    for key_of in (
        lambda value: [value % 3, {"even": value % 2 == 0}],
        lambda value: {"modulo": [value % 3], "set": {value % 2}},
        lambda value: (bytearray([value % 3]), Box(value % 2)),
    ):
        sums = numbers.key_by(key_of).reduce(lambda one, other: one + other)
        # Of 0, 1, ... 5 and what is 6 more.
        assert sorted(collected(sums)) == sorted([*range(6), *(2 * value + 6 for value in range(6))])


class Box:
    """Has no equality of its own."""

    def __init__(self, value: int) -> None:
        self.value = value


def test_collecting_runs_the_sinks_too(env: StreamExecutionEnvironment) -> None:
    Remember.taken.clear()
    env.from_collection(["x"]).add_sink(Remember())
    assert collected(env.from_collection([1])) == [1]
    assert Remember.taken == ["x"]


def test_a_sink_that_fails_names_the_element(env: StreamExecutionEnvironment) -> None:
    env.from_collection(["good", "bad"]).add_sink(Remember())
    with pytest.raises(UserCodeError, match=r"Remember\.invoke failed at the element 'bad'"):
        env.execute()


def test_the_result_of_a_job_has_the_metrics_of_its_functions(env: StreamExecutionEnvironment) -> None:
    class Measured(MapFunction):
        def open(self, runtime_context: Any) -> None:
            group = runtime_context.get_metrics_group().add_group("shop")
            self.sold = group.counter("sold")
            self.sizes = group.distribution("sizes")
            group.gauge("largest", lambda: self.largest)
            self.largest = 0

        def map(self, value: Any) -> Any:
            self.sold.inc(value)
            self.sizes.update(value)
            self.largest = max(self.largest, value)
            return value

    env.from_collection([3, 5]).map(Measured()).name("till").add_sink(Remember())
    result = env.execute()
    of_functions = {name: value for name, value in result.metrics.items() if ".shop." in name}
    assert of_functions == {
        "till.shop.sold": 8,
        "till.shop.sizes": {"count": 2, "sum": 8, "min": 3, "max": 5},
        "till.shop.largest": 5,
    }
    assert result.get_net_runtime() >= 0
    assert str(result).startswith(
        f"Job 'Flink Streaming Job' has ended after {result.get_net_runtime():,} ms\n- "
    )


# ---- runs and failures ----


class Lifecycle(MapFunction):
    log: list[str] = []  # noqa: RUF012 - of all copies

    def __init__(self, name: str, fails_in: str = "") -> None:
        self.name = name
        self.fails_in = fails_in

    def open(self, runtime_context: Any) -> None:
        self.log.append(f"open {self.name}")
        if self.fails_in == "open":
            raise ValueError("cannot open")

    def map(self, value: Any) -> Any:
        if self.fails_in == "map":
            raise ValueError("cannot map")
        return value

    def close(self) -> None:
        self.log.append(f"close {self.name}")


def two_steps(env: StreamExecutionEnvironment, fails_in: str = "") -> DataStream:
    Lifecycle.log.clear()
    return env.from_collection([1, 2]).map(Lifecycle("first", fails_in)).map(Lifecycle("second"))


def test_functions_are_opened_from_the_end_and_closed_from_the_source(
    env: StreamExecutionEnvironment,
) -> None:
    assert collected(two_steps(env)) == [1, 2]
    assert Lifecycle.log == ["open second", "open first", "close first", "close second"]


def test_a_function_that_fails_is_named_with_its_element_and_all_are_closed(
    env: StreamExecutionEnvironment,
) -> None:
    message = "Lifecycle.map failed at the element 1 without a timestamp: ValueError: cannot map"
    with pytest.raises(UserCodeError, match=message):
        collected(two_steps(env, "map"))
    assert Lifecycle.log[2:] == ["close first", "close second"]


def test_functions_are_closed_when_another_cannot_be_opened(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ValueError, match="cannot open"):
        two_steps(env, "open").execute_and_collect()
    assert Lifecycle.log == ["open second", "open first", "close first", "close second"]


def test_a_job_that_is_closed_early_closes_its_functions(env: StreamExecutionEnvironment) -> None:
    stream = two_steps(env)
    with stream.execute_and_collect() as results:
        assert next(results) == 1
    assert Lifecycle.log[2:] == ["close first", "close second"]
    assert list(results) == []
    assert stream.execute_and_collect(limit=1) == [1]
    assert stream.execute_and_collect("named", 5) == [1, 2]
    with pytest.raises(ConfigurationError, match="limit is a number of elements, at least 1"):
        stream.execute_and_collect(limit=0)


def test_errors_of_lambdas_and_key_selectors_name_the_element(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([0])
    with pytest.raises(UserCodeError, match=r"<lambda>.map failed at the element 0 .*ZeroDivisionError"):
        collected(numbers.map(lambda value: 1 / value))
    with pytest.raises(UserCodeError, match="the key selector failed at the element 0"):
        collected(numbers.key_by(lambda value: 1 / value).sum())
    with pytest.raises(UserCodeError, match=r"flat_map failed at the element 0 .* is not iterable"):
        collected(numbers.flat_map(lambda value: 5))
    with pytest.raises(DataError, match="cannot be one: a lock has no hash"):
        collected(numbers.key_by(lambda value: [threading.Lock()]).sum())


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_selector_is_called_where_nothing_asks_for_its_keys(parallelism: int) -> None:
    asked: list[int] = []

    class Asked(KeySelector):
        def get_key(self, value: int) -> int:
            asked.append(value)
            return 1 // value

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    keyed = env.from_collection([1, 2]).key_by(Asked())
    for stream in (
        keyed.map(lambda value: value),
        keyed.filter(lambda value: True),
        keyed.flat_map(lambda value: [value]),
        keyed.union(),
    ):
        assert sorted(collected(stream)) == sorted(asked) == [1, 2]
        asked.clear()
    zeros = env.from_collection([0])
    with pytest.raises(UserCodeError, match="the key selector failed at the element 0"):
        collected(zeros.key_by(Asked()).map(lambda value: value))
    zeros.key_by(Asked()).print()
    with pytest.raises(UserCodeError, match="the key selector failed at the element 0"):
        env.execute()
    with pytest.raises(DataError, match="cannot be one: a lock has no hash"):
        collected(zeros.key_by(lambda value: [threading.Lock()]).map(lambda value: value))


def test_streams_of_other_types_cannot_be_united(env: StreamExecutionEnvironment) -> None:
    numbers, texts = env.from_collection([1], Types.INT()), env.from_collection(["a"], Types.STRING())
    for other in (texts, texts.key_by(lambda value: value), texts.map(int, Types.LONG())):
        with pytest.raises(
            ConfigurationError, match=r"^union takes streams of one type, not of Integer and "
        ):
            numbers.union(numbers, other)
    names = [Types.ROW_NAMED([name], [Types.INT()]) for name in ("a", "b")]
    rows = [env.from_collection([Row(1)], type_info) for type_info in names]
    assert len(collected(rows[0].union(rows[1]))) == 2
    assert numbers.union(numbers).get_type() == Types.INT()
    untyped = numbers.map(lambda value: "b").union(texts)
    assert untyped.get_type() == Types.PICKLED_BYTE_ARRAY()
    assert collected(untyped.filter(lambda value: True)) == ["b", "a"]
    with pytest.raises(
        ConfigurationError, match=r"^union takes streams of one type, not of Integer and String"
    ):
        numbers.union(untyped, texts)


def test_errors_of_flinkcore_in_functions_are_raised_as_they_are_and_are_not_their_own_causes(
    env: StreamExecutionEnvironment,
) -> None:
    error = DataError("of the user")

    def fails(*_: Any) -> Any:
        raise error

    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            raise error

    numbers = env.from_collection([1, 2])
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Assigner())
    windows = numbers.key_by(lambda value: 0).count_window(2)
    for stream in (
        numbers.map(fails),
        numbers.assign_timestamps_and_watermarks(timed),
        windows.reduce(fails),
    ):
        with pytest.raises(DataError, match=r"^of the user$") as caught:
            list(stream.execute_and_collect())
        assert caught.value is error
        assert error.__cause__ is None


def test_a_flat_map_that_fails_behind_a_result_names_its_element(env: StreamExecutionEnvironment) -> None:
    def halves(value: int) -> Iterator[float]:
        yield value / 2
        raise ValueError("odd")

    with pytest.raises(UserCodeError, match=r"halves.flat_map failed at the element 7 .*odd"):
        list(env.from_collection([7]).flat_map(halves).execute_and_collect())


def test_a_result_of_another_type_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(DataError, match="5 is not a tuple, as TupleTypeInfo"):
        collected(env.from_collection([5]).map(lambda value: value, PAIR))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.map(5), "map takes a MapFunction or a function, not 5"),
        (lambda s: s.map(Place), "map takes an object of Place, not the class"),
        (lambda s: s.map(lambda v: v, "int"), "output_type is a TypeInformation"),
        (lambda s: s.process(Timers()), "takes a ProcessFunction, .* needs key_by first"),
        (lambda s: s.project(0), "project needs tuples"),
        (lambda s: s.sink_to(5), "sink_to takes a Sink"),
        (lambda s: s.add_sink(5), "add_sink takes a SinkFunction"),
        (lambda s: s.set_parallelism(0), "parallelism must be an integer from 1"),
        (lambda s: s.name(5), "a name is a text that is not empty"),
        (lambda s: s.cache(), r"cache\(\) is not supported"),
        (lambda s: s.set_uid_hash("x"), "take uid"),
        (lambda s: s.key_by(lambda v: v).process(Watermark()), "takes a KeyedProcessFunction"),
        (lambda s: s.to_arrow(), "the job runs element by element"),
    ],
)
def test_a_call_that_has_no_meaning_is_refused_at_once(
    env: StreamExecutionEnvironment, call: Callable[[DataStream], Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call(env.from_collection([1]))


def test_two_steps_cannot_share_a_uid(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1]).map(lambda value: value).uid("a").map(lambda value: value).uid("a")
    with pytest.raises(ConfigurationError, match="two steps have the uid 'a'"):
        collected(stream)


def test_functions_may_be_objects_of_their_classes(env: StreamExecutionEnvironment) -> None:
    class Positive(FilterFunction):
        def filter(self, value: Any) -> bool:
            return value > 0

    class Last(KeySelector):
        def open(self, runtime_context: Any) -> None:
            self.base = 10

        def get_key(self, value: Any) -> Any:
            return value % self.base

    stream = env.from_collection([-1, 3, 13, 4]).filter(Positive()).key_by(Last(), Types.INT()).sum()
    assert collected(stream) == [3, 16, 4]


def test_explain_tells_which_steps_call_functions(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1], Types.INT()).map(str, Types.STRING()).key_by(lambda value: value)
    assert stream.explain().splitlines() == [
        "embedded job, element by element, parallelism of the executor, 128 key groups, watermarks every 200 ms",
        "  1. [rows] source of a collection of 1 elements: Integer",
        "  2. [rows] map by str: String",
    ]


def test_an_iterator_that_may_have_no_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MOST_OF_ITERATOR", 10)
    env = StreamExecutionEnvironment()
    with pytest.raises(
        ConfigurationError, match=r"'count' has more than 10, maybe without end\. Cut it with"
    ):
        env.from_collection(itertools.count())
    assert list(env.from_collection(iter(range(10))).execute_and_collect()) == list(range(10))
    assert list(env.from_collection(range(20)).execute_and_collect()) == list(range(20))


class OfOneThread(KeyedProcessFunction):
    """Notes the thread of each of its calls."""

    threads: ClassVar[dict[str, int]] = {}

    def open(self, runtime_context):
        self.threads["open"] = threading.get_ident()

    def close(self):
        self.threads["close"] = threading.get_ident()

    def process_element(self, value, ctx):
        self.threads["process"] = threading.get_ident()
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1)
        if value == 7:
            raise ValueError("seven")
        yield value

    def on_timer(self, timestamp, ctx):
        self.threads["timer"] = threading.get_ident()
        yield -1


@pytest.mark.parametrize(
    ("numbers", "taken", "calls"),
    [
        (20, 0, {"open", "close"}),
        (6, 5, {"open", "process", "timer", "close"}),
        (6, 100, {"open", "process", "timer", "close"}),
        (20, 100, {"open", "process", "timer", "close"}),
    ],
    ids=["nothing taken", "closed early", "all taken", "failed"],
)
def test_all_calls_of_a_function_are_made_in_one_thread(numbers, taken, calls):
    OfOneThread.threads.clear()
    stream = StreamExecutionEnvironment().from_collection(list(range(numbers)))
    results = stream.key_by(lambda value: 0).process(OfOneThread()).execute_and_collect()
    with results, suppress(UserCodeError):
        for _ in islice(results, taken):
            pass
    assert OfOneThread.threads.keys() == calls
    assert len(set(OfOneThread.threads.values())) == 1


def test_a_function_that_fails_to_open_is_an_error_before_any_element():
    class Closed(FlatMapFunction):
        def open(self, runtime_context):
            raise ValueError("no door")

        def flat_map(self, value):
            yield value

    stream = StreamExecutionEnvironment().from_collection([1]).flat_map(Closed())
    with pytest.raises(ValueError, match="no door"):
        stream.execute_and_collect()
