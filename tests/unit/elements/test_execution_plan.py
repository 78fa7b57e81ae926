"""The plan of a job: its operators and their edges as JSON."""

import json
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import OutputTag, Time, Types
from flinkcore.datastream import (
    CoGroupFunction,
    MapFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError

LATE = OutputTag("late", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield LATE, value


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def nodes_of(env: StreamExecutionEnvironment) -> list[dict[str, Any]]:
    plan = json.loads(env.get_execution_plan())
    assert list(plan) == ["nodes"]
    nodes: list[dict[str, Any]] = plan["nodes"]
    return nodes


def test_a_plan_is_what_the_visualizer_reads(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1, 2], Types.INT()).map(lambda number: number, Types.INT())
    numbers.set_description("as they are").print()
    assert nodes_of(env) == [
        {
            "id": 1,
            "type": "Source: Collection Source",
            "pact": "Data Source",
            "contents": "Source: Collection Source",
            "parallelism": 1,
        },
        {
            "id": 2,
            "type": "Map",
            "pact": "Operator",
            "contents": "as they are",
            "parallelism": 2,
            "predecessors": [{"id": 1, "ship_strategy": "REBALANCE", "side": "second"}],
        },
        {
            "id": 3,
            "type": "Sink: Print to Std. Out",
            "pact": "Data Sink",
            "contents": "Sink: Print to Std. Out",
            "parallelism": 2,
            "predecessors": [{"id": 2, "ship_strategy": "FORWARD", "side": "second"}],
        },
    ]


def test_a_plan_leaves_the_job_to_be_executed(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    env.set_parallelism(1).from_collection([1], Types.INT()).print()
    assert nodes_of(env) == nodes_of(env)
    env.execute()
    assert capsys.readouterr().out == "1\n"
    with pytest.raises(ConfigurationError, match="No operators defined in streaming topology"):
        env.get_execution_plan()


def test_sinks_come_last_and_a_side_output_is_read_from_its_operator(env: StreamExecutionEnvironment) -> None:
    split = env.from_collection([1], Types.INT()).process(Split(), Types.INT()).name("split")
    split.print()
    split.get_side_output(LATE).map(lambda number: number).name("late").print("late")
    nodes = nodes_of(env)
    assert [node["pact"] for node in nodes] == [
        "Data Source",
        "Operator",
        "Operator",
        "Data Sink",
        "Data Sink",
    ]
    ids = {node["type"]: node["id"] for node in nodes}
    late = next(node for node in nodes if node["type"] == "late")
    assert [edge["id"] for edge in late["predecessors"]] == [ids["split"]]


def test_a_job_that_cannot_run_has_no_plan(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).forward().map(lambda number: number).print()
    with pytest.raises(ConfigurationError, match="forward leads from 1 subtasks"):
        env.get_execution_plan()


def test_streams_have_the_names_that_pyflink_gives_them(env: StreamExecutionEnvironment) -> None:
    class Doubled(MapFunction):
        def map(self, value: int) -> int:
            return 2 * value

    numbers = env.from_collection([(1, 2)], Types.TUPLE([Types.INT(), Types.INT()]))
    assert numbers.get_name() == "Collection Source"
    assert numbers.map(Doubled()).get_name() == "Map"
    assert numbers.filter(lambda pair: True).get_name() == "Filter"
    assert numbers.process(Split()).get_name() == "PROCESS"
    assert numbers.project(0).get_name() == "Projection"
    assert numbers.key_by(lambda pair: pair[0]).sum(1).get_name() == "Reduce"


def test_joins_in_windows_are_operators_of_the_plan(env: StreamExecutionEnvironment) -> None:
    class Both(CoGroupFunction):
        def co_group(self, first: Any, second: Any) -> Any:
            yield {"n": len(list(first)) + len(list(second))}

    log = pa.table({"time": [1, 2], "key": [1, 1]})
    left, right = (env.from_event_log(log, timestamp="time") for _ in range(2))
    grouped = (
        left.co_group(right).where("key").equal_to("key").window(TumblingEventTimeWindows.of(Time.seconds(1)))
    )
    grouped.apply(Both(), pa.schema({"n": pa.int64()})).map(lambda row: row.n, Types.LONG()).print()
    joined = next(node for node in nodes_of(env) if node["type"] == "Window Join")
    assert [edge["ship_strategy"] for edge in joined["predecessors"]] == ["HASH", "HASH"]
    assert [node["type"] for node in nodes_of(env) if node["pact"] == "Data Source"] == [
        "Source: Event Log"
    ] * 2


def test_keys_are_computed_by_an_operator_of_the_plan_once_for_each_keyed_stream(
    env: StreamExecutionEnvironment,
) -> None:
    first, second = env.from_collection([1], Types.INT()), env.from_collection([2], Types.INT())
    keyed = first.union(second).key_by(lambda number: number)
    keyed.reduce(lambda a, b: a + b).print()
    keyed.map(lambda number: number).set_parallelism(3).print()
    nodes = nodes_of(env)
    (computed,) = [node for node in nodes if node["type"] == "_stream_key_by_map_operator"]
    assert computed["parallelism"] == 1
    assert [edge["ship_strategy"] for edge in computed["predecessors"]] == ["FORWARD", "FORWARD"]
    readers = [node for node in nodes if node["type"] in ("Reduce", "Map")]
    assert [node["predecessors"] for node in readers] == [
        [{"id": computed["id"], "ship_strategy": "HASH", "side": "second"}]
    ] * 2
    assert [node["id"] for node in nodes if node["pact"] != "Data Sink"] == [1, 2, 3, 4, 6]


def test_what_has_no_use_for_keys_reads_the_values_of_a_keyed_stream(env: StreamExecutionEnvironment) -> None:
    pair = Types.TUPLE([Types.INT(), Types.INT()])
    first, second = (env.from_collection([(1, 2)], pair).key_by(lambda pair: pair[0]) for _ in range(2))
    first.union(second).print()
    second.project(1).print()
    nodes = nodes_of(env)
    shown = {
        node["id"]: (
            node["type"],
            node["parallelism"],
            *(edge["ship_strategy"] for edge in node["predecessors"]),
        )
        for node in nodes
        if node["pact"] != "Data Source"
    }
    values = ("_keyed_stream_values_operator", 2, "HASH")
    assert sorted(shown.values()) == sorted(
        [
            *[("_stream_key_by_map_operator", 1, "FORWARD")] * 2,
            *[values] * 3,
            ("Projection", 2, "FORWARD"),
            ("Sink: Print to Std. Out", 2, "FORWARD", "FORWARD"),
            ("Sink: Print to Std. Out", 2, "FORWARD"),
        ]
    )
    united, projected = (node for node in nodes if node["pact"] == "Data Sink")
    assert {shown[edge["id"]] for edge in united["predecessors"]} == {values}
    assert [shown[edge["id"]][0] for edge in projected["predecessors"]] == ["Projection"]
