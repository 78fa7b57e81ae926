"""Chains of operators, their levels, and how metrics of their tasks are brought together."""

import pytest

from flinkcore.common import ExecutionConfig
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.elements.tasks.stream_graph import JobVertex, StreamGraphGenerator, job_vertices
from flinkcore.errors import ConfigurationError
from flinkcore.operators.metrics.histogram import DescriptiveStatisticsHistogram
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup, values_of_tasks


def vertices_of(stream: DataStream, parallelism: int) -> list[JobVertex]:
    configuration = ExecutionConfig().set_parallelism(parallelism)
    return job_vertices(
        StreamGraphGenerator(ElementJob("job", (), stream._transformation), configuration).generate()
    )


def test_a_vertex_is_a_chain_and_its_level_the_longest_way_from_a_source() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1])
    short = numbers.map(lambda value: value).name("short")
    long = short.key_by(lambda value: value).map(lambda value: value).name("long").filter(bool).name("kept")
    vertices = vertices_of(long.union(short), 2)
    names = [[node.name for node in vertex.nodes] for vertex in vertices]
    assert names == [["Collection Source"], ["short"], ["long", "kept"], ["Collect"]]
    assert [vertex.level for vertex in vertices] == [0, 1, 2, 3]
    assert [list(vertex.tasks) for vertex in vertices] == [[0], [1, 2], [3, 4], [5]]
    assert [vertex.channels(0) for vertex in vertices] == [0, 1, 2, 4]


def test_a_job_of_one_subtask_without_keys_is_one_chain() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1])
    (vertex,) = vertices_of(numbers.map(str).filter(bool), 1)
    assert vertex.head.name == "Collection Source"
    assert len(vertex.nodes) == 4


def test_metrics_of_one_name_are_one_metric() -> None:
    groups = [TaskMetricGroup(), TaskMetricGroup()]
    for number, group in enumerate(groups):
        inner = group.add_group("shop")
        inner.counter("sold").inc(number + 2)
        inner.meter("rate").mark_event(10)
        inner.gauge("last", lambda number=number: number)
        for value in range(number * 3):
            inner.distribution("sizes").update(value)
    groups[1].counter("own").dec()
    assert values_of_tasks(group.held() for group in groups) == {
        "shop.sold": 5,
        "shop.rate": 20,
        "shop.last": 1,
        "shop.sizes": {"count": 3, "sum": 3, "min": 0, "max": 2},
        "own": -1,
    }


def test_a_histogram_of_several_tasks_counts_all_values_and_keeps_the_last_ones_of_each() -> None:
    groups = [TaskMetricGroup(), TaskMetricGroup()]
    histograms = [DescriptiveStatisticsHistogram(2) for _ in groups]
    for group, histogram, values in zip(groups, histograms, ([1, 2, 3], [10, 20, 30]), strict=True):
        group.histogram("latency", histogram)
        for value in values:
            histogram.update(value)
    found = values_of_tasks(group.held() for group in groups)["latency"]
    assert (found["count"], found["min"], found["max"], found["mean"]) == (6, 2, 30, 13.75)
    assert [histogram.count for histogram in histograms] == [3, 3]


def test_held_metrics_stay_as_they_are() -> None:
    group, histogram = TaskMetricGroup(), DescriptiveStatisticsHistogram(2)
    counter, sizes = group.counter("sold"), group.distribution("sizes")
    group.histogram("latency", histogram)
    held = group.held()
    counter.inc()
    sizes.update(1)
    histogram.update(1)
    assert held["sold"].value == held["sizes"].value["count"] == held["latency"].value["count"] == 0


def test_metrics_of_one_name_and_two_kinds_are_refused() -> None:
    first, second = TaskMetricGroup(), TaskMetricGroup()
    first.counter("sold")
    second.meter("sold")
    with pytest.raises(
        ConfigurationError, match="the metric sold is a TaskCounter in one task and a TaskMeter"
    ):
        values_of_tasks([first.held(), second.held()])
