"""The plan of a job as JSON."""

import json

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.datastream import (
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
)


class Passed(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class PassedByKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


class BothByKey(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield len(list(elements))


def run(env):
    env.configure(Configuration().set_string("python.operator-chaining.enabled", "false"))
    env.set_parallelism(2)
    number = Types.LONG()
    numbers = env.from_source(
        NumberSequenceSource(1, 10), WatermarkStrategy.no_watermarks(), "numbers", number
    )
    listed = env.from_collection([1, 2, 3], number)

    doubled = listed.map(lambda value: 2 * value, number).name("double").set_parallelism(4)
    even = doubled.filter(lambda value: value % 2 == 0).set_description("even numbers only")
    many = numbers.union(even).rebalance().flat_map(lambda value: [value], number)
    shuffled = many.shuffle().map(lambda value: value, number).name("shuffled")
    rescaled = shuffled.rescale().map(lambda value: value, number).name("rescaled").set_parallelism(1)
    everywhere = rescaled.broadcast().process(Passed(), number)
    everywhere.print().name("everywhere")

    timed = listed.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    keyed = timed.key_by(lambda value: value, number)
    keyed.reduce(lambda a, b: a + b).print().name("reduced")
    keyed.process(PassedByKey(), number).uid("by-key").set_parallelism(3).print().name("passed")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(1)))
    windows.reduce(lambda a, b: a + b, Count(), number).print().name("windows")
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.minutes(1)))
    sessions.process(Count(), number).name("my sessions").print().name("sessions")
    counted = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3))
    counted.process(Count(), number).print().name("global")

    listed.connect(numbers).map(Both(), number).print().name("both")
    paired = listed.connect(numbers).key_by(lambda value: value, lambda value: value, number)
    paired.process(BothByKey(), number).print().name("both by key")
    spread = numbers.partition_custom(lambda key, parts: key % parts, lambda value: value)
    spread.map(lambda value: value, number).name("spread").print().name("partitions")
    return sorted(shown(json.loads(env.get_execution_plan())["nodes"]))


def shown(nodes):
    names = {node["id"]: node["type"] for node in nodes}
    for node in nodes:
        reads = [
            [names[edge["id"]], edge["ship_strategy"], edge["side"]] for edge in node.get("predecessors", [])
        ]
        yield [node["type"], node["pact"], node["contents"], node["parallelism"], *reads]
