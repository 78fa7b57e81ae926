"""Lists and maps whose entries live for some time each; what is read may live longer, or be seen after its end."""

import time

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

CLOCK = "system"
EVENTS = ["one", 0.5, "two", 0.5, "three", 1.2, "four"]


def living(descriptor, update_type, visibility):
    config = StateTtlConfig.new_builder(Time.milliseconds(750))
    descriptor.enable_time_to_live(
        config.set_update_type(update_type)
        .set_state_visibility(visibility)
        .cleanup_incrementally(10, True)
        .build()
    )
    return descriptor


class Kept(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        of_writes = StateTtlConfig.UpdateType.OnCreateAndWrite
        of_reads = StateTtlConfig.UpdateType.OnReadAndWrite
        never = StateTtlConfig.StateVisibility.NeverReturnExpired
        self.items = runtime_context.get_list_state(
            living(ListStateDescriptor("items", Types.STRING()), of_writes, never)
        )
        self.lengths = runtime_context.get_map_state(
            living(MapStateDescriptor("lengths", Types.STRING(), Types.INT()), of_writes, never)
        )
        self.first = runtime_context.get_state(
            living(ValueStateDescriptor("first", Types.STRING()), of_reads, never)
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if isinstance(value, float):
            time.sleep(value)
            return
        self.items.add(value)
        self.lengths.put(value, len(value))
        if self.first.value() is None:
            self.first.update(value)
        yield ",".join(self.items.get()), ",".join(sorted(self.lengths.keys())), self.first.value()


def run(env: StreamExecutionEnvironment):
    kept = env.from_collection(EVENTS).key_by(lambda event: "all", Types.STRING()).process(Kept())
    with kept.execute_and_collect() as results:
        return list(results)
