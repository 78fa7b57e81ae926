"""Arguments of a type that a call does not take: a TypeError, as in PyFlink, and a ConfigurationError."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.common import OutputTag, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    KeyedProcessFunction,
    KeyedStream,
    ProcessFunction,
    StreamExecutionEnvironment,
    WindowedStream,
)
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import ArgumentTypeError, ConfigurationError


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def stream() -> Any:
    return environment().from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))


def keyed() -> KeyedStream:
    found: KeyedStream = stream().key_by(lambda value: value[0], Types.STRING())
    return found


def windows() -> WindowedStream:
    return keyed().window(TumblingEventTimeWindows.of(Time.seconds(1)))


def connected() -> Any:
    one = stream()
    return one.connect(one)


SCHEMA = pa.schema({"n": pa.int64()})
SIDE = OutputTag("side", SCHEMA)


class Nothing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def keyed_log() -> Any:
    return environment().from_event_log(pa.table({"k": ["a"], "ts": [1]}), timestamp="ts").key_by("k")


def process(**settings: Any) -> Any:
    return keyed_log().process(Nothing(), SCHEMA, **settings)


CALLS: dict[str, Callable[[], Any]] = {
    "map": lambda: stream().map(5),
    "flat_map": lambda: stream().flat_map(5),
    "filter": lambda: stream().filter(5),
    "key_by": lambda: stream().key_by(5),
    "process": lambda: stream().process(lambda value: value),
    "process, a class": lambda: stream().process(ProcessFunction),
    "process by key": lambda: keyed().process(lambda value: value),  # type: ignore[arg-type, return-value]
    "reduce": lambda: keyed().reduce(5),  # type: ignore[arg-type]
    "sum": lambda: keyed().sum(1.5),  # type: ignore[arg-type]
    "windows, process": lambda: windows().process(lambda value: value),  # type: ignore[arg-type, return-value]
    "windows, reduce": lambda: windows().reduce(5),  # type: ignore[call-overload]
    "windows, aggregate": lambda: windows().aggregate(5),  # type: ignore[call-overload]
    "windows, trigger": lambda: windows().trigger(5),  # type: ignore[arg-type]
    "co map": lambda: connected().map(lambda value: value),
    "co process": lambda: connected().process(lambda value: value),
    "broadcast": lambda: stream().broadcast(5),
    "partitioner": lambda: stream().partition_custom(5, lambda value: value),
    "key of partitioner": lambda: stream().partition_custom(lambda key, count: 0, 5),
    "union": lambda: stream().union(5),
    "connect": lambda: stream().connect(5),
    "sink": lambda: stream().sink_to(5),
    "strategy": lambda: stream().assign_timestamps_and_watermarks(5),
    "assigner of windows": lambda: keyed().window(5),  # type: ignore[arg-type]
    "type": lambda: stream().map(str, 5),
    "type of a collection": lambda: environment().from_collection([1], 5),  # type: ignore[arg-type]
    "collection": lambda: environment().from_collection(5),
    "name": lambda: stream().name(5),
    "uid": lambda: stream().uid(5),
    "parallelism of a step": lambda: stream().map(str).set_parallelism("2"),
    "parallelism": lambda: environment().set_parallelism("2"),  # type: ignore[arg-type]
    "maximum parallelism": lambda: environment().set_max_parallelism("2"),  # type: ignore[arg-type]
    "watermark interval": lambda: environment().get_config().set_auto_watermark_interval("2"),  # type: ignore[arg-type]
    "checkpoints": lambda: environment().enable_checkpointing("500"),  # type: ignore[arg-type]
    "buffer timeout": lambda: environment().set_buffer_timeout("5"),  # type: ignore[arg-type]
    "runtime mode": lambda: environment().set_runtime_mode("BATCH"),  # type: ignore[arg-type]
    "bound": lambda: WatermarkStrategy.for_bounded_out_of_orderness("5 s"),  # type: ignore[arg-type]
    "size of windows": lambda: TumblingEventTimeWindows.of("5 s"),  # type: ignore[arg-type]
    "state": lambda: ValueStateDescriptor("total", 5),  # type: ignore[arg-type]
    "reducing state": lambda: ReducingStateDescriptor("total", 5, Types.INT()),  # type: ignore[arg-type]
    "aggregating state": lambda: AggregatingStateDescriptor("total", 5, Types.INT()),  # type: ignore[arg-type]
    "fields": lambda: Types.TUPLE(5),  # type: ignore[arg-type]
    "elements": lambda: Types.LIST(5),  # type: ignore[arg-type]
    "settings": lambda: environment().configure(None),  # type: ignore[arg-type]
    "settings of a new environment": lambda: StreamExecutionEnvironment.get_execution_environment(5),  # type: ignore[arg-type]
    "key of a setting": lambda: environment().configure({5: "x"}),  # type: ignore[dict-item]
    "side output alone": lambda: process(side_outputs=SIDE),
    "number of side outputs": lambda: process(side_outputs=5),
    "no side outputs": lambda: process(side_outputs=None),
    "no side outputs of elements": lambda: keyed_log().process(Nothing(), side_outputs=None),
    "timestamp column": lambda: process(timestamp_column=5),
    "timestamp column without a name": lambda: process(timestamp_column=""),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_of_another_type_is_a_type_error(call: str) -> None:
    with pytest.raises(TypeError) as error:
        CALLS[call]()
    assert isinstance(error.value, ArgumentTypeError)
    assert isinstance(error.value, ConfigurationError)


def test_texts_are_values_of_settings_where_they_are_spelled() -> None:
    env = environment()
    env.configure({"parallelism.default": "2", "pipeline.auto-watermark-interval": "2 s"})
    assert env.get_parallelism() == 2
    assert env.get_config().get_auto_watermark_interval() == 2_000
    with pytest.raises(ConfigurationError, match=r"not the text '4'$"):
        env.set_parallelism("4")  # type: ignore[arg-type]


def test_an_array_is_no_timeout_of_buffers() -> None:
    with pytest.raises(ConfigurationError, match="must be a length of time"):
        environment().set_buffer_timeout(np.array([1, 2]))  # type: ignore[arg-type]


@pytest.mark.parametrize("slide", ["", [], False, None, -1])
def test_the_slide_of_count_windows_is_a_number(slide: Any) -> None:
    with pytest.raises(
        ConfigurationError, match="count_window: the slide must be a whole number of at least 0"
    ):
        keyed().count_window(1, slide)
