"""Batches of three per key, kept in list state until they are full."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

NUMBERS = [
    ("a", 1),
    ("b", 10),
    ("a", 2),
    ("a", 3),
    ("b", 20),
    ("a", 4),
    ("b", 30),
    ("b", 40),
    ("a", 5),
    ("a", 6),
]


class Batches(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.batch = runtime_context.get_list_state(ListStateDescriptor("batch", Types.INT()))
        self.largest = runtime_context.get_list_state(ListStateDescriptor("largest", Types.INT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        self.batch.add(value[1])
        batch = list(self.batch)
        if len(batch) == 3:
            self.batch.clear()
            self.largest.update([max([*self.largest.get(), *batch])])
            yield value[0], sum(batch), next(iter(self.largest.get()))


def run(env: StreamExecutionEnvironment):
    batches = (
        env.from_collection(NUMBERS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .process(Batches(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]))
    )
    with batches.execute_and_collect() as results:
        return list(results)
