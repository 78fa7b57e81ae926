"""Maps, filters and functions of two inputs that keep state of the key."""

from pyflink.common import Types
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

ORDERED = False

EVENTS = [("a", 3), ("b", 1), ("a", 3), ("a", 5), ("b", 1), ("b", 2), ("a", 5)]
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Changed(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def filter(self, value):
        changed = self.last.value() != value[1]
        self.last.update(value[1])
        return changed


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))

    def map(self, value):
        self.seen.add(value[1])
        return value[0], len(list(self.seen.get()))


class Totals(CoMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def add(self, value):
        self.total.update((self.total.value() or 0) + value)

    def map1(self, value):
        self.add(value[1])

    def map2(self, value):
        self.add(value[1])


class Steps(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.steps = runtime_context.get_map_state(MapStateDescriptor("steps", Types.STRING(), Types.INT()))

    def step(self, side, value):
        self.steps.put(side, (self.steps.get(side) or 0) + 1)
        yield f"{value[0]} {side} {self.steps.get(side)}"

    def flat_map1(self, value):
        return self.step("left", value)

    def flat_map2(self, value):
        return self.step("right", value)


def run(env: StreamExecutionEnvironment):
    def keyed():
        return env.from_collection(EVENTS, PAIR).key_by(lambda event: event[0], Types.STRING())

    outputs = {
        "changed": list(keyed().filter(Changed()).execute_and_collect()),
        "numbered": list(keyed().map(Numbered(), PAIR).execute_and_collect()),
    }
    both = keyed().connect(keyed())
    outputs["totals"] = list(both.map(Totals(), Types.INT()).execute_and_collect())
    both = keyed().connect(keyed())
    outputs["steps"] = list(both.flat_map(Steps(), Types.STRING()).execute_and_collect())
    return outputs
