"""Random jobs whose tasks only exchange messages, each for itself, give what the embedded run gives, in its order."""

from equipment.example_counts import examples
from equipment.message_jobs import collected_by_messages
from equipment.timestamped_source import TimestampedSource
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.element_steps import STEPS, Element
from jobs.source_jobs import ListedSource

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TimeCharacteristic

ALIGNED = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
    "group", Duration.of_millis(10), Duration.of_millis(3)
)
elements = st.lists(st.tuples(st.integers(0, 120), st.sampled_from("abcd"), st.integers(0, 8)), max_size=25)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(elements, min_size=1, max_size=3),
    st.lists(st.sampled_from(sorted(STEPS)), max_size=4),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([300, 1000, 2500]),
    st.sampled_from([1, 7, 200]),
    st.sampled_from([None, ALIGNED, *TimeCharacteristic]),
)
def test_tasks_that_exchange_messages_give_what_one_thread_gives(
    inputs: list[list[Element]],
    steps: list[str],
    parallelism: int,
    chained: bool,
    rate: int,
    interval_ms: int,
    kind: TimeCharacteristic | WatermarkStrategy | None,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_chaining_enabled(chained)
    env.get_config().set_arrival_rate(rate)
    if kind is None:
        stream, *others = [env.from_collection(values) for values in inputs]
    elif isinstance(kind, WatermarkStrategy):
        inputs = inputs[:1]
        splits = {str(split): [(value, value[0]) for value in inputs[0][split::3]] for split in range(3)}
        stream, *others = [env.from_source(TimestampedSource(splits), kind, "splits").set_parallelism(1)]
    else:
        env.set_stream_time_characteristic(kind)
        stream, *others = [env.add_source(ListedSource(values)) for values in inputs]
    env.get_config().set_auto_watermark_interval(interval_ms)
    if others:
        stream = stream.union(*others)
    for step in steps:
        stream = STEPS[step](stream)
    assert collected_by_messages(stream, env) == list(stream.execute_and_collect())
