"""What is not a list, in states that are declared lists, and what adds to lists that are there."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

NUMBERS = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]


class Keep(KeyedProcessFunction):
    def open(self, runtime_context):
        of_numbers = Types.LIST(Types.INT())
        self.latest = runtime_context.get_state(ValueStateDescriptor("latest", of_numbers))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", of_numbers))
        self.named = runtime_context.get_map_state(MapStateDescriptor("named", Types.STRING(), of_numbers))
        self.joined = runtime_context.get_reducing_state(
            ReducingStateDescriptor("joined", lambda one, other: list(one) + list(other), of_numbers)
        )

    def process_element(self, value, ctx):
        pair = (value[1], 10 * value[1])
        before = self.latest.value()
        self.latest.update(pair)
        self.all.add(pair)
        self.all.add_all([pair[:1], ()])
        self.named.put(value[0], pair)
        self.joined.add(pair)
        yield repr([before, self.latest.value(), list(self.all.get())])
        yield repr([list(self.named.items()), self.joined.get()])
        if value[1] == 2:
            self.all.update([(), pair])
            self.named.put("x", [*self.latest.value(), 7])
            yield repr([list(self.all), sorted(self.named.values())])


def run(env):
    pairs = Types.TUPLE([Types.STRING(), Types.INT()])
    stream = env.from_collection(NUMBERS, pairs).key_by(lambda pair: pair[0], Types.STRING())
    with stream.process(Keep(), Types.STRING()).execute_and_collect() as results:
        return list(results)
