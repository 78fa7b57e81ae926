"""Random jobs whose tasks only exchange messages, each for itself, give what the embedded run gives, in its order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.timed_elements import LATE, STRATEGY, Joined, Timers, Windows

pytest.importorskip("pyspark")

from flinkcore.common import Time
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.pipeline_executor import ElementJob
from flinkcore.replay.elements.job_sources import JobSources
from flinkcore.spark.elements.element_task import ElementTask
from flinkcore.spark.elements.messages import PROGRAM, RunRow, merged
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job

Element = tuple[int, str, int]


def as_element(value: Any) -> Element:
    """Return an element like those of the source, whatever a step has made of it."""
    kind, *rest = value if isinstance(value, tuple) else ("other", value)
    number = next((each for each in rest if isinstance(each, int)), 0)
    return abs(number) % 2000, str(kind)[:1] + str(number % 3), number % 9


STEPS: dict[str, Callable[[DataStream], DataStream]] = {
    "map": lambda s: s.map(lambda v: (v[0], v[1], (v[2] + 1) % 9)),
    "filter": lambda s: s.filter(lambda v: v[2] != 3),
    "rebalance": lambda s: s.rebalance(),
    "rescale": lambda s: s.rescale(),
    "shuffle": lambda s: s.shuffle(),
    "broadcast": lambda s: s.broadcast(),
    "twice": lambda s: s.union(s),
    "new chain": lambda s: s.map(lambda v: v).start_new_chain(),
    "watermarks": lambda s: s.assign_timestamps_and_watermarks(STRATEGY),
    "timers": lambda s: s.key_by(lambda v: v[1]).process(Timers()).map(as_element),
    "side output": lambda s: _with_side_output(s),
    "windows": lambda s: (
        s.assign_timestamps_and_watermarks(STRATEGY)
        .key_by(lambda v: v[1])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(25)))
        .process(Windows())
        .map(as_element)
    ),
    "joined": lambda s: (
        s.key_by(lambda v: v[1])
        .connect(s.filter(lambda v: v[2] > 4).key_by(lambda v: v[1]))
        .process(Joined())
        .map(lambda pair: (pair[0][0], pair[0][1], len(pair[1] or ())))
    ),
}


def _with_side_output(stream: DataStream) -> DataStream:
    timers = stream.key_by(lambda v: v[1]).process(Timers())
    return timers.map(as_element).union(timers.get_side_output(LATE))


def collected_by_messages(stream: DataStream, env: StreamExecutionEnvironment) -> list[Any]:
    """Run every task of a job for itself, and merge what they send to the program."""
    configuration = env.get_config()
    planned = ShippedJob(ElementJob("job", (), stream._transformation), configuration, 0)
    sources = JobSources(planned.vertices, configuration).of_tasks()
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


elements = st.lists(st.tuples(st.integers(0, 120), st.sampled_from("abcd"), st.integers(0, 8)), max_size=25)


@settings(deadline=None, max_examples=120)
@given(
    st.lists(elements, min_size=1, max_size=3),
    st.lists(st.sampled_from(sorted(STEPS)), max_size=4),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([300, 1000, 2500]),
    st.sampled_from([1, 7, 200]),
)
def test_tasks_that_exchange_messages_give_what_one_thread_gives(
    inputs: list[list[Element]],
    steps: list[str],
    parallelism: int,
    chained: bool,
    rate: int,
    interval_ms: int,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_chaining_enabled(chained)
    env.get_config().set_arrival_rate(rate)
    env.get_config().set_auto_watermark_interval(interval_ms)
    stream, *others = [env.from_collection(values) for values in inputs]
    if others:
        stream = stream.union(*others)
    for step in steps:
        stream = STEPS[step](stream)
    assert collected_by_messages(stream, env) == list(stream.execute_and_collect())
