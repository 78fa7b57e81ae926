"""Lets the first event of each id pass; what was seen is forgotten after a day."""

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor

EVENTS = [("e1", 5), ("e2", 6), ("e1", 5), ("e3", 7), ("e2", 8), ("e1", 9), ("e4", 1)]


class Deduplicate(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        ttl = (
            StateTtlConfig.new_builder(Time.days(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        descriptor.enable_time_to_live(ttl)
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if self.seen.value() is None:
            self.seen.update(True)
            yield value


def run(env: StreamExecutionEnvironment):
    first = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .process(Deduplicate(), Types.TUPLE([Types.STRING(), Types.INT()]))
    )
    with first.execute_and_collect() as results:
        return list(results)
