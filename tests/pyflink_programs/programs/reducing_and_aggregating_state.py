"""A running maximum in reducing state and a running mean in aggregating state."""

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, ReduceFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor

NUMBERS = [("a", 4), ("b", 10), ("a", 8), ("a", 0), ("b", -2), ("b", 7)]


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Statistics(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.largest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("largest", Larger(), Types.INT())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.INT(), Types.INT()]))
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        before = self.largest.get()
        self.largest.add(value[1])
        self.mean.add(value[1])
        yield value[0], before is None, self.largest.get(), self.mean.get()


def run(env: StreamExecutionEnvironment):
    statistics = (
        env.from_collection(NUMBERS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .process(Statistics(), Types.TUPLE([Types.STRING(), Types.BOOLEAN(), Types.INT(), Types.DOUBLE()]))
    )
    with statistics.execute_and_collect() as results:
        return list(results)
