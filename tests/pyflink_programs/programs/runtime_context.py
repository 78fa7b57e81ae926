"""What a function learns of its task, and metrics of its own."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

# In thread mode PyFlink 2.3 has no indices of subtasks.
MODE = "process"


class Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.task = (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_attempt_number(),
        )
        group = runtime_context.get_metrics_group().add_group("shop").add_group("kind", "pens")
        self.counter = group.counter("sold")
        self.meter = group.meter("rate", time_span_in_seconds=120)
        self.sizes = group.distribution("sizes")
        self.largest = 0
        group.gauge("largest", lambda: self.largest)

    def map(self, value):
        self.counter.inc()
        self.counter.inc(value)
        self.counter.dec(1)
        self.meter.mark_event(value)
        self.sizes.update(value)
        self.largest = max(self.largest, value)
        return value, *self.task, self.counter.get_count() - value


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([3, 5, 8], Types.INT()).map(Measured())
    with numbers.execute_and_collect() as results:
        return [value[:4] for value in results]
