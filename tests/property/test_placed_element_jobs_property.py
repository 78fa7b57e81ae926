"""Random jobs whose tasks only exchange messages, each for itself, give what the embedded run gives, in its order."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.element_steps import STEPS, Element
from models.source_jobs import ListedSource
from models.timestamped_source import TimestampedSource

pytest.importorskip("pyspark")

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TimeCharacteristic
from flinkcore.datastream.pipeline_executor import ElementJob
from flinkcore.replay.elements.job_sources import JobSources
from flinkcore.runtime.working_directory import WorkingDirectory
from flinkcore.spark.elements.element_task import ElementTask
from flinkcore.spark.elements.messages import PROGRAM, RunRow, merged
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job


def collected_by_messages(stream: DataStream, env: StreamExecutionEnvironment) -> list[Any]:
    """Run every task of a job for itself, and merge what they send to the program."""
    configuration = env.get_config()
    job_of_stream = ElementJob("job", (), stream._transformation, env.get_stream_time_characteristic())
    planned = ShippedJob(job_of_stream, configuration, 0)
    time_characteristic = planned.job.time_characteristic
    sources = JobSources(planned.vertices, configuration, time_characteristic, WorkingDirectory()).of_tasks()
    job: ShippedJob = shipped_job(planned.pickled())
    rows: list[RunRow] = []
    for level in job.levels:
        sent = []
        for task in level:
            given_rows = sorted(
                (row for row in rows if row.target == task), key=lambda row: (row.first_key, row.payload)
            )
            running = ElementTask(job, task)
            runs = (
                running.read(sources[task]) if task in sources else running.receive(merged(iter(given_rows)))
            )
            sent += [row for some in runs for row in some]
        rows += sent
    for_program = sorted((row for row in rows if row.target == PROGRAM), key=lambda row: row.first_key)
    return [value for _, _, value, _ in merged(iter(for_program))]


ALIGNED = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
    "group", Duration.of_millis(10), Duration.of_millis(3)
)
elements = st.lists(st.tuples(st.integers(0, 120), st.sampled_from("abcd"), st.integers(0, 8)), max_size=25)


@settings(deadline=None, max_examples=120)
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
