"""A flat map with state of the key: the mean of every two values, as in the documentation of state."""

from pyflink.common.typeinfo import Types
from pyflink.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class CountWindowAverage(FlatMapFunction):
    def __init__(self):
        self.sum = None

    def open(self, runtime_context: RuntimeContext):
        self.sum = runtime_context.get_state(ValueStateDescriptor("average", Types.PICKLED_BYTE_ARRAY()))

    def flat_map(self, value):
        current_sum = self.sum.value()
        if current_sum is None:
            current_sum = (0, 0)
        current_sum = (current_sum[0] + 1, current_sum[1] + value[1])
        self.sum.update(current_sum)
        if current_sum[0] >= 2:
            self.sum.clear()
            yield value[0], int(current_sum[1] / current_sum[0])


def run(env: StreamExecutionEnvironment):
    means = (
        env.from_collection([(1, 3), (1, 5), (2, 8), (1, 7), (1, 4), (2, 1), (1, 2)])
        .key_by(lambda row: row[0])
        .flat_map(CountWindowAverage())
    )
    with means.execute_and_collect() as results:
        return list(results)
