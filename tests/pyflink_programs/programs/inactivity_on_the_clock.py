"""Tells which users have been silent for half a second: each event replaces the timer of the one before."""

import time

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

CLOCK = "system"
EVENTS = [("ann", 0), ("ann", 0), ("ann", 300), ("ben", 1_000), ("ann", 0), ("end", 1_000)]
"""Users, and how many ms the event comes after the one before."""


def when_it_comes(event):
    time.sleep(event[1] / 1000)
    return event[0]


class Inactivity(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))
        self.events = runtime_context.get_state(ValueStateDescriptor("events", Types.LONG()))

    def process_element(self, user, ctx: "KeyedProcessFunction.Context"):
        before = self.timer.value()
        if before is not None:
            ctx.timer_service().delete_processing_time_timer(before)
        timer = ctx.timer_service().current_processing_time() + 500
        ctx.timer_service().register_processing_time_timer(timer)
        self.timer.update(timer)
        self.events.update((self.events.value() or 0) + 1)
        yield user, self.events.value()

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{ctx.get_current_key()} is silent", self.events.value()
        self.timer.clear()
        self.events.clear()


def run(env: StreamExecutionEnvironment):
    env.set_buffer_timeout(0)
    silent = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .map(when_it_comes, Types.STRING())
        .key_by(lambda user: user, key_type=Types.STRING())
        .process(Inactivity(), Types.TUPLE([Types.STRING(), Types.LONG()]))
    )
    with silent.execute_and_collect() as results:
        return list(results)
