"""Counts the events of each id; what was counted is forgotten after a second without an event of that id."""

import time

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor

CLOCK = "system"
PAUSE = "pause"
EVENTS = ["a", "b", "a", PAUSE, "b", "a", "a"]


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("count", Types.INT())
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Time.seconds(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if value == PAUSE:
            time.sleep(1.2)
            return
        before = self.count.value() or 0
        self.count.update(before + 1)
        yield value, before + 1


def run(env: StreamExecutionEnvironment):
    counts = (
        env.from_collection(EVENTS, Types.STRING())
        .key_by(lambda value: value, key_type=Types.STRING())
        .process(Count(), Types.TUPLE([Types.STRING(), Types.INT()]))
    )
    with counts.execute_and_collect() as results:
        return list(results)
